"""Kill supervisors while commands run in drafts and drafts are applied, and somebody else edits the same files.

`python -m tests.crash.drafts [--sequences N] [--seed N]`. Commands of a draft and a human add lines to the same files.
Nothing of the draft is real before it is applied. Then each line of the draft is real once, but for those of files that
the human has edited since the draft touched them: these are named and stay as the human has left them. No line of the
human is ever lost, and an undo takes away exactly what was applied.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.crash.field import AGAIN_S
from tests.crash.held_back import CALLS, FILES, KILLED_IN, STANDS_STILL_S, SequenceKills
from tests.crash.human import HUMAN
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Deny
from whisper_tui.model.draft import DraftApply
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.wire.client import SupervisorClient

SHAPES = (
    "for f in {files}; do echo {token} >> $f; done",
    "echo {token} | tee -a {files}",
    "for f in {files}; do (cat $f; echo {token}) > new && mv new $f; done",
    "for f in {files}; do echo {token} >> $f; sleep 0.05; done; exit 3",
    "mkdir -p d; for f in {files}; do echo {token} >> $f; echo {token} > d/{token}; done",
)


class DraftKills(SequenceKills):
    """Plays drafts, each of a session."""

    longest_wait_s = 0.5

    async def _play(self, door: SupervisorClient, top: Path) -> None:
        try:
            async with asyncio.timeout(STANDS_STILL_S):
                await self._draft(door, top)
        except TimeoutError:
            self.result.violations.append(f"{top}: it does not go on")

    async def _draft(self, door: SupervisorClient, top: Path) -> None:
        session = await self._begin(door, top)
        edited: list[tuple[str, str]] = []
        editing = asyncio.create_task(self._edit(top, edited))
        written: dict[str, list[str]] = {}
        for number in range(CALLS):
            token = f"call-{number}"
            files = sorted(self._chance.sample([f"f{each}" for each in range(FILES)], 2))
            text = self._chance.choice(SHAPES).format(files=" ".join(files), token=token)
            if await self._call(door, session, top, token, text):
                written[token] = [*files, *([f"d/{token}"] if "mkdir" in text else [])]
        self._compare(top, {}, edited, "before the apply")
        conflicts = await self._apply(door, session)
        editing.cancel()
        await asyncio.wait([editing])
        real = {token: [name for name in files if str(top / name) not in conflicts] for token, files in written.items()}
        self._compare(top, real, edited, f"applied, but for {sorted(conflicts)}")
        self.result.outcomes["with conflicts" if conflicts else "applied as a whole"] += 1

    async def _edit(self, top: Path, edited: list[tuple[str, str]]) -> None:
        """Add lines to files as an editor or another program does, at any moment."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.02, 0.8))
            name, line = f"f{self._chance.randrange(FILES)}", f"edit-{len(edited)}"
            path = top / name
            if self._chance.random() < 0.5:
                with path.open("a") as file:
                    file.write(f"{line}\n")
            else:
                # As an editor saves it. What an apply does in between is its own conflict, so not here.
                with path.open("r+") as file:
                    file.seek(0, 2)
                    file.write(f"{line}\n")
            edited.append((name, line))
            self.result.edits += 1

    async def _begin(self, door: SupervisorClient, top: Path) -> str:
        session = None
        while True:
            with suppress(WhisperError):
                session = session or await door.open_session(
                    SessionHello(name=top.name, root=str(top), environment=dict(os.environ))
                )
                if any(draft.session_id == session.id for draft in await door.drafts()):
                    return session.id
                await door.start_draft(session.id, HUMAN)
            await asyncio.sleep(AGAIN_S)

    async def _call(self, door: SupervisorClient, session: str, top: Path, token: str, text: str) -> bool:
        """Run a command in the draft. True if it has come to its end."""
        spec = CommandSpec(command=Shell(text=text), cwd=str(top))
        asked = CallRequest(session_id=session, tool="crash", arguments={}, spec=spec, key=f"{top.name}-{token}")
        shot = asyncio.create_task(self._kill()) if self._chance.random() < KILLED_IN else None
        while True:
            with suppress(WhisperError):
                call_id = await door.submit(asked)
                record = await door.record(call_id)
                if isinstance(record.state, Ended):
                    break
                if isinstance(record.state, Waiting) and not record.is_held_back:
                    await door.decide(call_id, Deny(reason="no"), HUMAN, record.seen_digest())
            await asyncio.sleep(0.03)
        if shot is not None:
            await shot
        self.result.outcomes["calls that ran" if record.applies else "calls that were denied"] += 1
        return record.applies

    async def _apply(self, door: SupervisorClient, session: str) -> set[str]:
        """Apply the draft, but for its conflicts. Returns these."""
        conflicts = set[str]()
        shot = asyncio.create_task(self._kill()) if self._chance.random() < KILLED_IN else None
        while True:
            with suppress(WhisperError):
                if not any(draft.session_id == session for draft in await door.drafts()):
                    break
                page = await door.draft_page(session)
                if all(each.change.path in page.conflicts for each in page.changes):
                    conflicts = set(page.conflicts)
                    await door.drop_draft(session, HUMAN)
                    break
                order = DraftApply(session_id=session, paths=page.conflicts, all_but=bool(page.conflicts))
                with suppress(Refused):
                    await door.apply_draft(order, HUMAN)
            await asyncio.sleep(0.03)
        if shot is not None:
            await shot
        return conflicts

    def _compare(self, top: Path, real: dict[str, list[str]], edited: list[tuple[str, str]], when: str) -> None:
        lines = {
            str(path.relative_to(top)): Counter(path.read_text().splitlines())
            for path in top.rglob("*")
            if path.is_file()
        }
        expected = {f"f{number}": Counter(["begin"]) for number in range(FILES)}
        for name, line in edited:
            expected[name][line] += 1
        for token, files in real.items():
            for name in files:
                expected.setdefault(name, Counter())[token] += 1
        for name in sorted(lines.keys() | expected.keys()):
            found, wanted = lines.get(name, Counter()), expected.get(name, Counter())
            if found != wanted:
                what = f"missing {dict(wanted - found)}, too many {dict(found - wanted)}"
                self.result.violations.append(f"{top}/{name} {when}: {what}; calls: {real}")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"python -m tests.crash.drafts --sequences {options.sequences} --seed {seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        result = asyncio.run(DraftKills(Path(directory) / "crash", options.sequences, seed).go())
    for what, number in sorted(result.outcomes.items()):
        print(f"{number:,} {what}")
    print(f"{result.kills:,} kills, {result.edits:,} edits of others, {time.monotonic() - began:,.0f} s")
    for violation in result.violations:
        print(violation, file=sys.stderr)
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
