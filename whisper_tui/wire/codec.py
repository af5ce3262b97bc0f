"""Lines of the protocol: errors and answers as bytes, and back."""

import json
from typing import Any

from pydantic_core import to_json

from whisper_tui.model.errors import WhisperError, error_from

LONGEST_SENTENCE = 4096
"""Characters of a message or a hint: what was wrong about a request is not sent back whole."""


def line_of(content: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def error_line(error: WhisperError, request_id: int | None = None) -> bytes:
    """The answer that something cannot be done. Without an id it is about the connection itself."""
    content = {"kind": error.kind, "message": _clipped(error.message), "hint": _clipped(error.hint)}
    return line_of({"error": content} if request_id is None else {"id": request_id, "error": content})


def answer_line(request_id: int, member: str, body: bytes) -> bytes:
    """An answer whose member `ok` or `item` is the given JSON."""
    return b'{"id":%d,"%s":%s}\n' % (request_id, member.encode(), body)


def request_line(request_id: int, operation: str, arguments: bytes) -> bytes:
    """A request whose arguments are the given JSON."""
    return b'{"id":%d,"op":%s,"args":%s}\n' % (request_id, to_json(operation), arguments)


def error_in(content: dict[str, Any]) -> WhisperError | None:
    """The error that an answer carries, as the same class. None: it carries none."""
    told = content.get("error")
    if not isinstance(told, dict):
        return None
    return error_from(str(told.get("kind", "")), str(told.get("message", "")), str(told.get("hint", "")))


def _clipped(sentence: str) -> str:
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    return f"{sentence[:LONGEST_SENTENCE]}… ({len(sentence) - LONGEST_SENTENCE:,} more characters)"
