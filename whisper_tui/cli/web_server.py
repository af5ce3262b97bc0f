"""The cockpit over HTTP on loopback: one process for each open page, behind a token that is part of the address."""

import asyncio
import hmac
import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import textual_serve
from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from whisper_tui.cli.standard_streams import on_signals
from whisper_tui.model.errors import Unavailable
from whisper_tui.system.own_program import own_module
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import ensure_supervisor

PAGE = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>whisper_tui</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="static/css/xterm.css">
    <style>
      @font-face {
        font-family: "Roboto Mono";
        src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
      }
      /* For a finger, the font has ascents and descents that make rows of 44 pixels; the cockpit needs 12 of them. */
      @media (pointer: coarse) and (orientation: portrait) and (min-height: 556px) {
        @font-face {
          font-family: "Roboto Mono";
          src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
          ascent-override: 180%;
          descent-override: 95%;
        }
      }
      /* And it needs 40 columns. */
      @media (pointer: coarse) and (orientation: portrait) and (min-height: 556px) and (max-width: 383px) {
        @font-face {
          font-family: "Roboto Mono";
          src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
          size-adjust: 83%;
          ascent-override: 217%;
          descent-override: 114%;
        }
      }
      html, body { height: 100%; margin: 0; overflow: hidden; background: #10151c; touch-action: manipulation; }
      body .textual-terminal { height: 100vh; height: 100dvh; }
      .xterm .xterm-viewport { overflow: hidden !important; background: #10151c !important; }
      .note { display: none; position: absolute; inset: 0; z-index: 10; align-items: center; justify-content: center;
        color: #e6edf3; background: #10151ce6; font: 18px "Roboto Mono", monospace; }
      .note a { color: #79c0ff; }
      .small { display: none; }
      @media (max-width: 600px) {
        .small { display: block; height: 28px; margin: 0; overflow: hidden; color: #93a1b2;
          font: 13px/28px system-ui, sans-serif; text-align: center; white-space: nowrap; }
        body .textual-terminal { height: calc(100vh - 28px); height: calc(100dvh - 28px); }
      }
      body:not(.-first-byte) .opening, body.-closed .closed { display: flex; }
      body.-closed .opening { display: none; }
    </style>
    <script src="static/js/textual.js" defer></script>
  </head>
  <body>
    <div class="note opening"><p>The cockpit opens …</p></div>
    <div class="note closed"><p>The cockpit is closed; commands keep running. <a href="">Open it again</a></p></div>
    <p class="small">Made for small screens: whisper-tui phone</p>
    <div id="terminal" class="textual-terminal" data-session-websocket-url="@SOCKET@" data-font-size="16"></div>
  </body>
</html>
"""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self' @ORIGIN@; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: no resources of other origins, no framing, and no referrer with the token in it."""


def page(host: str, token: str) -> str:
    """The page, as it is shown under a host and port."""
    return PAGE.replace("@SOCKET@", f"ws://{host}/{token}/ws")


def headers(host: str) -> dict[str, str]:
    """The headers of an answer under a host and port."""
    return {name: value.replace("@ORIGIN@", f"ws://{host}") for name, value in HEADERS.items()}


HOST = "127.0.0.1"
MOST_COCKPITS = 8
"""Pages that may be open at once: each is a process of its own."""
MOST_CONNECTIONS = 128
"""A page needs a few, each open cockpit one."""
FIRST_REQUEST_WITHIN_S = 10.0
"""Seconds in which the head of the first request has to be there."""
LARGEST_MESSAGE = 1024 * 1024
END_S = 5.0
"""Seconds that a cockpit has to leave once its page is closed."""
STATIC = Path(textual_serve.__file__).parent / "static"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Cockpit(AppService):
    """One cockpit in a process of its own."""

    def __init__(self, home: Directories, socket: web.WebSocketResponse) -> None:
        super().__init__(
            "",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._close_socket,
            download_manager=DownloadManager(),
        )
        self._socket = socket
        # The argument list goes straight to exec: a shell could misread a directory name.
        self._argv = (*own_module("whisper_tui.cli.cockpit_launcher"), *map(str, home))

    async def _close_socket(self) -> None:
        await self._socket.close()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._build_environment(width=width, height=height),
        )
        self._stdin = self._process.stdin
        return self._process

    async def end(self) -> None:
        """Let it leave; end it if it does not."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stop(), END_S)
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class LimitedConnection(asyncio.Protocol):
    """One connection. Their number is limited, and so is the time until the first request.

    A new connection replaces the oldest one that has sent nothing yet.
    """

    def __init__(
        self, inner: asyncio.Protocol, silent: dict[asyncio.BaseTransport, None], everybody: set[asyncio.BaseTransport]
    ) -> None:
        self._inner = inner
        self._silent = silent
        self._everybody = everybody

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take it, in the place of the oldest silent one where there are too many."""
        self._everybody.add(transport)
        self._silent[transport] = None
        # Other users of this machine can connect too, and must not be able to keep the human out.
        if len(self._everybody) > MOST_CONNECTIONS:
            oldest = next(iter(self._silent))
            # It is told of its end later, and must not be chosen a second time until then.
            del self._silent[oldest]
            self._everybody.discard(oldest)
            oldest.abort()  # type: ignore[attr-defined]
        self._transport = transport
        self._late = asyncio.get_running_loop().call_later(FIRST_REQUEST_WITHIN_S, self._end_if_silent)
        self._inner.connection_made(transport)

    def _end_if_silent(self) -> None:
        if self._transport in self._silent:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._late.cancel()
        self._silent.pop(self._transport, None)
        self._everybody.discard(self._transport)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()


class CockpitSite:
    """Answers requests that have the token, a host name of this machine, and the origin of its own page."""

    def __init__(self, home: Directories, token: str) -> None:
        self._home = home
        self._token = token
        self._open = 0
        self._silent: dict[asyncio.BaseTransport, None] = {}
        """Connections that have asked for nothing yet, oldest first."""
        self._connections = set[asyncio.BaseTransport]()
        self.port = 0
        """The port that it listens on, once it does."""

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(middlewares=[self._check])
        app.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/ws", self._cockpit),
                web.get("/{token}/static/{path:.+}", self._static),
            ]
        )
        return app

    async def listen(self, runner: web.AppRunner, port: int) -> asyncio.Server:
        """Take connections. Raises `OSError` where the port cannot be had."""
        server = runner.server
        if server is None:
            raise RuntimeError("the runner is not set up")

        def made() -> asyncio.Protocol:
            return LimitedConnection(server(), self._silent, self._connections)

        listening = await asyncio.get_running_loop().create_server(made, HOST, port)
        self.port = listening.sockets[0].getsockname()[1]
        return listening

    @property
    def address(self) -> str:
        """The address that a human opens."""
        return f"http://{HOST}:{self.port}/{self._token}/"

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other host names, other origins, and requests without the token (decision 19)."""
        if request.transport is not None:
            self._silent.pop(request.transport, None)
        # DNS rebinding: a web page can make a name of its own point to 127.0.0.1.
        if request.host not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}:
            raise web.HTTPForbidden(text="This is not the name under which the cockpit is served.\n")
        origin = request.headers.get("Origin")
        socket = request.headers.get("Upgrade", "").lower() == "websocket"
        # Browsers send WebSocket requests across origins without asking; only the Origin header tells.
        if (origin is not None or socket) and origin != f"http://{request.host}":
            raise web.HTTPForbidden(text="Another page asked for this.\n")
        # In constant time, so that the token cannot be guessed byte by byte.
        given = request.match_info.get("token", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            raise web.HTTPForbidden(text="The address lacks its token: open the one that whisper-tui serve prints.\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(headers(request.host))
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=page(request.host, self._token), content_type="text/html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        """A file of the terminal that runs in the page."""
        if "\0" in request.match_info["path"]:
            raise web.HTTPNotFound(text="There is no such file.\n")
        file = (STATIC / request.match_info["path"]).resolve()
        if not file.is_relative_to(STATIC.resolve()) or not file.is_file():
            raise web.HTTPNotFound(text="There is no such file.\n")
        return web.FileResponse(file)

    async def _cockpit(self, request: web.Request) -> web.StreamResponse:
        """A cockpit for as long as the page is open."""
        if self._open >= MOST_COCKPITS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_COCKPITS} cockpits are open already: close one.\n")
        self._open += 1
        try:
            socket = web.WebSocketResponse(heartbeat=15, max_msg_size=LARGEST_MESSAGE)
            await socket.prepare(request)
            cockpit = Cockpit(self._home, socket)
            try:
                await cockpit.start(_cells(request, "width", 80), _cells(request, "height", 24))
                await _pass_on(socket, cockpit)
            finally:
                await cockpit.end()
            return socket
        finally:
            self._open -= 1


async def _pass_on(socket: web.WebSocketResponse, cockpit: Cockpit) -> None:
    """Forward the messages of the page to the cockpit; invalid ones are ignored."""
    async for message in socket:
        if message.type != WSMsgType.TEXT:
            continue
        try:
            match message.json():
                case ["stdin", str() as typed]:
                    await cockpit.send_bytes(typed.encode("utf-8", "replace"))
                case ["resize", {"width": int() as width, "height": int() as height}]:
                    await cockpit.set_terminal_size(_within(width), _within(height))
                case ["ping", ping]:
                    await socket.send_json(["pong", ping])
                case ["focus", *_]:
                    await cockpit.focus()
                case ["blur", *_]:
                    await cockpit.blur()
        except ValueError:
            continue


def _cells(request: web.Request, name: str, usual: int) -> int:
    text = request.query.get(name, "")
    return _within(int(text)) if text.isascii() and text.isdecimal() and len(text) < 6 else usual


def _within(cells: int) -> int:
    return max(10, min(cells, 1000))


async def serve_cockpit(home: Directories, port: int) -> None:
    """Serve until a signal ends it. Raises `Unavailable` where the port cannot be had, and `WhisperError`."""
    await ensure_supervisor(home)
    site = CockpitSite(home, secrets.token_urlsafe(32))
    runner = web.AppRunner(site.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            listening = await site.listen(runner, port)
        except OSError as error:
            raise Unavailable(
                f"port {port} cannot be listened on: {error.strerror}", hint="Name another one"
            ) from error
        told = _told_to_end()
        sys.stdout.write(
            f"The cockpit is at {site.address}\n"
            "Whoever has this address can approve commands. Ctrl-C ends it; commands keep running.\n"
        )
        sys.stdout.flush()
        await told.wait()
        listening.close()
    finally:
        await runner.cleanup()


def _told_to_end() -> asyncio.Event:
    """Set by a signal that ends programs."""
    told = asyncio.Event()
    on_signals(told.set)
    return told
