"""The connection to the host process at a place: made again whenever it breaks, with one answer for each request."""

import asyncio
import itertools
import json
import logging
import math
import os
import random
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

from whisper_tui.model.errors import OtherVersion, Unavailable, WhisperError, error_from
from whisper_tui.model.text import visible
from whisper_tui.supervisor.places.far_package import far_package
from whisper_tui.supervisor.places.frames import BadFrame, Frame, FrameView, encoded
from whisper_tui.supervisor.places.incoming_frames import IncomingFrames, StreamEnded, TakesNews
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport
from whisper_tui.system.ssh_command import NOT_FOUND

RETRIES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between attempts to reach a place; the last one repeats, and each is up to a quarter longer by chance."""
STABLE_S = 1.0
"""Seconds that a connection has to last before the pauses begin anew."""
HELLO_S = 60.0
"""Seconds that a place has to say hello: a login, a host that starts, and the environment of the user there."""
PING_S = 10.0
"""Seconds without a frame after which the place is asked if it is there, and those that it has to answer."""
LOOK_S = 5.0
"""Longest pause in seconds between two looks if a place is still used."""
_ENDS_WITHIN_S = 2.0
_LAST_WORDS = 500
_RENEWALS = 3
_log = logging.getLogger(__name__)


class Disconnected(Unavailable):
    """The connection broke before the answer came: nobody knows whether the request arrived."""


@dataclass(frozen=True)
class Hello:
    """The other end, as it has introduced itself."""

    life: str
    """A random name of the host process."""
    instance: str
    """A random name of its directory: a container that was made anew has another one."""
    boot: str
    """The id of the boot of the machine there."""
    host: str
    uid: int
    home: str
    ahead_s: float
    """Seconds that its clock is ahead of ours."""
    counts: tuple[str, ...] | None
    """The resources that control groups count there for each run. None: runs have no control groups."""
    environment: Mapping[str, str] = field(repr=False)
    """That of a login shell of the user there. It is kept in memory alone."""


class PlaceConnection:
    """The connection to one place."""

    def __init__(
        self,
        transport: PlaceTransport,
        settings: PlaceSettings,
        near: str,
        news: TakesNews,
        greet: Callable[[Hello], None],
        *,
        part: Callable[[], None] = lambda: None,
        in_use: Callable[[], bool] = lambda: True,
    ) -> None:
        """`near`: the name of this end there. `greet` is called whenever it is reached, `part` when that is over.

        `in_use`: returns False while nothing of this end runs there.
        """
        self.name = settings.name
        self.hello: Hello | None = None
        """The other end. None: it is not reached."""
        self.since = time.time()
        """When it was reached, or since when it is not, in seconds since the epoch."""
        self.problem = ""
        """Why it is not reached, as a clause. Empty: it is, or nobody needs it."""
        self.summary = transport.summary()
        self.host = ""
        """The name that the place has for itself. Empty: it was never reached."""
        self._transport = transport
        self._settings = settings
        self._near = near
        self._news = news
        self._greet, self._part, self._in_use = greet, part, in_use
        self._wanted = asyncio.Event()
        """Set while it is to be connected: from the first use on, until it is let go."""
        self._tried = asyncio.Event()
        """Set once it was reached, or could not be, since it was wanted."""
        self._parted = asyncio.Event()
        """Set while it is not connected."""
        self._is_let_go = False
        """True from the moment when a connection is let go until it has ended."""
        self._used_at = time.monotonic()
        self._frames: IncomingFrames | None = None
        """The frames from there while it is connected."""
        self._task: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Frame]] = {}
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self._begun_at = math.inf
        """When the last connection began, if it was one."""
        self._retry = asyncio.Event()

    def open(self) -> None:
        """Begin to connect, now or once it is needed."""
        if self._settings.connect == "start" or self._settings.agents:
            self.want()
        self._task = asyncio.create_task(self._keep(), name=f"connection to {self.name}")

    async def close(self) -> None:
        """Close the connection, and make no other one."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def want(self) -> None:
        """Have it connected from now on, until nobody has used it for a while."""
        self._used_at = time.monotonic()
        if not self._wanted.is_set():
            self.problem, self.since = "the first connection is being made", time.time()
            self._tried.clear()
            self._wanted.set()

    async def reach(self) -> Hello | None:
        """Return who is there, and wait for the first attempt if it was let go. None: it is unreachable."""
        self.want()
        await self._tried.wait()
        return self.hello

    async def let_go(self) -> None:
        """End the connection, and what the engine keeps or has in its queue, until it is needed again.

        Commands there go on: then the engine keeps it as well. Raises `Unavailable`.
        """
        self._wanted.clear()
        if self.hello is not None:
            self._is_let_go = True
            if self._transport.holds is not None:
                await self.ask("end")
            if self._frames is not None:
                self._frames.end()
            await self._parted.wait()
        elif self._transport.holds is not None:
            await self._transport.withdraw()
        self._retry.set()

    @property
    def rests(self) -> bool:
        """True while it is not connected because nobody needs it."""
        return not self._wanted.is_set() and self.hello is None

    def try_now(self) -> None:
        """Try to reach it now, not after the pause."""
        self._retry.set()

    def unreached(self) -> Unavailable:
        """Return the error of a request that cannot be sent."""
        return Unavailable(f"{self.name} is unreachable: {self.problem}", hint="It is tried again and again")

    def send(self, do: str, payload: bytes = b"", **header: Any) -> "asyncio.Future[Frame]":
        """Send a request, and return its answer as a future. Raises `Unavailable` if nothing was sent."""
        if self.hello is None:
            raise self.unreached()
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        # Who does not wait for an answer is not told that it failed.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._out.put_nowait(encoded({"do": do, "id": number, **header}, payload))
        if do != "ping":
            self._used_at = time.monotonic()
        return answer

    async def ask(self, do: str, payload: bytes = b"", **header: Any) -> Frame:
        """Send a request and wait for its answer. Raises `Disconnected`, or the `WhisperError` that is the answer."""
        return await self.send(do, payload, **header)

    async def _keep(self) -> None:
        attempt = 0
        while True:
            if not self._wanted.is_set():
                self.problem, self.since, attempt = "", time.time(), 0
                await self._wanted.wait()
            try:
                await self._connect(attempt)
            except WhisperError as error:
                if self._is_let_go or not self._wanted.is_set():
                    # Somebody may have wanted it again meanwhile.
                    self._is_let_go = False
                    continue
                if time.monotonic() - self._begun_at > STABLE_S:
                    attempt = 0
                self._begun_at = math.inf
                self._lost(error)
            except OSError as error:
                # This machine has no descriptor or no room left. It is tried again, like everything else.
                self._begun_at = math.inf
                self._lost(Unavailable(f"the connection cannot be made from here: {error.strerror}"))
            pause = RETRIES_S[min(attempt, len(RETRIES_S) - 1)]
            attempt += 1
            self._retry.clear()
            if self._idle_left_s() <= 0:
                with suppress(WhisperError):
                    await self.let_go()
                continue
            with suppress(TimeoutError):
                # Many connections are lost at the same moment, and must not come back at the same one.
                async with asyncio.timeout(pause * random.uniform(1.0, 1.25)):  # noqa: S311
                    await self._retry.wait()

    async def _connect(self, attempt: int) -> None:
        """Connect, and serve the connection until it breaks. Raises `WhisperError`, always."""
        holds = self._transport.holds
        if holds is None:
            await self._connect_by("start")
        elif attempt == 0:
            with suppress(_NotGreeted):
                await self._connect_by("connect")
        await self._transport.hold(self._argv(holds))
        await self._connect_by("wait")

    async def _connect_by(self, mode: str) -> NoReturn:
        for _ in range(_RENEWALS):
            try:
                await self._serve_once(mode)
            except _Renewed:
                continue
        raise OtherVersion(
            f"the host process at {self.name} is of another version, and stays",
            hint="End it there: a Python process with far_bridge in its command line; its commands go on",
        )

    def _argv(self, mode: str) -> list[str]:
        settings = self._settings
        return far_package().argv(settings.python, mode, settings.directory, f"{self._near}-{self.name}")

    async def _serve_once(self, mode: str) -> None:
        """Start the program of the transport, and take what it sends until it ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        frames, output = IncomingFrames.over_pipe()
        said = tempfile.TemporaryFile()  # noqa: SIM115  it is closed below
        process: asyncio.subprocess.Process | None = None
        sender: asyncio.Task[None] | None = None
        try:
            try:
                process = await self._started(self._transport.command(self._argv(mode)), theirs, output, said)
            finally:
                os.close(output)
            theirs.close()
            try:
                async with asyncio.timeout(HELLO_S):
                    hello, news = await self._greeted(frames, ours)
            except TimeoutError:
                raise _NotGreeted(f"{self.summary} has not answered for {HELLO_S:g} s") from None
            self._out = asyncio.Queue()
            sender = asyncio.create_task(self._send_all(ours))
            self._begin(hello)
            await self._receive(frames, news)
        except StreamEnded as ended:
            raise await self._explained(ended, process, said) from None
        finally:
            if self.hello is not None:
                lost = "" if self._is_let_go else "the connection was lost"
                self.hello, self.problem, self.since = None, lost, time.time()
                self._parted.set()
                self._part()
            if sender is not None:
                sender.cancel()
            ours.close()
            theirs.close()
            frames.close()
            self._fail_all()
            if process is not None:
                await _end(process)
            said.close()

    async def _started(
        self, command: list[str], theirs: socket.socket, output: int, said: IO[bytes]
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=theirs.fileno(),
                stdout=output,
                stderr=said,
                # A question of the program must not reach the terminal of the supervisor, nor Ctrl-C the program.
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"{command[0]} cannot be started: {error.strerror}", hint=f"Install {command[0]}"
            ) from None

    async def _greeted(self, frames: IncomingFrames, ours: socket.socket) -> tuple[Hello, list[FrameView]]:
        """Bring the archive there if it is needed, and return who is there, with what came after that."""
        try:
            await frames.skip_banner()
        except BadFrame:
            raise _NotGreeted("what answers there is no host process") from None
        package = far_package()
        while True:
            for number, frame in enumerate(news := await frames.next()):
                match frame.header:
                    case {"needs": str()}:
                        await _send_now(ours, package.data)
                    case {"failed": str(message)}:
                        raise _NotGreeted(visible(message[:_LAST_WORDS]))
                    case {"hello": int()}:
                        await self._check_version(frame.header, frames, ours)
                        return _hello(frame), news[number + 1 :]
                    case {"re": 0}:
                        continue  # An older host process does not know what the bridge asks.
                    case _:
                        raise _NotGreeted("what answers there is no host process")

    async def _check_version(self, hello: Mapping[str, Any], frames: IncomingFrames, ours: socket.socket) -> None:
        """Have a host process of another version become one of this. Raises `_Renewed`."""
        package = far_package()
        if hello.get("package") != f"place-{package.digest}.pyz":
            request = encoded({"do": "renew", "id": 0}, json.dumps(self._argv("serve")[1:]).encode())
            await _send_now(ours, request)
            with suppress(StreamEnded, TimeoutError):
                async with asyncio.timeout(_ENDS_WITHIN_S):
                    await frames.skip_rest()
            raise _Renewed("it becomes the host process of this version")

    def _begin(self, hello: Hello) -> None:
        self.hello, self.since, self.problem = hello, time.time(), ""
        self._parted.clear()
        self._begun_at, self.host = time.monotonic(), hello.host
        _log.info("%s is reached by %s", self.name, self.summary)
        self._used_at = time.monotonic()
        self._greet(hello)
        self._tried.set()

    async def _receive(self, frames: IncomingFrames, news: list[FrameView]) -> None:
        pinging = asyncio.create_task(self._ping(frames))
        resting = asyncio.create_task(self._rest_when_idle())
        self._frames = frames
        try:
            while True:
                await frames.give(self._news, [frame for frame in news if not self._resolve(frame)])
                news = await frames.next()
        finally:
            pinging.cancel()
            resting.cancel()
            self._frames = None

    def _resolve(self, frame: FrameView) -> bool:
        """Give an answer to whoever asked. Return False if it is no answer."""
        number = frame.header.get("re")
        if number is None:
            return False
        future = self._asked.pop(number, None)
        if future is not None and not future.done():
            if "error" in frame.header:
                future.set_exception(_error(frame.header))
            else:
                future.set_result(frame.kept())
        return True

    async def _ping(self, frames: IncomingFrames) -> None:
        """Ask if somebody is there while nothing comes, and close the connection if nobody answers."""
        while True:
            await asyncio.sleep(PING_S)
            if frames.silence_s < PING_S:
                continue
            with suppress(WhisperError):
                self.send("ping")
            await asyncio.sleep(PING_S)
            if frames.silence_s >= 2 * PING_S:
                frames.end()

    async def _rest_when_idle(self) -> None:
        """Let it go once nobody has used it for as long as its settings say."""
        while True:
            left = self._idle_left_s()
            if left <= 0:
                break
            await asyncio.sleep(min(left, LOOK_S))
        _log.info("%s is let go: nobody has used it for %g s", self.name, self._settings.idle_s)
        with suppress(WhisperError):
            await self.let_go()

    def _idle_left_s(self) -> float:
        """Return in how many seconds it is to be let go, unless somebody uses it."""
        if self._in_use() or self._asked:
            self._used_at = time.monotonic()
        idle_s = math.inf if self._settings.agents else self._settings.idle_s
        return self._used_at + idle_s - time.monotonic()

    async def _send_all(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while True:
                await loop.sock_sendall(connected, await self._out.get())

    def _fail_all(self) -> None:
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(
                    Disconnected(
                        f"the connection to {self.name} was lost, and the request may have arrived",
                        hint="Look at the call before you try again",
                    )
                )

    def _lost(self, error: WhisperError) -> None:
        problem = error.sentence().rstrip(".")
        if problem != self.problem:
            _log.warning("%s is unreachable: %s", self.name, problem)
        self.problem = problem
        self._tried.set()

    async def _explained(
        self, ended: StreamEnded, process: asyncio.subprocess.Process | None, said: IO[bytes]
    ) -> WhisperError:
        """Return why the program of the transport has ended."""
        kind = Unavailable if ended.greeted else _NotGreeted
        if process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDS_WITHIN_S):
                    await process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
        lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
        code = process.returncode if process is not None else None
        if not code and not lines:
            return kind("the connection was lost")
        words = visible(lines[-1].strip()) if lines else f"{self.summary} ended with exit code {code}"
        python = self._settings.python
        advice = self._transport.advice(code or 0)
        if not advice and code == NOT_FOUND:
            advice = f"Is there no {python} there? Say where it is: python in [places.{self.name}]"
        return kind(words.rstrip("."), hint=advice)


class _NotGreeted(Unavailable):
    """No host process has answered."""


class _Renewed(Exception):
    """The host process becomes one of this version, and has to be connected again."""


def _hello(frame: FrameView) -> Hello:
    try:
        header, environment = frame.header, json.loads(bytes(frame.payload))
        counts = header["counts"]
        return Hello(
            life=str(header["life"]),
            instance=str(header["instance"]),
            boot=str(header["boot"]),
            host=visible(str(header["host"])[:_LAST_WORDS]),
            uid=int(header["uid"]),
            home=str(header["home"]),
            ahead_s=float(header["now"]) - time.time(),
            counts=None if counts is None else tuple(map(str, counts)),
            environment={str(name): str(value) for name, value in environment.items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _NotGreeted("what answers there is no host process of this version") from None


def _error(answer: Mapping[str, Any]) -> WhisperError:
    kind, message, hint = (visible(str(answer.get(key, ""))[:_LAST_WORDS]) for key in ("error", "message", "hint"))
    return error_from(kind, message, hint)


async def _send_now(connected: socket.socket, data: bytes) -> None:
    """Send something before the greeting. If the program has ended, that and its reason are found by reading."""
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(connected, data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program of a transport. What it has started at the place goes on."""
    try:
        async with asyncio.timeout(_ENDS_WITHIN_S):
            await process.wait()
    except (TimeoutError, asyncio.CancelledError):
        with suppress(ProcessLookupError):
            process.kill()
        raise_again = asyncio.current_task()
        if raise_again is not None and raise_again.cancelling():
            raise asyncio.CancelledError from None
