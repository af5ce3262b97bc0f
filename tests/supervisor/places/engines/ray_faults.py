"""Commands at a place in a Ray cluster, while actor, node, host process, bridge and supervisor are killed at random.

All nodes are processes of this machine, so an actor on a new node finds the directory of the old one, and its commands.
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.supervisor.engine.restartable import main as run_plan
from tests.supervisor.engine.test_restarts import Restarted, check_case, random_command
from tests.supervisor.places.conftest import processes_with
from tests.supervisor.places.engines import servers
from tests.supervisor.places.near_end import WaitingExecutor
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.placed_executors import transport_of

ROUND_S = 600.0


class NearEnd(Restarted):
    """The near end of a round in a process of its own, and what is between it and the commands."""

    def __init__(self, directory: Path, address: str) -> None:
        super().__init__(directory / "plan")
        self.there = directory / "there"
        self._address = address

    def start(self) -> None:
        argv = [sys.executable, "-m", "tests.supervisor.places.engines.ray_faults", "--near", str(self.plan.directory)]
        with (self.plan.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, str(self.there), self._address], stdout=subprocess.PIPE, stderr=log, text=True
            )

    def hosts(self) -> list[int]:
        return [pid for pid in self._of(b"stay") if b"hold" not in _words(pid) and b"python" in _words(pid)[0]]

    def bridges(self) -> list[int]:
        return [pid for pid in self._of(b"connect") + self._of(b"wait") if b"run" in _words(pid)]

    def _of(self, mode: bytes) -> list[int]:
        return processes_with(mode, os.fsencode(self.there))


def _words(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return [b""]


def actors() -> list[int]:
    """The processes of all actors of places on this machine."""
    everything = map(int, filter(str.isdecimal, os.listdir("/proc")))
    return [pid for pid in everything if _words(pid)[0].startswith(b"ray::PlaceActor")]


async def make_fault(kind: str, near: NearEnd, cluster: servers.RayCluster) -> bool:
    """Make a fault. Return False if there was nothing to be hit."""
    if kind == "near end killed":
        hit = near.running
        near.kill()
        near.start()
        return hit
    if kind == "node killed":
        await asyncio.to_thread(cluster.tell, "kill node")
        await asyncio.to_thread(cluster.tell, "add node")
        return True
    victims = {"bridge": near.bridges, "host": near.hosts, "actor": actors}[kind.split(maxsplit=1)[0]]()
    for pid in victims[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


KINDS = {"actor killed": 4, "host killed": 4, "bridge killed": 4, "near end killed": 2, "node killed": 1}


async def one_round(
    near: NearEnd, cluster: servers.RayCluster, chance: random.Random, most: int, commands: int
) -> Counter[str]:
    """Run commands to their ends under at most so many faults. Raises `AssertionError` for any wrong result."""
    made: Counter[str] = Counter()
    cases = {str(n): random_command(chance, str(n)) for n in range(1, commands + 1)}
    near.lay_out({call: command for call, (command, _, _) in cases.items()})
    near.start()
    try:
        async with asyncio.timeout(ROUND_S):
            while near.running and made.total() < most:
                await asyncio.sleep(chance.uniform(0.05, 3))
                (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
                made[kind] += await make_fault(kind, near, cluster)
            while near.running:
                await asyncio.sleep(0.1)
        log = (near.plan.directory / "log").read_text()
        assert near.process is not None and near.process.returncode == 0, log[-3000:]
        for call, (_, text, end) in cases.items():
            check_case(near, call, text, end)
        return made
    finally:
        near.kill()
        for pid in (*actors(), *near._of(b"stay")):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def be_near_end(plan: Path, there: str, address: str) -> None:
    options = {"address": address, "cpus": "0.5", "resources": "gpu=1"}
    settings = PlaceSettings("gpu1", "ray", options, directory=there, python=sys.executable, connect="start")
    await run_plan(plan, WaitingExecutor(settings, transport_of, plan / "runs"))


def main() -> int:
    """Make faults until there were enough, and print their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--commands", type=int, default=40, help="in each round of at most 25 faults")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--near", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.near:
        asyncio.run(be_near_end(Path(options.near[0]), *options.near[1:]))
        return 0
    made, commands, number = Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as top, servers.ray(Path(top)) as cluster:
        while made.total() < options.faults:
            chance = random.Random(options.seed + number)
            near = NearEnd(Path(top) / str(number), cluster.address)
            most = min(25, options.faults - made.total())
            made += asyncio.run(one_round(near, cluster, chance, most, options.commands))
            commands, number = commands + options.commands, number + 1
            print(f"seed {options.seed}+{number - 1}: {made.total()} faults, {commands} commands, each once and exact",
                  flush=True)  # fmt: skip
    for kind, count in made.most_common():
        print(f"{count:6} {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
