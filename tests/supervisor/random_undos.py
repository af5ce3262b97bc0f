"""Two agents and a human change a small tree at random; what one agent did from some moment on is undone and redone.

`python -m tests.supervisor.random_undos --runs 300 [--seed N]` runs other sequences each time, and prints the seed of
each that fails.
"""

import argparse
import asyncio
import os
import random
import stat
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits, SessionHello, Shell, WriteFile
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited, HandedOver
from whisper_tui.model.preview import CallsUndone, UndoOrder
from whisper_tui.model.state import Ended

STEPS = 9
AT_ONCE = 6
"""Sequences that run beside each other: most of their time they wait for processes."""
FILES = ("a", "b", "d/c", "d/e", "n/f")
WHO = ("one", "one", "other", "human")
DATED = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
ENVIRONMENT = {**os.environ, **DATED}
GIT = "git -c user.name=x -c user.email=x -c core.hooksPath=/dev/null"
COMMIT = f"{' '.join(f'{name}={value}' for name, value in DATED.items())} {GIT} commit -qm"
Tree = dict[str, tuple[object, ...]]


class Step(NamedTuple):
    """A command, or the edit of a file, of an agent or of the human."""

    who: str
    text: str
    moves: tuple[str, str] | None = None
    edit: tuple[str, str] | None = None


def steps_of(seed: int) -> list[Step]:
    chance = random.Random(seed)
    return [_step(chance, number) for number in range(STEPS)]


def _step(chance: random.Random, number: int) -> Step:
    who, file, other = chance.choice(WHO), chance.choice(FILES), chance.choice(FILES)
    above = os.path.dirname(file) or "."
    match chance.randrange(12):
        case 0 | 1:
            return Step(who, f"mkdir -p {above}; echo {number} > {file}")
        case 2 | 3:
            return Step(who, f"mkdir -p {above}; echo {number} >> {file}")
        case 4:
            return Step(who, f"chmod {chance.choice(('600', '755', '640'))} {file}")
        case 5 | 6 if file != other:
            return Step(
                who,
                f"[ -e {file} ] && mkdir -p {os.path.dirname(other) or '.'} && mv {file} {other}",
                moves=(file, other),
            )
        case 7:
            gone = chance.choice((file, file, "d", "n"))
            return Step(who, f"rm -rf {gone}" if who == "one" else f"[ -e {gone} ] && rm -rf {gone}")
        case 8:
            return Step(who, f"mkdir -p n/new{number} && echo x > n/new{number}/y")
        case 9:
            return Step(who, f"ln -sfn target{number} link")
        case 10:
            return Step(who, f"git add -A . && {COMMIT} {number}")
        case _:
            return Step(who, f"mkdir -p {above}; echo edit {number} > {file}", edit=(file, f"edit {number}\n"))


