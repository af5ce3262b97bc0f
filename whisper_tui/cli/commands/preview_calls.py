"""`preview`: what a waiting call would change."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from whisper_tui.cli.commands.approve import decider, edited_spec
from whisper_tui.cli.output_format import print_json, styled_diff
from whisper_tui.cli.subcommand import DONE, Options, Subcommands, supervisor_of
from whisper_tui.model.errors import Refused
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count, size
from whisper_tui.wire.light_client import LightClient

POLL_S = 0.05
"""Seconds between two looks at a preview that runs."""
PAGE = 1000
MOST_PRINTED = 200
"""Changes that are printed; `--json` prints all."""
NOT_APPLICABLE = 1
"""Exit code if the preview was made and its changes cannot be applied."""

SIGNS = {"creates": "A", "links": "A", "changes": "M", "replaces": "M", "deletes": "D", "attributes": "P"}


def add_preview(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    preview = verbs.add(
        "preview",
        "run a waiting command in a copy-on-write view of the files, and show what it changes",
        _preview,
        details="The real files stay as they are, and no other machine is reached. approve --as-previewed then applies "
        "exactly these changes, without running the command again.",
        examples=("preview 7 --diff", "preview 7 --command 'rm -r build'"),
    )
    preview.add_argument("id", metavar="ID", help="number of the call")
    preview.add_argument("--diff", action="store_true", help="print the differences in the contents of the files")
    preview.add_argument("--drop", action="store_true", help="end a preview that runs, and discard its changes")
    preview.add_argument(
        "--command", metavar="TEXT", help="preview this instead; approve --as-previewed then approves it as an edit"
    )
    preview.add_argument("--cwd", metavar="DIR", help="preview it in this directory instead")
    preview.add_argument("--json", action="store_true", help="print one object: the report and all changes")


def _preview(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        if options.drop:
            supervisor.ask("drop_preview", call_id=options.id, by=decider())
            sys.stdout.write(f"The preview of call {visible(options.id)} was dropped\n")
            return DONE
        row = supervisor.ask("rows", kind="show", call_id=options.id)[0]
        report = preview_of(supervisor, options.id, edited_spec(row, options))
        changes = list(changes_of(supervisor, options.id)) if report["digest"] else []
        if options.json:
            print_json({"report": report, "changes": changes})
        else:
            _print_report(report)
            print_changes(changes)
            if options.diff:
                _print_diffs(supervisor, options.id, changes)
    return NOT_APPLICABLE if report["problem"] else DONE


def preview_of(supervisor: LightClient, call_id: str, edited: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the report of the preview of a waiting call, as JSON; it is started if there is none of this command."""
    preview = supervisor.ask("record", call_id=call_id)["preview"]
    if preview is None or preview["dropped"] or (edited is not None and preview["edited"] != edited):
        supervisor.ask("preview", call_id=call_id, by=decider(), edited=edited)
    try:
        while True:
            preview = supervisor.ask("record", call_id=call_id)["preview"]
            if preview is None or preview["dropped"]:
                raise Refused(
                    f"the preview of call {call_id} was ended", hint="Somebody ended it, or decided meanwhile"
                )
            if preview["report"] is not None:
                return dict(preview["report"])
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        supervisor.ask("drop_preview", call_id=call_id, by=decider())
        raise


def changes_of(supervisor: LightClient, call_id: str) -> Iterator[dict[str, Any]]:
    """Yield all changes of a call, as JSON."""
    after = 0
    while True:
        page = supervisor.ask("preview_page", call_id=call_id, after=after, limit=PAGE)
        yield from page["changes"]
        after += len(page["changes"])
        if after >= page["total"] or not page["changes"]:
            return


def _print_report(report: dict[str, Any]) -> None:
    counts = report["counts"]
    parts = [
        f"{count(counts[name], 'file')} {word}"
        for name, word in ((each, each) for each in ("created", "changed", "deleted", "renamed"))
        if counts.get(name)
    ]
    if report["ending"]["kind"] == "failed_to_start":
        sys.stdout.write(f"It was not previewed. {_ending(report['ending'])}\n")
    else:
        none = "It could write nothing" if report["way"] == "read-only" else "No file changes"
        sys.stdout.write(f"{', '.join(parts) or none}. {_ending(report['ending'])}\n")
    if counts["outside"]:
        sys.stdout.write(f"! {count(counts['outside'], 'change')} outside the workspace\n")
    if report["blocked"] or report["way"] != "overlay":
        _print_way(report)
    for line in report["left"]:
        sys.stdout.write(f"! it left behind: {visible(line)}; a preview ends it\n")
    if report["stopped"]:
        # Imported here, because it loads the model, which no other answer needs.
        from whisper_tui.present.preview_text import STOPPED

        sys.stdout.write(f"! {STOPPED[report['stopped']]}\n")
    if report["problem"] and report["ending"]["kind"] != "failed_to_start":
        sys.stdout.write(f"! Its changes cannot be applied: {visible(report['problem'])}.\n")


