"""From the command line to a subcommand, and from any error to one sentence and an exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from whisper_tui.cli import (
    agent,
    approvals,
    call,
    check,
    cockpit,
    deciding,
    demo,
    doctor,
    export,
    hook,
    install,
    listing,
    logs,
    mcp,
    pausing,
    prune,
    rules,
    running,
    serve,
    show,
    signals,
    supervise,
    tools,
    watch,
)
from whisper_tui.cli.exit_codes import INTERRUPTED, PIPE_CLOSED, REFUSED, UNAVAILABLE, code_of
from whisper_tui.cli.parsing import Verbs
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import visible

_FAMILIES = (
    demo,
    watch,
    serve,
    mcp,
    hook,
    call,
    listing,
    show,
    deciding,
    signals,
    logs,
    export,
    approvals,
    check,
    rules,
    running,
    pausing,
    prune,
    supervise,
    tools,
    agent,
    install,
    doctor,
)


def parser() -> Verbs:
    """The whole command line."""
    verbs = Verbs(cockpit.run)
    for family in _FAMILIES:
        family.add(verbs)
    return verbs


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line. Returns the exit code; argparse itself exits for `--help` and wrong use."""
    sys.excepthook = _report_defect
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = parser().parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except WhisperError as error:
        complain(error.sentence())
        return code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return PIPE_CLOSED
    except OSError as error:
        complain(str(error))
        return UNAVAILABLE
    return code


def complain(sentence: str) -> None:
    """One line on standard error; text of agents in it is shown, never obeyed."""
    first = sentence.split(" ", 1)[0]
    shown = visible(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence, keep_lines=True)
    sys.stderr.write(f"whisper-tui: {shown}{'' if shown.endswith(('.', '!', '?', '…')) else '.'}\n")


def _let_go_of_stdout() -> None:
    """Keep the interpreter from writing to the closed pipe once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A mistake in whisper_tui itself: where it is, in one line."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else ""
    complain(f"this is a defect of whisper_tui: {kind.__name__}{where}: {error}")
    sys.exit(REFUSED)
