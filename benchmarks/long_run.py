"""Whether anything grows while a supervisor and a cockpit are at work: memory, descriptors, files, processor time.

Usage: python benchmarks/long_run.py [MINUTES]; 20 without one
"""

import asyncio
import itertools
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from idle import cockpit
from measure import directories, table

from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.wire.client import SupervisorClient

PAUSE_S = 0.5
"""Between two calls."""
WINDOWS = 9
"""Rows of the table."""
PER_SESSION = 100
"""Calls after which an agent goes and another one comes."""
COMMANDS = (
    "true",
    "echo one; echo two >&2",
    "seq 2000",
    "sleep 0.2; exit 3",
    "sleep 1 & echo left behind",
    "printf '\\033[31mred\\033[0m\\n'",
    "head -c 300000 /dev/zero | tr '\\0' x",
    "echo asked",
)
"""In turn; the last one waits for a human."""
CONFIGURATION = """
[[rules.ask]]
name = "one of eight"
prefix = ["echo", "asked"]
[[rules.allow]]
name = "all others"
anything = true
sandbox = false
"""
HUMAN = Decider(surface="library", who="benchmark")


class Used(NamedTuple):
    """The resources of one part at one moment."""

    seconds: float
    mib: float
    descriptors: int


def used(pids: list[int]) -> Used:
    """Sum up some processes; those that are gone count nothing."""
    seconds, mib, descriptors = 0.0, 0.0, 0
    for pid in pids:
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            times = process.cpu_times()
            seconds += times.user + times.system
            mib += process.memory_full_info().uss / 2**20
            descriptors += process.num_fds()
    return Used(seconds, mib, descriptors)


async def agent(door: SupervisorClient, directory: str, ends: float) -> int:
    """Call after call until the end, in one session after the other; the number of calls."""
    for number in itertools.count():
        if time.monotonic() > ends:
            return number
        if number % PER_SESSION == 0:
            hello = SessionHello(name=f"agent {number // PER_SESSION}", root=directory, environment=dict(os.environ))
            session = (await door.open_session(hello)).id
        spec = CommandSpec(command=Shell(text=COMMANDS[number % len(COMMANDS)]), cwd=directory)
        call = await door.submit(CallRequest(session_id=session, tool="run_shell_command", arguments={}, spec=spec))
        if number % len(COMMANDS) == len(COMMANDS) - 1:
            await door.decide(call, Approve(), HUMAN, (await door.record(call)).seen_digest())
        await door.outcome(call)
        await asyncio.sleep(PAUSE_S)
    raise AssertionError


async def main(minutes: float) -> None:
    """Let an agent work, and look at all parts in equal windows."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        home = directories(place)
        (place / "config").mkdir(mode=0o700)
        (place / "config" / "config.toml").write_text(CONFIGURATION)
        (place / "config" / "config.toml").chmod(0o600)
        door = await SupervisorClient.connect(home)
        supervisor = (await door.status()).pid
        shown, _ = cockpit(place)
        window = minutes * 60 / WINDOWS
        working = asyncio.create_task(agent(door, directory, time.monotonic() + minutes * 60))
        rows, calls, before = [], 0, {}
        for number in range(1, WINDOWS + 1):
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(working), window)
            status = await door.status()
            keepers = [each.pid for each in psutil.Process(supervisor).children(recursive=True)]
            now = {"supervisor": used([supervisor]), "keepers": used(keepers), "cockpit": used([shown])}
            newest = max(map(int, (each.name.partition(".")[0] for each in (place / "state/runs").glob("*.1"))))
            files = sum(len(names) for _, _, names in os.walk(place / "state"))
            row = [f"{number * window / 60:.0f}", f"{newest:,}"]
            for part, each in now.items():
                spent = each.seconds - (before[part].seconds if before else 0.0)
                row += [f"{1000 * spent / max(1, newest - calls):.1f}", f"{each.mib:.0f}", str(each.descriptors)]
            rows.append([*row, f"{files / newest:.2f}", str(status.running)])
            calls, before = newest, now
            print("| " + " | ".join(rows[-1]) + " |", file=sys.stderr, flush=True)
        await working
        os.kill(shown, signal.SIGTERM)
        os.waitpid(shown, 0)
        await door.shutdown()
        await door.close()
        while (place / "run" / "supervisor.sock").exists():
            await asyncio.sleep(0.05)
    parts = [f"{part}: {what}" for part in ("supervisor", "keepers", "cockpit") for what in ("ms a call", "MiB", "fds")]
    head = ("minute", "calls", *parts, "files a call", "running")
    table(f"An agent at work for {minutes:g} minutes, with a cockpit on a terminal of 120x40", head, rows)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20))
