"""The command line: the only place that wires the layers together."""

import os
import sys

from whisper_tui import __version__
from whisper_tui.cli.standard_streams import hold_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run `whisper-tui` with these arguments, or those of the process. Returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    hold_places()
    if list(given) == ["--version"] and sys.stdout is not None:
        # Programs ask for it at every start, so it does not wait for the subcommands.
        try:
            sys.stdout.write(f"whisper-tui {__version__}\n")
            sys.stdout.flush()
        except OSError as error:
            sys.stderr.write(f"whisper-tui: standard output cannot be written: {error.strerror}\n")
            return _ended(74)
        return 0
    if given and given[0] in {"hook", "exec"}:
        code = _early(given)
        if code is not None:
            return _ended(code) if arguments is None and given[0] == "hook" else code
    from whisper_tui.cli.main import run

    code = run(given)
    return _ended(code) if arguments is None and "threading" not in sys.modules else code


def _ended(code: int) -> int:
    """End at once: all is written, and tearing the interpreter down takes a fifth of its start."""
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def _early(given: "Sequence[str]") -> int | None:
    """Carry out a verb that agents start with every command. None: the words need the parser."""
    try:
        from whisper_tui.cli.early import run_early

        return run_early(given)
    except Exception as error:  # noqa: BLE001  agents run the command if their hook ends in any way but this
        os.write(2, f"whisper-tui: the command was not run: {error!r}\n".encode())
        return 2 if given[0] == "hook" else 126
