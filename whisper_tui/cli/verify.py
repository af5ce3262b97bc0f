"""`history verify`: whether the journal is as it was written."""

import sys
from pathlib import Path

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.json_text import print_json
from whisper_tui.model.home import Home
from whisper_tui.model.text import visible
from whisper_tui.tui.words import count

OUTSIDE = (
    "Not in the chain are the search index, the lists made from the journal, the environments of sessions, and the "
    "times at which output came"
)
MOST_NAMED = 20
"""Calls that are named whose output was changed."""


def verify(home: Home, noted: str | None, *, as_json: bool) -> int:
    """Follow the chain of the journal, say where it ends or breaks, and compare the output that is kept with it."""
    from whisper_tui.supervisor.chain import Head, check_file
    from whisper_tui.supervisor.output_digest import check_outputs

    path = Path(home.state) / "journal.sqlite"
    verdict = check_file(path, Head.parse(noted) if noted is not None else None)
    end = verdict.head.text() if verdict.head is not None else None
    outputs = check_outputs(path, str(Path(home.state) / "runs")) if verdict.problem is None else None
    problem = verdict.problem or (_changed(outputs.changed) if outputs is not None else None)
    if as_json:
        row = {"journal": str(path), "events": verdict.events, "end": end, "problem": problem}
        print_json(row | {"outputs": outputs._asdict() if outputs is not None else None})
        return DONE if problem is None else REFUSED
    if verdict.problem is None:
        sys.stdout.write(f"{path} is as it was written: {verdict.events:,} events, each linked to all before it\n")
    if outputs is not None:
        sys.stdout.write(_compared(outputs.checked, outputs.gone, len(outputs.changed)))
    if problem is not None:
        sys.stderr.write(f"whisper-tui: {path}: {visible(problem)}\n")
        return REFUSED
    if end is not None:
        sys.stdout.write(f"{OUTSIDE}\n")
        sys.stdout.write(f"Its end is {end}\nNote it elsewhere: history verify --head END then also finds a cut\n")
    return DONE


def _compared(checked: int, gone: int, changed: int) -> str:
    said = f"The recorded output of {checked - changed:,} of {count(checked, 'run')} is as it was"
    return said + (f"; that of {count(gone, 'other')} is no longer kept\n" if gone else "\n")


def _changed(call_ids: tuple[str, ...]) -> str | None:
    if not call_ids:
        return None
    named, left = ", ".join(call_ids[:MOST_NAMED]), len(call_ids) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    return f"the recorded output of call{'s' if len(call_ids) > 1 else ''} {named}{more} was changed after the run"
