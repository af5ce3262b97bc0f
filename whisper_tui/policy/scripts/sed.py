"""sed scripts, read as GNU sed reads them; whatever BSD sed reads differently is not accepted."""

import re

_SKIPPED = re.compile(r"[ \t\n;]*")
_ADDRESS = re.compile(
    r"\d+(?:~\d+)?|\$"
    r"|/(?:[^/\\\n]|\\[^\n])*/(?:[ \t]*[IM])*"
    r"|\\([!#%&*+,.:;<=>?@^_|~'\"-])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:[ \t]*[IM])*"
)
_SECOND = re.compile(r"[+~]\d+")
_BANG = re.compile(r"[ \t]*(?:![ \t]*)?")
_END = re.compile(r"[ \t]*(?:[;\n]|\Z|(?=[}#]))")
"""What may follow a command; a comment or a closing brace is read again."""

_BARE = frozenset("=dDgGhHnNpPxFz")
_NUMBERED = re.compile(r"[lqQ][ \t]*\d*")
_LABEL = re.compile(r"(?::[ \t]*[A-Za-z0-9_]+|[btT][ \t]*[A-Za-z0-9_]*)(?=[ \t;\n}]|\Z)")
"""GNU sed's label ends at a blank or `;`, so one that holds anything else could hide a command behind it."""

_TEXT = re.compile(r"[aic][ \t]*(?:\\\n?[ \t]*)?[^\\\s][^\\\n]*(?:\n|\Z)")
_COMMENT = re.compile(r"#[^\n]*")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_DELIMITERS = frozenset("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")
_JUMPS = re.compile(r"[:btT]")


def sed_acts(script: str) -> bool:
    """Whether a sed script does anything but change the text that it prints. Not understood counts as yes."""
    if "\\\n" in script and _JUMPS.search(script):
        return True  # to BSD sed a label is the whole line, so an escaped line end could hide a command from us
    at = 0
    while True:
        at = _end(_SKIPPED, script, at) or at
        if at >= len(script):
            return False
        end = _command(script, _addressed(script, at))
        if end is None:
            return True
        at = end


def _end(pattern: re.Pattern[str], script: str, at: int) -> int | None:
    match = pattern.match(script, at)
    return match.end() if match else None


def _addressed(script: str, at: int) -> int:
    """Where the command begins that an address is before."""
    first = _end(_ADDRESS, script, at)
    if first is not None:
        at = first
        comma = re.compile(r"[ \t]*,[ \t]*").match(script, at)
        if comma:
            second = _end(_SECOND, script, comma.end()) or _end(_ADDRESS, script, comma.end())
            at = second if second is not None else comma.start()
    return _end(_BANG, script, at) or at


def _command(script: str, at: int) -> int | None:
    """Where a harmless command ends. None: it is not harmless, or not understood."""
    command = script[at : at + 1]
    if command == "{":
        return at + 1
    if command in _BARE or command == "}":
        return _end(_END, script, at + 1) if command else None
    if command in "lqQ":
        return _then_end(script, _end(_NUMBERED, script, at))
    if command in "sy":
        return _then_end(script, _substitution(script, at))
    if command in "aic":
        return _end(_TEXT, script, at)
    if command in ":btT":
        return _end(_LABEL, script, at)
    if command == "#":
        return _end(_COMMENT, script, at)
    return None


def _then_end(script: str, at: int | None) -> int | None:
    return None if at is None else _end(_END, script, at)


def _substitution(script: str, at: int) -> int | None:
    delimiter = script[at + 1 : at + 2]
    if delimiter not in _DELIMITERS:
        return None
    position, parts = at + 2, 0
    while position < len(script) and parts < 2:
        if script[position] == "\\":
            position += 1
        elif script[position] == "\n":
            return None
        elif script[position] == delimiter:
            parts += 1
        position += 1
    if parts < 2:
        return None
    return position if script[at] == "y" else _end(_FLAGS, script, position)
