"""`hook` and `exec`: agents start them with every command, so their words are read without the usual parser."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Connection
    from collections.abc import Sequence


def run_early(words: "Sequence[str]") -> int | None:
    """Carry out `hook` or `exec`. None: the words need the parser, to be explained or refused."""
    verb, *rest = words
    places: list[str] = []
    plain: list[str] = []
    deadline: float | None = None
    agent_runs = False
    while rest:
        word = rest.pop(0)
        wanted = {"--home": 1, "--directories": 3, "--deadline": 1}.get(word, 0)
        if len(rest) < wanted:
            return None
        if word == "--deadline":
            deadline = _seconds(rest.pop(0))
            if deadline is None:
                return None
        elif wanted:
            places = [word, *(rest.pop(0) for _ in range(wanted))]
        elif word == "--agent-runs" and verb == "hook":
            agent_runs = True
        elif word.startswith("-"):
            return None
        else:
            plain.append(word)
    # What a ticket stands for may follow it, for people.
    if not 1 <= len(plain) <= (2 if verb == "exec" else 1):
        return None
    if verb == "exec":
        return None if deadline is not None else _exec(plain[0], places)
    return hook(plain[0], places, deadline, agent_runs=agent_runs)


def hook(client: str, places: "Sequence[str]", deadline: float | None, *, agent_runs: bool) -> int | None:
    """Answer an agent's hook. None: there is no such client."""
    from whisper_tui.cli.reaching import of_agents, reach
    from whisper_tui.transports.hooks.program import USUAL_DEADLINES_S, run_hook
    from whisper_tui.wire.quick import usual_directories

    if client not in USUAL_DEADLINES_S:
        return None
    environ = of_agents(os.environ)
    usual = usual_directories(environ)
    return run_hook(
        client,
        lambda: reach(places, environ),
        deadline_s=USUAL_DEADLINES_S[client] if deadline is None else deadline,
        agent_runs=agent_runs,
        launcher=launcher(),
        places=() if usual is not None and list(places) == ["--directories", *usual] else places,
    )


def launcher() -> list[str]:
    """The words that start this program again, from anywhere."""
    started = os.path.abspath(sys.argv[0])  # noqa: PTH100
    if os.path.basename(started) == "__main__.py" or not os.access(started, os.X_OK):  # noqa: PTH119
        return [sys.executable, "-m", "whisper_tui"]
    return [started]


def _exec(ticket: str, places: "Sequence[str]") -> int:
    from whisper_tui.cli.reaching import of_agents, reach, reach_again
    from whisper_tui.transports.hooks.run_program import run_ticket

    environ = of_agents(os.environ)
    tried: list[bool] = []

    def connection() -> "Connection | None":
        first = not tried
        tried.append(True)
        return reach(places, environ) if first else reach_again(places, environ)

    return run_ticket(ticket, connection)


def _seconds(word: str) -> float | None:
    try:
        seconds = float(word)
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
