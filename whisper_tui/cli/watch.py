"""`watch`: the cockpit as plain lines and prompts, for screen readers, dumb terminals and pipes."""

import sys

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.cli.parsing import Options, Verbs, home_of


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "watch",
        "say what happens in plain lines, and ask about calls that wait; no full screen, no colours",
        _watch,
        details="On a terminal it reads each waiting call out and takes an answer on a line; `help` lists the answers. "
        "Through a pipe, or with --read-only, it only says what happens.",
    )
    parser.add_argument("--read-only", action="store_true", help="ask nothing")


def _watch(options: Options) -> int:
    asks = not options.read_only and sys.stdin.isatty() and sys.stdout.isatty()
    import asyncio

    from whisper_tui.cli.hang_up import while_somebody_reads
    from whisper_tui.cli.watching import Watch

    asyncio.run(while_somebody_reads(Watch(home_of(options), asks=asks).run()))
    return DONE
