"""The calls that a gateway holds, and its session with the supervisor."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import sendable
from whisper_tui.transports.json_lines import NOTE_KEY, Message

# The server is started before the model is loaded, so that both take no longer than the server alone.
if TYPE_CHECKING:
    from whisper_tui.model.api import Supervision
    from whisper_tui.model.call import CallRequest, Session

    class Connection(Supervision, Protocol):
        """A connection to the supervisor. Its sessions are gone with it."""

        @property
        def connected(self) -> bool:
            """True if it can be used."""
            ...

        async def close(self) -> None:
            """End it."""
            ...

    Connect = Callable[[], Awaitable[Connection]]
    """Connects to the supervisor, and starts one if none runs. Raises `WhisperError`."""


class HeldCall:
    """One call of a tool, from its request to the server's answer."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.call_id: str | None = None
        """Its number in the queue, once it is submitted."""
        self.connection: Connection | None = None
        """The connection over which it was submitted: to others the supervisor refuses it."""
        self.forwarded = False
        """True once the server was sent it."""
        self.note: str | None = None
        """The note for the model beside the result."""
        self.task: asyncio.Task[None] | None = None
        self.began_at = time.monotonic()

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the request."""
        found: Mapping[str, Any] = self.message["params"]
        return found

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the agent sent them."""
        return dict(self.params.get("arguments") or {})

    @property
    def progress_token(self) -> Any:
        """The token for reports of progress. None: the client wants none."""
        match self.params:
            case {"_meta": {"progressToken": token}}:
                return token
            case _:
                return None

    def edited(self, arguments: dict[str, Any]) -> bytes:
        """Return the request's line with other arguments."""
        message = {**self.message, "params": {**self.params, "arguments": arguments}}
        return json.dumps(message).encode()

    def annotated(self, answer: Message) -> bytes:
        """Return the server's answer with the note for the model."""
        match answer:
            case {"result": {"content": list(content), **rest}}:
                # First, as beside the results of our own tools. What the tool itself said follows unchanged.
                meta: Any = rest["_meta"] if isinstance(rest.get("_meta"), dict) else {}
                result = {**rest, "content": [text_block(self.note), *content], "_meta": {**meta, NOTE_KEY: self.note}}
                return json.dumps({**answer, "result": result}).encode()
            case {"error": {"message": str(text), **rest}}:
                return json.dumps({**answer, "error": {**rest, "message": f"{text} ({self.note})"}}).encode()
            case _:
                return json.dumps(answer).encode()


class ApprovalSession:
    """The session of one gateway with the supervisor. A lost connection is opened anew for the next call."""

    def __init__(self, connect: "Connect", server: str, root: str, name: str | None) -> None:
        self._connect = connect
        self._server = server
        self._root = root
        self._name = name
        self.client: Mapping[str, Any] = {}
        """The client's account of itself."""
        self.descriptions: dict[str, str] = {}
        """By tool: the server's words about it."""
        self._opening = asyncio.Lock()
        self._connection: Connection | None = None
        self._session: Session | None = None

    async def opened(self) -> "tuple[Connection, Session]":
        """Return the connection and the session. Raises `WhisperError`."""
        async with self._opening:
            if self._connection is None or self._session is None or not self._connection.connected:
                if self._connection is not None:
                    await self._connection.close()
                self._session = None
                self._connection = await self._connect()
                self._session = await self._connection.open_session(await asyncio.to_thread(self._hello))
            return self._connection, self._session

    async def close(self, why: str) -> None:
        """End the session, if there is one."""
        if self._connection is not None:
            if self._session is not None and self._connection.connected:
                with suppress(WhisperError):
                    await self._connection.close_session(self._session.id, why)
            await self._connection.close()

    def request(self, call: HeldCall, session: "Session") -> "CallRequest":
        """Return the request for a call. Raises `WhisperError`."""
        from whisper_tui.model.call import CallRequest, CommandSpec, Function

        tool = call.params["name"]
        name = f"mcp__{self._server}__{tool}"
        function = Function(tool=name, arguments=call.arguments, about="server", targets=(self._server, tool))
        return CallRequest(
            session_id=session.id,
            tool=name,
            arguments=call.arguments,
            spec=CommandSpec(command=function, cwd=session.root),
            description=self.descriptions.get(tool, ""),
        )

    def _hello(self) -> Any:
        from whisper_tui.model.call import LONGEST_NAME, ClientInfo, SessionHello

        base = Path(self._root).name or self._root
        name, version = (str(self.client.get(key) or "")[:LONGEST_NAME] for key in ("name", "version"))
        named = self._name or f"{base} ({' → '.join(filter(None, (name, self._server)))})"
        return SessionHello(
            name=named[:LONGEST_NAME],
            root=self._root,
            client=ClientInfo(name=name, version=version) if name else None,
            pid=os.getppid(),
            environment=sendable(os.environ),
            ends_with_connection=True,
        )


def text_block(text: str | None) -> Message:
    """Return a text as content of a result."""
    return {"type": "text", "text": text or ""}
