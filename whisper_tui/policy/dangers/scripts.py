"""What the little languages of sed and awk can do: run commands and write files."""

import re

_AWK = re.compile(r"\bsystem\s*\(|\bgetline\b|\|&?|>|@\s*(?:include|load)|\bclose\s*\(|\bENVIRON\b.*\bsystem\b")
_AWK_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_AWK_OUTPUT = re.compile(r"\b(?:print|printf)\b[^;}\n]*(?:>|\|)")
_SED_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1)[^\\\n]|\\.)*\1[IM]*)")
_SED_PLAIN = frozenset("=dDgGhHlnNpPqQxzF{}")


def awk_acts(script: str) -> bool:
    """Whether an awk program may run a command, write to a file or load other code."""
    bare = _AWK_STRING.sub('""', script)
    without_regexes = re.sub(r"(?:(?<=[~(,;{!&|])|^)\s*/(?:[^/\\\n]|\\.)*/", " ", bare)
    if re.search(r"\bsystem\b|\bgetline\b|@", bare) or "|&" in bare:
        return True
    if _AWK_OUTPUT.search(without_regexes):
        return True
    return re.search(r"(?<!\|)\|(?!\|)", without_regexes) is not None


def sed_acts(script: str) -> bool:
    """Whether a sed script does anything but change the text that it prints. Not understood counts as yes."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;":
            at += 1
            continue
        at = _sed_addresses(script, at)
        end = _sed_command(script, at)
        if end is None:
            return True
        at = end
    return False


def _sed_addresses(script: str, at: int) -> int:
    if match := _SED_ADDRESS.match(script, at):
        at = match.end()
        rest = script[at:].lstrip(" \t")
        if rest.startswith(","):
            at = len(script) - len(rest) + 1
            if match := re.compile(r"\s*[+~]\d+").match(script, at) or _SED_ADDRESS.match(script, at):
                at = match.end()
    while at < len(script) and script[at] in " \t!":
        at += 1
    return at


def _sed_command(script: str, at: int) -> int | None:
    """Where a harmless command ends. None: it is not harmless, or not understood."""
    if at >= len(script):
        return None
    command = script[at]
    if command in _SED_PLAIN:
        at += 1
        if match := re.compile(r"\s*\d*").match(script, at):
            at = match.end()
        return at if at >= len(script) or script[at] in " \t\n;}#" or command in "{}" else None
    if command in "sy":
        return _sed_substitution(script, at)
    if command in "aic":
        line_end = script.find("\n", at)
        return len(script) if line_end < 0 else line_end
    if command in "btT:":
        match = re.compile(r"[btT:][ \t]*[\w.-]*").match(script, at)
        return match.end() if match else None
    if command == "#":
        line_end = script.find("\n", at)
        return len(script) if line_end < 0 else line_end
    return None


def _sed_substitution(script: str, at: int) -> int | None:
    if at + 1 >= len(script):
        return None
    delimiter = script[at + 1]
    if delimiter in "\\\n":
        return None
    position, parts = at + 2, 0
    while position < len(script) and parts < 2:
        if script[position] == "\\":
            position += 1
        elif script[position] == delimiter:
            parts += 1
        position += 1
    if parts < 2:
        return None
    if script[at] == "y":
        return position
    match = re.compile(r"[gpiImM0-9]*").match(script, position)
    end = match.end() if match else position
    return end if end >= len(script) or script[end] in " \t\n;}#" else None
