"""The line with which a supervisor that stops on purpose leaves its agents' relays."""

import json
from typing import Any

METHOD = "notifications/whisper-tui/goodbye"


class Heard:
    """How many lines of an agent a supervisor has read on one connection."""

    def __init__(self) -> None:
        self.lines = 0


def goodbye(heard: int) -> bytes:
    """The line, with the number of lines that were heard: what was sent after them nobody knows of."""
    return json.dumps({"jsonrpc": "2.0", "method": METHOD, "params": {"heard": heard}}).encode() + b"\n"


def heard_before(message: dict[str, Any] | None) -> int | None:
    """What a goodbye says was heard. None: the message is no goodbye."""
    match message:
        case {"method": "notifications/whisper-tui/goodbye", "params": {"heard": int(heard)}}:
            return heard
        case _:
            return None
