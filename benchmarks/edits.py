"""How much an edit costs an agent that makes 200 of them a minute, against a command and a bare Python.

Usage: python benchmarks/edits.py [EDITS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import median, quantile, table

SCRIPT = str(Path(sys.executable).parent / "whisper-tui")
BARE = (sys.executable, "-c", "pass")
A_MINUTE = 200
"""Edits a minute, at even distances."""
ROUNDS = 100
"""Of the comparison, in which each program is started in turn, without a pause for the pace."""
CONFIGURATION = "[[rules.allow]]\nname = 'the command that is measured'\nprefix = ['make', 'check']\n"
PAUSE_S = 0.02
STARTS_PROCESS = frozenset({"fork", "vfork", "clone", "clone3"})
"""System calls that make a process, or a thread: those of a thread have a flag that says so."""


def home_of(directory: Path) -> Path:
    """Make an instance whose rules allow the command. Returns its directory."""
    home = directory / "home"
    (home / "config").mkdir(parents=True, mode=0o700)
    configuration = home / "config" / "config.toml"
    configuration.write_text(CONFIGURATION)
    configuration.chmod(0o600)
    return home


class Client:
    """An agent client that asks its hook before each of its tools, and then does what it was allowed."""

    def __init__(self, directory: Path) -> None:
        home = directory / "home"
        self._root = directory / "project"
        self._calls = 0
        (self._root / "src").mkdir(parents=True)
        self._file = self._root / "src" / "app.py"
        self._file.write_text("".join(f"value_{number} = {number}\n" for number in range(300)) + "turn = 0\n")
        self.hook = (SCRIPT, "hook", "claude", "--home", str(home))

    def edit(self, before: tuple[str, ...] = ()) -> float:
        """Ask about the next edit of the file, make it, and return the seconds of the hook alone."""
        turn = self._file.read_text().rpartition("turn = ")[2].strip()
        old, new = f"turn = {turn}\n", f"turn = {int(turn) + 1}\n"
        given = {"file_path": str(self._file), "old_string": old, "new_string": new, "replace_all": False}
        taken = self._asked("Edit", given, before)
        self._file.write_text(self._file.read_text().replace(old, new))
        return taken

    def command(self) -> float:
        """Ask about a command that a rule allows, and return the seconds of the hook; nothing is run."""
        self._calls += 1
        return self._asked("Bash", {"command": f"make check ROUND={self._calls}"}, ())

    def _asked(self, tool: str, given: dict[str, object], before: tuple[str, ...]) -> float:
        self._calls += 1
        question = {
            "session_id": "benchmark", "cwd": str(self._root), "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": given, "tool_use_id": f"toolu_{self._calls}",
        }  # fmt: skip
        begin = time.perf_counter()
        done = subprocess.run(
            (*before, *self.hook), input=json.dumps(question).encode(), capture_output=True, check=True
        )
        taken = time.perf_counter() - begin
        decision = json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"]
        if decision != "allow":
            raise RuntimeError(f"the hook did not allow {tool}: {done.stdout!r}")
        return taken


def edits_in_journal(home: Path) -> int:
    """Return how many edits the journal knows as done by the agent."""
    listed = (SCRIPT, "history", "--home", str(home), "--limit", "5000", "--json")
    rows = json.loads(subprocess.run(listed, stdout=subprocess.PIPE, check=True).stdout)
    return sum(row["ending"] == "handed_over" and bool(row["edits"]) for row in rows)


def bare() -> float:
    """Start Python, and nothing else."""
    begin = time.perf_counter()
    subprocess.run(BARE, capture_output=True, check=True)
    return time.perf_counter() - begin


def paced(edits: int, client: Client) -> tuple[list[float], list[float]]:
    """Make edits at their pace, and return the seconds of each hook, and of a bare Python after it."""
    taken, base, begin = [], [], time.perf_counter()
    for number in range(edits):
        time.sleep(max(0.0, begin + number * 60 / A_MINUTE - time.perf_counter()))
        taken.append(client.edit())
        base.append(bare())
    return taken, base


def processes_of_an_edit(client: Client, directory: Path) -> str:
    """Return how many processes one edit's hook is, itself included, as the kernel tells strace."""
    log = directory / "calls"
    tracer = ("strace", "-f", "-qq", "-e", f"trace={','.join(sorted(STARTS_PROCESS))}", "-o", str(log))
    try:
        client.edit(tracer)
    except (OSError, subprocess.CalledProcessError):
        return "not known: strace is missing or may not trace"
    begun = [line for line in log.read_text().splitlines() if "(" in line and "resumed>" not in line]
    started = [line for line in begun if "CLONE_THREAD" not in line and "exited" not in line]
    return str(1 + len(started))


def row(name: str, taken: list[float], base: float) -> list[str]:
    """Return one row: median and 95th percentile in milliseconds, and the ratio of the medians to bare Python."""
    figures = (median(taken) * 1000, quantile(taken, 0.95) * 1000)
    return [name, *(f"{figure:.1f}" for figure in figures), f"{median(taken) / base:.2f} times"]


def compared(rounds: int, ways: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Start each program in turn, so that all of them have the same machine."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, start in ways.items():
            found[name].append(start())
            time.sleep(PAUSE_S)
    return found


def measure(directory: Path, edits: int) -> None:
    """Be the client, and print what its hooks took as JSON."""
    client = Client(directory)
    at_pace, beside = paced(edits, client)
    ways = {"`python -c pass`": bare, "hook of a command": client.command, "hook of an edit": client.edit}
    found = compared(ROUNDS, ways)
    told = {"found": found, "at_pace": at_pace, "beside": beside}
    print(json.dumps({**told, "processes": processes_of_an_edit(client, directory)}))


def main(edits: int) -> None:
    """Measure against a supervisor of its own, in a project of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as name:
        home = home_of(Path(name))
        subprocess.run((SCRIPT, "list", "--home", str(home)), capture_output=True, check=True)
        load = os.getloadavg()[0]
        try:
            # A process of its own: what has asked a hook counts as an agent, which may not stop a supervisor.
            words = (sys.executable, __file__, str(edits), name)
            client = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
            said, _ = client.communicate()
            if client.returncode:
                raise RuntimeError("the client failed")
            told = json.loads(said)
            found, asked = told["found"], edits + ROUNDS + told["processes"].isdecimal()
            if (known := edits_in_journal(home)) != asked:
                raise RuntimeError(f"{asked} edits were asked, and {known} are in the journal")
        finally:
            subprocess.run((SCRIPT, "stop", "--home", str(home)), stdout=subprocess.DEVNULL, check=True)
    base = median(found["`python -c pass`"])
    head = ("program", "median ms", "p95 ms", "ratio to bare Python")
    rows = [row(name, taken, base) for name, taken in found.items()]
    rows.append(row(f"hook of an edit, {edits} at {A_MINUTE} a minute", told["at_pace"], median(told["beside"])))
    table(f"An edit, {ROUNDS} interleaved rounds; load {load:.1f} at the beginning", head, rows)
    ratio = median(found["hook of an edit"]) / median(found["hook of a command"])
    print(f"\nThe hook of an edit takes {ratio:.2f} times as long as that of a command.")
    print(f"Processes that are started for one edit: {told['processes']}.")
    print(f"Edits in the journal: {asked}, each asked once.")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]), int(sys.argv[1]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else A_MINUTE)
