"""From the command line to a subcommand, and from any error to one sentence and an exit code."""

import os
import sys
from importlib import import_module

from whisper_tui.cli.exit_codes import DONE, INTERRUPTED, OUTPUT_LOST, PIPE_CLOSED, REFUSED, UNAVAILABLE, code_of
from whisper_tui.cli.parsing import Options, Verbs, verb_of
from whisper_tui.cli.standard_streams import OutputLost, hold_places, let_go, prepare
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType, TracebackType

FAMILIES = {
    "demo": ("demo",),
    "watch": ("watch",),
    "serve": ("serve",),
    "mcp": ("mcp",),
    "hook": ("hook", "exec"),
    "call": ("call",),
    "listing": ("list", "ps", "history"),
    "show": ("show",),
    "deciding": ("approve", "deny"),
    "signals": ("signal",),
    "logs": ("logs",),
    "export": ("export",),
    "approvals": ("approvals", "revoke"),
    "check": ("check",),
    "rules": ("rules",),
    "running": ("status", "restart", "stop"),
    "pausing": ("pause", "resume"),
    "prune": ("prune",),
    "supervise": ("supervise",),
    "tools": ("tools",),
    "agent": ("agent",),
    "install": ("install", "uninstall"),
    "doctor": ("doctor",),
}
"""The modules of this package that declare subcommands, in the order of the help, and what they declare."""
_FAMILY_OF = {verb: family for family, verbs in FAMILIES.items() for verb in verbs}


def parser(arguments: "Sequence[str]" = ()) -> Verbs:
    """The command line; only the part that these arguments need, for all of it takes as long to load as the rest."""
    family = _FAMILY_OF.get(verb_of(arguments))
    verbs = Verbs(_cockpit)
    for name in FAMILIES if family is None else (family,):
        _load(name).add(verbs)
    return verbs


def _load(name: str) -> "ModuleType":
    return import_module(f"whisper_tui.cli.{name}")


def _cockpit(options: Options) -> int:
    from whisper_tui.cli import cockpit

    return cockpit.run(options)


def run(arguments: "Sequence[str] | None" = None) -> int:
    """Carry out one command line. Returns the exit code; argparse itself exits for `--help` and wrong use."""
    sys.excepthook = _report_defect
    hold_places()
    prepare()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(given).parser.parse_args(given)
    except SystemExit as ending:
        raise SystemExit(_printed(ending.code or DONE)) from None
    return int(_printed(_carried_out(options)))


def _carried_out(options: Options) -> int:
    try:
        code: int = options.run(options)
    except WhisperError as error:
        complain(error.sentence())
        return code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        let_go()
        return PIPE_CLOSED
    except OutputLost as error:
        complain(error.sentence())
        let_go()
        return OUTPUT_LOST
    except OSError as error:
        complain(_said_by(error))
        return UNAVAILABLE
    return code


def _printed(code: "str | int") -> "str | int":
    """The exit code, once all that was to be printed is: who prints nothing must not say that all went well."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go()
        return code or PIPE_CLOSED
    except OutputLost as error:
        if not code:
            complain(error.sentence())
        let_go()
        return code or OUTPUT_LOST
    return code


def _said_by(error: OSError) -> str:
    """What the system says, and about what."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{error.strerror or error}"


def complain(sentence: str) -> None:
    """One line on standard error; text of agents in it is shown, never obeyed."""
    first = sentence.split(" ", 1)[0]
    shown = visible(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence, keep_lines=True)
    sys.stderr.write(f"whisper-tui: {shown}{'' if shown.endswith(('.', '!', '?', '…')) else '.'}\n")


def _report_defect(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """A mistake in whisper_tui itself: where it is, in one line."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {_file_of(trace)}, line {trace.tb_lineno}" if trace else ""
    complain(f"this is a defect of whisper_tui: {kind.__name__}{where}: {error}")
    sys.exit(REFUSED)


def _file_of(trace: "TracebackType") -> str:
    return os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119  pathlib takes longer than Python to load
