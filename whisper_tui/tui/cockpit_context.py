"""How the parts of the cockpit reach it: by a context of a few members, and by Textual messages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord

SignDecision = Callable[[CallRecord, Decision, Decider, Callable[[str], object]], Awaitable[DeskProof]]
"""Signs a decision about a call as it was shown, and tells the person if that takes a while."""


class CockpitContext(Protocol):
    """The cockpit, as command groups and dialogs see it: the supervisor, the board, the call on the screen."""

    clock: Callable[[], float]
    """Returns the time, in seconds since the epoch."""
    me: Decider
    """The person who decides in this cockpit."""

    @property
    def supervision(self) -> Supervision:
        """The API of the supervisor. A reconnection replaces it, so it is looked up for each use and never kept."""
        ...

    @property
    def board(self) -> Board:
        """All calls as the cockpit knows them now. A reconnection replaces it as well."""
        ...

    @property
    def shown(self) -> CallRecord | None:
        """The call as it is on the screen: decisions are about this version and no newer one."""
        ...

    @property
    def screen(self) -> Screen[Any]:
        """The Textual screen, for its widgets, workers and timers."""
        ...

    async def send(self, record: CallRecord, decision: Decision) -> None:
        """Send a decision about a call as it was shown, signed if the user has it signed. Raises `WhisperError`."""
        ...

    def tell(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """Show a toast."""
        ...

    def select_after(self, call_id: str) -> None:
        """Select the next waiting call, after this one was decided."""
        ...

    def refresh_call(self) -> None:
        """Draw the selected call as the board knows it now."""
        ...


class BoardChanged(Message):
    """Calls or sessions have changed; BoardFollower knows which ones."""

    def can_replace(self, message: Message) -> bool:
        """True for another message of this class: one update covers all changes so far."""
        return isinstance(message, BoardChanged)


class Opened(Message):
    """The cockpit is mounted."""


@dataclass
class EventsLost(Message):
    """The stream of events has ended."""

    error: WhisperError
    retry_in_s: float | None
    """Seconds until the next attempt to reconnect. None: there is none."""


@dataclass
class Connected(Message):
    """A new connection delivers events; the board starts empty."""

    supervision: Supervision


@dataclass
class CallSelected(Message):
    """Another call is selected."""

    call_id: str | None
    by_hand: bool
    """True if a person selected it, False if the selection moved by itself."""


@dataclass
class CommandRequested(Message):
    """A button of a command was pressed."""

    command_id: str


@dataclass
class FilterChanged(Message):
    """The text of the filter has changed."""

    text: str


class FilterLeft(Message):
    """The person has finished typing the filter."""
