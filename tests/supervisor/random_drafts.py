"""Random commands in a draft, and a human who edits the same files meanwhile: no edit of the human is ever lost.

`python -m tests.supervisor.random_drafts [--drafts N] [--seed N]`.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import tempfile
from pathlib import Path

from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import PATIENCE_S, LiveBench
from whisper_tui.model.draft import DraftApply
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import Ended

FILES = ("a", "b", "c", "d/x", "d/y", "e/x", "e/f/z")
DIRECTORIES = ("d", "e", "e/f")
STEPS = 8


class RandomDraft:
    """One draft, with what its human has written since the draft touched the same file."""

    def __init__(self, live: LiveBench, session: str, chance: random.Random) -> None:
        self.edits = self.conflicts = 0
        self._live = live
        self._session = session
        self._chance = chance
        self._touched: set[str] = set()
        """Paths that commands have touched, and directories that they have removed."""
        self._protected: set[str] = set()
        """Words that the human has written into files of which the draft had a version of its own."""
        self._seen: dict[str, str] = {}
        """Other words in such files, with the file: the next command that touches it may have seen them."""
        self._number = 0

    async def play(self) -> None:
        """Play it. Raises `AssertionError` if anything of the human is lost."""
        top = self._live.workspace
        for name in FILES:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text("begin\n")
        await self._live.supervisor.start_draft(self._session, HUMAN)
        for _ in range(STEPS):
            command, touched = self._command()
            if self._chance.random() < 0.6:
                self._edit()
            self._touched |= touched
            self._seen = {
                word: name
                for word, name in self._seen.items()
                if not any(name == each or name.startswith(f"{each}/") for each in touched)
            }
            call_id = await self._live.submit(self._session, text=f"echo ready; sleep 0.03; {command}")
            if self._chance.random() < 0.5:
                async with asyncio.timeout(PATIENCE_S):
                    while await self._live.output(call_id) != b"ready\n":
                        await asyncio.sleep(0.002)
                self._edit()
            record = await self._live.over(call_id)
            assert isinstance(record.state, Ended), (command, record.state, record.preview)
        if self._chance.random() < 0.6:
            self._edit()
        await self._apply()

    async def _apply(self) -> None:
        top, supervisor = self._live.workspace, self._live.supervisor
        before = self._live.files()
        while True:
            page = await supervisor.draft_page(self._session)
            order = DraftApply(session_id=self._session, paths=page.conflicts, all_but=bool(page.conflicts))
            try:
                done = await supervisor.apply_draft(order, HUMAN)
            except Refused as refused:
                raise AssertionError(f"{refused.message}; conflicts: {page.conflicts}") from refused
            if done.over or not done.total:
                break
        self.conflicts = len(page.conflicts)
        after = self._live.files()
        for name, text in before.items():
            words = (self._protected | self._seen.keys()) & set(text.split())
            assert words <= set(after.get(name, "").split()), (name, words, after.get(name), page.conflicts)
            if not self._is_touched(name):
                assert after.get(name) == text, name
        if not done.over:
            left = await supervisor.draft_page(self._session)
            assert set(left.conflicts) == set(page.conflicts), (left, page.conflicts)
            await supervisor.drop_draft(self._session, HUMAN)
        assert os.path.isdir(top)

    def _is_touched(self, name: str) -> bool:
        return any(name == each or name.startswith(f"{each}/") for each in self._touched)

    def _word(self, who: str) -> str:
        self._number += 1
        return f"{who}{self._number}"

    def _command(self) -> tuple[str, set[str]]:
        """Return a command of the agent, which fails where its files are gone, and what it touches."""
        name, other = self._chance.sample(FILES, 2)
        directory, word = self._chance.choice(DIRECTORIES), self._word("agent")
        return self._chance.choice(
            (
                (f"echo {word} >> {name}", {name}),
                (f"(cat {name}; echo {word}) > {name}.n && mv {name}.n {name}", {name, f"{name}.n"}),
                (f"rm {name}", {name}),
                (f"mv {name} {other}", {name, other}),
                (f"ln -f {name} {other}", {name, other}),
                (f"rm -r {directory}", {directory}),
                (f"rm -rf {directory}; mkdir -p {directory}; echo {word} > {directory}/x", {directory}),
                (f"mkdir -p {directory}/new && echo {word} > {directory}/new/file", {f"{directory}/new"}),
                (f"chmod 600 {name}", {name}),
                (f"rm -rf {directory}; echo {word} > {directory}", {directory}),
            )
        )

    def _edit(self) -> None:
        """Change the real files as a human does."""
        self.edits += 1
        top, word = self._live.workspace, self._word("human")
        name = self._chance.choice((*FILES, "d/mine", "e/f/mine", "d/new/mine"))
        path = top / name
        kind = self._chance.random()
        if kind < 0.15 and path.exists():
            path.unlink()
            return
        if kind < 0.25:
            shutil.rmtree(top / self._chance.choice(DIRECTORIES), ignore_errors=True)
            return
        if any(each.is_file() for each in path.parents):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            return
        text = (path.read_text() if path.exists() else "") + f"{word}\n"
        if kind < 0.6:
            new = path.with_name(f"{path.name}~")
            new.write_text(text)
            new.replace(path)
        else:
            path.write_text(text)
        notes = Path(self._live.home.state, "drafts", self._session, "notes.json")
        if notes.exists() and str(path) in json.loads(notes.read_text())["base"]:
            self._protected.add(word)
        elif self._is_touched(name):
            self._seen[word] = name


async def play(directory: Path, seed: int) -> tuple[int, int]:
    """Play the draft of a seed. Returns how many edits of a human and how many conflicts there were."""
    live = LiveBench(directory)
    await live.open()
    try:
        draft = RandomDraft(live, await live.session(), random.Random(seed))
        await draft.play()
        return draft.edits, draft.conflicts
    finally:
        await live.supervisor.close()


async def _main(drafts: int, seed: int) -> None:
    edits = conflicts = 0
    for number in range(seed, seed + drafts):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            try:
                found = await play(Path(directory), number)
            except BaseException:
                print(f"seed {number}")
                raise
        edits, conflicts = edits + found[0], conflicts + found[1]
    print(f"{drafts:,} drafts, {edits:,} edits of a human, {conflicts:,} conflicts, nothing lost")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drafts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    asyncio.run(_main(given.drafts, given.seed))
