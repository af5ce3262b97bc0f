"""The mouse as the bytes that a terminal sends for it."""

from enum import IntEnum
from typing import NamedTuple

from textual import events

_WHEELS: dict[type[events.MouseEvent], int] = {
    events.MouseScrollUp: 64,
    events.MouseScrollDown: 65,
    events.MouseScrollLeft: 66,
    events.MouseScrollRight: 67,
}
_MOVED = 32
_RELEASED = 3
"""What a released button is called where the form has no other way to say it, and no button at all."""
_MOST_CELLS = 223
"""Rows and columns that the older form can tell."""
WHEEL_LINES = 3
"""Arrow keys that stand for a step of the wheel."""


class Tracking(IntEnum):
    """What of the mouse a program has asked for: each includes those before it."""

    NOTHING = 0
    PRESSES = 9
    CLICKS = 1000
    """Releases, modifiers and the wheel, too."""
    DRAGS = 1002
    MOVES = 1003


class MouseWish(NamedTuple):
    """What of the mouse a program wants to be told, and how."""

    tracking: Tracking = Tracking.NOTHING
    sgr: bool = False
    """In the form of numbers, which knows every column and which button was released."""
    wheel_is_arrows: bool = False
    """The program draws on the whole screen and has not asked: a step of the wheel is arrow keys."""


def mouse_report(event: events.MouseEvent, row: int, column: int, wish: MouseWish) -> bytes:
    """The bytes for an event in a cell, counted from 0. Empty: the program has not asked for it."""
    code = _code(event, wish.tracking)
    if code is None:
        return b""
    if wish.tracking > Tracking.PRESSES:
        code += 4 * event.shift + 8 * event.meta + 16 * event.ctrl
    released = isinstance(event, events.MouseUp)
    if wish.sgr:
        return f"\x1b[<{code};{column + 1};{row + 1}{'m' if released else 'M'}".encode()
    if max(row, column) >= _MOST_CELLS:
        return b""
    return b"\x1b[M" + bytes((32 + (code | _RELEASED if released else code), 33 + column, 33 + row))


def wheel_arrow(event: events.MouseEvent) -> str | None:
    """The arrow key that stands for a step of the wheel."""
    match event:
        case events.MouseScrollUp():
            return "up"
        case events.MouseScrollDown():
            return "down"
        case _:
            return None


def _code(event: events.MouseEvent, tracking: Tracking) -> int | None:
    button = event.button - 1 if event.button else _RELEASED
    match event:
        case events.MouseDown() if tracking >= Tracking.PRESSES:
            return button
        case events.MouseUp() if tracking >= Tracking.CLICKS:
            return button
        case events.MouseMove() if tracking >= (Tracking.DRAGS if event.button else Tracking.MOVES):
            return _MOVED + button
        case _:
            return _WHEELS.get(type(event)) if tracking >= Tracking.CLICKS else None