def _print_way(report: dict[str, Any]) -> None:
    """Print how it was previewed, and what it tried in vain."""
    # The values of calls load slowly, and most previews need no such words.
    from whisper_tui.model.preview import PreviewReport
    from whisper_tui.present.preview_text import blocked_text, way_text

    found = PreviewReport.model_validate(report)
    sys.stdout.writelines(f"{sentence}\n" for sentence in way_text(found))
    sys.stdout.writelines(f"! {blocked_text(access, found.way)}\n" for access in found.blocked)


def _ending(ending: dict[str, Any]) -> str:
    match ending["kind"]:
        case "exited":
            return f"Exit code {ending['code']}."
        case "signalled":
            return f"Ended by signal {ending['number']}."
        case "failed_to_start":
            return visible(ending["message"])
        case _:
            return f"It {ending['kind'].replace('_', ' ')}."


def print_changes(changes: list[dict[str, Any]]) -> None:
    """Print one line for each change."""
    for change in _without_renamed(changes[:MOST_PRINTED]):
        sys.stdout.write(f"{line_of(change)}\n")
    if len(changes) > MOST_PRINTED:
        sys.stdout.write(f"and {len(changes) - MOST_PRINTED:,} more; --json prints all\n")


def line_of(change: dict[str, Any]) -> str:
    """Return one change on a line."""
    bytes_now = "" if change["size_after"] is None else f"  {size(change['size_after'])}"
    flags = "".join(f"  ! {flag}" for flag in change["flags"])
    outside = "  ! outside the workspace" if change["outside"] else ""
    below = f" with {count(change['below'], 'entry', 'entries')}" if change["below"] else ""
    old = visible(change.get("moved_from") or "")
    alike = f"  {change['alike']}% the same" if old and change["alike"] < 100 else ""
    marks = f"{below}{bytes_now}{alike}{outside}{flags}"
    sign = f"R renamed {old} →" if old else SIGNS[change["action"]]
    return f"{sign} {visible(change['path'])}{marks}"


def _without_renamed(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes without those that the row of another one says: old names, and what is in renamed trees."""
    paths = {change["path"] for change in changes}
    trees = tuple(f"{each['path']}/" for each in changes if each.get("moved_from") and each["kind"] == "directory")

    def is_said(change: dict[str, Any]) -> bool:
        if change["flags"] or change["outside"]:
            return False
        alike = change.get("alike")
        is_same = alike == 100 or (alike is not None and change["kind"] == "directory")
        return change.get("moved_to") in paths or (is_same and change["path"].startswith(trees))

    return [change for change in changes if not is_said(change)]


def _print_diffs(supervisor: LightClient, call_id: str, changes: list[dict[str, Any]]) -> None:
    print_diffs(lambda number: supervisor.ask("preview_versions", call_id=call_id, number=number), changes)


def print_diffs(versions: Callable[[int], dict[str, Any]], changes: list[dict[str, Any]]) -> None:
    """Print the differences in the contents of changed files. `versions` returns both contents of one."""
    from difflib import unified_diff

    for change in _without_renamed(changes[:MOST_PRINTED]):
        if change["kind"] == "directory" or change["action"] == "attributes":
            continue
        old_path = visible(change.get("moved_from") or change["path"])
        if change.get("moved_from"):
            sys.stdout.write(f"similarity index {change['alike']}%\nrename from {old_path}\n")
            sys.stdout.write(f"rename to {visible(change['path'])}\n")
        found = versions(change["number"])
        path = visible(change["path"])
        if found["not_shown"]:
            sys.stdout.write(f"--- {path}\n  not shown: {visible(found['not_shown'])}\n")
            continue
        old, new = ((found[side] or "").splitlines() for side in ("old", "new"))
        for line in unified_diff(old, new, old_path, path, lineterm=""):
            sys.stdout.write(f"{styled_diff(visible(line))}\n")
