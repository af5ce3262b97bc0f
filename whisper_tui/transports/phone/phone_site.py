"""The page for paired phones over HTTP on loopback: its files, and the operations of a phone as JSON (decision 40).

It decides nothing and keeps nothing. A yes is verified by the supervisor, and the secret of a phone is in its cookie.
"""

import asyncio
import inspect
import ipaddress
import json
import time
import typing
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model
from pydantic_core import from_json, to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from whisper_tui.model.errors import InvalidRequest, NotAllowed, Unavailable, UnknownCall, WhisperError
from whisper_tui.model.page_address import page_address
from whisper_tui.model.phone import PAIR_PATH, PairedPhone, PhoneRole
from whisper_tui.model.value import Value
from whisper_tui.system.own_address import is_own_address
from whisper_tui.transports.loopback_http import LoopbackServer, listening_on

LARGEST = 64 * 1024
"""Bytes of one request."""
MOST_WAITS = 32
"""Requests that may wait for news at once. A page has one."""
ATTEMPTS = 10
"""Burst size of attempts to pair or to sign in."""
ATTEMPT_EVERY_S = 6.0
"""Seconds after which one further attempt is allowed."""
COOKIE_S = 400 * 86_400
"""Seconds that a browser keeps the secret of its phone, from its last use on: the most that browsers allow."""

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    PAIR_PATH: ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/worker.js": ("worker.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/manifest.webmanifest": ("manifest.webmanifest", "application/manifest+json"),
}

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: nothing of other origins, no script but its own file, and no copy of what it says."""

STATUS: tuple[tuple[type[WhisperError], int], ...] = (
    (UnknownCall, 404),
    (NotAllowed, 403),
    (InvalidRequest, 400),
    (Unavailable, 503),
    (WhisperError, 409),
)
"""The HTTP status of an error: that of the first class that fits."""


@cache
def _operations() -> Mapping[str, type[Value]]:
    """The operations of a phone by name, each with its arguments. The secret comes from the cookie."""
    return {
        name: _arguments(name, method)
        for name, method in vars(PhoneRole).items()
        if name.startswith("phone_") and inspect.iscoroutinefunction(method)
    }


def _arguments(name: str, method: Callable[..., Any]) -> type[Value]:
    hints = typing.get_type_hints(method, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (hints[parameter.name], ... if parameter.default is parameter.empty else parameter.default)
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name not in {"self", "device"}
    }
    return create_model(f"{name}_body", __base__=Value, **fields)


def _needs_device(name: str) -> bool:
    return "device" in inspect.signature(getattr(PhoneRole, name)).parameters


class PhoneRefusal(Exception):
    """A request that is refused with an HTTP status."""

    def __init__(self, status: int, kind: str, why: str, hint: str = "", **headers: str) -> None:
        super().__init__(why)
        content = {"error": {"kind": kind, "message": why, "hint": hint}}
        self.response = Response(
            json.dumps(content), status_code=status, headers=headers, media_type="application/json"
        )


class PhoneSite:
    """Answers requests to its own name, and operations only from its own page."""

    def __init__(self, supervisor: PhoneRole, origin: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`origin`: the address by which phones reach it, without a path. Raises `InvalidRequest`."""
        self._supervisor = supervisor
        self._address = page_address(origin)
        here = Path(__file__).parent
        self._files = {path: ((here / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
        # Only https can have this prefix, with which no other site of the same domain can set the cookie.
        self._cookie = "__Host-whisper-phone" if self._address.is_https else "whisper-phone"
        self._waits = set[asyncio.Task[Any]]()
        self._clock = clock
        self._attempts, self._refilled_at = float(ATTEMPTS), clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except PhoneRefusal as refusal:
            response = refusal.response
        except ClientDisconnect:
            return
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    def end_waits(self) -> None:
        """Answer the requests that wait."""
        for answer in self._waits:
            answer.cancel()

    async def _answer(self, request: Request) -> Response:
        # DNS rebinding: a web page can let its own host name point to 127.0.0.1.
        if request.headers.get("host", "").lower() not in self._address.hosts:
            return Response(
                f"This page is served as {self._address.origin} and under no other name. "
                "A proxy has to pass the header Host on as it is.\n",
                status_code=403,
                media_type="text/plain",
            )
        path = request.url.path
        if path in self._files:
            if request.method not in {"GET", "HEAD"}:
                raise PhoneRefusal(405, "method", f"{request.method} is not possible here", Allow="GET, HEAD")
            content, kind = self._files[path]
            return Response(content, headers={"Content-Type": kind})
        name = path.removeprefix("/api/")
        if name == path or name not in _operations():
            raise PhoneRefusal(404, "not_found", "There is nothing here")
        if request.method != "POST":
            raise PhoneRefusal(405, "method", f"{request.method} is not possible here", Allow="POST")
        self._check_page(request)
        return await self._carry_out(name, request)

    def _check_page(self, request: Request) -> None:
        """Raise `PhoneRefusal` unless the request comes from the own page (decision 19)."""
        if request.headers.get("origin") != self._address.origin:
            raise PhoneRefusal(403, "origin", f"Only the page of {self._address.origin} may ask this")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise PhoneRefusal(403, "origin", "Another page asked for this")
        # Only JSON: a web form can send other types across origins without a preflight request.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise PhoneRefusal(415, "content_type", "The body must be JSON")

    async def _carry_out(self, name: str, request: Request) -> Response:
        try:
            asked = _operations()[name].model_validate(from_json(await _body(request)))
        except (ValidationError, ValueError) as error:
            raise PhoneRefusal(400, "invalid_request", "The page has sent a request that is not understood") from error
        given = {field: getattr(asked, field) for field in type(asked).model_fields}
        token = request.cookies.get(self._cookie, "")
        if _needs_device(name):
            if not token:
                raise PhoneRefusal(401, "not_paired", "This phone is not paired")
            given["device"] = token
        else:
            _check_elsewhere(request)
            self._take_attempt()
        try:
            result = await self._asked(name, given, request)
        except WhisperError as error:
            raise await self._refusal(error, given.get("device")) from error
        if isinstance(result, PairedPhone):
            return self._with_cookie(_json(result.device), result.token)
        # Browsers count the days from the newest time that the cookie was set.
        return self._with_cookie(_json(result), token) if name == "phone_device" else _json(result)

    async def _asked(self, name: str, given: Mapping[str, Any], request: Request) -> Any:
        """Ask the supervisor. A wait ends with the connection of the page; all else is completed."""
        asking = getattr(self._supervisor, name)(**given)
        if name != "phone_wait":
            return await asking
        if len(self._waits) >= MOST_WAITS:
            asking.close()
            raise PhoneRefusal(429, "too_many", "Too many pages wait already", "Close some of them")
        answer = asyncio.ensure_future(asking)
        gone = asyncio.ensure_future(_until_gone(request))
        self._waits.add(answer)
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientDisconnect
            if answer.cancelled():
                raise PhoneRefusal(503, "unavailable", "The page's server is ending")
            return answer.result()
        finally:
            self._waits.discard(answer)
            for task in (answer, gone):
                task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    async def _refusal(self, error: WhisperError, token: str | None) -> PhoneRefusal:
        if isinstance(error, NotAllowed) and token is not None:
            # A phone that may not do this yet is still a phone; a revoked one has to forget its secret.
            try:
                await self._supervisor.phone_device(token)
            except NotAllowed as unknown:
                return PhoneRefusal(
                    401, "unknown_phone", unknown.message, unknown.hint, **{"Set-Cookie": self._set_cookie("", 0)}
                )
            except WhisperError:
                pass
        status = next(status for kind, status in STATUS if isinstance(error, kind))
        return PhoneRefusal(status, error.kind, error.message, error.hint)

    def _take_attempt(self) -> None:
        """Raise `PhoneRefusal` if there were too many attempts to pair or to sign in."""
        # A token bucket: the supervisor counts wrong codes, and must not be asked without end.
        now = self._clock()
        self._attempts = min(float(ATTEMPTS), self._attempts + (now - self._refilled_at) / ATTEMPT_EVERY_S)
        self._refilled_at = now
        if self._attempts < 1:
            raise PhoneRefusal(429, "too_many", "There were too many attempts to pair or to sign in", "Wait a minute")
        self._attempts -= 1

    def _with_cookie(self, response: Response, token: str) -> Response:
        response.headers["Set-Cookie"] = self._set_cookie(token, COOKIE_S)
        return response

    def _set_cookie(self, token: str, seconds: int) -> str:
        secure = "; Secure" if self._address.is_https else ""
        return f"{self._cookie}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _check_elsewhere(request: Request) -> None:
    """Raise `PhoneRefusal` if the browser runs on this machine, as far as the proxy before the page tells.

    Whatever runs here could use such a key. A program that is no browser can leave out the header, or write another.
    """
    named = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    addresses = [parsed for text in named if (parsed := _address(text.strip())) is not None]
    # Behind several proxies of this machine, the nearest of them has come from its loopback.
    outside = [address for address in addresses if not address.is_loopback]
    if addresses and is_own_address(str((outside or addresses)[-1])):
        raise PhoneRefusal(
            403, "not_allowed", "This browser runs on the machine that shows the page", "Open the page on the phone"
        )


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


async def _body(request: Request) -> bytes:
    """Return the body. Raises `PhoneRefusal` if it is too long, before reading all of it."""
    held = bytearray()
    async for piece in request.stream():
        held += piece
        if len(held) > LARGEST:
            raise PhoneRefusal(413, "too_large", f"The request is longer than {LARGEST:,} bytes")
    return bytes(held)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(result: Any) -> Response:
    return Response(to_json(result), media_type="application/json")


async def serve(supervisor: PhoneRole, *, origin: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve the page on a port of loopback until cancelled; 0 is any free one. Raises `WhisperError`.

    `ready` is called with the port. `origin` is the address by which phones reach it.
    """
    site = PhoneSite(supervisor, origin)
    with listening_on(port) as listening:
        server = LoopbackServer(site)
        ready(listening.getsockname()[1])
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            site.end_waits()
            await serving
            raise
