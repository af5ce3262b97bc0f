"""The Messages format of Anthropic."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.dialect import event, joined
from tests.clients.model.script import Call, Part, Turn

USAGE = {"input_tokens": 1, "output_tokens": 1}


class Messages:
    """POST …/v1/messages."""

    def speaks(self, path: str) -> bool:
        """Whether the model is asked to go on."""
        return path.endswith("/v1/messages")

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """Whether the model may call tools."""
        return bool(body.get("tools"))

    def conversation(self, body: dict[str, Any]) -> list[Part]:
        """Texts, calls and results in the order of the content blocks."""
        parts: list[Part] = []
        for message in body["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            parts += [part for block in blocks if (part := self._part(block)) is not None]
        return parts

    def _part(self, block: dict[str, Any]) -> Part | None:
        match block["type"]:
            case "text":
                return Part("text", block["text"])
            case "tool_use":
                return Part("call", json.dumps(block["input"]), block["id"])
            case "tool_result":
                return Part("result", joined(block.get("content")), block["tool_use_id"])
        return None

    def stream(self, turn: Turn, call_id: str) -> Iterator[bytes]:
        """The message, in the pieces that the service sends it in."""
        if isinstance(turn, Call):
            block: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": turn.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": turn.text}
        message = {
            "id": f"msg_{call_id}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": USAGE,
        }
        ending = {"stop_reason": "tool_use" if isinstance(turn, Call) else "end_turn", "stop_sequence": None}
        for piece in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ):
            yield event(piece, piece["type"])

    def aside(self) -> dict[str, Any]:
        """A count of tokens."""
        return {"input_tokens": 1}
