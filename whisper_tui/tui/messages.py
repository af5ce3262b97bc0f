"""Textual messages between the parts of the cockpit."""

from dataclasses import dataclass

from textual.message import Message

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import WhisperError


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
