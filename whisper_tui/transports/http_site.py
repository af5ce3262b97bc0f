"""MCP over HTTP on this machine alone: who may come in, and what each path and method does."""

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from whisper_tui.model.errors import WhisperError
from whisper_tui.transports.http_events import Events
from whisper_tui.transports.http_session import HttpSession
from whisper_tui.transports.relay_memory import Message

HOST = "127.0.0.1"
LARGEST = 16 * 1024 * 1024
"""Bytes of one message."""
MOST_SESSIONS = 200
IDLE_S = 24 * 3600.0
"""Seconds after which a session that says nothing makes room for another."""
SESSION = "mcp-session-id"
INVALID_REQUEST = -32600

AskHook = Callable[[str, str, float], Awaitable[dict[str, Any] | None]]
"""The answer of a hook, given the client, its words, and seconds to answer in. None: it passes."""

HOOK_S = 570.0
"""Seconds in which a hook is answered that names no `deadline`."""
LONGEST_HOOK_S = 7 * 86_400.0


class Refusal(Exception):
    """An answer that is no."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.response = JSONResponse(
            {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": why}},
            status_code=status,
            headers=headers,
        )


class Site:
    """Answers only who shows the token, under a name of this machine, and no page of a browser."""

    def __init__(self, token: str, port: int, open_session: Callable[[], HttpSession], ask_hook: AskHook) -> None:
        self._token = token
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost", "[::1]")}
        self._open_session = open_session
        self._ask_hook = ask_hook
        self._sessions: dict[str, HttpSession] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            self._check(request)
            match request.url.path:
                case "/mcp":
                    response = await self._mcp(request)
                case "/hook/claude":
                    response = await self._hook(request, "claude")
                case path:
                    raise Refusal(404, f"There is nothing at {path}: MCP is at /mcp, and the hook at /hook/claude.")
        except Refusal as refusal:
            response = refusal.response
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def close(self) -> None:
        """End every session."""
        sessions, self._sessions = tuple(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))

    def _check(self, request: Request) -> None:
        """Raises `Refusal` for names that others can make point here, for pages, and for who lacks the token."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            raise Refusal(403, "This is not the name of this server: it is 127.0.0.1 or localhost, with its port.")
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            raise Refusal(403, "A page of another place asked for this.")
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token.encode())
        if kind.lower() != "bearer" or not known:
            raise Refusal(
                401,
                "The header `Authorization: Bearer TOKEN` is missing or wrong; "
                "`whisper-tui mcp --http --show-token` prints the token.",
                **{"WWW-Authenticate": 'Bearer realm="whisper_tui"'},
            )

    async def _mcp(self, request: Request) -> "Response | Events":
        match request.method:
            case "POST":
                return await self._post(request, await _message(request))
            case "GET":
                _check_accepts(request)
                session = self._session(request)
                queue = session.listen()
                if queue is None:
                    raise Refusal(409, "This session listens already.")
                return Events(queue, session.stop_listening)
            case "DELETE":
                session = self._session(request)
                del self._sessions[request.headers[SESSION]]
                await session.close()
                return Response(status_code=204)
            case method:
                raise _wrong_method(method, "GET, POST, DELETE")

    async def _post(self, request: Request, message: Message) -> "Response | Events":
        if message.get("method") == "initialize" and "id" in message:
            return await self._begin(message)
        session = self._session(request)
        if "method" not in message or "id" not in message:
            await session.tell(message)
            return Response(status_code=202)
        _check_accepts(request)
        if session.asks(message["id"]):
            raise Refusal(400, f"The request {json.dumps(message['id'])} of this session is not answered yet.")
        return Events(await session.ask(message), lambda: session.leave(message), answers=True)

    async def _begin(self, message: Message) -> Response:
        """A new session, which stays only if the first request was answered well."""
        await self._make_room()
        session, name = self._open_session(), secrets.token_hex(16)
        answer = await (await session.ask(message)).get()
        if answer is None or "error" in answer:
            await session.close()
            return JSONResponse(answer, status_code=400)
        self._sessions[name] = session
        return JSONResponse(answer, headers={SESSION: name})

    async def _make_room(self) -> None:
        if len(self._sessions) < MOST_SESSIONS:
            return
        now = asyncio.get_running_loop().time()
        for name, session in tuple(self._sessions.items()):
            if not session.busy and now - session.quiet_since > IDLE_S:
                del self._sessions[name]
                await session.close()
        if len(self._sessions) >= MOST_SESSIONS:
            raise Refusal(503, f"{MOST_SESSIONS} sessions are open already.")

    def _session(self, request: Request) -> HttpSession:
        name = request.headers.get(SESSION)
        if name is None:
            raise Refusal(400, "The header Mcp-Session-Id is missing: begin with `initialize`, whose answer has it.")
        if (session := self._sessions.get(name)) is None:
            raise Refusal(404, "There is no such session (any more): begin another with `initialize`.")
        return session

    async def _hook(self, request: Request, client: str) -> Response:
        """A hook's question. Its connection's end means that the agent stopped waiting."""
        if request.method != "POST":
            raise _wrong_method(request.method, "POST")
        seconds = _deadline(request)
        asked = (await _body(request)).decode("utf-8", "replace")
        answering = asyncio.ensure_future(self._ask_hook(client, asked, seconds))
        gone = asyncio.ensure_future(_until_gone(request))
        try:
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientDisconnect
            answer = await answering
        except WhisperError as error:
            raise Refusal(503, f"whisper_tui: {error.sentence()}") from error
        finally:
            for task in (answering, gone):
                task.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)
        return Response(status_code=200) if answer is None else JSONResponse(answer)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _deadline(request: Request) -> float:
    word = request.query_params.get("deadline")
    if word is None:
        return HOOK_S
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_HOOK_S:
        raise Refusal(400, f"{word!r} is no number of seconds.")
    return seconds


async def _body(request: Request) -> bytes:
    """Raises `Refusal` for one that is too long, before it is read whole."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "The body must be JSON, with `Content-Type: application/json`.")
    held = bytearray()
    async for piece in request.stream():
        held += piece
        if len(held) > LARGEST:
            raise Refusal(413, f"The message is longer than {LARGEST:,} bytes.")
    return bytes(held)


async def _message(request: Request) -> Message:
    try:
        message = json.loads(await _body(request))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"The body is not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Refusal(400, "The body is not one JSON-RPC 2.0 message.")
    request_id = message.get("id", "")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise Refusal(400, "The id of a message must be a string or an integer.")
    return message


def _check_accepts(request: Request) -> None:
    accepted = request.headers.get("accept", "*/*").lower()
    if not any(kind in accepted for kind in ("text/event-stream", "text/*", "*/*")):
        raise Refusal(406, "Answers come as text/event-stream: accept that.")


def _wrong_method(method: str, allowed: str) -> Refusal:
    return Refusal(405, f"{method} does nothing here; {allowed} do.", Allow=allowed)
