"""Preview commands: `true`, everyday ones, builds; beside a plain run, other tools and copies; prints Markdown.

Needs Linux with user namespaces, or root. All ways run in turn, each in a fresh copy of the same workspace. A preview
counts from the request to a keeper until its changes have been read. The processor time is that of all processes that a
way starts: unlike the time that passes, it hardly depends on what else the machine does. TRY and BWRAP name the
programs `try` (from github.com/binpash/try) and bubblewrap 0.11 or later; without them their columns are empty. TREE is
the number of files in the large tree, ROUNDS how often each command runs.
"""

import asyncio
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from measure import Runner, median, runner, table

from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.supervisor.runs.executor import PreviewOptions
from whisper_tui.system.processes import children_of

ROUNDS = int(os.environ.get("ROUNDS", "7"))
TREE = int(os.environ.get("TREE", "1000000"))
TRY, BWRAP = os.environ.get("TRY", ""), os.environ.get("BWRAP", "bwrap")
SLOWEST_S = 120.0
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
IN_DIRECTORY = 1000

SOURCES = "for i in $(seq 200); do mkdir -p src/d$((i % 10)); seq $i 500 > src/d$((i % 10))/f$i.txt; done\n"
REPOSITORY = f"{SOURCES}git init -q . && git config user.name n && git config user.email n@example.org\n"
COMMITTED = f"{REPOSITORY}git add -A && git commit -qm one && echo two >> src/d1/f1.txt && git commit -qam two\n"
PROGRAM = """
for i in $(seq 30); do echo "int f$i(int n) { for (int i = 0; i < n; i++) n += i % 7; return n; }" > f$i.c; done
echo 'int main(void) { return 0; }' > main.c
printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tcc -O2 -o main $^\\n' > Makefile
"""
TESTS = """
mkdir lib; for i in $(seq 40); do printf "def test_$i():\\n    assert sum(range(200000)) > 0\\n" > lib/test_$i.py; done
"""
RUN_TESTS = """import glob, runpy
for path in glob.glob('lib/*.py'):
    for name, test in runpy.run_path(path).items():
        if name.startswith('test_'): test()
        open(path + '.log', 'w').write('passed')
"""


class Command(NamedTuple):
    """A command in a workspace, and how much longer than a plain run its preview may take."""

    name: str
    text: str
    files: str = ""
    times: float = 3.0


COMMANDS = (
    Command("`true`", "exec true"),
    Command("git commit, 200 files", "git add -A && git commit -qm all", REPOSITORY),
    Command("git stash and pop", "echo x >> src/d2/f2.txt; git stash -q && git stash pop -q", COMMITTED),
    Command("sed -i, 200 files", "sed -i s/1/2/ src/*/*.txt", SOURCES),
    Command("rm -r, 200 files", "rm -r src", SOURCES),
    Command("tar, 200 files", "tar cf all.tar src && mkdir out && tar xf all.tar -C out", SOURCES),
    Command("2,000 new files", "for i in $(seq 2000); do echo $i > $i; done"),
    Command("build: make, 31 files", "make -s -j2", PROGRAM, 1.5),
    Command("tests: 40 files", f'python3 -I -c "{RUN_TESTS}"', TESTS, 1.5),
)


class Cost(NamedTuple):
    """What a way costs, in milliseconds."""

    elapsed: float
    processor: float


class Ways:
    """The ways to run a command, each from the request to its result."""

    def __init__(self, place: Path, runner: Runner) -> None:
        self._place = place
        self._runner = runner
        self._numbers = 0

    def fresh(self, template: Path) -> Path:
        """Return a new copy of a workspace."""
        self._numbers += 1
        made = self._place / f"w{self._numbers}"
        subprocess.run(["cp", "-a", template, made], check=True)
        return made

    async def preview(self, text: str, workspace: Path) -> Cost:
        """Preview a command, and read its changes."""
        options = PreviewOptions((str(workspace),), max_bytes=8 << 30)
        before = processor_below(os.getpid())
        took = await self._runner.seconds(["bash", "-c", text], cwd=str(workspace), preview=options)
        used = processor_below(os.getpid()) - before
        store = self._runner.attempt / "preview"
        read = cost(lambda: read_changes(str(store)))
        remove_tree(str(store))
        return Cost(took * 1000 + read.elapsed, used + read.processor)

    async def all(self, command: Command, template: Path) -> dict[str, Cost]:
        """Run a command in all ways, in turn."""
        words = ["bash", "-c", command.text]
        found = {
            "plain": run(words, self.fresh(template)),
            "preview": await self.preview(command.text, self.fresh(template)),
        }
        if TRY:
            place, upper = self.fresh(template), self._place / f"try{self._numbers}"
            upper.mkdir()
            found["try"] = run([TRY, "-N", str(upper), *words], place)
        if shutil.which(BWRAP):
            place = self.fresh(template)
            upper, work = (self._place / f"{name}{self._numbers}" for name in ("upper", "work"))
            upper.mkdir()
            work.mkdir()
            view = ["--overlay-src", str(place), "--overlay", str(upper), str(work), str(place)]
            devices = ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
            found["bwrap"] = run([BWRAP, *devices, *view, "--chdir", str(place), *words], place)._replace(processor=nan)
        place = self.fresh(template)
        found["copy"] = cost(lambda: by_copy(words, place))
        return found


