"""What a relay must remember of a conversation to go on with another supervisor. Standard library only."""

import json
import threading
from typing import Any

Message = dict[str, Any]


def parsed(line: bytes) -> Message | None:
    """The JSON-RPC message of a line. None: it is not one."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def client_name(message: Message | None) -> str | None:
    """What the agent's program calls itself in its first message, in either era of the protocol."""
    match message:
        case {"params": {"clientInfo": {"name": str(name)}}}:
            return name
        case {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str(name)}}}}:
            return name
        case _:
            return None


class Memory:
    """The requests that are not answered and the lines that began the conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unanswered: dict[str, tuple[str, bytes]] = {}
        """By request id as JSON: method and line, in the order of sending."""
        self._opening: bytes | None = None
        """The `initialize` request, once it was answered well."""
        self._initialized: bytes | None = None

    def sent(self, message: Message | None, line: bytes) -> None:
        """Take note of a line that goes to the supervisor."""
        match message:
            case {"method": str(method), "id": request_id} if request_id is not None:
                with self._lock:
                    self._unanswered[json.dumps(request_id)] = (method, line)
            case {"method": "notifications/initialized"}:
                self._initialized = line
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}}:
                with self._lock:
                    self._unanswered.pop(json.dumps(request_id), None)
            case _:
                pass

    def received(self, message: Message | None) -> None:
        """Take note of a line that came from the supervisor."""
        if message is None or "method" in message or "id" not in message:
            return
        with self._lock:
            method, line = self._unanswered.pop(json.dumps(message["id"]), ("", b""))
        if method == "initialize" and "result" in message:
            self._opening = line

    def replay(self) -> tuple[list[bytes], str | None]:
        """The lines that a new supervisor must hear, and the id of an answer that the agent has had already."""
        lines, swallowed = [], None
        if self._opening is not None:
            lines.append(self._opening)
            swallowed = json.dumps((parsed(self._opening) or {}).get("id"))
        if self._initialized is not None:
            lines.append(self._initialized)
        with self._lock:
            return lines + [line for _, line in self._unanswered.values()], swallowed

    @property
    def waits(self) -> bool:
        """Whether the agent waits for any answer."""
        with self._lock:
            return bool(self._unanswered)

    def give_up(self) -> list[Any]:
        """Forget all unanswered requests. Returns their ids."""
        with self._lock:
            ids = [json.loads(request_id) for request_id in self._unanswered]
            self._unanswered.clear()
        return ids
