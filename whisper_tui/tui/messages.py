"""What the parts of the cockpit tell each other."""

from dataclasses import dataclass

from textual.message import Message

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision


class BoardChanged(Message):
    """Something happened to calls or sessions; which ones is kept by whoever follows the events."""

    def can_replace(self, message: Message) -> bool:
        """One is as good as twenty thousand."""
        return isinstance(message, BoardChanged)


class Opened(Message):
    """The cockpit is built."""


@dataclass
class ConnectionLost(Message):
    """The events have stopped."""

    error: WhisperError
    retry_in_s: float | None
    """Seconds until it is tried again. None: it will not be."""


@dataclass
class Connected(Message):
    """The events flow again, from another connection; the board starts anew."""

    supervision: Supervision


@dataclass
class CallSelected(Message):
    """Another call is to be shown in full."""

    call_id: str | None
    by_hand: bool
    """Whether a person moved there. False: the selection moved by itself."""


@dataclass
class CommandWanted(Message):
    """A button was pressed."""

    command_id: str


@dataclass
class FilterChanged(Message):
    """Other calls are to be listed."""

    text: str


class FilterLeft(Message):
    """The person is done with typing a filter."""
