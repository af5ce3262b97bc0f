"""`signal`: send a signal to a run, or to what it left behind."""

import signal
import sys

from whisper_tui.cli.asking import asking
from whisper_tui.cli.deciding import decider
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.model.errors import InvalidRequest


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add("signal", "send a signal to a run, or to what it left behind", _signal)
    parser.add_argument("id", metavar="ID", help="number of the call")
    parser.add_argument("signal", metavar="SIGNAL", help="name, with or without SIG, or number")
    parser.add_argument(
        "--target",
        choices=("tree", "group", "leader"),
        default="tree",
        help="every process of the run (default), its process group, or its first process alone",
    )


def _signal(options: Options) -> int:
    number = number_of(options.signal)
    with asking(options) as supervisor:
        supervisor.ask("signal", call_id=options.id, number=number, target=options.target, by=decider())
    sys.stdout.write(f"Sent {_name(number)} to the {options.target} of call {options.id}\n")
    return 0


def number_of(text: str) -> int:
    """The number of a signal by its name or number. Raises `InvalidRequest`."""
    if text.isascii() and text.isdecimal():
        if int(text) in signal.valid_signals():
            return int(text)
    else:
        name = text.upper()
        found = signal.Signals.__members__.get(name if name.startswith("SIG") else f"SIG{name}")
        if found is not None:
            return int(found)
    raise InvalidRequest(f"there is no signal {text!r}", hint="Give a name like TERM, or a number like 15")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
