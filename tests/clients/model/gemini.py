"""The generateContent format of Gemini."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.dialect import event
from tests.clients.model.script import Call, Part, Turn, call_id

USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}


class GenerateContent:
    """POST …:streamGenerateContent. Calls have no id of their own here: they are numbered as they come."""

    def speaks(self, path: str) -> bool:
        """Whether the model is asked to go on."""
        return path.endswith(":streamGenerateContent")

    def offers_tools(self, body: dict[str, Any]) -> bool:
        """Whether the model may call tools."""
        return any(tool.get("functionDeclarations") for tool in body.get("tools") or ())

    def conversation(self, body: dict[str, Any]) -> list[Part]:
        """Texts, calls and results in the order of the parts."""
        parts: list[Part] = []
        calls = results = 0
        for piece in (piece for content in body["contents"] for piece in content.get("parts", ())):
            if "functionCall" in piece:
                parts.append(Part("call", json.dumps(piece["functionCall"].get("args")), call_id(calls)))
                calls += 1
            elif "functionResponse" in piece:
                parts.append(Part("result", self._told(piece["functionResponse"]["response"]), call_id(results)))
                results += 1
            elif piece.get("text"):
                parts.append(Part("text", piece["text"]))
        return parts

    def _told(self, response: dict[str, Any]) -> str:
        """The text under `output` or `error`, which are all that the client uses; anything else as JSON."""
        match response:
            case {"output": str(text)} if len(response) == 1:
                return text
            case {"error": str(text)} if len(response) == 1:
                return text
        return json.dumps(response, ensure_ascii=False)

    def stream(self, turn: Turn, call_id: str) -> Iterator[bytes]:
        """One chunk that is the whole turn."""
        if isinstance(turn, Call):
            part: dict[str, Any] = {"functionCall": {"name": turn.name, "args": turn.arguments}}
        else:
            part = {"text": turn.text}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        yield event({"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "scripted"})

    def aside(self) -> dict[str, Any]:
        """A count of tokens."""
        return {"totalTokens": 1}
