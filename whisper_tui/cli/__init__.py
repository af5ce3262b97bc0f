"""The command line: the only place that wires the layers together."""

import sys
from collections.abc import Sequence

from whisper_tui import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `whisper-tui` with these arguments, or those of the process. Returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if list(given) == ["--version"]:
        # Programs ask for it at every start, so it does not wait for the subcommands.
        sys.stdout.write(f"whisper-tui {__version__}\n")
        return 0
    from whisper_tui.cli.main import run

    return run(given)
