"""`whisper-tui` alone: the cockpit, over a supervisor that is started if none runs."""

import os
import sys

from whisper_tui.cli.parsing import Options, home_of
from whisper_tui.model.errors import InvalidRequest


def run(options: Options) -> int:
    """Open the cockpit until the human leaves it. What runs goes on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest(
            "the cockpit needs a terminal", hint="whisper-tui --help shows the subcommands that work without one"
        )
    if os.environ.get("TERM", "") in {"", "dumb"}:
        raise InvalidRequest(
            "this terminal cannot show a full screen, says TERM", hint="whisper-tui watch says the same in plain lines"
        )
    home = home_of(options)
    from whisper_tui.cli.screen import open_cockpit

    return open_cockpit(home)
