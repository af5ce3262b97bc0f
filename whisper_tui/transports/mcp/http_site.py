"""MCP over HTTP on the loopback interface: authorization, paths and methods (decision 19)."""

import asyncio
import hmac
import json
import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.transports.loopback_http import HOST
from whisper_tui.transports.mcp.http_session import HttpSession, MessageQueue
from whisper_tui.transports.mcp.relay import Message

STORED_AS = "http-token"
"""Name of the file in the state directory."""


def token_in(directory: Path) -> str:
    """Return the token of an instance. Create it if there is none. Raises `Unavailable`."""
    path = directory / STORED_AS
    try:
        return _read(path)
    except FileNotFoundError:
        _create(path)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        return _read(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _create(path: Path) -> None:
    """Create the token file."""
    # link() fails if the file exists. If two programs start at once, the token of the first one is complete and stays.
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        finally:
            beside.unlink()
    except OSError as error:
        raise _unusable(path, error) from error


def _read(path: Path) -> str:
    # Links are not followed, and the open file is checked, because the path could be replaced meanwhile.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "r", encoding="ascii", errors="replace") as file:
        about = os.fstat(fd)
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unavailable(
                f"{path} can be read by others, so it is no longer secret",
                hint="Remove it; then a new token is created, which agents need",
            )
        token = file.read(1024).strip()
    if not token:
        raise Unavailable(f"{path} is empty", hint="Remove it; then a new one is created")
    return token


def _unusable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{path} cannot be used: {error.strerror}", hint="Check the permissions of its directory")


PING_S = 15.0
"""Seconds without a message after which a comment is sent."""

# nginx buffers an event stream unless X-Accel-Buffering forbids it.
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Events:
    """The event stream of a queue, until the queue ends, the answer arrives, or the client disconnects."""

    def __init__(self, queue: MessageQueue, left: Callable[[], None], *, answers: bool = False) -> None:
        """`left` is called at the end. `answers`: the first answer is the last message."""
        self._queue = queue
        self._left = left
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream as the response to one request."""
        gone = asyncio.create_task(_until_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            while (piece := await self._next(gone)) is not None:
                await send({"type": "http.response.body", "body": piece[0], "more_body": True})
                if piece[1]:
                    break
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            return  # The client has closed it in the middle of a message.
        finally:
            self._left()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    async def _next(self, gone: asyncio.Task[None]) -> tuple[bytes, bool] | None:
        """Return the next piece, and whether it is the last one. None: there is none."""
        message = asyncio.create_task(self._queue.get())
        try:
            waits: tuple[asyncio.Task[Any], ...] = (message, gone)
            await asyncio.wait(waits, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            # Proxies and clients close an idle stream, so a comment keeps it alive.
            if not message.done():
                return None if gone.done() else (b": still there\n\n", False)
            content = await message
        finally:
            message.cancel()
        if content is None:
            return None
        return f"event: message\ndata: {json.dumps(content)}\n\n".encode(), self._answers and "method" not in content


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


LARGEST = 16 * 1024 * 1024
"""Bytes of one message."""
MOST_SESSIONS = 200
IDLE_S = 24 * 3600.0
"""Seconds without a request after which a session may be closed for another one."""
SESSION = "mcp-session-id"
INVALID_REQUEST = -32600

AskHook = Callable[[str, str, float], Awaitable[dict[str, Any] | None]]
"""Returns a hook's answer, given the client, its input, and the seconds to answer. None: no decision."""

HOOK_S = 570.0
"""The deadline in seconds for a hook that names none."""
LONGEST_HOOK_S = 7 * 86_400.0


class HttpRefusal(Exception):
    """A request that is refused with an HTTP status."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.response = JSONResponse(
            {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": why}},
            status_code=status,
            headers=headers,
        )


class McpSite:
    """Answers requests that have the token and a host name of this machine, but none of a browser page."""

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
                    raise HttpRefusal(404, f"There is nothing at {path}. MCP is at /mcp, and the hook at /hook/claude.")
        except HttpRefusal as refusal:
            response = refusal.response
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def close(self) -> None:
        """End every session."""
        sessions, self._sessions = tuple(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))

    def _check(self, request: Request) -> None:
        """Raise `HttpRefusal` for other host names, for browser pages, and without the token."""
        # DNS rebinding: a page can let its own host name point to 127.0.0.1.
        host = request.headers.get("host", "")
        if host not in self._hosts:
            raise HttpRefusal(403, "The host must be 127.0.0.1 or localhost, with the port of this server.")
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            raise HttpRefusal(403, "Requests of web pages are refused.")
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        # In constant time, so that the token cannot be guessed byte by byte.
        known = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token.encode())
        if kind.lower() != "bearer" or not known:
            raise HttpRefusal(
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
                    raise HttpRefusal(409, "This session is already listening.")
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
            await session.notify(message)
            return Response(status_code=202)
        _check_accepts(request)
        if session.is_pending(message["id"]):
            raise HttpRefusal(400, f"The request {json.dumps(message['id'])} of this session is still pending.")
        return Events(await session.request(message), lambda: session.cancel(message), answers=True)

    async def _begin(self, message: Message) -> Response:
        """Open a new session. It is kept only if its first request succeeds."""
        await self._evict_an_idle_session()
        session, name = self._open_session(), secrets.token_hex(16)
        answer = await (await session.request(message)).get()
        if answer is None or "error" in answer:
            await session.close()
            return JSONResponse(answer, status_code=400)
        self._sessions[name] = session
        return JSONResponse(answer, headers={SESSION: name})

    async def _evict_an_idle_session(self) -> None:
        if len(self._sessions) < MOST_SESSIONS:
            return
        now = asyncio.get_running_loop().time()
        for name, session in tuple(self._sessions.items()):
            if not session.busy and now - session.quiet_since > IDLE_S:
                del self._sessions[name]
                await session.close()
        if len(self._sessions) >= MOST_SESSIONS:
            raise HttpRefusal(503, f"{MOST_SESSIONS} sessions are already open.")

    def _session(self, request: Request) -> HttpSession:
        name = request.headers.get(SESSION)
        if name is None:
            raise HttpRefusal(
                400, "The header Mcp-Session-Id is missing: begin with `initialize`, whose answer has it."
            )
        if (session := self._sessions.get(name)) is None:
            raise HttpRefusal(404, "There is no such session (any more): start a new one with `initialize`.")
        return session

    async def _hook(self, request: Request, client: str) -> Response:
        """Answer a hook. If its connection ends, the agent has stopped waiting."""
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
            raise HttpRefusal(503, f"whisper_tui: {error.sentence()}") from error
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
        raise HttpRefusal(400, f"{word!r} is not a number of seconds.")
    return seconds


async def _body(request: Request) -> bytes:
    """Return the body. Raises `HttpRefusal` if it is too long, before reading all of it."""
    # Only JSON: a web form can send other types across origins without a preflight request.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpRefusal(415, "The body must be JSON, with `Content-Type: application/json`.")
    held = bytearray()
    async for piece in request.stream():
        held += piece
        if len(held) > LARGEST:
            raise HttpRefusal(413, f"The message is longer than {LARGEST:,} bytes.")
    return bytes(held)


async def _message(request: Request) -> Message:
    try:
        message = json.loads(await _body(request))
    except (ValueError, RecursionError) as error:
        raise HttpRefusal(400, f"The body is not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise HttpRefusal(400, "The body is not one JSON-RPC 2.0 message.")
    request_id = message.get("id", "")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise HttpRefusal(400, "The id of a message must be a string or an integer.")
    return message


def _check_accepts(request: Request) -> None:
    accepted = request.headers.get("accept", "*/*").lower()
    if not any(kind in accepted for kind in ("text/event-stream", "text/*", "*/*")):
        raise HttpRefusal(406, "Answers have the type text/event-stream, which must be accepted.")


def _wrong_method(method: str, allowed: str) -> HttpRefusal:
    return HttpRefusal(405, f"{method} is not allowed here; use {allowed}.", Allow=allowed)
