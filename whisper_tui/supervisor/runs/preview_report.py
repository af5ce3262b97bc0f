"""The report of a preview: how its command ended, what it could not reach, and why its changes cannot be applied."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whisper_tui.effects.changes import printable
from whisper_tui.model.preview import MOST_LISTED, BlockedAccess, ChangeCounts, PreviewReport
from whisper_tui.supervisor.preview.confined import leaks_of
from whisper_tui.supervisor.preview.preview_process import WAS_KILLED
from whisper_tui.supervisor.runs.executor import HasEnded
from whisper_tui.supervisor.runs.preview_changes import MOST_NAMED, PreviewStore, named

REPORT = "report.json"
CHANGED_MEANWHILE = " changed while it ran"
"""The end of a problem: somebody else has changed what a command read or wrote."""
_ONLY_IN_COPIES = ("write", "change", "reach")
"""Refusals that a preview on overlays does not have: without them the command would have done something else."""


def report_of(store: PreviewStore, ended: HasEnded, workspace: str) -> PreviewReport:
    """Return what a preview has found. Raises `OSError`, `ValueError`."""
    try:
        said: dict[str, Any] = json.loads(Path(store.directory, REPORT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return PreviewReport(
            ending=ended.ending, output=ended.output, problem=f"{WAS_KILLED}, so how far it came is not known"
        )
    way, is_read = said.get("way", "overlay"), store.exists
    # Devices first: the list is cut off, and a command can try any number of machines and sockets.
    blocked = [BlockedAccess(what="device", target=named(path)) for path in said.get("devices", ())]
    blocked += [
        BlockedAccess(what="network", target=named(each), times=times) for each, times in said.get("network", ())
    ]
    blocked += [
        BlockedAccess(what="socket", target=named(each), times=times) for each, times in said.get("sockets", ())
    ]
    blocked += [BlockedAccess(what=what, target=named(path)) for what, path in said.get("refused", ())]
    return PreviewReport(
        ending=ended.ending,
        output=ended.output,
        seconds=max(0.0, float(said.get("seconds", 0.0))),
        digest=store.digest() if is_read else "",
        counts=store.counts(workspace) if is_read else ChangeCounts(),
        blocked=tuple(blocked[:MOST_LISTED]),
        more_blocked=max(0, len(blocked) - MOST_LISTED) + int(said.get("more_refused", 0)),
        left=tuple(named(each) for each in said.get("left", ())[:MOST_LISTED]),
        stopped=said.get("over", ""),
        problem=_problem(store, blocked) if is_read else "it ran without writing, so there is nothing to apply",
        way=way,
        instead=tuple((each, named(reason)) for each, reason in said.get("instead", ())),
    )


def _problem(store: PreviewStore, blocked: Sequence[BlockedAccess]) -> str:
    """Return why changes cannot be applied, as a clause. Empty: they can."""
    meanwhile = [printable(path) for path in store.plan.meanwhile]
    if meanwhile:
        return f"{', '.join(meanwhile[:MOST_NAMED])}{CHANGED_MEANWHILE}"
    if leaks := leaks_of(store.directory):
        return f"{printable(leaks[0])} has the path of the copy in it"
    if devices := [access.target for access in blocked if access.what == "device"]:
        return f"a real run may write to {devices[0]}"
    refused = [access.target or "another machine" for access in blocked if access.what in _ONLY_IN_COPIES]
    return f"its copy of the workspace kept it from {refused[0]}" if refused else ""
