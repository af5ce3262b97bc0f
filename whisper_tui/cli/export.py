"""`export`: calls as JSON lines, a run as a terminal recording, a session as a report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import InvalidRequest

if TYPE_CHECKING:
    from whisper_tui.model.home import Home

FORMATS = ("jsonl", "asciicast", "asciicast3", "markdown")


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "export",
        "write calls as JSON lines, a run as a terminal recording, or a session as a report",
        _export,
        details="Without calls and without --session, `jsonl` is every call ever. A recording is of one call: "
        "`asciicast` is version 2 of that format, `asciicast3` version 3. `markdown` is a report of calls or sessions.",
    )
    parser.add_argument("calls", nargs="*", metavar="CALL", help="number of a call")
    parser.add_argument("--session", metavar="NAME", help="all calls of the sessions with this name or id")
    parser.add_argument("--format", choices=FORMATS, required=True, help="what is written")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there, readable by you alone, not to stdout")


def _export(options: Options) -> int:
    if options.calls and options.session is not None:
        raise InvalidRequest("name calls or a session, not both", hint="Leave one of them out")
    import asyncio

    return asyncio.run(_write(home_of(options), options))


async def _write(home: "Home", options: Options) -> int:
    from whisper_tui.export.calls import board_of_now, sessions_named
    from whisper_tui.export.document import Wanted, document, save
    from whisper_tui.wire.client import RemoteSupervision

    supervision = await RemoteSupervision.connect(home)
    try:
        sessions = await sessions_named(supervision, options.session) if options.session is not None else ()
        known = (await board_of_now(supervision)).sessions | {session.id: session for session in sessions}
        wanted = Wanted(tuple(options.calls), sessions)
        texts = document(supervision, wanted, options.format, known)
        if options.output is not None:
            size = await save(texts, Path(options.output))
            sys.stderr.write(f"whisper-tui: {size:,} bytes were written to {options.output}\n")
        else:
            async for text in texts:
                sys.stdout.write(text)
    finally:
        await supervision.close()
    return DONE
