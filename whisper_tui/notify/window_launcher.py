"""The process that opens windows of the human: the one thing that a supervisor starts and that may decide.

Whatever a supervisor starts has its mark, and cannot decide. A cockpit that a human opens by a click has to. So a small
process is forked before the supervisor marks itself, which knows one command and starts it when it is told to.
"""

import asyncio
import os
import socket
from collections.abc import Mapping

from whisper_tui.notify.delivery import desktop_environment

_OPEN = b"o"


class WindowLauncher:
    """Starts one command, as no descendant of this process."""

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        """Fork the process that will start it. Call it before this process has threads and a mark."""
        self.command = command
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            pid = os.fork()
            if not pid:
                _become_launcher(theirs, command, dict(environment))
        os.waitpid(pid, 0)

    async def open(self) -> str:
        """Start the command. Return why it cannot be started. Empty: it was started."""
        return await asyncio.to_thread(self._open)

    def close(self) -> None:
        """End the process. What it has started stays: it belongs to the human."""
        self._connection.close()

    def _open(self) -> str:
        try:
            self._connection.sendall(_OPEN)
            told = self._connection.recv(16)
        except OSError as error:
            return error.strerror or str(error)
        return os.strerror(int(told)) if told != b"0" else ""


def _become_launcher(connection: socket.socket, command: tuple[str, ...], environment: dict[str, str]) -> None:
    """Serve one connection in an orphan of the calling process. Never returns."""
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
        # The descriptor through which the supervisor reports that it is ready must not stay open here.
        os.closerange(3, connection.fileno())
        os.closerange(connection.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        while connection.recv(1) == _OPEN:
            connection.sendall(str(_start(command, desktop_environment(environment))).encode())
    finally:
        os._exit(0)


def _start(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Start a command as an orphan, so that no supervisor is among its ancestors. Return an error number, or 0."""
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        number = 0
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            os.posix_spawnp(command[0], command, environment, setsid=True)
        except OSError as error:
            number = error.errno or 1
        finally:
            os.write(tell, str(number).encode())
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as report:
        number = int(report.read() or b"1")
    os.waitpid(pid, 0)
    return number
