"""Kill supervisors and keepers while commands are previewed, applied, undone and made again.

`python -m tests.crash.previews [--kills N] [--seed N]` prints what was killed in which phase. Whatever is killed, the
files of a command are those before it or those after it: before a decision, after an apply, after an undo.
"""

import argparse
import asyncio
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.field import AGAIN_S, Field
from tests.crash.human import HUMAN
from tests.crash.killer import is_ours
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.system.processes import children_of
from whisper_tui.wire.client import SupervisorClient

LANES = 4
LONGEST_WAIT_S = 0.12
"""Seconds, at most, between a request and the kill that is aimed at it."""
SETTLES_S = 300.0
"""Seconds after which a call must have come to its end, whatever was killed: a minute is short on a busy machine."""

FILES = """
mkdir -p a/b/c gone; for i in $(seq 40); do echo $i > a/f$i; done; echo deep > a/b/c/d; echo x > gone/x
seq 3000 > long; ln long second; chmod 640 a/f1; ln -s a link
"""
COMMAND = """
for i in $(seq 1 2 40); do echo more >> a/f$i; done; for i in $(seq 2 4 40); do rm a/f$i; done; rm -r gone
mkdir -p new/x; for i in $(seq 30); do echo $i > new/x/$i; done; mv a/b moved; chmod 600 a/f1; ln -sfn new link
sed -i 1d long; echo done
"""

MANY_FILES = FILES + "mkdir many; for i in $(seq 2500); do echo $i > many/$i; done\n"
MANY_CHANGES = (
    "for i in $(seq 1 2 2500); do echo more >> many/$i; done; for i in $(seq 2 2 2500); do echo > many/new$i; done\n"
    + COMMAND
)
"""The steps of so many changes take longer than most waits before a kill."""

Listing = dict[str, tuple[object, ...]]


def listing(top: Path) -> Listing:
    """Describe each file: its kind with its mode, and its content."""
    found: Listing = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder, name)
            content = os.readlink(path) if path.is_symlink() else ""
            if not content and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(top))] = (oct(path.lstat().st_mode), content)
    return found


class _Scene:
    """A directory, a command, and how the directory looks before and after it."""

    def __init__(self, files: str, command: str) -> None:
        self.files, self.command = files, command
        with tempfile.TemporaryDirectory() as directory:
            top = Path(directory)
            subprocess.run(["bash", "-ec", files], cwd=top, check=True)
            self.before = listing(top)
            subprocess.run(["bash", "-ec", command], cwd=top, check=True, stdout=subprocess.DEVNULL)
            self.after = listing(top)


@dataclass
class Result:
    """The kills by their phases, the calls that came to their end, and every contradiction."""

    kills: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    violations: list[str] = field(default_factory=list)


