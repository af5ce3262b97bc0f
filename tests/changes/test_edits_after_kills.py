"""Somebody who edits files after a transition was killed loses nothing, and is told which changes stay beside that."""

import os
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.changes.kills import Scene, is_killed
from tests.changes.overlay import previewed
from tests.changes.random_work import RandomWork, has_twin, make_tree
from tests.changes.trees import public_directory
from tests.outside import needs_overlays
from whisper_tui.changes import change_steps, transition
from whisper_tui.changes.change_records import load_state
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.changes.real_paths import LARGE_BYTES, Conflict

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]

NAMES = "f0", "f1", "f2"
CHANGE, EDIT = "line of the call\n", "line of somebody else\n"


class Killed(BaseException):
    """Ends a transition where a kill would."""


def write_in_place(path: Path) -> None:
    with path.open("a") as file:
        file.write(CHANGE)


def replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_text(path.read_text() + CHANGE)
    new.rename(path)


def add_tree(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text(CHANGE)


def rename(path: Path) -> None:
    write_in_place(path)
    path.rename(path.with_name(f"{path.name} renamed"))


def change_all(top: Path, change: Callable[[Path], object]) -> None:
    for name in NAMES:
        change(top / name)


WORKS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "writes in place": ("begin\n", write_in_place),
    "writes a large file": ("begin\n" * (LARGE_BYTES // 6 + 10), write_in_place),
    "replaces": ("begin\n", replace),
    "adds": ("", write_in_place),
    "adds a tree": ("", add_tree),
    "removes": (CHANGE, Path.unlink),
    "renames": ("begin\n", lambda path: path.rename(path.with_name(f"{path.name} renamed"))),
    "changes and renames": ("begin\n", rename),
}


def append_edit(path: Path) -> None:
    with path.open("a") as file:
        file.write(EDIT)


def save_edit(path: Path) -> None:
    new = path.with_name("edited")
    new.write_text(path.read_text() + EDIT)
    new.rename(path)


def files_in(top: Path) -> dict[str, str]:
    return {str(path.relative_to(top)): path.read_text() for path in sorted(top.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("other", [None, pytest.param("/dev/shm", id="other file system")])
@pytest.mark.parametrize("edit", [append_edit, save_edit])
@pytest.mark.parametrize("direction", ["apply", "undo"])
@pytest.mark.parametrize("work", WORKS)
def test_edits_after_a_kill_stay_and_what_stays_beside_them_is_named(monkeypatch, work, direction, edit, other):
    content, change = WORKS[work]
    with public_directory() as place, public_directory(other) as kept:
        top, store = place / "top", kept / "store"
        top.mkdir()
        for name in NAMES if content else ():
            (top / name).write_text(content)
        before = files_in(top)
        previewed(store, top, lambda: change_all(top, change))
        read_changes(str(store))
        if direction == "undo":
            transition.apply(str(store))
        kill_after_first_step(monkeypatch, store, direction)
        edited = sorted(path for path in top.rglob("*") if path.is_file())
        for path in edited:
            edit(path)

        left, problem = set[str](), ""
        try:
            state = transition.resume(str(store)).state
        except Conflict as conflict:
            left, problem = {str(Path(path).relative_to(top)) for path in conflict.left}, str(conflict)
            state = load_state(str(store))["state"]

        found = files_in(top)
        assert sum(text.endswith(EDIT) for text in found.values()) == len(edited)
        without = {name: text.removesuffix(EDIT) for name, text in found.items()}
        differing = {name for name in without.keys() | before.keys() if without.get(name) != before.get(name)}
        if state == "applied" and not problem:
            assert all(CHANGE in text for text in without.values())
        else:
            named = {name for name in differing if any(name == each or name.startswith(f"{each}/") for each in left)}
            # A renamed file that stays is named as it is called now.
            assert differing - named <= {name.removesuffix(" renamed") for name in named}
            assert all(
                name in problem and any(f"{each}/".startswith(f"{name}/") for each in differing) for name in left
            )
        assert not list(top.rglob(".whisper-tui*"))


def kill_after_first_step(monkeypatch: pytest.MonkeyPatch, store: Path, direction: str) -> None:
    """Kill a transition before its second step."""
    name = "make_real" if direction == "apply" else "take_back"
    step, done = getattr(ChangeSteps, name), []

    def killed(self: ChangeSteps, *arguments: object) -> object:
        if done:
            raise Killed
        done.append(True)
        return step(self, *arguments)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(ChangeSteps, name, killed)
        getattr(transition, direction)(str(store))


def test_what_stays_after_a_rollback_is_named_by_each_further_try():
    with public_directory() as place, public_directory() as kept, pytest.MonkeyPatch.context() as monkeypatch:
        top, store = place / "top", kept / "store"
        top.mkdir()
        for name in NAMES:
            (top / name).write_text("begin\n")
        previewed(store, top, lambda: change_all(top, replace))
        read_changes(str(store))
        kill_after_first_step(monkeypatch, store, "apply")
        for name in NAMES[:2]:
            append_edit(top / name)
        for _ in range(2):
            # The supervisor that was told first may be killed before it has recorded that.
            with pytest.raises(Conflict) as raised:
                transition.apply(str(store))
            assert raised.value.left == [str(top / "f0")]
        assert files_in(top) == {"f0": f"begin\n{CHANGE}{EDIT}", "f1": f"begin\n{EDIT}", "f2": "begin\n"}


def files_below(top: Path) -> list[Path]:
    """The files of somebody who does not know of the names that are put beside them for a moment."""
    return [path for path in sorted(top.rglob("*")) if path.is_file() and ".whisper" not in str(path)]


def edit_at_random(top: Path, chance: random.Random, line: str) -> bool:
    """Add a line to a file, save it anew with it, or make a file with it, as far as permissions allow."""
    files = [path for path in files_below(top) if not path.is_symlink()]
    with suppress(OSError):
        path = chance.choice([*files, top / "mine"])
        way = chance.choice(("append", "save", "make"))
        if way == "make" or not path.exists():
            path.with_name(f"mine {line.rsplit(maxsplit=1)[-1]}").write_text(line)
        elif way == "append":
            with path.open("ab") as file:
                file.write(line.encode())
        else:
            new = path.with_name("saved")
            new.write_bytes(path.read_bytes() + line.encode())
            new.rename(path)
        return True
    return False


def lost_edits(seed: int) -> list[str]:
    """Preview a random sequence, kill one direction of it, edit, and finish it. Returns the edits that are gone."""
    chance, work = random.Random(seed), seed + has_twin(seed)
    with public_directory(chance.choice((None, "/dev/shm"))) as place, public_directory() as kept:
        scene = Scene(place, kept, lambda top: make_tree(work, top), RandomWork(work, 10))
        direction = chance.choice((transition.apply, transition.undo))
        if direction is transition.undo:
            transition.apply(scene.store)
        is_killed(chance.randrange(50), lambda: direction(scene.store))
        lines = [f"\nedit {number}\n" for number in range(3)]
        made = [line for line in lines if edit_at_random(scene.top, chance, line)]
        with suppress(Conflict, transition.TransitionFailed):
            transition.resume(scene.store)
        found = [path.read_bytes() for path in files_below(scene.top)]
        return [line for line in made if not any(line.encode() in content for content in found)]


@pytest.mark.parametrize("runs", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_no_edit_after_a_random_kill_of_a_random_sequence_is_lost(monkeypatch, runs):
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)
    seeds = random.SystemRandom().sample(range(10**9), runs)
    assert {seed: lost for seed in seeds if (lost := lost_edits(seed))} == {}


@pytest.mark.parametrize("edit", [append_edit, save_edit])
@pytest.mark.parametrize("work", ["writes in place", "shortens"])
def test_a_file_that_was_about_to_be_written_when_the_kill_came_is_not_named(monkeypatch, work, edit):
    change = write_in_place if work == "writes in place" else lambda path: os.truncate(path, 5)
    with public_directory() as place, public_directory() as kept:
        top, store = place / "top", kept / "store"
        top.mkdir()
        for name in NAMES:
            (top / name).write_text("begin and more\n")
        previewed(store, top, lambda: change_all(top, change))
        read_changes(str(store))

        def killed(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(change_steps, "pour", killed)
            transition.apply(str(store))
        edit(top / "f0")
        with pytest.raises(Conflict, match=r"f0\. Nothing was done"):
            transition.resume(str(store))
        assert set(files_in(top).values()) == {"begin and more\n", f"begin and more\n{EDIT}"}
