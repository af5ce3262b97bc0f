"""The bridge of one connection at a place: between its standard input and output and the socket of the host process."""

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from whisper_tui.supervisor.places.far_host import SOCKET, serve
from whisper_tui.supervisor.places.frames import encoded
from whisper_tui.system import run_files

LOG = "host.log"
"""File beside the socket: the error messages of the host process."""
START_S = 20.0
"""Seconds that a bridge waits for a host that starts."""


def connect(directory: str, wait_s: float, start: Callable[[], None] | None) -> None:
    """Be the bridge of a connection. `start` starts a host if there is none; it has `wait_s` to come up."""
    os.chdir(directory)
    deadline = time.monotonic() + wait_s
    connection = _connected()
    if connection is None and start is not None:
        start()
    while connection is None and time.monotonic() < deadline:
        time.sleep(0.01)
        connection = _connected()
    if connection is None:
        fail("no host process runs there" if start is None else f"the host process does not start: {_last_words()}")
    _copy(connection)


def _connected() -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(SOCKET)
    except OSError:
        connection.close()
        return None
    return connection


def _copy(connection: socket.socket) -> None:
    """Copy in both directions until one end is closed. The host process writes to standard output itself, if it can."""
    with suppress(OSError):
        # It has what it sends in files, from which the kernel can send it. An older one answers over the socket.
        socket.send_fds(connection, [encoded({"do": "output", "id": 0})], [1])
    copier = threading.Thread(target=_copy_input, args=(connection,), daemon=True)
    copier.start()
    buffer = memoryview(bytearray(1 << 18))
    with suppress(OSError):
        while count := connection.recv_into(buffer):
            run_files.write_all(1, buffer[:count])


def _copy_input(connection: socket.socket) -> None:
    with suppress(OSError):
        while data := _input():
            connection.sendall(data)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _input() -> bytes:
    """Wait for standard input. It may be one socket with standard output, which the host process does not wait for."""
    while True:
        with suppress(BlockingIOError):
            return os.read(0, 1 << 18)
        select.select([0], [], [])


def _last_words() -> str:
    with suppress(OSError), open(LOG, "rb") as log:
        lines = log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it has not said why"
    return "it has not said why"


def start_detached(argv: list[str]) -> None:
    """Start a process that survives the connection: in a session of its own, with nothing of this one open."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, number in ((nothing, 0), (nothing, 1), (log, 2)):
        os.dup2(fd, number)
    os.closerange(3, 256)
    os.execv(argv[0], argv)


def fail(message: str) -> NoReturn:
    """Say why there is no connection, and end."""
    run_files.write_all(1, encoded({"failed": message}))
    sys.exit(3)


def prepared(base: str, near: str) -> str:
    """Return the directory of a near end, private to this user, made if necessary."""
    home = os.path.expanduser("~")
    base = base or os.path.join(os.environ.get("XDG_STATE_HOME") or f"{home}/.local/state", "whisper-tui", "places")
    directory = os.path.join(os.path.abspath(base), near)
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        found = os.stat(directory)
    except OSError as error:
        fail(f"{directory} cannot be used there: {error.strerror}")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        fail(f"{directory} is not private to the user there")
    return directory


def main(mode: str, base: str, near: str, package: str, *lock: str) -> None:
    """Run one mode: `serve` and `stay` are host processes, others bridges. `lock`: its descriptor, if there is one."""
    directory = prepared(base, near)
    match mode:
        case "serve" | "stay":
            serve(directory, package, *map(int, lock), stays=mode == "stay")
        case "start":
            connect(directory, START_S, lambda: start_detached(host_argv(base, near, package)))
        case "wait":
            connect(directory, START_S, None)
        case _:
            connect(directory, 0.0, None)


def host_argv(base: str, near: str, package: str) -> list[str]:
    """Return the command line of the host process, from the archive that this runs from."""
    program = (
        "import sys;sys.path.insert(0,sys.argv[4]);"
        "from whisper_tui.supervisor.places.far_bridge import main;main(*sys.argv[1:])"
    )
    return [sys.executable, "-I", "-S", "-c", program, "serve", base, near, package]
