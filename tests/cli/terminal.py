"""A program on a terminal of its own, and what can happen to terminals."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

END_S = 40
"""Seconds in which a program ends that nobody can see any more; more than it needs, on a machine that is busy."""

CPU_S = 3.0
"""Seconds of a processor that it may use for that."""


class Terminal:
    """A terminal that is read all the time, and one program on it."""

    def __init__(self, words: list[str], environment: dict[str, str], cwd: Path, *, controlling: bool = True) -> None:
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        self._open = True
        self._lock = threading.Lock()
        self.reading = threading.Event()
        self.reading.set()
        self.process = subprocess.Popen(
            words,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={**environment, "TERM": "xterm-256color"},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_take_terminal if controlling else None,  # noqa: PLW1509  no thread of ours holds a lock then
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while self._open:
            self.reading.wait(0.1)
            if not self.reading.is_set():
                continue
            with self._lock:
                if not self._open:
                    return
                ready, _, _ = select.select([self.master], [], [], 0.05)
                if ready:
                    with suppress(OSError):
                        self.text += os.read(self.master, 65_536)
            time.sleep(0.002)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in [*self.family(), self.process]:
            with suppress(psutil.Error, ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
        self.process.wait()
        self.hang_up()
        os.close(self.slave)

    def family(self) -> list[psutil.Process]:
        """The processes below the one that was started, in its session."""
        try:
            below = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []
        found = []
        for process in below:
            with suppress(ProcessLookupError):
                if os.getsid(process.pid) == self.process.pid:
                    found.append(process)
        return found

    def shows(self, words: bytes) -> None:
        """Wait, bounded, until it has drawn these words."""
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, f"{words!r} is not in {self.text[-3000:]!r}"
            assert self.process.poll() is None or words in self.text, self.text[-3000:]
            time.sleep(0.02)

    def types(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def hang_up(self) -> None:
        """Close the window."""
        with self._lock:
            if self._open:
                self._open = False
                os.close(self.master)

    def ends(self) -> int:
        """Wait, bounded, until it has ended and used little of a processor for that. Returns its exit code."""
        watched = psutil.Process(self.process.pid)
        deadline = time.monotonic() + END_S
        used = 0.0
        before = _cpu(watched)
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on; it drew {self.text[-1500:]!r}"
            used = max(used, _cpu(watched) - before)
            time.sleep(0.02)
        assert used < CPU_S, f"it spun: {used} s of a processor"
        return self.process.returncode

    def settles(self) -> None:
        """Wait, bounded, until it has done what it was asked to: it uses next to nothing of a processor any more."""
        watched = psutil.Process(self.process.pid)
        deadline = time.monotonic() + END_S
        last, now = -1.0, _cpu(watched)
        while now - last > 0.02:
            assert time.monotonic() < deadline, f"it goes on; it drew {self.text[-1500:]!r}"
            time.sleep(0.5)
            last, now = now, _cpu(watched)

    def rests(self, seconds: float = 1.5) -> None:
        """It lives, and uses next to nothing of a processor."""
        watched = psutil.Process(self.process.pid)
        before = _cpu(watched)
        time.sleep(seconds)
        assert self.process.poll() is None
        assert _cpu(watched) - before < seconds / 4

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal has the attributes that it had before the program."""
        return termios.tcgetattr(self.slave) == self.before


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def with_a_program_between(words: list[str]) -> list[str]:
    """A program as `make run` starts it: its parent waits for it."""
    return [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *words]


def as_a_job(words: list[str]) -> list[str]:
    """A program as a shell starts it: in the foreground, in a process group of its own, which can be stopped."""
    script = """if True:
        import os, signal, subprocess, sys
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        def foreground():
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        sys.exit(subprocess.call(sys.argv[1:], preexec_fn=foreground))
    """
    return [sys.executable, "-c", script, *words]
