"""`history verify`, `history refused` and `history rules`: the journal's own report, read without a supervisor."""

import sys
import time
from pathlib import Path
from typing import Literal

from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, REFUSED
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.system.state_directory import Directories

OUTSIDE = (
    "The chain does not cover the search index, the other tables of the journal, the environments of sessions, and the "
    "times at which output arrived"
)
MOST_NAMED = 20
"""Calls with changed output that are named at most."""


def verify(home: Directories, noted: str | None, *, as_json: bool) -> int:
    """Verify the journal's hash chain and the recorded output, and print the result."""
    from whisper_tui.supervisor.journal.sqlite_file import Head, check_file
    from whisper_tui.supervisor.runs.output_files import check_outputs

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
        sys.stdout.write(f"{path} is unchanged: {verdict.events:,} events, each linked to the one before it\n")
    if outputs is not None:
        sys.stdout.write(_compared(outputs.checked, outputs.gone, len(outputs.changed)))
    if problem is not None:
        sys.stderr.write(f"whisper-tui: {path}: {visible(problem)}\n")
        return REFUSED
    if end is not None:
        sys.stdout.write(f"{OUTSIDE}\n")
        sys.stdout.write(f"The chain ends at {end}\n")
        sys.stdout.write(
            "Keep this elsewhere: with it, history verify --head END also finds that events were cut off\n"
        )
    return DONE


def _compared(checked: int, gone: int, changed: int) -> str:
    said = f"The recorded output of {checked - changed:,} of {count(checked, 'run')} is unchanged"
    return said + (f"; that of {count(gone, 'other')} is no longer kept\n" if gone else "\n")


def _changed(call_ids: tuple[str, ...]) -> str | None:
    if not call_ids:
        return None
    named, left = ", ".join(call_ids[:MOST_NAMED]), len(call_ids) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    return f"the recorded output of call{'s' if len(call_ids) > 1 else ''} {named}{more} was changed after the run"


KINDS = {"refused": "attempt_refused", "rules": "rules_changed"}
NOTHING = {
    "refused": "There were no refused attempts to decide",
    "rules": "The files of rules are as they were when whisper_tui began to look at them",
}

# The events themselves are read, not the tables beside them, because only events are in the hash chain.
_NEWEST = "SELECT body FROM events WHERE instr(body, ?) ORDER BY seq DESC"


def notices(home: Directories, about: Literal["refused", "rules"], limit: int, *, as_json: bool) -> int:
    """Print the newest of these events, newest first. Needs no supervisor and starts none."""
    from whisper_tui.model.event import EVENT, AttemptRefused, RulesChanged
    from whisper_tui.present.security_text import refused_sentence, rules_sentence

    told = []
    for body in _bodies(Path(home.state) / "journal.sqlite", KINDS[about]):
        event = EVENT.validate_json(body)
        if isinstance(event, AttemptRefused):
            sentence: str | None = refused_sentence(event)
        else:
            sentence = rules_sentence(event) if isinstance(event, RulesChanged) else None
        if sentence is not None:
            told.append((event, sentence))
        if len(told) >= limit:
            break
    if as_json:
        print_json([event.model_dump(mode="json") for event, _ in told])
        return DONE
    for event, sentence in told:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
        sys.stdout.write(f"{at}  {sentence}\n")
    if not told:
        sys.stdout.write(f"{NOTHING[about]}\n")
    return DONE


def _bodies(path: Path, kind: str) -> list[str]:
    from whisper_tui.supervisor.journal.sqlite_file import read_rows

    return [body for (body,) in read_rows(path, _NEWEST, f'"kind":"{kind}"')]
