"""`pause` and `resume`: everything at once."""

import sys

from whisper_tui.cli.asking import asking
from whisper_tui.cli.deciding import decider
from whisper_tui.cli.parsing import Options, Verbs


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    verbs.add(
        "pause",
        "hold every run still and start nothing new, until resume",
        _pause,
        details="Every process of every run is stopped where it is, background processes included; its time limit is "
        "held, too. It holds when the supervisor is restarted. Runs can be ended and calls decided meanwhile.",
    )
    verbs.add("resume", "let everything go on that pause holds", _resume)


def _pause(options: Options) -> int:
    return _tell(options, "pause", "Everything is paused: whisper-tui resume lets it go on\n")


def _resume(options: Options) -> int:
    return _tell(options, "resume", "Everything goes on\n")


def _tell(options: Options, operation: str, sentence: str) -> int:
    with asking(options) as supervisor:
        supervisor.ask(operation, by=decider())
    sys.stdout.write(sentence)
    return 0
