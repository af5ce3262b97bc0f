"""Endings of calls; none can be mistaken for another, and "never ran" is never exit 0."""

import signal
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.decision import Decider
from whisper_tui.model.value import Value

StartProblem = Literal["program_not_found", "permission_denied", "cwd_not_found", "not_executable", "other"]


class Exited(Value):
    """The process ended by itself; a tool that its caller carried out has code 0 if it returned, and 1 if not."""

    kind: Literal["exited"] = "exited"
    code: int
    problem: str = ""
    """Why a tool that its caller carried out did not return, in the caller's words. Empty for processes."""


class Signalled(Value):
    """A signal ended the process."""

    kind: Literal["signalled"] = "signalled"
    number: int
    by_us: bool
    """True if it was sent through whisper_tui."""
    core_dumped: bool = False
    limit: Literal["cpu", "memory", "processes"] | None = None
    """The limit that it went beyond, if that is why."""


class TimedOut(Value):
    """Its time was over, so it was ended."""

    kind: Literal["timed_out"] = "timed_out"
    after_s: float


class FailedToStart(Value):
    """There was never a process."""

    kind: Literal["failed_to_start"] = "failed_to_start"
    problem: StartProblem
    subject: str
    """The program or directory that it is about."""
    message: str


class Denied(Value):
    """A human or a rule said no; nothing ran."""

    kind: Literal["denied"] = "denied"
    by: Decider
    reason: str
    for_session: tuple[str, ...] = ()
    """The words that a human denied for the session, and that this call begins with. Empty: it was denied by itself."""


class Withdrawn(Value):
    """The agent took it back before it ran."""

    kind: Literal["withdrawn"] = "withdrawn"
    why: str


class HandedOver(Value):
    """It was approved, and its agent runs it itself: what became of it is not known here."""

    kind: Literal["handed_over"] = "handed_over"


class Lost(Value):
    """It ran, or may have run, and its end cannot be known. Never run again by itself."""

    kind: Literal["lost"] = "lost"
    why: str


Ending = Annotated[
    Exited | Signalled | TimedOut | FailedToStart | Denied | Withdrawn | HandedOver | Lost,
    Field(discriminator="kind"),
]


def signal_name(number: int) -> str:
    """The name of a signal, as SIGTERM; SIG40 for a number without one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
