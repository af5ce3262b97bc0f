"""The supervisor's side of the keepers: it starts them, sends them jobs and orders, and listens for wakeups."""

import asyncio
import errno
import json
import os
import select
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import whisper_tui
from whisper_tui.model.errors import NotRunning, Unavailable, WhisperError
from whisper_tui.supervisor.keeper.channels import pack
from whisper_tui.supervisor.keeper.guardian_start import start_guardian
from whisper_tui.supervisor.runs.monitor import RunMonitor
from whisper_tui.system import run_files
from whisper_tui.system.processes import LINUX, is_stopped

_NO_READER = frozenset({errno.ENXIO, errno.ENOENT, errno.EPIPE, errno.ENOTDIR})


async def write_fifo(path: str, data: bytes, nobody: str) -> None:
    """Write all of the data, and wait while the FIFO is full. Raises `NotRunning(nobody)` if it has no reader."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _translated(error, nobody) from None
    try:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(fd, rest[: 1 << 16]) :]
            except BlockingIOError:
                await _writable(fd)
            except OSError as error:
                raise _translated(error, nobody) from None
    finally:
        os.close(fd)


async def _writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(fd, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _translated(error: OSError, nobody: str) -> WhisperError:
    if error.errno in _NO_READER:
        return NotRunning(nobody)
    return Unavailable(f"the run cannot be reached: {error.strerror}", hint="Close other programs, then try again")


async def send_order(monitor: RunMonitor, order: dict[str, Any], look: Callable[[], None]) -> None:
    """Send an order. `look` checks whether the keeper is gone. Raises `NotRunning` and `Unavailable`."""
    attempt = monitor.attempt
    nobody = f"no process of call {attempt.key.call_id} is alive"
    try:
        line = json.dumps({**order, "key": attempt.order_key()}).encode()
        # The leading line feed ends a line that another program may have begun in the FIFO.
        await write_fifo(attempt.path(run_files.CONTROL), b"\n" + line + b"\n", nobody)
    except NotRunning:
        look()
        if monitor.orphan is None or monitor.over:
            raise
        monitor.orphan.execute(order, asyncio.get_running_loop().call_later)
        return
    process = monitor.process
    if process is not None and is_stopped(process.keeper_pid):
        message = f"the keeper of call {attempt.key.call_id} was stopped by a signal, and executes the order later"
        raise Unavailable(message, hint=f"Continue it: kill -CONT {process.keeper_pid}")


READ_AT_ONCE = 512
"""Bytes of wakeups, some thirty names, that are read in one turn of the event loop: each has its run's files read."""


class WakeupListener:
    """Listens for the names of runs that have changed. A lost wakeup only delays the report until the next sweep."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener
        self._fd = -1
        self._rest = b""

    def open(self, directory: Path) -> None:
        """Start to listen. Raises `OSError`."""
        path = str(directory / run_files.NOTIFY)
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Also opened for writing, so that the FIFO does not report its end when the last keeper closes it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._fd, self._receive)

    def close(self) -> None:
        """Stop listening."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _receive(self) -> None:
        try:
            data = os.read(self._fd, READ_AT_ONCE)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for name in dict.fromkeys(line.partition(b" ")[0].decode() for line in lines):
            self._listener(name)


_left_behind: "list[subprocess.Popen[bytes]]" = []
"""Guardians that went on with their runs when their supervisor ended, until they are reaped."""


class Keepers:
    """Hands jobs to waiting keepers. Busy keepers outlive this object and its process."""

    def __init__(self, runs_directory: Path) -> None:
        self._runs = runs_directory
        self._guardian: subprocess.Popen[bytes] | None = None
        self._jobs: socket.socket | None = None
        self._sending = asyncio.Lock()

    def open(self) -> None:
        """Start the guardian. Raises `Unavailable`."""
        # A process that has had other supervisors before has their guardians as children.
        _left_behind[:] = [each for each in _left_behind if each.poll() is None]
        try:
            self._guardian, ours = start_guardian(str(self._runs.resolve()), _parent_of_package(), previews=LINUX)
        except OSError as error:
            message = f"the process that starts commands cannot be started: {error.strerror}"
            raise Unavailable(message, hint="Check free memory, free disk and the limit of open files.") from None
        self._jobs = ours

    @property
    def alive(self) -> bool:
        """True if new keepers can be forked."""
        return self._guardian is not None and self._guardian.poll() is None

    def replace(self) -> None:
        """Start a new guardian if the old one is gone."""
        guardian = self._close_descriptors()
        if guardian is not None and guardian.stdout is not None:
            guardian.stdout.close()
        self.open()

    async def send(self, directory: str, environment: dict[str, str]) -> None:
        """Send the attempt in a directory to a keeper. Raises `Unavailable` or `OSError` if it was not sent."""
        message = pack(directory, environment)
        async with self._sending:
            try:
                await self._send(message)
            except OSError as error:
                if error.errno not in {errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF}:
                    told = f"the keepers cannot be reached: {error.strerror}"
                    raise Unavailable(told, hint="Try again.") from None
                self.replace()
                await self._send(message)

    async def close(self) -> None:
        """End the idle keepers and, once no run is left, all others. Idle ones write no more files then."""
        guardian = self._close_descriptors()
        if guardian is not None:
            await asyncio.to_thread(_wait_until_quiet, guardian)
            if guardian.poll() is None:
                _left_behind.append(guardian)

    async def _send(self, message: bytes) -> None:
        if self._jobs is None:
            raise Unavailable("the executor is closed")
        await asyncio.get_running_loop().sock_sendall(self._jobs, message)

    def _close_descriptors(self) -> "subprocess.Popen[bytes] | None":
        """Close what leads to the guardian, and return it. None: there is none."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        guardian, self._guardian = self._guardian, None
        if guardian is not None and guardian.stdin is not None:
            guardian.stdin.close()
        return guardian


def _wait_until_quiet(guardian: "subprocess.Popen[bytes]") -> None:
    """Wait until no keeper warms up any more."""
    if guardian.stdout is not None:
        ended = select.poll()
        ended.register(guardian.stdout, select.POLLIN)
        ended.poll(2000 * run_files.WARM_UP_TIMEOUT_S)
        guardian.stdout.close()


def _parent_of_package() -> str:
    return str(Path(whisper_tui.__file__).resolve().parent.parent)
