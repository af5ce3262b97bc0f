"""A tool call that has no result, because nothing ran or because its end is not known."""

from typing import Literal

from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.rule_names import whose_rule

Cause = Literal["denied", "refused", "withdrawn", "lost"]


class ToolFailure(WhisperError):
    """The call fails; the message is for the model and carries a human's reason word for word."""

    kind = "tool_failure"

    def __init__(self, message: str, *, cause: Cause = "refused", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause


class UnknownTool(Refused):
    """No tool of that name."""

    kind = "unknown_tool"


class DuplicateTool(Refused):
    """A tool of that name is registered already."""

    kind = "duplicate_tool"


def failure_of(ending: Denied | Withdrawn | HandedOver | Lost) -> ToolFailure:
    """The failure that tells a model about an ending without a result."""
    match ending:
        case Denied():
            return _denied(ending)
        case Withdrawn(why=why):
            return ToolFailure(f"The call was withdrawn before it ran. Nothing ran. {why}".rstrip(), cause="withdrawn")
        case HandedOver():
            return ToolFailure("The command was left to the agent itself; nothing of it is known here.", cause="lost")
        case Lost(why=why):
            message = (
                f"The command may have run, and how it ended cannot be known: {why}. "
                "It is not run again by itself; look at its effects before you repeat it."
            )
            return ToolFailure(message, cause="lost")


def _denied(ending: Denied) -> ToolFailure:
    if ending.by.surface == "rule":
        message = f"Refused by {whose_rule(ending.by.who)}. Nothing ran. Reason: {ending.reason}"
        return ToolFailure(message, cause="refused")
    if not ending.reason:
        return ToolFailure("Denied by the human, without a reason. Nothing ran.", cause="denied")
    return ToolFailure(f"Denied by the human. Nothing ran. Reason: {ending.reason}", cause="denied")
