"""The cockpit under a flood of output, with a gigabyte of it, and with 100,000 waiting calls; prints Markdown.

Keys go in and frames come out through a pseudo-terminal, so what is measured is what a person would wait for: from the
byte of the key to the bytes that show its effect.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from queued import Found, Queue
from terminal import CAN_FRAME, Terminal

APP = Path(__file__).with_name("_cockpit_app.py")
ROUNDS = 100
FEW, MANY = 100, 100_000
LINE = b"\x1b[32mok\x1b[0m  module.%08d compiled in \x1b[33m%03d ms\x1b[0m, nothing to report about it\n"
WRITER = """
import sys, time
path, rate = sys.argv[1], float(sys.argv[2])
line = b"\\x1b[32mok\\x1b[0m  module.%08d compiled, \\x1b[33mnothing\\x1b[0m to report about it\\n"
length = len(line % 0)
count = max(1, int(rate / 100 / length))
lines = b"".join(line % number for number in range(count + 1000))
with open(path, "ab", buffering=0) as file:
    due, first = time.monotonic(), 0
    while True:
        file.write(lines[first * length : (first + count) * length])
        first = (first + 137) % 1000
        due += 0.01
        time.sleep(max(0, due - time.monotonic()))
"""

Measured = tuple[Found, list[float], float, float, float, list[tuple[float, float]], list[float]]
BUSY = "while True: pass"
EMPTY = """
import pydantic
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("Call 1")
Empty().run()
"""
"""An app that shows one line: no cockpit that is built with Textual and validates what it reads can start sooner."""
KEYED = """
from textual.app import App
from textual.widgets import Static
class Keyed(App):
    held = False
    def compose(self):
        yield Static("following")
    def on_key(self):
        self.held = not self.held
        self.query_one(Static).update("f to follow" if self.held else "following")
Keyed().run()
"""
"""An app whose only line a key changes: no cockpit that is built with Textual can show the effect of a key sooner."""
LISTINGS = 5


def cockpit(file: Path) -> Terminal:
    """A cockpit that shows a file as the output of a call."""
    terminal = Terminal([sys.executable, str(APP), str(file)], b"whisper_tui")
    terminal.answer(CAN_FRAME)
    terminal.wait_for(b"following")
    return terminal


def hold_and_follow(terminal: Terminal) -> list[float]:
    """`f` and `f` again, so many times."""
    found = []
    for _ in range(ROUNDS):
        found.append(terminal.key(b"f", b"f to follow"))
        found.append(terminal.key(b"f", b"following"))
    return found


def row(name: str, found: list[float], baseline: list[float]) -> str:
    """A row of the table: median, the 95th and 99th percentile, the worst, and the median against the baseline's."""
    cuts, middle = statistics.quantiles(found, n=100, method="inclusive"), statistics.median(found)
    times = middle / statistics.median(baseline)
    return f"| {name} | {middle:.0f} | {cuts[94]:.0f} | {cuts[98]:.0f} | {max(found):.0f} | {times:.1f} |"


def keyed(_file: Path) -> Terminal:
    """The app that shows the effect of a key and nothing else."""
    terminal = Terminal([sys.executable, "-c", KEYED], b"following")
    terminal.answer(CAN_FRAME)
    return terminal


def flood(folder: Path, rate: float, show: Callable[[Path], Terminal] = cockpit) -> tuple[list[float], float, float]:
    """Latencies while a file grows by so many bytes a second, frames a second, and the peak of memory."""
    file = folder / f"flood-{rate:.0f}"
    file.write_bytes(b"".join(LINE % (number, number % 1000) for number in range(1000)))
    terminal = show(file)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, file, str(rate)]) if rate else None
    try:
        terminal.drain(0.5)
        frames = terminal.frames_per_second()
        return hold_and_follow(terminal), frames, terminal.peak_mb()
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
        terminal.key(b"\t\t", b"stdout")
        found = []
        for _ in range(ROUNDS):
            found.append(terminal.key(b"g", b"f to follow"))
            found.append(terminal.key(b"G", b"following"))
        return found, terminal.peak_mb()
    finally:
        terminal.close()
        file.unlink()


def queue(folder: Path, waiting: int) -> Measured:
    """What keys and news take with so many calls that wait."""
    queued = Queue(folder / f"queue-{waiting}", waiting)
    try:
        found, listed_s, cockpit_mb, supervisor_mb = queued.measure()
        listings = [queued.listing() for _ in range(LISTINGS)]
        bare = [seconds_of_bare_python() * 1000 for _ in range(LISTINGS)]
        return found, queued.start_s, listed_s, cockpit_mb, supervisor_mb, listings, bare
    finally:
        queued.close()


def seconds_of_bare_python() -> float:
    """One start of Python that does nothing."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begin


def beside_busy(folder: Path, show: Callable[[Path], Terminal] = cockpit) -> tuple[list[float], float, float]:
    """Latencies without any output, beside four processes that never rest."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(4)]
    try:
        return flood(folder, 0, show)
    finally:
        for other in others:
            other.kill()
            other.wait()


