"""What the agents of the crash test ask for: what a command must write, and how it must end, follows from its text."""

import re
import shlex
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from whisper_tui.model.call import Command, CommandSpec, Function, Shell
from whisper_tui.model.state import CallRecord

RAN = "ran"
"""The file in which every command that runs leaves its number, once."""
LATE_S = 1.0
"""Seconds that a command of the kind `late` has."""

Kind = Literal[
    "plain",
    "long",
    "behind",
    "denied",
    "again",
    "asked",
    "edited",
    "terminal",
    "input",
    "signalled",
    "late",
    "withdrawn",
    "typed",
    "keyed",
    "task",
]
"""Some lines; many; a process left behind that writes after the end; the human says no; the same one three times;
the human makes another of it; that other one; in a terminal; reads a line; ends when it is sent a signal;
is ended when its time is over; its agent takes it back; reads a line from its terminal, which its agent types;
the same, and a human at a cockpit decides about it by keys and types the line; a task of `ExecCommand`, whose line is
typed by `TaskInput`, about which the human decides as well."""

OF_ANY_SHELL: tuple[Kind, ...] = ("plain", "behind", "plain", "long", "denied", "plain")
"""What agents ask for that can say nothing but a text."""
OF_THE_PORT: tuple[Kind, ...] = (
    *OF_ANY_SHELL,
    *(kind for kind in get_args(Kind)[4:] if kind not in {"edited", "keyed", "task"}),
)
OF_KEYS: tuple[Kind, ...] = ("keyed",)
"""What waits for a human at a cockpit, who is slow and may be killed."""
OF_MCP: tuple[Kind, ...] = ("task", "plain", "task", "behind", "task", "long", "denied")
IN_A_TERMINAL: tuple[Kind, ...] = ("terminal", "typed", "keyed", "task")

REFUSED = "refused\n"
"""Typed input to which the human says no: no command ever reads it."""
BY_HAND = "hand\n"
"""What the human types into a command whose agent, or whose cockpit, does not come back to it."""

READS = "stty -echo; echo ready; read -r line; echo got $line"
_MARKS = re.compile(r"n=(\d+); k=(\w+);")


class Work(NamedTuple):
    """One command."""

    number: int
    kind: Kind

    @classmethod
    def found_in(cls, text: str) -> "Work":
        """The command that has this text."""
        found = _MARKS.match(text)
        if found is None:
            raise ValueError(f"this is no command of the crash test: {text}")
        return cls(int(found[1]), next(kind for kind in get_args(Kind) if kind == found[2]))

    @classmethod
    def asked_by(cls, record: CallRecord) -> "Work":
        """What the agent of a call has asked for."""
        assert isinstance(record.call.spec.command, Shell)
        return cls.found_in(record.call.spec.command.text)

    @property
    def code(self) -> int:
        """Its exit code."""
        return self.number % 100

    @property
    def times(self) -> int:
        """How often its agent asks for it."""
        return 3 if self.kind == "again" else 1

    @property
    def word(self) -> str:
        """The line that is typed into it."""
        return f"word{self.number}"

    @property
    def denied_by_keys(self) -> bool:
        """Whether the human at the cockpit says no to it."""
        return self.kind == "keyed" and self.number % 3 == 0

    def text(self, directory: Path) -> str:
        """What the shell is given: it says that it runs, writes on both streams, and has an exit code of its own."""
        ran = shlex.quote(str(directory / RAN))
        return f"n={self.number}; k={self.kind}; echo $n >> {ran}; {self._body()}; exit {self.code}"

    def spec(self, directory: Path, workspace: Path) -> CommandSpec:
        """What the supervisor is asked to run."""
        tty = self.kind in IN_A_TERMINAL
        special: dict[str, Any] = {"tty": tty, "accepts_input": self.kind in {"input", "typed", "keyed"}}
        if self.kind == "late":
            special |= {"timeout_s": LATE_S, "grace_s": 1.0}
        return CommandSpec(command=Shell(text=self.text(directory)), cwd=str(workspace), **special)

    def edited(self) -> "Work":
        """What the human makes of it."""
        return self._replace(kind="edited") if self.kind == "asked" else self

    def output(self) -> bytes:
        """All of its standard output, what a process left behind writes included."""
        return self.answered() + (b"late\n" if self.kind == "behind" else b"")

    def outputs(self) -> set[bytes]:
        """All that its standard output may be, once nothing of it runs any more."""
        by_hand = self.answered().replace(self.word.encode(), BY_HAND.strip().encode())
        return {self.output(), *((by_hand,) if self.kind in {"keyed", "task"} else ())}

    def answered(self) -> bytes:
        """What its standard output holds when the command itself has ended."""
        match self.kind:
            case "input":
                return f"got {self.word}\n".encode()
            case "typed" | "keyed" | "task":
                return f"ready\r\ngot {self.word}\r\n".encode()
            case "signalled":
                return b"ready\ncaught\n"
            case "late":
                return b"begun\n"
            case "terminal":
                return (self._lines() + self._said() + b"end\n").replace(b"\n", b"\r\n")
            case _:
                return self._lines() + b"end\n"

    def errors(self) -> bytes:
        """All of its standard error."""
        if self.kind in {"input", "signalled", "late", *IN_A_TERMINAL}:
            return b""
        return self._lines() + self._said() if self.kind == "long" else self._said()

    def _body(self) -> str:
        lines, pause = f"seq 1 {self._length()}", f"{self.number % 5 * 0.03:.2f}"
        match self.kind:
            case "input":
                return "read -r line; echo got $line"
            case "typed" | "keyed":
                return READS
            case "task":
                # Were the line typed twice, the second one would be read as well.
                once_more = f'read -r -t 0.3 more && [ "$0$more" = {self.word}{self.word} ] && echo again'
                return f"{READS}; bash -c '{once_more}' \"$line\""  # not every sh has a read that waits for a time
            case "signalled":
                waits = "for i in $(seq 1200); do sleep 0.05; done"
                return f"trap 'echo caught; exit {self.code}' USR1; echo ready; {waits}; echo in vain"
            case "late":
                return "echo begun; exec sleep 20"
            case "behind":
                left = "(while kill -0 $$ 2> /dev/null; do sleep 0.05; done; echo late) &"
                return f"{lines}; echo e$n >&2; {left} echo end"
            case "long":
                return f"{lines}; {lines} >&2; echo e$n >&2; echo end"
            case _:
                return f"{lines}; echo e$n >&2; sleep {pause}; echo end"

    def _length(self) -> int:
        return 20_000 + self.number if self.kind == "long" else self.number * 37 % 500 + 1

    def _lines(self) -> bytes:
        return b"".join(b"%d\n" % line for line in range(1, self._length() + 1))

    def _said(self) -> bytes:
        return b"e%d\n" % self.number


def typed_input(command: Command) -> str | None:
    """The text that a call asks to type into a task. None: it asks for something else."""
    return command.arguments["text"] if isinstance(command, Function) else None


class Numbers:
    """Gives every command a number of its own."""

    def __init__(self) -> None:
        self._count = count(1)

    def next_of(self, kinds: tuple[Kind, ...]) -> Work:
        """The next command, of one kind after the other."""
        number = next(self._count)
        return Work(number, kinds[number % len(kinds)])
