"""`hook` and `exec` as the parser knows them: for their help and for wrong use; `early` carries them out."""

import sys
from typing import NoReturn

from whisper_tui.cli.early import hook, run_early
from whisper_tui.cli.parsing import Options, Verbs, places_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.transports.hooks.program import USUAL_DEADLINES_S


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    asking = verbs.add(
        "hook",
        "answer an agent's hook, which asks before each command of the agent's own shell",
        _hook,
        details="It reads the hook's input and prints the answer in the agent's format. See whisper-tui install.",
    )
    asking.add_argument("client", choices=tuple(USUAL_DEADLINES_S), metavar="CLIENT", help=", ".join(USUAL_DEADLINES_S))
    asking.add_argument(
        "--deadline", type=float, metavar="SECONDS", help="answer no after so long: before the agent stops waiting"
    )
    asking.add_argument(
        "--agent-runs", action="store_true", help="let the agent run what is approved itself, out of sight"
    )
    running = verbs.add(
        "exec",
        "run an approved command in the agent's stead: what its hook makes of the command",
        _exec,
        details="Standard input, output, signals and the exit code pass through. A ticket runs once.",
    )
    running.add_argument("ticket", metavar="TICKET", help="as the hook has printed it")
    running.add_argument("label", nargs="?", metavar="TEXT", help="for people: the command that the ticket stands for")


def _hook(options: Options) -> int:
    if options.deadline is not None and not 0 < options.deadline < float("inf"):
        raise InvalidRequest(f"--deadline {options.deadline} is no number of seconds", hint="For example 570")
    code = hook(options.client, places_of(options), options.deadline, agent_runs=options.agent_runs)
    return _impossible() if code is None else code


def _exec(options: Options) -> int:
    code = run_early(["exec", options.ticket, *places_of(options)])
    return _impossible() if code is None else code


def _impossible() -> NoReturn:
    sys.exit("whisper-tui: these words are not understood")
