"""What the agents of the crash test ask for: every command is numbered, and what it must do follows from the number."""

import re
import shlex
from pathlib import Path

RAN = "ran"
"""The file in which every command that runs leaves its number, once."""

_NUMBER = re.compile(r"n=(\d+);")


def text(number: int, directory: Path) -> str:
    """The command. It says that it runs, writes on both streams, takes a moment, and has an exit code of its own."""
    ran = shlex.quote(str(directory / RAN))
    behind = "sleep 0.2 & " if number % 13 == 0 else ""
    pause = (number % 5) * 0.03
    return (
        f"n={number}; echo $n >> {ran}; {behind}seq 1 {lines(number)}; echo e$n >&2; "
        f"sleep {pause:.2f}; echo end; exit {code(number)}"
    )


def number_in(command: str) -> int:
    """The number of a command."""
    found = _NUMBER.search(command)
    if found is None:
        raise ValueError(f"this is no command of the crash test: {command}")
    return int(found[1])


def lines(number: int) -> int:
    """How many lines it writes before its last one."""
    return number * 37 % 2000 + 1


def code(number: int) -> int:
    """Its exit code."""
    return number % 100


def is_denied(number: int) -> bool:
    """Whether the human says no to it."""
    return number % 10 == 9


def output(number: int) -> bytes:
    """All of its standard output."""
    return b"".join(b"%d\n" % line for line in range(1, lines(number) + 1)) + b"end\n"


def errors(number: int) -> bytes:
    """All of its standard error."""
    return b"e%d\n" % number
