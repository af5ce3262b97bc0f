"""The cockpit under a flood of output, with a gigabyte of it, and with 100,000 waiting calls; prints Markdown.

Keys go in and frames come out through a pseudo-terminal, so what is measured is what a person would wait for: from the
byte of the key to the bytes that show its effect.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal import Terminal

APP = Path(__file__).with_name("_cockpit_app.py")
ROUNDS = 40
LINE = b"\x1b[32mok\x1b[0m  module.%08d compiled in \x1b[33m%03d ms\x1b[0m, nothing to report about it\n"
WRITER = """
import sys, time
path, rate = sys.argv[1], float(sys.argv[2])
line = b"\\x1b[32mok\\x1b[0m  compiled a module, \\x1b[33mnothing\\x1b[0m to report about it at all\\n"
with open(path, "ab", buffering=0) as file:
    block, pause = line * max(1, int(rate / 100 / len(line))), 0.01
    due = time.monotonic()
    while True:
        file.write(block)
        due += pause
        time.sleep(max(0, due - time.monotonic()))
"""


def cockpit(file: Path, waiting: int = 0) -> Terminal:
    """A cockpit that shows a file as the output of a call, and so many calls that wait."""
    return Terminal([sys.executable, str(APP), str(file), str(waiting)], b"whisper_tui")


def hold_and_follow(terminal: Terminal) -> list[float]:
    """`f` and `f` again, so many times."""
    found = []
    for _ in range(ROUNDS):
        found.append(terminal.key(b"f", b"f follows"))
        found.append(terminal.key(b"f", b"following"))
    return found


def row(name: str, found: list[float], baseline: list[float]) -> str:
    """A row of the table: median, the 95th percentile, the worst, and the median against the baseline's."""
    cuts = statistics.quantiles(found, n=20)
    times = statistics.median(found) / statistics.median(baseline)
    return f"| {name} | {statistics.median(found):.0f} | {cuts[18]:.0f} | {max(found):.0f} | {times:.1f} |"


def flood(folder: Path, rate: float) -> tuple[list[float], float]:
    """Latencies while a file grows by so many bytes a second, and the peak of memory."""
    file = folder / f"flood-{rate:.0f}"
    file.write_bytes(b"".join(LINE % (number, number % 1000) for number in range(1000)))
    terminal = cockpit(file)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, file, str(rate)]) if rate else None
    try:
        terminal.wait_for(b"following")
        terminal.drain(0.5)
        return hold_and_follow(terminal), terminal.peak_mb()
    finally:
        if writer is not None:
            writer.kill()
            writer.wait()
        terminal.close()
        file.unlink()


def size(folder: Path, count: int) -> tuple[list[float], float]:
    """Latencies of the keys to the beginning and to the end of a file of so many bytes, and the peak of memory."""
    file = folder / "large"
    block = b"".join(LINE % (number, number % 1000) for number in range(100_000))
    with file.open("wb") as out:
        while out.tell() < count:
            out.write(block[: count - out.tell()])
    terminal = cockpit(file)
    try:
        terminal.wait_for(b"following")
        terminal.key(b"\t\t", b"stdout")
        found = []
        for _ in range(ROUNDS):
            found.append(terminal.key(b"g", b"f follows"))
            found.append(terminal.key(b"G", b"following"))
        return found, terminal.peak_mb()
    finally:
        terminal.close()
        file.unlink()


def queue(folder: Path, waiting: int, *, grouped: bool = False) -> tuple[list[float], float]:
    """Latencies of moving down the list and back with so many calls, in their groups or not, and the peak of memory."""
    file = folder / "empty"
    file.touch()
    terminal = cockpit(file, waiting)
    try:
        terminal.wait_for(f"{waiting:,} waiting".encode())
        terminal.drain(1)
        if grouped:
            terminal.key(b"\x07", b"by session")
            terminal.drain(1)
        below = b"Call 12" if grouped else b"Call 3"
        found = []
        for _ in range(ROUNDS):
            found.append(terminal.key(b"\x1b[B", below))
            found.append(terminal.key(b"\x1b[A", b"Call 2"))
        return found, terminal.peak_mb()
    finally:
        terminal.close()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        idle, idle_mb = flood(folder, 0)
        floods = {rate: flood(folder, rate * 1e6) for rate in (1, 10, 100)}
        small, small_mb = size(folder, 1_000_000)
        large, large_mb = size(folder, 1 << 30)
        few, few_mb = queue(folder, 100)
        many, many_mb = queue(folder, 100_000)
        few_grouped, few_grouped_mb = queue(folder, 100, grouped=True)
        many_grouped, many_grouped_mb = queue(folder, 100_000, grouped=True)
    print("From a key to its effect on the terminal, in milliseconds, and the most memory resident:\n")
    print("| cockpit | median | 95 % | worst | times its baseline | memory MB |")
    print("|---|---|---|---|---|---|")
    print(f"{row('nothing to do (baseline)', idle, idle)} {idle_mb:.0f} |")
    for rate, (found, peak) in floods.items():
        print(f"{row(f'output grows by {rate} MB/s', found, idle)} {peak:.0f} |")
    print(f"{row('1 MB of output, its two ends (baseline)', small, small)} {small_mb:.0f} |")
    print(f"{row('1 GiB of output, its two ends', large, small)} {large_mb:.0f} |")
    print(f"{row('100 calls wait, up and down (baseline)', few, few)} {few_mb:.0f} |")
    print(f"{row('100,000 calls wait, up and down', many, few)} {many_mb:.0f} |")
    print(f"{row('100 calls wait in groups (baseline)', few_grouped, few_grouped)} {few_grouped_mb:.0f} |")
    print(f"{row('100,000 calls wait in groups', many_grouped, few_grouped)} {many_grouped_mb:.0f} |")


if __name__ == "__main__":
    main()
