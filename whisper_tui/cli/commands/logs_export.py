"""`logs`, `export` and `story`: what was recorded, printed or written to a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.subcommand import DONE, Options, Subcommands, home_of
from whisper_tui.export import ENDINGS
from whisper_tui.model.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from whisper_tui.model.api import Supervision
    from whisper_tui.system.state_directory import Directories


def add_logs(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "logs",
        "print the output of a command",
        _logs,
        details="Its standard output goes to standard output, its standard error to standard error, byte by byte; "
        "on a terminal, control sequences other than colours are removed.",
        examples=("logs 7 --follow",),
    )
    parser.add_argument("id", metavar="ID", help="number of the call")
    parser.add_argument(
        "--stream", choices=("out", "err", "both"), default="both", help="one stream, or both as they came (default)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="continue until the output is complete")


def _logs(options: Options) -> int:
    import asyncio

    from whisper_tui.cli.standard_streams import STDERR, STDOUT, while_somebody_reads

    read = STDERR if options.stream == "err" else STDOUT
    asyncio.run(while_somebody_reads(_print(home_of(options), options), read))
    return 0


async def _print(home: "Directories", options: Options) -> None:
    from whisper_tui.cli.recorded_output import Printer
    from whisper_tui.model.api import output_was_removed
    from whisper_tui.supervisor.runs.output_files import LocalOutput
    from whisper_tui.wire.client import SupervisorClient

    supervision = await SupervisorClient.connect(home, local_output=LocalOutput(home.state))
    try:
        record = await supervision.record(options.id)
        if await output_was_removed(supervision, record):
            sys.stderr.write(f"whisper-tui: the output of call {record.id} was removed from the disk\n")
            return
        printer = Printer(supervision, options.id)
        if options.stream == "both":
            await printer.print_both(follow=options.follow)
        else:
            await printer.print_one(options.stream, follow=options.follow)
    finally:
        await supervision.close()


def add_export(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "export",
        "write calls as JSON lines, a run as a terminal recording, or a session as a report",
        _export,
        details="Without calls and without --session, `jsonl` has all calls. A recording is of one call: "
        "`asciicast` is version 2 of that format, `asciicast3` version 3. `markdown` is a report of calls or sessions.",
        examples=(
            "export 7 --format asciicast -o build.cast",
            "export --session shop --format markdown -o report.md",
        ),
    )
    parser.add_argument("calls", nargs="*", metavar="CALL", help="number of a call")
    parser.add_argument("--session", metavar="NAME", help="all calls of the sessions with this name or id")
    parser.add_argument("--format", choices=tuple(ENDINGS), required=True, help="the format of the output")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there, readable by you alone, not to stdout")


def _export(options: Options) -> int:
    if options.calls and options.session is not None:
        raise InvalidRequest("name calls or a session, not both", hint="Leave one of them out")
    import asyncio

    return asyncio.run(_write(home_of(options), options))


async def _write(home: "Directories", options: Options) -> int:
    from whisper_tui.export.document import ExportSelection, document, save
    from whisper_tui.export.session_story import current_board, sessions_named
    from whisper_tui.supervisor.runs.output_files import LocalOutput
    from whisper_tui.wire.client import SupervisorClient

    supervision = await SupervisorClient.connect(home, local_output=LocalOutput(home.state))
    try:
        sessions = await sessions_named(supervision, options.session) if options.session is not None else ()
        known = (await current_board(supervision)).sessions | {session.id: session for session in sessions}
        wanted = ExportSelection(tuple(options.calls), sessions)
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


def add_story(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "story",
        "print what a session ran and which files it edited, in order",
        _story,
        details="Each edit names its files with digests of their content before and after it, and says where "
        "something else has changed a file between two edits. The page of --html has a timeline of calls, files, hosts "
        "and questions; it needs no other file and runs nothing.",
        examples=("story shop --diff", "story shop --html -o shop.html"),
    )
    parser.add_argument("session", metavar="SESSION", help="name or id of a session; all with this name are printed")
    parser.add_argument("--diff", action="store_true", help="print the difference that each edit has made")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON object per call")
    forms.add_argument("--html", action="store_true", help="print one page of HTML with a timeline")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page there, readable by you alone")


def _story(options: Options) -> int:
    if options.output is not None and not options.html:
        raise InvalidRequest("only a page is written to a file", hint="Add --html")
    import asyncio

    from whisper_tui.cli.standard_streams import STDOUT, while_somebody_reads

    asyncio.run(while_somebody_reads(_tell(home_of(options), options), STDOUT))
    return DONE


async def _tell(home: "Directories", options: Options) -> None:
    import json

    from whisper_tui.cli.output_format import styled_diff
    from whisper_tui.export.session_story import DIFF_INDENT, SessionStory, sessions_named
    from whisper_tui.wire.client import SupervisorClient

    supervision = await SupervisorClient.connect(home)
    try:
        if options.html:
            await _write_page(supervision, options)
            return
        for session in await sessions_named(supervision, options.session):
            story = SessionStory(supervision, session, diffs=options.diff)
            if options.json:
                async for row in story.rows():
                    sys.stdout.write(json.dumps({"session": session.id, **row}, ensure_ascii=False) + "\n")
                continue
            async for line in story.lines():
                rest = line.removeprefix(DIFF_INDENT)
                sys.stdout.write(line if rest == line else f"{DIFF_INDENT}{styled_diff(rest)}")
    finally:
        await supervision.close()


async def _write_page(supervision: "Supervision", options: Options) -> None:
    from whisper_tui.export.document import save
    from whisper_tui.export.session_story import SessionStory, sessions_named
    from whisper_tui.export.story_page import page

    sessions = await sessions_named(supervision, options.session)
    stories = [
        (each, [row async for row in SessionStory(supervision, each, diffs=options.diff).rows()]) for each in sessions
    ]

    async def texts() -> "AsyncIterator[str]":
        for text in page(stories):
            yield text

    if options.output is not None:
        size = await save(texts(), Path(options.output))
        sys.stderr.write(f"whisper-tui: {size:,} bytes were written to {options.output}\n")
        return
    async for text in texts():
        sys.stdout.write(text)