class PreviewKills:
    """Takes calls through preview, apply, undo and redo, and kills what carries them."""

    def __init__(self, root: Path, kills: int, seed: int) -> None:
        self.result = Result()
        self._field = Field(root)
        self._kills = kills
        self._chance = random.Random(seed)
        self._directories = 0
        self._scenes = [_Scene(FILES, COMMAND), _Scene(MANY_FILES, MANY_CHANGES)]

    async def go(self) -> Result:
        """Kill until it was enough. Returns what was found."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(LANES):
                lanes.create_task(self._lane())
        await self._field.end()
        return self.result

    async def _lane(self) -> None:
        door = await self._field.door()
        while self.result.kills.total() < self._kills and not self.result.violations:
            self._directories += 1
            top = self._field.workspace / f"{self._directories}"
            top.mkdir()
            scene = self._scenes[self._directories % len(self._scenes)]
            subprocess.run(["bash", "-ec", scene.files], cwd=top, check=True)
            call_id = await self._submit(door, top, scene)
            try:
                async with asyncio.timeout(SETTLES_S):
                    await self._through(door, call_id, top, scene)
            except TimeoutError:
                record = await door.record(call_id)
                self.result.violations.append(f"call {call_id} does not go on: {record.state}, {record.preview}")
            self.result.calls += 1
        await door.close()

    async def _submit(self, door: SupervisorClient, top: Path, scene: _Scene) -> str:
        while True:
            with suppress(WhisperError):
                hello = SessionHello(name=top.name, root=str(top), environment=dict(os.environ))
                session = await door.open_session(hello)
                spec = CommandSpec(command=Shell(text=scene.command), cwd=str(top))
                request = CallRequest(session_id=session.id, tool="crash", arguments={}, spec=spec, key=top.name)
                return await door.submit(request)
            await asyncio.sleep(AGAIN_S)

    async def _through(self, door: SupervisorClient, call_id: str, top: Path, scene: _Scene) -> None:
        """Do whatever comes next for a call, as often as kills make that necessary."""
        while True:
            try:
                record = await door.record(call_id)
                if isinstance(record.state, Ended):
                    return await self._afterwards(door, record, top, scene)
                if isinstance(record.state, Waiting):
                    await self._decide(door, record, top, scene)
            except Refused as refusal:
                # The call has gone on since it was looked at.
                if "changed" in refusal.message:
                    self.result.violations.append(f"call {call_id}: {refusal.message}")
                    return
            except WhisperError:
                await asyncio.sleep(AGAIN_S)
            await asyncio.sleep(0.01)

    async def _decide(self, door: SupervisorClient, record: CallRecord, top: Path, scene: _Scene) -> None:
        self._compare(top, scene.before, f"call {record.id} waits")
        preview = record.preview
        if preview is None or preview.dropped or (preview.report is not None and preview.report.problem):
            async with self._aimed("preview", keepers=True):
                await door.preview(record.id, HUMAN)
        elif preview.report is not None:
            async with self._aimed("apply"):
                await door.decide(record.id, Approve(preview=preview.report.digest), HUMAN, record.seen_digest())

    async def _afterwards(self, door: SupervisorClient, record: CallRecord, top: Path, scene: _Scene) -> None:
        """Take the changes of an ended call back, and make them again."""
        assert isinstance(record.state, Ended)
        if record.state.discarded:
            self.result.violations.append(f"call {record.id}: {record.state.discarded}")
            return
        self._compare(top, scene.after, f"call {record.id} was applied")
        for direction, expected in (("undo", scene.before), ("redo", scene.after), ("undo", scene.before)):
            await self._move(door, record.id, direction)
            self._compare(top, expected, f"call {record.id} after {direction}")

    async def _move(self, door: SupervisorClient, call_id: str, direction: str) -> None:
        """Undo or redo until the journal says that it was done."""
        while True:
            with suppress(WhisperError):
                undo = (await door.record(call_id)).undo
                if undo is not None and undo.direction == direction and undo.done:
                    return
                async with self._aimed(direction):
                    await door.undo(call_id, (), direction, HUMAN)  # type: ignore[arg-type]
            await asyncio.sleep(0.01)

    def _compare(self, top: Path, expected: Listing, what: str) -> None:
        found = listing(top)
        if found != expected:
            names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            self.result.violations.append(f"{what}, and {len(names)} files are different: {', '.join(names[:5])}")

    def _aimed(self, phase: str, *, keepers: bool = False) -> "_Shot":
        """Kill somebody while the body runs, or soon after it, every second time."""
        if self._chance.random() < 0.5 or self.result.kills.total() >= self._kills:
            return _Shot(None)
        wait = self._chance.uniform(0.0, LONGEST_WAIT_S)
        victim = self._chance.choice(("supervisor", "keepers")) if keepers else "supervisor"
        return _Shot(asyncio.create_task(self._kill(phase, victim, wait)))

    async def _kill(self, phase: str, victim: str, wait: float) -> None:
        await asyncio.sleep(wait)
        supervisor = await asyncio.to_thread(self._field.supervisor)
        if supervisor is None:
            return
        pids = [supervisor]
        if victim == "keepers":
            keepers = [keeper for guardian in children_of(supervisor) for keeper in children_of(guardian)]
            # A preview has a process of its own, below one of them.
            pids = [*keepers, *(child for keeper in keepers for child in children_of(keeper))]
            pids = [pid for pid in pids if is_ours(self._field, pid)]
        for pid in pids:
            if self._field.kill(victim, pid):
                self.result.kills[f"{victim} in a {phase}"] += 1


class _Shot:
    """A kill that is under way while a request is made."""

    def __init__(self, task: "asyncio.Task[None] | None") -> None:
        self._task = task

    async def __aenter__(self) -> None:
        """Begin."""

    async def __aexit__(self, *raised: object) -> None:
        """Wait for it: the next request is about what it left."""
        if self._task is not None:
            await self._task


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"python -m tests.crash.previews --kills {options.kills} --seed {seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        result = asyncio.run(PreviewKills(Path(directory) / "crash", options.kills, seed).go())
    for what, number in sorted(result.kills.items()):
        print(f"{number:,} kills of the {what}")
    print(f"{result.kills.total():,} kills, {result.calls:,} calls, {time.monotonic() - began:,.0f} s")
    for violation in result.violations:
        print(violation, file=sys.stderr)
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
