"""The Responses format of OpenAI."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.dialect import event, joined
from tests.clients.model.script import Call, Part, Turn

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}


class Responses:
    """POST …/responses."""

    def speaks(self, path: str) -> bool:
        """Whether the model is asked to go on."""
        return path.endswith("/responses")

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """Whether the model may call tools."""
        return bool(body.get("tools"))

    def conversation(self, body: dict[str, Any]) -> list[Part]:
        """Texts, calls and results in the order of the items."""
        return [part for item in body["input"] if (part := self._part(item)) is not None]

    def _part(self, item: dict[str, Any]) -> Part | None:
        match item.get("type", "message"):
            case "message":
                return Part("text", joined(item["content"]))
            case "function_call":
                return Part("call", item["arguments"], item["call_id"])
            case "function_call_output":
                return Part("result", joined(item["output"]), item["call_id"])
        return None

    def stream(self, turn: Turn, call_id: str) -> Iterator[bytes]:
        """The response, its one item whole."""
        if isinstance(turn, Call):
            item = self._call(turn, call_id)
        else:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            item = {"type": "message", "id": f"msg_{call_id}", "role": "assistant", "content": content}
        response = {"id": f"resp_{call_id}", "object": "response", "status": "in_progress", "output": []}
        done = response | {"status": "completed", "output": [item], "usage": USAGE}
        for piece in (
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ):
            yield event(piece, piece["type"])

    def _call(self, turn: Call, call_id: str) -> dict[str, Any]:
        item = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": turn.name,
            "arguments": json.dumps(turn.arguments),
        }
        return item | ({"namespace": turn.namespace} if turn.namespace else {})

    def aside(self) -> dict[str, Any]:
        """An empty list, of models for example."""
        return {"object": "list", "data": [], "models": []}


class CodeMode(Responses):
    """The same where the model has one tool, which runs JavaScript that calls the others."""

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """The tools are an item of their own."""
        return any(item.get("type") == "additional_tools" for item in body["input"])

    def _part(self, item: dict[str, Any]) -> Part | None:
        match item.get("type", "message"):
            case "custom_tool_call":
                return Part("call", item["input"], item["call_id"])
            case "custom_tool_call_output":
                return Part("result", joined(item["output"]), item["call_id"])
        return super()._part(item)

    def _call(self, turn: Call, call_id: str) -> dict[str, Any]:
        if "script" not in turn.arguments:
            return super()._call(turn, call_id)
        script = turn.arguments["script"]
        named = {"call_id": call_id, "name": turn.name, "namespace": turn.namespace}
        return {"type": "custom_tool_call", "id": f"ctc_{call_id}", **named, "input": script}
