"""Keys as the bytes that a terminal sends for them."""

_ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDES = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_TILDES |= {"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24}
_LETTERS = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "shift+tab": "\x1b[Z"}
_PLAIN |= {"space": " ", "ctrl+space": "\0", "ctrl+at": "\0", "ctrl+backspace": "\x08", "ctrl+j": "\n"}
_MODIFIERS = {"shift": 1, "alt": 2, "ctrl": 4}


def keystroke(key: str, character: str | None, *, application: bool = False) -> bytes:
    """The bytes of a key, by its name and by the character that it makes. Empty: a terminal sends nothing for it.

    `application`: arrow keys are sent as an application asked for.
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
    """What a terminal sends when text is pasted. It cannot end its own brackets, and each line ends with Enter."""
    body = text.replace("\r\n", "\n").replace("\n", "\r").replace("\x1b", "")
    return (f"\x1b[200~{body}\x1b[201~" if bracketed else body).encode("utf-8", "replace")
