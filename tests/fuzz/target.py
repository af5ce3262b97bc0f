"""A supervisor in its own process as the target, and the invariants that are checked after each attack."""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from whisper_tui.model.protocol_version import VERSION
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.light_client import LightClient
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.rendezvous import connect

ANSWER_S = 60.0
PORT = json.dumps({"door": "port", "version": VERSION}).encode() + b"\n"
Content = dict[str, Any]


class Target:
    """Started once for many attacks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
        self.workspace = root / "workspace"
        self.workspace.mkdir(parents=True)
        (root / "config").mkdir(mode=0o700)
        (root / "config" / "rules.toml").write_text("read_only = false\n")
        self.log = root / "log"
        self._read = 0
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            # As many files as most systems let a process open.
            words = ["/bin/sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", sys.executable, "-m", "whisper_tui"]
            words += ["supervise", "--home", str(self.root)]
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self._listens() or process.poll() is not None)
        assert process.poll() is None, self.log.read_text()
        return process

    def restart(self) -> None:
        """Kill it and start it again over the same state."""
        self.process.kill()
        self.process.wait(ANSWER_S)
        self.process = self._start()

    def _listens(self) -> bool:
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def connect(self) -> socket.socket:
        """A connection on which nothing was said."""
        connection = connect(self.home)
        if connection is None:
            raise ConnectionRefusedError
        connection.settimeout(ANSWER_S)
        return connection

    def descriptors(self) -> int:
        """How many files it has open. Root alone may look: others count its connections at least."""
        pid = self.process.pid
        if sys.platform != "linux":
            return psutil.Process(pid).num_fds()
        with suppress(PermissionError):
            return len(os.listdir(f"/proc/{pid}/fd"))
        return Path("/proc/net/unix").read_text().count(f" {self.home.runtime / SOCKET}\n")

    @contextmanager
    def asking(self) -> Iterator[LightClient]:
        """A well-behaved client."""
        client = LightClient(self.connect())
        try:
            yield client
        finally:
            client.close()

    def exchange(self, sent: bytes, *, half_close: bool = True, enough: Callable[[bytes], bool] | None = None) -> bytes:
        """Send all of it on a new connection, and return what comes until the end, or until it is enough."""
        with self.connect() as connection:
            return exchanged(connection, sent, half_close=half_close, enough=enough)

    def rss(self) -> int:
        """Bytes of memory that it has."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    @contextmanager
    def growing_at_most(self, limit: int) -> Iterator[None]:
        """Watch its memory all the while."""
        before, most, over = self.rss(), [0], threading.Event()

        def look() -> None:
            while not over.wait(0.02):
                most.append(self.rss())

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()
        assert max(most) - before < limit, f"it grew by {(max(most) - before) >> 20} MiB"

    def check(self) -> None:
        """It lives, serves a client that behaves, and has met nothing that it did not expect."""
        assert self.process.poll() is None, self.words()
        with self.asking() as client:
            assert client.ask("status")["pid"] == self.process.pid
            client.ask("rows", kind="list")
        words = self.words()
        assert "Traceback" not in words, words

    def words(self) -> str:
        """Return the log since the last call of this function."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            words = log.read()
        self._read += len(words)
        return words.decode(errors="replace")[-20_000:]

    def close(self) -> None:
        """End it and all that it runs."""
        if self.process.poll() is None:
            with self.asking() as client:
                client.ask("shutdown", end_runs=True)
        try:
            self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            raise


def exchanged(
    connection: socket.socket, sent: bytes, *, half_close: bool = True, enough: Callable[[bytes], bool] | None = None
) -> bytes:
    """Write and read at once, so that neither side waits for the other."""
    connection.setblocking(False)
    left, came, deadline = memoryview(sent), bytearray(), time.monotonic() + ANSWER_S
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while enough is None or not enough(bytes(came)):
            assert time.monotonic() < deadline, f"no end came; so far {bytes(came[-2000:])!r}"
            for _, ready in selector.select(1.0):
                try:
                    if ready & selectors.EVENT_WRITE:
                        left = left[connection.send(left[: 1 << 20]) :]
                        if not left:
                            selector.modify(connection, selectors.EVENT_READ)
                            if half_close:
                                connection.shutdown(socket.SHUT_WR)
                    if ready & selectors.EVENT_READ:
                        data = connection.recv(1 << 20)
                        if not data:
                            return bytes(came)
                        came += data
                except BlockingIOError:
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    return bytes(came) + _rest(connection)
    return bytes(came)


def _rest(connection: socket.socket) -> bytes:
    """Return the lines that came before the other end closed."""
    came = bytearray()
    try:
        while data := connection.recv(1 << 20):
            came += data
    except OSError:
        pass
    return bytes(came)


def lines(came: bytes) -> list[Content]:
    """Whole lines, each an object."""
    contents = [json.loads(line) for line in came.split(b"\n") if line]
    assert all(isinstance(content, dict) for content in contents)
    return contents


def until(holds: Callable[[], Any]) -> Any:
    """Wait for a condition, bounded, and return what it gave."""
    deadline = time.monotonic() + ANSWER_S
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found
