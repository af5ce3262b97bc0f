"""`history verify`: whether the journal is as it was written."""

import sys
from pathlib import Path

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.json_text import print_json
from whisper_tui.model.home import Home
from whisper_tui.model.text import visible


def verify(home: Home, noted: str | None, *, as_json: bool) -> int:
    """Follow the chain of the journal, and say where it ends or breaks."""
    from whisper_tui.supervisor.chain import Head, check_file

    path = Path(home.state) / "journal.sqlite"
    verdict = check_file(path, Head.parse(noted) if noted is not None else None)
    end = verdict.head.text() if verdict.head is not None else None
    if as_json:
        row = {"journal": str(path), "events": verdict.events, "end": end, "problem": verdict.problem}
        print_json(row)
    elif verdict.problem is None:
        sys.stdout.write(f"{path} is as it was written: {verdict.events:,} events, each linked to all before it\n")
        if end is not None:
            sys.stdout.write(f"Its end is {end}\nNote it elsewhere: history verify --head END then also finds a cut\n")
    else:
        sys.stderr.write(f"whisper-tui: {path}: {visible(verdict.problem)}\n")
    return DONE if verdict.problem is None else REFUSED
