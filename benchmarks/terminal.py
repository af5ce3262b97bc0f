"""A terminal for the benchmarks: keys go in and what is drawn comes out, as for a person."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

PATIENCE_S = 60
FRAME = b"\x1b[?2026h"
"""What begins a frame, on a terminal that has said that it draws one at once."""
CAN_FRAME = b"\x1b[?2026;2$y"


class Terminal:
    """A pseudo-terminal of 120 by 40 with a program that draws on it."""

    def __init__(self, argv: Sequence[str], shown: bytes, environ: Mapping[str, str] = os.environ) -> None:
        """Starts the program and waits until these bytes are shown."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = {**environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        started = time.perf_counter()
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.wait_for(shown)
        self.opened_s = time.perf_counter() - started

    def key(self, key: bytes, effect: bytes) -> float:
        """Milliseconds from a key to its effect on the terminal."""
        self.drain()
        started = time.perf_counter()
        os.write(self._master, key)
        self.wait_for(effect)
        return (time.perf_counter() - started) * 1000

    def wait_for(self, effect: bytes, patience_s: float = PATIENCE_S) -> None:
        """Read until these bytes have come."""
        seen = b""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if select.select([self._master], [], [], 0.5)[0]:
                seen = seen[-4096:] + os.read(self._master, 65536)
                if effect in seen:
                    return
        raise TimeoutError(f"{effect!r} did not appear on the terminal")

    def drain(self, seconds: float = 0.08) -> bytes:
        """Take away what was drawn before."""
        drawn = b""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self._master], [], [], 0.01)[0]:
                drawn += os.read(self._master, 65536)
        return drawn

    def answer(self, text: bytes) -> None:
        """Say what a terminal says by itself when it is asked."""
        os.write(self._master, text)

    def frames_per_second(self, seconds: float = 3.0) -> float:
        """How often it draws while nobody touches anything."""
        return self.drain(seconds).count(FRAME) / seconds

    def peak_mb(self) -> float:
        """The most memory that it has had resident."""
        return peak_mb(self.process.pid)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def peak_mb(pid: int) -> float:
    """The most memory that a process has had resident, or has now where the system does not tell the most."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return psutil.Process(pid).memory_info().rss / 1e6
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6
