"""What the scripted model needs to know about one wire format."""

import json
from collections.abc import Iterator
from typing import Any, Protocol

from tests.clients.model.script import Part, Turn


class Dialect(Protocol):
    """One wire format of a language model's service."""

    def speaks(self, path: str) -> bool:
        """Whether a request to this path, without its query, asks the model to go on."""
        ...

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """Whether the model may call tools; if not, it is a side question, such as for a title."""
        ...

    def conversation(self, body: dict[str, Any]) -> list[Part]:
        """What the client shows the model, oldest first, without the instructions of the client's own."""
        ...

    def stream(self, turn: Turn, call_id: str) -> Iterator[bytes]:
        """The events in which the model takes its turn."""
        ...

    def aside(self) -> dict[str, Any]:
        """An answer to any other request, such as to count tokens."""
        ...


def event(data: dict[str, Any], name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def joined(content: Any) -> str:
    """The text of a content field, which is a string or a list of typed pieces."""
    if isinstance(content, str):
        return content
    pieces = [piece if isinstance(piece, str) else piece.get("text", "") for piece in content or ()]
    return "\n".join(pieces)
