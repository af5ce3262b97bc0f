"""The command line: the only place that wires the layers together."""

import os
import sys

from whisper_tui import __version__
from whisper_tui.cli.standard_streams import FAILS_CLOSED, hold_descriptors, let_go
from whisper_tui.system.own_program import forget_foreign_paths


def main(arguments: list[str] | None = None) -> int:
    """Run `whisper-tui` with these arguments, or those of the process. Returns the exit code."""
    if arguments is None:
        forget_foreign_paths()
    given = sys.argv[1:] if arguments is None else arguments
    hold_descriptors()
    # Programs ask for the version at every start of theirs, so it does not wait for the subcommands to load.
    if given == ["--version"] and sys.stdout is not None:
        return _print_version()
    try:
        from whisper_tui.cli.dispatch import run

        return run(given)
    except Exception as error:
        # Even an installation that cannot be imported must not turn a hook's question into a yes.
        code = FAILS_CLOSED.get(given[0]) if given else None
        if code is None:
            raise
        os.write(2, f"whisper-tui: the command was not run: {error!r}\n".encode())
        return code


def _print_version() -> int:
    try:
        sys.stdout.write(f"whisper-tui {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"whisper-tui: standard output cannot be written: {error.strerror}\n")
        let_go()
        return 74
    return 0
