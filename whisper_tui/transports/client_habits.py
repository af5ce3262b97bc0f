"""What is known of agent clients: how long they wait, how much they show, and what they add by themselves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.call import ClientInfo
from whisper_tui.tools.room import Room

UNKNOWN_WAIT_S = 45.0
"""Seconds that a client surely waits of which nothing is known: a minute is the least among common ones."""

LONG_WAIT_S = 24 * 3600.0
"""Seconds that are as good as for ever, for clients that wait on as long as they hear of progress."""

ADDED_KEYS: Mapping[str, frozenset[str]] = {
    # Gemini CLI adds this to every tool's schema that it shows its model, and forwards it.
    "gemini-cli": frozenset({"wait_for_previous"}),
}
"""By how the client's name begins: the argument keys that are the client's and not the agent's."""


@dataclass(frozen=True)
class Patience:
    """How long a client waits for an answer, with a margin."""

    wait_s: float
    with_progress_s: float | None = None
    """On standard input and output, where it is told of progress. None: that makes no difference."""
    since: tuple[int, ...] = ()
    """The first version of which `with_progress_s` is known."""


PATIENCE: Mapping[str, Patience] = {
    "claude": Patience(280.0, with_progress_s=LONG_WAIT_S, since=(2, 1, 329)),
    "codex": Patience(280.0),
    "gemini": Patience(570.0),
    "opencode": Patience(50.0),
    "goose": Patience(280.0),
    # The official Python library, which waits for ever if its user does not say otherwise.
    "mcp": Patience(280.0),
}
"""By how the client's name begins; the name of the library stands only for itself."""


SHOWN: Mapping[str, Room] = {
    "claude": Room(48 * 1024, in_bytes=True),
    "codex": Room(11_000),
    "gemini": Room(39_000),
    "opencode": Room(50_000, in_bytes=True, lines=1_900),
}
"""By how the client's name begins: what it shows its model whole, with a margin."""

SHOWN_BY_ALL = Room(11_000)


def shown(client: ClientInfo | None) -> Room:
    """How long an answer this client's model sees whole."""
    name = client.name.lower() if client is not None else ""
    return next((SHOWN[begin] for begin in SHOWN if name.startswith(begin)), SHOWN_BY_ALL)


def patience(client: ClientInfo | None, *, progress: bool) -> float:
    """Seconds in which a call must be answered. `progress`: whether reports about it reach the client by its pipe."""
    name = client.name.lower() if client is not None else ""
    known = next((PATIENCE[begin] for begin in PATIENCE if _is(name, begin)), None)
    if client is None or known is None:
        return UNKNOWN_WAIT_S
    if progress and known.with_progress_s is not None and _version(client.version) >= known.since:
        return known.with_progress_s
    return known.wait_s


def without_added_keys(client: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the agent meant them."""
    added = frozenset[str]().union(*(keys for name, keys in ADDED_KEYS.items() if client.startswith(name)))
    return {name: value for name, value in arguments.items() if name not in added}


def model_behind(meta: Mapping[str, Any]) -> str:
    """The language model that a request is made for, where the client says so. Empty: it does not."""
    turn = _turn(meta)
    return str(turn["model"]) if isinstance(turn.get("model"), str) else ""


def helper_behind(meta: Mapping[str, Any]) -> str:
    """Which helper of the agent asks: Codex gives each of them a thread beside that of the session."""
    thread, session = meta.get("threadId"), meta.get("sessionId")
    told = isinstance(thread, str) and isinstance(session, str) and thread != session
    return f"thread {thread}" if told else ""


def _turn(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What Codex says about its turn, as an object or as the text of one."""
    turn = meta.get("x-codex-turn-metadata")
    if isinstance(turn, str):
        try:
            turn = json.loads(turn)
        except ValueError:
            return {}
    return turn if isinstance(turn, dict) else {}


def _is(name: str, begin: str) -> bool:
    return name == begin if begin == "mcp" else name.startswith(begin)


def _version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with; what comes after a part that is no number does not count."""
    numbers: list[int] = []
    for part in text.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    return tuple(numbers)
