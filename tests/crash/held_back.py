"""Kill supervisors while commands run held back, and somebody else edits the same files.

`python -m tests.crash.held_back [--sequences N] [--seed N]`. Each command adds a line of its own to several files. The
tree must be as if each had run or not: its line stands in all of its files once, or in none, as its agent was told. If
somebody has edited a file after its line was written, and another one before, the answer names the file in which the
line stays. No line of anybody else is ever lost.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.field import AGAIN_S, Field
from tests.crash.human import HUMAN
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.wire.client import SupervisorClient

LANES = 3
FILES = 6
CALLS = 4
"""Files of one workspace, and calls of one sequence."""
STANDS_STILL_S = 120.0
"""Seconds without another step after which a call does not go on."""
KILLED_IN = 0.25
"""Share of the calls at which a supervisor is killed."""
SHAPES = (
    "for f in {files}; do echo {token} >> $f; done",
    "echo {token} | tee -a {files}",
    "for f in {files}; do (cat $f; echo {token}) > new && mv new $f; done",
    "python3 -c \"import sys; [open(f, 'a').write('{token}\\n') for f in sys.argv[1:]]\" {files}",
    "for f in {files}; do echo {token} >> $f; sleep 0.05; done; exit 3",
)
"""Commands that add their line to files: in place, by a new file, slowly, and with a failure at the end."""


@dataclass
class Result:
    """The kills, what became of the calls, and every contradiction."""

    kills: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    edits: int = 0
    violations: list[str] = field(default_factory=list)


class SequenceKills(ABC):
    """Plays sequences of calls, each in a workspace of its own, a few at once."""

    longest_wait_s: float
    """Seconds, at most, between a submission and the kill that is aimed at it."""

    def __init__(self, root: Path, sequences: int, seed: int) -> None:
        self.result = Result()
        self._field = Field(root)
        self._chance = random.Random(seed)
        self._left = sequences
        self._number = 0

    async def go(self) -> Result:
        """Play all sequences. Returns what was found."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(LANES):
                lanes.create_task(self._lane())
        await self._field.end()
        return self.result

    async def _lane(self) -> None:
        door = await self._field.door()
        while self._left > 0 and not self.result.violations:
            self._left -= 1
            self._number += 1
            top = self._field.workspace / f"{self._number}"
            top.mkdir()
            for number in range(FILES):
                (top / f"f{number}").write_text("begin\n")
            await self._play(door, top)
        await door.close()

    async def _kill(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.0, self.longest_wait_s))
        supervisor = await asyncio.to_thread(self._field.supervisor)
        if supervisor is not None and self._field.kill("supervisor", supervisor):
            self.result.kills += 1

    @abstractmethod
    async def _play(self, door: SupervisorClient, top: Path) -> None:
        """Play one sequence in a directory that has the files of one."""


