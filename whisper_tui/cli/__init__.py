"""The command line: the only place that wires the layers together."""

import os
import sys

from whisper_tui import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run `whisper-tui` with these arguments, or those of the process. Returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if list(given) == ["--version"]:
        # Programs ask for it at every start, so it does not wait for the subcommands.
        sys.stdout.write(f"whisper-tui {__version__}\n")
        return 0
    if given and given[0] in {"hook", "exec"}:
        code = _early(given)
        if code is not None:
            if arguments is None and given[0] == "hook":
                # Nothing is left to be flushed, and tearing the interpreter down takes a fifth of its start.
                os._exit(code)
            return code
    from whisper_tui.cli.main import run

    return run(given)


def _early(given: "Sequence[str]") -> int | None:
    """Carry out a verb that agents start with every command. None: the words need the parser."""
    try:
        from whisper_tui.cli.early import run_early

        return run_early(given)
    except Exception as error:  # noqa: BLE001  agents run the command if their hook ends in any way but this
        sys.stderr.write(f"whisper-tui: the command was not run: {error!r}\n")
        return 2 if given[0] == "hook" else 126
