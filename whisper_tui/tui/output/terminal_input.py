"""Encodes keys, pasted text and mouse events as the bytes that a terminal sends."""

from enum import IntEnum
from typing import NamedTuple

from textual import events

_ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDES = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_TILDES |= {"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24}
_LETTERS = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "shift+tab": "\x1b[Z"}
_PLAIN |= {"space": " ", "ctrl+space": "\0", "ctrl+at": "\0", "ctrl+backspace": "\x08", "ctrl+j": "\n"}
_MODIFIERS = {"shift": 1, "alt": 2, "ctrl": 4}


def keystroke(key: str, character: str | None, *, application: bool = False) -> bytes:
    """Return the bytes of a key, by its name and its character; empty if a terminal sends nothing for it.

    `application`: the mode of application cursor keys is on.
    """
    if key in _PLAIN:
        return _PLAIN[key].encode()
    *held, last = key.split("+")
    modifiers = 1 + sum(_MODIFIERS.get(name, 0) for name in held)
    if last in _ARROWS:
        letter = _ARROWS[last]
        if modifiers > 1:
            return f"\x1b[1;{modifiers}{letter}".encode()
        return f"\x1b{'O' if application else '['}{letter}".encode()
    if last in _LETTERS:
        return (f"\x1b[1;{modifiers}{_LETTERS[last]}" if modifiers > 1 else f"\x1bO{_LETTERS[last]}").encode()
    if last in _TILDES:
        return f"\x1b[{_TILDES[last]}{f';{modifiers}' if modifiers > 1 else ''}~".encode()
    if character:
        return (b"\x1b" if "alt" in held else b"") + character.encode("utf-8", "replace")
    if "ctrl" in held and len(last) == 1 and last.isalpha():
        return (b"\x1b" if "alt" in held else b"") + bytes([ord(last.lower()) & 31])
    if "alt" in held and len(last) == 1:
        return b"\x1b" + last.encode()
    return b""


def pasted(text: str, *, bracketed: bool) -> bytes:
    """Return the bytes of pasted text, with line ends as Enter."""
    # Without its escape characters, pasted text cannot end the bracketed paste and go on as if it were typed.
    body = text.replace("\r\n", "\n").replace("\n", "\r").replace("\x1b", "")
    return (f"\x1b[200~{body}\x1b[201~" if bracketed else body).encode("utf-8", "replace")


_WHEELS: dict[type[events.MouseEvent], int] = {
    events.MouseScrollUp: 64,
    events.MouseScrollDown: 65,
    events.MouseScrollLeft: 66,
    events.MouseScrollRight: 67,
}
_MOVED = 32
_RELEASED = 3
"""The code of a released button in the old encoding, and of a move without a button."""
_MOST_CELLS = 223
"""The largest coordinate of the old encoding, one byte minus 32."""
WHEEL_LINES = 3
"""Arrow keys sent for one step of the wheel."""


class Tracking(IntEnum):
    """The mouse tracking that a program has asked for, by the number of its mode; each includes those before it."""

    NOTHING = 0
    PRESSES = 9
    CLICKS = 1000
    """Adds releases, modifiers and the wheel."""
    DRAGS = 1002
    MOVES = 1003


class MouseMode(NamedTuple):
    """The mouse reporting that a program has asked for, and its encoding."""

    tracking: Tracking = Tracking.NOTHING
    sgr: bool = False
    """The SGR encoding, which has no limit of columns and names the released button."""
    wheel_is_arrows: bool = False
    """The program uses the alternate screen without mouse tracking: the wheel sends arrow keys."""


def mouse_report(event: events.MouseEvent, row: int, column: int, mode: MouseMode) -> bytes:
    """Return the bytes of an event in a cell, counted from 0; empty if the program has not asked for it."""
    code = _code(event, mode.tracking)
    if code is None:
        return b""
    if mode.tracking > Tracking.PRESSES:
        code += 4 * event.shift + 8 * event.meta + 16 * event.ctrl
    released = isinstance(event, events.MouseUp)
    if mode.sgr:
        return f"\x1b[<{code};{column + 1};{row + 1}{'m' if released else 'M'}".encode()
    if max(row, column) >= _MOST_CELLS:
        return b""
    return b"\x1b[M" + bytes((32 + (code | _RELEASED if released else code), 33 + column, 33 + row))


def wheel_arrow(event: events.MouseEvent) -> str | None:
    """Return the arrow key that is sent for a step of the wheel."""
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