def run(words: list[str], directory: Path) -> Cost:
    """Return what a command costs."""
    nothing = subprocess.DEVNULL
    return cost(
        lambda: subprocess.run(
            words, cwd=directory, stdin=nothing, stdout=nothing, stderr=nothing, timeout=SLOWEST_S, check=False
        )
    )


def by_copy(words: list[str], directory: Path) -> None:
    """Copy a workspace, run the command in the copy, and compare the two."""
    copy = directory.with_name(directory.name + "-copy")
    subprocess.run(["cp", "-a", "--reflink=auto", directory, copy], check=True)
    run(words, copy)
    subprocess.run(["diff", "-rq", directory, copy], stdout=subprocess.DEVNULL, check=False)


def cost(work: Callable[[], object]) -> Cost:
    """Return what something costs that waits for all processes that it starts."""
    begin, before = time.perf_counter(), _processor()
    work()
    return Cost((time.perf_counter() - begin) * 1000, _processor() - before)


def _processor() -> float:
    """Return the processor time of this process and of all that it has waited for, in milliseconds."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1000


def processor_below(pid: int) -> float:
    """Return the processor time of all processes below one, also of those that ended there, in milliseconds."""
    total = 0.0
    for child in children_of(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_bytes().rpartition(b")")[2].split()
            # utime, stime, cutime and cstime: see proc(5).
            total += sum(map(int, fields[11:15])) * TICK_MS
        total += processor_below(child)
    return total


def median_cost(found: list[dict[str, Cost]], way: str) -> Cost | None:
    """Return the medians of a way, of the processor time the mean: it has few digits. None: it was not measured."""
    values = [each[way] for each in found if way in each]
    if not values:
        return None
    return Cost(median([each.elapsed for each in values]), sum(each.processor for each in values) / len(values))


async def commands(ways: Ways, place: Path) -> None:
    """Print what each command costs in each way."""
    rows = []
    for number, command in enumerate(COMMANDS):
        template = place / f"template{number}"
        template.mkdir()
        subprocess.run(["bash", "-ec", command.files or ":"], cwd=template, check=True, stdout=subprocess.DEVNULL)
        found = [await ways.all(command, template) for _ in range(ROUNDS)]
        costs = {way: median_cost(found, way) for way in ("plain", "preview", "try", "bwrap", "copy")}
        plain, preview = costs["plain"], costs["preview"]
        assert plain is not None and preview is not None
        bar = Cost(*(each * command.times + (25 if command.times > 2 else 0) for each in plain))
        ratio = f"{preview.elapsed / plain.elapsed:.1f} times"
        others = [_cell(costs[way]) for way in ("try", "bwrap", "copy")]
        rows.append([command.name, _cell(plain), _cell(preview), ratio, _cell(bar), *others])
    title = f"A preview beside other ways: milliseconds, medians of {ROUNDS} rounds, and in parentheses processor time"
    head = ["command", "plain", "preview", "ratio", "bar", "`try`", "bubblewrap", "copy and `diff`"]
    table(f"{title}; load {os.getloadavg()[0]:.1f} at the end", head, rows)


def _cell(found: Cost | None) -> str:
    if found is None:
        return "-"
    # bwrap does not wait for the process that it starts, so nobody is told what that used.
    return f"{found.elapsed:.0f}" if isnan(found.processor) else f"{found.elapsed:.0f} ({found.processor:.0f})"


async def trees(ways: Ways, place: Path) -> None:
    """Print what a large tree beside the changes costs."""
    sizes = {name: place / name for name in ("small", "large")}
    for top in sizes.values():
        top.mkdir()
        (top / "file").write_text("x\n")
    for number in range(TREE):
        if number % IN_DIRECTORY == 0:
            directory = sizes["large"] / f"d{number // IN_DIRECTORY}"
            directory.mkdir()
        os.close(os.open(directory / str(number), os.O_CREAT | os.O_WRONLY))
    took: dict[str, list[Cost]] = {name: [] for name in sizes}
    for _ in range(ROUNDS * 3):
        for name, top in sizes.items():
            took[name].append(await ways.preview("echo y >> file; echo z > new", top))
    small, large = (median_cost([{"": each} for each in took[name]], "") for name in sizes)
    assert small is not None and large is not None
    rows = [
        ["one file", _cell(small), "1.00 times"],
        [f"{TREE:,} files more", _cell(large), f"{large.elapsed / small.elapsed:.2f} times"],
    ]
    head = ["tree", "preview, ms (of a processor)", "ratio"]
    table("A command that changes two files, by the tree in which they lie", head, rows)


async def main() -> None:
    """Print both tables."""
    async with runner() as made:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as name:
            place = Path(name).resolve()
            ways = Ways(place, made)
            await commands(ways, place)
            await trees(ways, place)
            remove_tree(str(place))
            place.mkdir()


if __name__ == "__main__":
    asyncio.run(main())
