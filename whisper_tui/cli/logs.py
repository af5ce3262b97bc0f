"""`logs`: what a command has printed, as it came, and as it comes."""

import sys
from typing import TYPE_CHECKING

from whisper_tui.cli.parsing import Options, Verbs, home_of

if TYPE_CHECKING:
    from whisper_tui.model.home import Home


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "logs",
        "print what a command has printed",
        _logs,
        details="Its standard output goes to standard output, its standard error to standard error, byte by byte; "
        "on a terminal, only colours are passed on of what controls a terminal.",
    )
    parser.add_argument("id", metavar="ID", help="number of the call")
    parser.add_argument(
        "--stream", choices=("out", "err", "both"), default="both", help="one stream, or both as they came (default)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the output can no longer grow")


def _logs(options: Options) -> int:
    import asyncio

    from whisper_tui.cli.hang_up import while_somebody_reads
    from whisper_tui.cli.standard_streams import STDERR, STDOUT

    read = STDERR if options.stream == "err" else STDOUT
    asyncio.run(while_somebody_reads(_print(home_of(options), options), read))
    return 0


async def _print(home: "Home", options: Options) -> None:
    from whisper_tui.cli.log_output import Printer
    from whisper_tui.model.removed import output_was_removed
    from whisper_tui.wire.client import RemoteSupervision

    supervision = await RemoteSupervision.connect(home)
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
