"""What a supervisor and a cockpit cost while nothing happens, in processor time and wake-ups.

Usage: python benchmarks/idle.py [SECONDS]
"""

import asyncio
import os
import pty
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from measure import directories, table

from whisper_tui.wire.client import SupervisorClient

SETTLES_S = 15.0
"""Seconds after the start, in which the last modules are loaded."""


class Usage:
    """The processor time and the wake-ups of processes since it was made."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._processes = [psutil.Process(pid) for pid in pids]
        self._began, self._before = time.monotonic(), self._now()

    def _now(self) -> tuple[float, int]:
        tasks = [task for each in self._processes for task in Path(f"/proc/{each.pid}/task").iterdir()]
        seconds = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
        lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
        return seconds, sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

    def row(self, name: str) -> list[str]:
        """Its row of the table."""
        seconds, switches = self._now()
        elapsed = time.monotonic() - self._began
        share = (seconds - self._before[0]) / elapsed
        return [name, f"{100 * share:.2f} %", f"{(switches - self._before[1]) / elapsed:.1f}"]


def cockpit(place: Path) -> tuple[int, int]:
    """Start a cockpit on a terminal of its own, whose output a thread discards; its pid and the terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
        os.execv(sys.executable, [sys.executable, "-m", "whisper_tui", "--home", str(place)])

    def discard() -> None:
        with suppress(OSError):
            while os.read(terminal, 65536):
                pass

    threading.Thread(target=discard, daemon=True).start()
    return pid, terminal


async def main(seconds: float) -> None:
    """Measure the supervisor alone, and then both."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        home = directories(place)
        client = await SupervisorClient.connect(home)
        supervisor = (await client.status()).pid
        await client.close()
        await asyncio.sleep(SETTLES_S)
        keepers = [each.pid for each in psutil.Process(supervisor).children(recursive=True)]
        alone, others = Usage([supervisor]), Usage(keepers)
        await asyncio.sleep(seconds)
        rows = [alone.row("supervisor"), others.row(f"its {len(keepers)} idle keepers and their parent")]
        shown, _ = cockpit(place)
        await asyncio.sleep(SETTLES_S)
        watched, viewer = Usage([supervisor]), Usage([shown])
        await asyncio.sleep(seconds)
        rows += [watched.row("supervisor with a cockpit"), viewer.row("cockpit")]
        os.kill(shown, signal.SIGKILL)
        os.waitpid(shown, 0)
        os.kill(supervisor, signal.SIGTERM)
        while (place / "run" / "supervisor.sock").exists():
            await asyncio.sleep(0.05)
    table(f"Nothing happens for {seconds:.0f} s", ("process", "of a processor", "wake-ups a second"), rows)


if __name__ == "__main__":
    asyncio.run(main(float((sys.argv[1:] or ["60"])[0])))