class HeldBackKills(SequenceKills):
    """Plays sequences of calls that nobody is asked about."""

    longest_wait_s = 0.4

    async def _play(self, door: SupervisorClient, top: Path) -> None:
        edited: list[tuple[str, str]] = []
        editing = asyncio.create_task(self._edit(top, edited))
        ran: dict[str, list[str]] = {}
        for number in range(CALLS):
            await self._call(door, top, f"call-{number}", ran)
        editing.cancel()
        await asyncio.wait([editing])
        self._compare(top, ran, edited)

    async def _edit(self, top: Path, edited: list[tuple[str, str]]) -> None:
        """Add lines to files as an editor or another program does, at any moment."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.02, 0.6))
            name, line = f"f{self._chance.randrange(FILES)}", f"edit-{len(edited)}"
            with (top / name).open("a") as file:
                file.write(f"{line}\n")
            edited.append((name, line))
            self.result.edits += 1

    async def _call(self, door: SupervisorClient, top: Path, token: str, ran: dict[str, list[str]]) -> None:
        files = sorted(self._chance.sample([f"f{number}" for number in range(FILES)], 3))
        text = self._chance.choice(SHAPES).format(files=" ".join(files), token=token)
        call_id = await self._submit(door, top, token, text)
        shot = asyncio.create_task(self._kill()) if self._chance.random() < KILLED_IN else None
        applies = self._chance.random() < 0.5
        seen: object = None
        since = time.monotonic()
        while not isinstance((record := await self._record(door, call_id)).state, Ended):
            # A preview that begins or ends is a step as well.
            if (record.state, record.preview) != seen:
                seen, since = (record.state, record.preview), time.monotonic()
            if time.monotonic() - since > STANDS_STILL_S:
                self.result.violations.append(f"call {record.id} does not go on: {record.state}, {record.preview}")
                return
            if isinstance(record.state, Waiting) and not record.is_held_back:
                # A conflict: somebody has edited one of its files since.
                applies = applies and record.state.returned_because is None
                await self._decide(door, record, applies=applies)
            await asyncio.sleep(0.02)
        if shot is not None:
            await shot
        state = record.state
        assert isinstance(state, Ended)
        has_run = isinstance(state.ending, Exited) and not state.discarded
        who = "nobody" if not record.decided_by_human else "a human"
        self.result.outcomes[f"{'ran' if has_run else 'did not run'}, decided by {who}"] += 1
        stays = state.discarded.partition("; what it did to ")[2]
        self.result.outcomes["a change had to stay"] += bool(stays)
        ran[token] = [name for name in files if has_run or f"/{name}" in stays]

    async def _submit(self, door: SupervisorClient, top: Path, token: str, text: str) -> str:
        session = None
        while True:
            with suppress(WhisperError):
                # A kill takes back what let more run than the rules do.
                if (await door.status()).unasked[""].level != "workspace":
                    await door.set_unasked("workspace", HUMAN, until=time.time() + 3600)
                # A key counts in its session: a second one would take a repeated submission for another call.
                session = session or await door.open_session(
                    SessionHello(name=top.name, root=str(top), environment=dict(os.environ))
                )
                spec = CommandSpec(command=Shell(text=text), cwd=str(top))
                request = CallRequest(
                    session_id=session.id, tool="crash", arguments={}, spec=spec, key=f"{top.name}-{token}"
                )
                return await door.submit(request)
            await asyncio.sleep(AGAIN_S)

    async def _record(self, door: SupervisorClient, call_id: str) -> CallRecord:
        while True:
            with suppress(WhisperError):
                return await door.record(call_id)
            await asyncio.sleep(AGAIN_S)

    async def _decide(self, door: SupervisorClient, record: CallRecord, *, applies: bool) -> None:
        """Answer a question: apply the preview where that is possible, or deny."""
        report = record.preview.report if record.preview is not None and not record.preview.dropped else None
        decision: Approve | Deny = Deny(reason="no")
        if applies and report is not None and record.preview is not None and record.preview.can_be_applied:
            decision = Approve(preview=report.digest)
        with suppress(WhisperError):
            await door.decide(record.id, decision, HUMAN, record.seen_digest())

    def _compare(self, top: Path, ran: dict[str, list[str]], edited: list[tuple[str, str]]) -> None:
        lines = {path.name: Counter(path.read_text().splitlines()) for path in top.iterdir()}
        expected = {f"f{number}": Counter(["begin"]) for number in range(FILES)}
        for name, line in edited:
            expected[name][line] += 1
        for token, files in ran.items():
            for name in files:
                expected[name][token] += 1
        for name in sorted(lines.keys() | expected.keys()):
            found, wanted = lines.get(name, Counter()), expected.get(name, Counter())
            if found != wanted:
                what = f"missing {dict(wanted - found)}, too many {dict(found - wanted)}"
                self.result.violations.append(f"{top}/{name}: {what}; calls: {ran}")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"python -m tests.crash.held_back --sequences {options.sequences} --seed {seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        result = asyncio.run(HeldBackKills(Path(directory) / "crash", options.sequences, seed).go())
    for what, number in sorted(result.outcomes.items()):
        print(f"{number:,} calls {what}")
    print(f"{result.kills:,} kills, {result.edits:,} edits of others, {time.monotonic() - began:,.0f} s")
    for violation in result.violations:
        print(violation, file=sys.stderr)
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
