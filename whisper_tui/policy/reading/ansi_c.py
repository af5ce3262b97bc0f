"""What `$'…'` means: the escapes of ANSI C as bash reads them."""

import re

_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)


def decode(source: str) -> str:
    """The text between the quotes, escapes replaced. It ends at an escaped NUL, as in bash."""
    bytewise = re.search(r"\\(?:x[0-9a-fA-F]|[0-7])", source) is not None
    text = _ESCAPE.sub(_character, source)
    if bytewise and not text.isascii():
        text = _rejoined(text)
    return text.split("\0", 1)[0]


def _character(match: re.Match[str]) -> str:
    simple, octal, byte, short, long, control = match.groups()
    if simple:
        return _SIMPLE[simple]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if byte:
        return chr(int(byte, 16))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return chr(ord(control.upper()) & 0x1F)


def _rejoined(text: str) -> str:
    """Bytes given one by one that are UTF-8 together are the character that they spell."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