def empty() -> tuple[float, float]:
    """Return the median milliseconds until an empty app shows its line, and its most memory in MB."""
    opened, most = [], 0.0
    for _ in range(LISTINGS):
        terminal = Terminal([sys.executable, "-c", EMPTY], b"Call 1")
        opened.append(terminal.opened_s * 1000)
        most = max(most, terminal.peak_mb())
        terminal.close()
    return statistics.median(opened), most


def floods(folder: Path) -> None:
    """Print what output that grows costs the one who presses keys."""
    idle = flood(folder, 0)
    head = "| cockpit | median | 95 % | 99 % | worst | times its baseline | frames a second | memory MB |"
    print("From a key press to its effect on the terminal, in milliseconds; a frame of 60 Hz is 17:\n")
    print(f"{head}\n|---|---|---|---|---|---|---|---|")
    print(f"{row('nothing to do (baseline)', idle[0], idle[0])} {idle[1]:.0f} | {idle[2]:.0f} |")
    for rate in (1, 10, 100):
        found, frames, peak = flood(folder, rate * 1e6)
        print(f"{row(f'output grows by {rate} MB/s', found, idle[0])} {frames:.0f} | {peak:.0f} |")
    found, frames, peak = beside_busy(folder)
    print(f"{row('beside four busy processes', found, idle[0])} {frames:.0f} | {peak:.0f} |")
    least = flood(folder, 0, keyed)
    print(f"{row('an app of one line (floor): nothing to do', least[0], least[0])} {least[1]:.0f} | {least[2]:.0f} |")
    found, frames, peak = flood(folder, 100e6, keyed)
    print(f"{row('the same while a file grows by 100 MB/s', found, least[0])} {frames:.0f} | {peak:.0f} |")
    found, frames, peak = beside_busy(folder, keyed)
    print(f"{row('the same beside four busy processes', found, least[0])} {frames:.0f} | {peak:.0f} |")
    small, small_mb = size(folder, 1_000_000)
    large, large_mb = size(folder, 1 << 30)
    print(f"{row('1 MB of output, its two ends (baseline)', small, small)} | {small_mb:.0f} |")
    print(f"{row('1 GiB of output, its two ends', large, small)} | {large_mb:.0f} |")


def queues(folder: Path, many: int) -> None:
    """Print what very many waiting calls cost, against few."""
    few_found, few_starts, few_s, *few_mb, few_lists, _ = queue(folder, FEW)
    found, starts, many_s, *many_mb, many_lists, bare = queue(folder, many)
    print(f"\nA supervisor and a cockpit with {FEW} and with {many:,} waiting calls, median milliseconds:\n")
    print(f"| action | {FEW} waiting | {many:,} waiting | 95 % | ratio |\n|---|---|---|---|---|")
    for what, took in found.items():
        before, now = statistics.median(few_found[what]), statistics.median(took)
        worst = statistics.quantiles(took, n=20, method="inclusive")[18] if len(took) > 1 else now
        print(f"| {what} | {before:.0f} | {now:.0f} | {worst:.0f} | {now / before:.1f} |")
    for which, before, now in zip(("first", "next"), few_starts, starts, strict=True):
        took = f"{1000 * before:.0f} | {1000 * now:.0f} | | {now / before:.1f}"
        print(f"| the supervisor's {which} start, of a processor | {took} |")
    print(f"| until all are listed (in the background) | {1000 * few_s:.0f} | {1000 * many_s:.0f} | | |")
    first, then = (statistics.median(each) for each in zip(*many_lists, strict=True))
    few_first, start = statistics.median(each[0] for each in few_lists), statistics.median(bare)
    times = first / few_first
    print(f"| `list`: its first call (bare Python: {start:.0f}) | {few_first:.0f} | {first:.0f} | | {times:.1f} |")
    print(f"| `list`: calls a second after the first | | {then:,.0f} | | |")
    opened_ms, empty_mb = empty()
    print(f"| an empty app of Textual (floor): from nothing to its line | {opened_ms:.0f} | | | |")
    print(f"| the most memory of that app, MB | {empty_mb:.0f} | | | |")
    for name, before, now in zip(("cockpit", "supervisor"), few_mb, many_mb, strict=True):
        print(f"| the most memory of the {name}, MB | {before:.0f} | {now:.0f} | | {now / before:.1f} |")


def main() -> None:
    """Measure and print. Arguments: `floods` or `queues` for one of them alone, and how many calls are many."""
    chosen = [word for word in sys.argv[1:] if not word.isdecimal()] or ["floods", "queues"]
    many = next((int(word) for word in sys.argv[1:] if word.isdecimal()), MANY)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as name:
        if "floods" in chosen:
            floods(Path(name))
        if "queues" in chosen:
            queues(Path(name), many)


if __name__ == "__main__":
    main()
