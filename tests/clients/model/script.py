"""What a scripted model does, and what it is told: values that every wire format is translated from and to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any]
    namespace: str = ""
    """The group that the tool is in, where the wire format has such a thing."""


@dataclass(frozen=True)
class Say:
    """The model answers in words, which ends its turn."""

    text: str


Turn = Call | Say


@dataclass(frozen=True)
class Part:
    """A piece of a conversation as the client sends it to the model."""

    kind: Literal["text", "call", "result"]
    text: str
    """Word for word what the model reads."""
    call_id: str = ""
    """Of calls and their results."""


@dataclass(frozen=True)
class Answer:
    """What a model is told after one of its calls, before it goes on."""

    result: str
    """The text of the tool's result."""
    beside: tuple[str, ...]
    """Other texts that came after the call and before the next one."""

    @property
    def everything(self) -> str:
        """All of it, one below the other."""
        return "\n".join((self.result, *self.beside))


def call_id(index: int) -> str:
    """The id that the turn with this index, from 0, gives its call."""
    return f"call_{index}"


def turn_due(parts: Sequence[Part]) -> int:
    """Index of the turn that answers this conversation: one for every call that has its result."""
    return len({part.call_id for part in parts if part.kind == "result"})


def answer_to(parts: Sequence[Part], index: int) -> Answer | None:
    """What the conversation tells about the call of this turn. None: it has no result in it."""
    identity = call_id(index)
    place = next((at for at, part in enumerate(parts) if part.kind == "call" and part.call_id == identity), None)
    if place is None:
        return None
    after = parts[place + 1 :]
    until = next((at for at, part in enumerate(after) if part.kind == "call"), len(after))
    results = [part.text for part in after if part.kind == "result" and part.call_id == identity]
    if not results:
        return None
    return Answer(results[-1], tuple(part.text for part in after[:until] if part.kind == "text"))
