"""Names for an agent's requests: the same for one that is sent again after a crash, and for no other one."""

from collections.abc import Mapping
from typing import Any

from whisper_tui.model.command import digest

REMEMBERED = 10_000
"""Requests of one agent whose names are known exactly."""


class RequestKeys:
    """Gives out the names of one session's requests."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        """How often each name was given out, the one that was used last at the end."""
        self._newest_forgotten = -1
        """The highest number among the ids of forgotten requests."""
        self._most_forgotten = 0
        """How often, at most, a forgotten name was given out."""

    def of(self, request_id: int | str | None, tool: str, arguments: Mapping[str, Any]) -> str:
        """A client may use an id again once it is answered.

        Its requests are then told apart by what they ask for and by their number. Of an id that counts up, it is sure
        that no forgotten request had it; any other may have been there as often as the most frequent one.
        """
        key = f"mcp {request_id} {digest(f'{tool} {sorted(arguments.items())!r}')}"
        is_new = isinstance(request_id, int) and request_id > self._newest_forgotten
        number = self._used.pop(key, 0 if is_new else self._most_forgotten) + 1
        self._used[key] = number
        if len(self._used) > REMEMBERED:
            self._forget_oldest()
        return key if number == 1 else f"{key} {number}"

    def _forget_oldest(self) -> None:
        key = next(iter(self._used))
        self._most_forgotten = max(self._most_forgotten, self._used.pop(key))
        id_ = key.split(" ", 2)[1]
        if id_.isdecimal():
            self._newest_forgotten = max(self._newest_forgotten, int(id_))
