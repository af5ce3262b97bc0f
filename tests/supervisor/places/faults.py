"""Commands at a place behind ssh, while everything between here and there is killed, stopped and cut at random."""

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

from tests.ssh_server import SshServer, loopback_server
from tests.supervisor.engine.test_restarts import Restarted, check_case, random_command
from tests.supervisor.places.conftest import processes_with
from whisper_tui.system.processes import children_of

COMMANDS = 40
"""In one round. Each round has a directory of its own here, so another host process there."""
ROUND_S = 240.0
"""Seconds for the faults of a round, and again for what is left after them."""


class NearEnd(Restarted):
    """The near end of a round, and what is between it and the place."""

    def __init__(self, directory: Path, there: Path, server: SshServer) -> None:
        super().__init__(directory)
        self._there, self._server = there, server

    def start(self) -> None:
        script = "tests.supervisor.places.near_end"
        argv = [sys.executable, "-m", script, str(self.plan.directory), str(self._there), sys.executable]
        command = [*argv, str(self._server.config), self._server.name]
        log = (self.plan.directory / "log").open("ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()

    def hosts(self) -> list[int]:
        return processes_with(b"serve", os.fsencode(self._there))

    def bridges(self) -> list[int]:
        return processes_with(b"start", os.fsencode(self._there))

    def clients(self) -> list[int]:
        """The processes of ssh here."""
        return [pid for pid in _below(self.process.pid if self.process else 0) if _name(pid) == "ssh"]

    def guardians(self) -> list[int]:
        """The parents of the keepers there."""
        return [pid for host in self.hosts() for pid in children_of(host) if b"guardian" in _words(pid)]

    async def second(self) -> None:
        """Connect as another near end with the same name would: a copy of this one that was started by mistake."""
        directory = self.plan.directory
        code = (
            "import asyncio, sys\nfrom pathlib import Path\nfrom tests.supervisor.places.near_end import executor_of\n"
            "async def main():\n e = executor_of(Path(sys.argv[1]), *sys.argv[2:6])\n await e.open()\n"
            " await asyncio.sleep(0.7)\n await e.close()\nasyncio.run(main())\n"
        )
        argv = [sys.executable, "-c", code, str(directory), str(self._there), sys.executable]
        process = await asyncio.create_subprocess_exec(
            *argv, str(self._server.config), self._server.name, stderr=subprocess.DEVNULL
        )
        await process.wait()


def _words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _below(pid: int) -> list[int]:
    found = [pid] if pid else []
    for each in found:
        found += children_of(each)
    return found


class Faults:
    """Makes faults, and counts them by their kind."""

    def __init__(self, chance: random.Random) -> None:
        self.made: Counter[str] = Counter()
        self._chance = chance

    async def make(self, near: NearEnd) -> None:
        """Make one fault, if there is something to be hit."""
        kinds = {
            "bridge killed": 4,
            "ssh killed": 4,
            "host killed": 4,
            "near end killed": 1.5,
            "guardian killed": 1,
            "host stopped": 1,
            "bridge stopped": 1,
            "two near ends": 0.5,
        }
        (kind,) = self._chance.choices(list(kinds), list(kinds.values()))
        if kind == "near end killed":
            self.made[kind] += near.running
            near.kill()
            near.start()
            return
        if kind == "two near ends":
            await near.second()
            self.made[kind] += 1
            return
        victims = {"bridge": near.bridges, "ssh": near.clients, "host": near.hosts, "guardian": near.guardians}
        stops = kind.endswith("stopped")
        for pid in victims[kind.split()[0]]()[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
                self.made[kind] += 1
                if stops:
                    await asyncio.sleep(self._chance.uniform(0.05, 0.5))
                    os.kill(pid, signal.SIGCONT)


async def one_round(directory: Path, server: SshServer, chance: random.Random, most: int, commands: int) -> Faults:
    """Run commands to their ends under at most so many faults. Raises `AssertionError` for any wrong result."""
    near, faults = NearEnd(directory / "plan", directory / "there", server), Faults(chance)
    cases = {str(n): random_command(chance, str(n)) for n in range(1, commands + 1)}
    near.lay_out({call: command for call, (command, _, _) in cases.items()})
    deadline = time.monotonic() + ROUND_S
    near.start()
    try:
        while near.running and sum(faults.made.values()) < most and time.monotonic() < deadline:
            await asyncio.sleep(chance.uniform(0.02, 0.4))
            await faults.make(near)
        with suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S):
                while near.running:
                    await asyncio.sleep(0.05)
        with suppress(FileNotFoundError):
            faults.made["connection cut"] += (near.plan.directory / "cuts").stat().st_size
        log = (near.plan.directory / "log").read_text()
        left = cases.keys() - {path.name for path in near.plan.ended.iterdir()}
        assert not near.running, f"after {faults.made} these calls have not ended: {left}\n{log[-3000:]}"
        assert near.process is not None and near.process.returncode == 0, log[-3000:]
        for call, (_, text, end) in cases.items():
            check_case(near, call, text, end)
        return faults
    finally:
        near.kill()
        for pid in near.hosts():
            os.kill(pid, signal.SIGKILL)


def main() -> int:
    """Make faults until there were enough, and print their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    made, commands, number = Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as top, loopback_server(Path(top) / "sshd") as server:
        while made.total() < options.faults:
            seed = options.seed + number
            left = options.faults - made.total()
            found = asyncio.run(one_round(Path(top) / str(number), server, random.Random(seed), left, COMMANDS))
            made += found.made
            commands, number = commands + COMMANDS, number + 1
            print(f"seed {seed}: {made.total()} faults, {commands} commands, each once and exact", flush=True)
    for kind, count in made.most_common():
        print(f"{count:6} {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
