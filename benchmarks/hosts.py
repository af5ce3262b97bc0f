"""One cockpit over ten machines with 1,000 waiting calls each, near, and over a slow, a lossy and a stalled network.

The machines are supervisors of this one, each with a journal of its own; a program in the place of ssh leads to them,
and delays what passes. Against one supervisor with as many calls, so that the columns differ by the machines alone.
"""

import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from queued import DOWN, ERASE, UP, Found, Queue
from terminal import Terminal

HOSTS, EACH = 10, 1_000
ROUNDS = 20
DELAY_MS = 100
"""In each direction: an answer takes twice as long."""
LOST = 2
"""Percent of the packets that are lost."""
PATIENCE_S = 600
OPEN, LISTED = "from nothing to the first call on the screen", "until all are listed (in the background)"
KEYS, FILTER = "one call down, one up", "a letter into the filter, and out"
NEWS = "an agent asks on one machine: its call is counted"
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
exec {python} -S {wire} {delay} {lost} {folder}/$2.stalled sh -c "$3"
"""


class Desk:
    """A cockpit over some machines, behind a network."""

    def __init__(self, folder: Path, queues: dict[str, Queue], delay_ms: int, lost: int) -> None:
        self.folder, self.queues = folder, queues
        (folder / "config").mkdir(parents=True, mode=0o700)
        run = ("env", f"PYTHONPATH={os.getcwd()}", sys.executable, "-m", "whisper_tui", "--home")
        commands = {name: json.dumps(shlex.join([*run, str(queue.place)])) for name, queue in queues.items()}
        lines = [f"[hosts.{name}]\ncommand = {command}\n" for name, command in commands.items()]
        (folder / "config" / "config.toml").write_text("".join(lines))
        (folder / "config" / "config.toml").chmod(0o600)
        programs = folder / "bin"
        programs.mkdir()
        wire = Path(__file__).with_name("_slow_wire.py")
        names = {"python": sys.executable, "wire": str(wire), "folder": str(folder)}
        text = SSH.format(**{key: shlex.quote(name) for key, name in names.items()}, delay=delay_ms, lost=lost)
        (programs / "ssh").write_text(text)
        (programs / "ssh").chmod(0o755)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        begin = time.perf_counter()
        argv = [sys.executable, "-m", "whisper_tui", "attach", *queues, "--home", str(folder)]
        self.terminal = Terminal(argv, b"Call h", environment)
        self.found: Found = {OPEN: [self.terminal.opened_s * 1000]}
        self.terminal.wait_for(f"{self.waiting:,} waiting".encode(), PATIENCE_S)
        self.found[LISTED] = [(time.perf_counter() - begin) * 1000]

    @property
    def waiting(self) -> int:
        """The calls that wait on all machines."""
        return sum(queue.waiting for queue in self.queues.values())

    def stall(self, name: str) -> None:
        """Let nothing pass to and from a machine any more."""
        (self.folder / f"{name}.stalled").touch()

    def measure(self) -> Found:
        """Return what keys and news take."""
        terminal = self.terminal
        found: Found = {KEYS: [], FILTER: [], NEWS: []}
        terminal.drain(1)
        for _ in range(ROUNDS):
            found[KEYS].append(terminal.key(DOWN, b"Call h"))
            found[KEYS].append(terminal.key(UP, b"Call h"))
        terminal.key(b"/", b"/")
        for _ in range(ROUNDS):
            found[FILTER].append(terminal.key(b"9", b" of "))
            found[FILTER].append(terminal.key(ERASE, b"part10"))
        terminal.key(b"\x1b", b"for you")
        queue, waiting = next(iter(self.queues.values())), self.waiting
        for number in range(1, ROUNDS + 1):
            terminal.drain()
            begin = time.perf_counter()
            queue.ask(number)
            terminal.wait_for(f"{waiting + number:,} waiting".encode())
            found[NEWS].append((time.perf_counter() - begin) * 1000)
            queue.waiting += 1
        return found


def measured(
    folder: Path, hosts: int, each: int, delay_ms: int, lost: int = 0, *, stalls: bool = False
) -> list[tuple[Found, float]]:
    """Return what things take with so many machines, also with one of them stalled, and the memory of the cockpit."""
    with ExitStack() as stack:
        queues = {}
        for number in range(1, hosts + 1):
            queues[f"h{number}"] = Queue(folder / f"h{number}", each)
            stack.callback(queues[f"h{number}"].close)
        desk = Desk(folder / "desk", queues, delay_ms, lost)
        stack.callback(desk.terminal.close)
        columns = [(desk.found | desk.measure(), desk.terminal.peak_mb())]
        if stalls:
            desk.stall(f"h{hosts}")
            columns.append((desk.measure(), desk.terminal.peak_mb()))
        return columns


def main() -> None:
    """Measure and print. Argument: how many calls wait on each machine."""
    each = int(sys.argv[1]) if sys.argv[1:] else EACH
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as name:
        root = Path(name)
        columns = [
            *measured(root / "one", 1, HOSTS * each, 0),
            *measured(root / "ten", HOSTS, each, 0),
            *measured(root / "far", HOSTS, each, DELAY_MS),
            *measured(root / "lossy", HOSTS, each, DELAY_MS, LOST, stalls=True),
        ]
    first, memory = columns[0]
    print(
        f"One cockpit with {HOSTS * each:,} waiting calls, median milliseconds and their ratio to the first column:\n"
    )
    print(
        f"| action | on one machine | on {HOSTS} machines | ratio | {2 * DELAY_MS} ms away | ratio "
        f"| and {LOST} % of packets lost | ratio | and one machine stalled | ratio |\n|{'---|' * 10}"
    )
    for what in first:
        cells = [f"{statistics.median(first[what]):.0f}"]
        for found, _ in columns[1:]:
            now = statistics.median(found[what]) if what in found else 0
            cells += [f"{now:.0f}", f"{now / statistics.median(first[what]):.1f}"] if now else ["", ""]
        print(f"| {what} | {' | '.join(cells)} |")
    sizes = " | ".join(f"{peak:.0f} | {peak / memory:.1f}" for _, peak in columns[1:])
    print(f"| the most memory of the cockpit, MB | {memory:.0f} | {sizes} |")


if __name__ == "__main__":
    main()