def make_tree(top: Path) -> None:
    (top / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (top / name).write_text(f"{name}\n")
    for words in ("init -q -b main", "add -A .", "commit -qm first"):
        subprocess.run(f"{GIT} {words}", shell=True, cwd=top, check=True, env=ENVIRONMENT)


def by_hand(step: Step, top: Path) -> bool:
    """Do it. True if it worked."""
    done = subprocess.run(["sh", "-c", step.text], cwd=top, env=ENVIRONMENT, check=False, capture_output=True)
    return done.returncode == 0


def described(top: Path) -> Tree:
    """Describe all files, and of git what its branches and its index say."""
    found: Tree = {}
    for directory, directories, files in os.walk(top):
        directories[:] = [name for name in directories if name != ".git"]
        for name in (*directories, *files):
            path = Path(directory, name)
            at = path.lstat()
            link = stat.S_ISLNK(at.st_mode)
            content = os.readlink(path) if link else path.read_text() if stat.S_ISREG(at.st_mode) else ""
            found[str(path.relative_to(top))] = (at.st_mode, content)
    for name, words in ((".git/refs/heads/main", "rev-parse main"), (".git/index", "ls-files -s")):
        done = subprocess.run(f"{GIT} {words}", shell=True, cwd=top, capture_output=True, text=True, check=False)
        found[name] = (done.stdout,)
    return found


class RandomUndo:
    """One sequence in a workspace of its own."""

    def __init__(self, live: LiveBench, seed: int, top: Path) -> None:
        self._live = live
        self._chance = random.Random(f"{seed} undo")
        self.steps = steps_of(seed)
        self._top = top
        self.calls: dict[int, str] = {}
        self._vain = set[int]()
        """Steps that failed, perhaps because of what the agent had done: they have changed nothing."""

    async def go(self) -> Counter[str]:
        """Check everything. Returns how many calls were undone, and how many paths were left out."""
        make_tree(self._top / "real")
        real = self._top / "real"
        sessions = {
            who: (await self._live.supervisor.open_session(SessionHello(name=who, root=str(real)))).id
            for who in ("one", "other")
        }
        for number, step in enumerate(self.steps):
            if step.who == "human":
                if not by_hand(step, real):
                    self._vain.add(number)
            else:
                self.calls[number] = await self._call(step, real, sessions[step.who])
                state = (await self._live.record(self.calls[number])).state
                if isinstance(state, Ended) and state.ending not in (Exited(code=0), HandedOver()):
                    self._vain.add(number)
        first = self._chance.randrange(len(self.steps) // 2)
        undone = [number for number, step in enumerate(self.steps) if step.who == "one" and number >= first]
        before = described(real)
        ids = tuple(self.calls[number] for number in undone)
        told = await self._undo(ids, dry_run=True)
        assert described(real) == before, "the forecast changed files"
        done = await self._undo(ids)
        after = described(real)
        left = self._left(done)
        assert self._left(told) == left, f"foretold {self._left(told)}, left {left}"
        self._check_forecast(told, before, after)
        self._check(after, undone, left)
        again = await self._live.supervisor.undo_calls(UndoOrder(call_ids=ids, direction="redo"), HUMAN)
        assert not again.left_out, again.left_out
        _same(described(real), before, "redo did not bring back")
        return Counter(calls=len(done.calls), left=len(left), kept=len(told.files))

    async def _call(self, step: Step, real: Path, session: str) -> str:
        supervisor = self._live.supervisor
        if step.edit is not None:
            path = real / step.edit[0]
            changes = (WriteFile(path=str(path), content=step.edit[1]),)
            spec = CommandSpec(command=FileEdits(tool="Write", changes=changes), cwd=str(real))
            call_id = await supervisor.submit(
                CallRequest(session_id=session, tool="Write", arguments={}, spec=spec, ticket="ticket", by_agent=True)
            )
            if (await supervisor.record(call_id)).decision is None:
                await self._live.approve(call_id)
            await supervisor.hand_over(call_id, "ticket")
            by_hand(step, real)
            return call_id
        spec = CommandSpec(command=Shell(text=step.text), cwd=str(real))
        call_id = await supervisor.submit(CallRequest(session_id=session, tool="Bash", arguments={}, spec=spec))
        undoable = None if step.text.startswith("rm") else True
        if (await supervisor.record(call_id)).decision is None:
            await self._live.decide(call_id, Approve(undoable=undoable))
        await self._live.over(call_id)
        return call_id

    async def _undo(self, ids: tuple[str, ...], *, dry_run: bool = False) -> CallsUndone:
        order = UndoOrder(call_ids=ids, direction="undo", dry_run=dry_run)
        return await self._live.supervisor.undo_calls(order, HUMAN)

    def _left(self, done: CallsUndone) -> set[str]:
        top = self._top / "real"
        whole = [each for each in done.left_out if not each.paths and "nothing of what it changed" not in each.why]
        assert not whole, whole
        return {os.path.relpath(path, top) for each in done.left_out for path in each.paths}

    def _check_forecast(self, told: CallsUndone, before: Tree, after: Tree) -> None:
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        names = {os.path.relpath(file.path, self._top / "real") for file in told.files}
        assert {name for name in names if not name.startswith(".git")} == {
            name for name in changed if not name.startswith(".git")
        }, f"foretold {sorted(names)}, changed {sorted(changed)}"

    def _check(self, after: Tree, undone: list[int], left: set[str]) -> None:
        """Compare with the same sequence without the calls that were undone, but for what was named."""
        wanted = self._top / "without"
        make_tree(wanted)
        for number, step in enumerate(self.steps):
            if number not in undone and number not in self._vain:
                by_hand(step, wanted)
        free = set(left)
        later = [step for number, step in enumerate(self.steps) if number > min(undone, default=0)]
        others = any(step.who != "one" and COMMIT in step.text for step in later)
        # What somebody else commits has what the agent had written.
        if others or any(name.startswith(".git/") for name in left):
            free |= {".git/refs/heads/main", ".git/index"}
        for step in self.steps:
            # What somebody moved that is named has its new name since.
            if step.who != "one" and step.moves is not None and _is_at(step.moves[0], free):
                free.add(step.moves[1])
        for number, step in enumerate(self.steps):
            # What somebody moved or removed where the agent had put nothing any more: the place looks untouched.
            vacated = [self.steps[each].text for each in undone if each < number]
            if step.who != "one" and (step.moves or "rm -rf" in step.text):
                names = step.moves or (step.text.split()[-1],)
                if any(f"mv {names[0]} " in text or "rm -rf" in text for text in vacated):
                    free.update(names)
        known = described(wanted)
        differing = {
            name: (after.get(name), known.get(name))
            for name in after.keys() | known.keys()
            if after.get(name) != known.get(name) and not _is_at(name, free)
        }
        assert not differing, f"named {sorted(left)}, but {differing}"


def _is_at(name: str, tops: set[str]) -> bool:
    return any(name == top or name.startswith(f"{top}/") for top in tops)


def _same(one: Tree, other: Tree, what: str) -> None:
    differing = {name: (one.get(name), other.get(name)) for name in one.keys() | other.keys()}
    differing = {name: both for name, both in differing.items() if both[0] != both[1]}
    assert not differing, f"{what}: {differing}"


def fresh(runs: int) -> list[int]:
    """Seeds of sequences that were never run before."""
    return random.SystemRandom().sample(range(10**9), runs)


async def failures(seeds: Sequence[int]) -> list[int]:
    """Run sequences. Return the seeds of those that fail."""
    failed, counted = [], Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        live = LiveBench(Path(place).resolve())
        await live.open()
        try:
            turns = asyncio.Semaphore(AT_ONCE)

            async def one(seed: int) -> None:
                top = Path(place).resolve() / "workspace" / str(seed)
                top.mkdir()
                run = RandomUndo(live, seed, top)
                async with turns:
                    try:
                        counted.update(await run.go())
                    except Exception:  # noqa: BLE001 - whatever it is, the seed has to be named
                        failed.append(seed)
                        print(f"seed {seed}:", *run.steps, run.calls, sep="\n")
                        traceback.print_exc(file=sys.stdout)

            await asyncio.gather(*map(one, seeds))
        finally:
            await live.supervisor.close()
    print(f"{len(seeds)} sequences, {dict(counted)}, {len(failed)} failed: {failed}", flush=True)
    return failed


def main() -> None:
    """Run sequences as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seeds = fresh(options.runs) if options.seed is None else [options.seed]
    sys.exit(bool(asyncio.run(failures(seeds))))


if __name__ == "__main__":
    main()
