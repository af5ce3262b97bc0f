"""Command lines with which clients start a shell: the command in them, and the client's own around it.

The gate reads them with every command of an agent, so this is standard library only.
"""

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = r"""(?:'[^']*'|"'"|[^\s'"\\$`;&|<>()*?\[\]{}~#!])+"""
"""One word as clients quote it: plain characters, apostrophes around the rest, and quoted apostrophes."""

_CLAUDE = re.compile(
    rf"(?:\A|&& )eval (?P<word>{_WORD})(?: < /dev/null)? && pwd -P >\| {_WORD}\Z",
)
"""The end of what Claude Code 2.1 runs: the command, and the report of the directory in which it ended.

The first match is the outer one: a command that contains such a text is quoted as a whole.
"""

_CLAUDE_OWN = ("env",)
"""Texts with which Claude Code asks the shell itself, at its start."""

_CLAUDE_SNAPSHOT = re.compile(r"SNAPSHOT_FILE=(?:'[^'\n]*/|[^\s'\"$`;&|<>]*/)shell-snapshots/snapshot-")
"""The beginning of the script with which Claude Code saves functions and aliases. No command begins its text."""


class ShellLine:
    """The arguments of one start of a shell, taken apart."""

    __slots__ = ("_after", "_before", "_quoted", "command", "options", "text")

    def __init__(self, options: "Sequence[str]", text: str, span: tuple[int, int] | None = None) -> None:
        """`span`: the place of the command, as one quoted word, in the text. None: the text is the command."""
        self.options = tuple(options)
        self.text = text
        start, end = (0, len(text)) if span is None else span
        self._quoted = span is not None
        self._before, self._after = text[:start], text[end:]
        self.command = shlex.split(text[start:end])[0] if self._quoted else text
        """The command that the agent, or something beside it, wants to run."""

    def with_command(self, command: str) -> tuple[str, ...]:
        """Return the arguments with another command in the place of this one."""
        word = shlex.quote(command) if self._quoted else command
        return (*self.options, f"{self._before}{word}{self._after}")


def shell_line(client: str, arguments: "Sequence[str]") -> ShellLine | None:
    """Take the arguments of a shell apart. None: they name no text to run, or words beside it."""
    options = arguments[:-1]
    if not options or not all(option.startswith("-") for option in options):
        return None
    if not any("c" in option[1:] for option in options if not option.startswith("--")):
        return None
    found = _CLAUDE.search(arguments[-1]) if client == "claude" else None
    if found is None or not _is_whole(found.string[: found.start()]):
        return ShellLine(options, arguments[-1])
    return ShellLine(options, arguments[-1], found.span("word"))


def _is_whole(text: str) -> bool:
    """True if all quotes of a text are closed. Otherwise what follows it is inside of a word."""
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True


def is_own(client: str, line: ShellLine) -> bool:
    """True for what a client itself asks a shell. No command of an agent, or of a hook, comes in this form."""
    if client != "claude":
        return False
    return line.text in _CLAUDE_OWN or _CLAUDE_SNAPSHOT.match(line.text) is not None


def asks_version(arguments: "Sequence[str]") -> bool:
    """True if a client asks only for the version of the shell."""
    return tuple(arguments) == ("--version",)
