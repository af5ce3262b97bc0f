"""What an agent is given for a call."""

from dataclasses import dataclass, field
from typing import Any

from whisper_tui.model.run import Stream


@dataclass(frozen=True)
class Answer:
    """The result of a call, as data and as text."""

    result: Any
    """Exactly what the tool's contract says."""
    text: str
    """The same facts for a model that reads text."""
    told: str | None
    """What the agent must know beyond the result; see `told`."""
    failed: bool = False
    """Whether the result tells of a failure."""
    left_out: dict[str, Stream] = field(default_factory=dict)
    """Marks in the result that stand for a whole stream, which whoever asked reads for itself."""

    @property
    def for_model(self) -> str:
        """All that a model has to read, as one text: what it must know first, then the result."""
        return self.text if self.told is None else f"{self.told}\n{self.text}"
