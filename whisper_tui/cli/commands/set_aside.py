"""`aside`: moves waiting calls out of the way without a decision, and back."""

import sys

from whisper_tui.cli.commands.approve import DENIED, all_waiting, decider
from whisper_tui.cli.output_format import cut, masked_line
from whisper_tui.cli.subcommand import DONE, Options, Subcommands, supervisor_of


def add_aside(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    aside = verbs.add(
        "aside",
        "move waiting calls out of the way without an answer, or back",
        _aside,
        details="Nothing is decided: the calls stay pending, and can be approved or denied as before. Nobody is "
        "notified of them, and they are listed after the others. Their agents are told that they are pending, where "
        "their programs can be told before a decision.",
    )
    aside.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    aside.add_argument("--back", action="store_true", help="bring them back among those that wait")


def _aside(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        done = "Waits again" if options.back else "Set aside"
        for row in all_waiting(supervisor, options):
            supervisor.ask("set_aside", call_id=row["id"], by=decider(), back=options.back)
            sys.stdout.write(f"{done} {row['id']}: {cut(masked_line(row['command']), DENIED)}\n")
    return DONE
