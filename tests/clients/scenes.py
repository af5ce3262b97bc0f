"""What the model asks for in a conversation, and what the human who is played does about it."""

import signal
from dataclasses import dataclass


@dataclass(frozen=True)
class Approved:
    """The human agrees to the command as it is."""


@dataclass(frozen=True)
class Edited:
    """The human agrees to another command."""

    command: str


@dataclass(frozen=True)
class Rewritten:
    """The human gives the file that the agent edits another content."""

    content: str


@dataclass(frozen=True)
class ChangedMeanwhile:
    """Somebody changes the file while it waits; the human agrees to what was asked at first, and then says no."""

    content: str


@dataclass(frozen=True)
class DeniedFor:
    """The human says no."""

    reason: str


@dataclass(frozen=True)
class ApprovedThenSignalled:
    """The human agrees, and sends a signal once the command has written something."""

    number: signal.Signals


@dataclass(frozen=True)
class ApprovedTooLate:
    """The human agrees to the command as it is, but only when the model has been told that nobody has decided yet."""


@dataclass(frozen=True)
class NotDecided:
    """Nobody says anything."""


Reaction = (
    Approved | Edited | Rewritten | ChangedMeanwhile | DeniedFor | ApprovedThenSignalled | ApprovedTooLate | NotDecided
)


@dataclass(frozen=True)
class Scene:
    """One command that the model asks for."""

    command: str
    """Different in every scene of a conversation: the human knows the scene by it. It changes something in the
    workspace, for commands that only look run without anybody being asked."""
    human: Reaction = Approved()
    ticket: str | None = None
    """Of a call of the conversation that the model goes on waiting for, instead of asking for the command."""


AS_IT_IS = Scene("echo approved in $PWD | tee as-it-is-ran")
ANOTHER = Scene("echo as asked | tee as-asked-ran", Edited("echo as edited"))
NO = Scene("touch denied-ran", DeniedFor("No: use `make test` – and ask “Ada” <first> & don't \\n guess."))  # noqa: RUF001
FAILING = Scene("touch failing-ran; echo before; echo wrong >&2; exit 7")
KILLED = Scene("touch killed-ran; echo begun; sleep 600", ApprovedThenSignalled(signal.SIGTERM))
LEAVING = Scene("touch leaving-ran; tail -f /dev/null & echo left one behind")
LONG = Scene("seq 1 20000 | tee long-ran")
"""Writes 108,894 bytes."""
LATE = Scene("echo it ran >> late-ran; cat late-ran", ApprovedTooLate())
STILL_WAITING = Scene(LATE.command, NotDecided(), ticket="1")
"""The first call of an instance always gets this ticket."""
UNHEARD = Scene("touch unheard-ran", NotDecided())

GOING = Scene("mkdir 'a build' && cd 'a build'")
GONE = Scene("touch gone-ran; pwd -P")

ALL = (AS_IT_IS, ANOTHER, NO, FAILING, KILLED, LEAVING, LONG)
"""One conversation: each is asked for when the one before it was answered."""
