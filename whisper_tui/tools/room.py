"""How much of an answer a model is shown, and results made so that they fit."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

TRIES = 8
"""How often a result is made anew with less output: escapes make a text longer by a factor that shows only then."""

MARGIN = 0.95


@dataclass(frozen=True)
class Room:
    """What a client shows its model whole."""

    size: int
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: lines are not counted."""

    def less(self, text: str | None) -> "Room":
        """What is left beside a text; never less than half."""
        return (
            self
            if text is None
            else Room(max(self.size - _size(self, text), self.size // 2), self.in_bytes, self.lines)
        )

    def filled(self, *texts: str) -> float:
        """The part that the longest of some texts takes, each shown for itself. More than 1 does not fit."""
        return max(self._part(text) for text in texts)

    def _part(self, text: str) -> float:
        lines = 0.0 if self.lines is None else (text.count("\n") + 1) / self.lines
        return max(_size(self, text) / self.size, lines)


Make = Callable[[int | None], Awaitable[Any]]
"""Makes a result that holds at most so much output, in bytes or characters. None: all of it."""


async def fitted(room: Room | None, make: Make, text_of: Callable[[Any], str]) -> Any:
    """The result with as much output as there is room for, as data and as text."""
    if room is None:
        return await make(None)
    limit = room.size
    for _ in range(TRIES):
        result = await make(limit)
        filled = room.filled(as_json(result), text_of(result))
        if filled <= 1.0:
            return result
        limit = min(int(limit / filled * MARGIN), limit - 1)
        if limit <= 0:
            break
    return await make(0)


def as_json(result: Any) -> str:
    """A result as clients show structured content."""
    return json.dumps(result, ensure_ascii=False, default=str)


def shortened(text: str, room: Room, where: str) -> str:
    """A text with its middle left out, so that it fits. `where`: a sentence about where the rest can be had."""
    kept = len(text)
    while (filled := room.filled(short := _without_middle(text, kept, where))) > 1.0 and kept:
        kept = max(0, min(int(kept / filled * MARGIN), kept - 1))
    return short


def _without_middle(text: str, kept: int, where: str) -> str:
    if kept >= len(text):
        return text
    first, last = kept - kept // 2, kept // 2
    left_out = f"{len(text) - kept:,} characters are left out here; {where}"
    return f"{text[:first]}\n[whisper_tui: {left_out}]\n{text[len(text) - last :]}"


def _size(room: Room, text: str) -> int:
    return len(text.encode("utf-8", "replace")) if room.in_bytes else len(text)
