"""The chat completions format of OpenAI."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.dialect import event, joined
from tests.clients.model.script import Call, Part, Turn

FREE_FORM = "free form"
"""The namespace of calls of tools that take one text, `input`, and no JSON."""


class ChatCompletions:
    """POST …/chat/completions."""

    def speaks(self, path: str) -> bool:
        """Whether the model is asked to go on."""
        return path.endswith("/chat/completions")

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """Whether the model may call tools."""
        return bool(body.get("tools"))

    def conversation(self, body: dict[str, Any]) -> list[Part]:
        """Texts, calls and results in the order of the messages; instructions are left out."""
        parts: list[Part] = []
        for message in body["messages"]:
            if message["role"] == "tool":
                parts.append(Part("result", joined(message["content"]), message["tool_call_id"]))
            elif message["role"] in {"user", "assistant"}:
                if text := joined(message.get("content")):
                    parts.append(Part("text", text))
                calls = message.get("tool_calls") or ()
                parts += [Part("call", self._asked(call), call["id"]) for call in calls]
        return parts

    def _asked(self, call: dict[str, Any]) -> str:
        """The arguments, or the text that a tool of free form is given."""
        return str(call["custom"]["input"] if "custom" in call else call["function"]["arguments"])

    def stream(self, turn: Turn, call_id: str) -> Iterator[bytes]:
        """The completion in chunks, as the service ends it."""
        if isinstance(turn, Call):
            if turn.namespace == FREE_FORM:
                named = {"type": "custom", "custom": {"name": turn.name, **turn.arguments}}
            else:
                function = {"name": turn.name, "arguments": json.dumps(turn.arguments)}
                named = {"type": "function", "function": function}
            delta: dict[str, Any] = {"tool_calls": [{"index": 0, "id": call_id, **named}]}
        else:
            delta = {"content": turn.text}
        reason = "tool_calls" if isinstance(turn, Call) else "stop"
        chunk = {"id": f"gen_{call_id}", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        for choices in (
            [{"index": 0, "delta": {"role": "assistant"} | delta, "finish_reason": None}],
            [{"index": 0, "delta": {}, "finish_reason": reason}],
        ):
            yield event(chunk | {"choices": choices})
        yield event(chunk | {"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def aside(self) -> dict[str, Any]:
        """An empty list, of models for example."""
        return {"object": "list", "data": []}
