"""A preview is applied whole or not at all, exactly as it was seen, and undone exactly; nobody else's work is lost."""

import errno
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes.kills import LARGE, Scene, change_all_kinds, make_all_kinds
from tests.changes.overlay import in_child, previewed
from tests.changes.trees import NOBODY, as_nobody, described, public_directory
from tests.outside import needs_overlays
from whisper_tui.changes import change_steps, real_paths, transition
from whisper_tui.changes.change_records import FileChange, load_results, save_plan
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.file_trees import Stamp
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.changes.real_paths import Conflict, KeptContents, WrittenFile
from whisper_tui.changes.transition import (
    TransitionFailed,
    apply,
    conflicts,
    load_plan,
    resume,
    undo,
    undo_only,
)
from whisper_tui.system import syscalls

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]

SAME, OTHER = "same file system", "other file system"


@pytest.fixture(params=[SAME, OTHER])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """All kinds of changes, previewed with the store on the same and on another file system."""
    with public_directory() as real, public_directory("/dev/shm" if request.param == OTHER else None) as kept:
        yield Scene(real, kept, make_all_kinds, change_all_kinds)


@pytest.fixture
def near() -> Iterator[Scene]:
    """All kinds of changes, with the store on the same file system."""
    with public_directory() as real, public_directory() as kept:
        yield Scene(real, kept, make_all_kinds, change_all_kinds)


def untouched(scene: Scene, act: Callable[[str], object], error: type[Exception], match: str = "") -> Exception:
    """Check that an act raises an error, and changes nothing."""
    before = described(scene.top, inodes=True)
    with pytest.raises(error, match=match) as raised:
        act(scene.store)
    assert described(scene.top, inodes=True) == before
    return raised.value


def test_all_kinds_of_changes_are_applied_undone_and_redone(scene):
    for _ in range(2):
        assert apply(scene.store).state == "applied"
        scene.expect("applied", scene.after, applied=True)
        assert undo(scene.store).state == "undone"
        scene.expect("undone", scene.before, applied=False)


def test_names_of_the_same_file_stay_names_of_the_same_file(scene):
    apply(scene.store)
    top = scene.top
    assert (top / "tree/a/file").samefile(top / "tree/a/b/twin")
    assert (top / "tree/a/file").samefile(top / "outside")
    assert (top / "below/inner").samefile(top / "tree/a/real")
    assert (top / "chmodded").samefile(top / "further")
    assert (top / "below/inner").stat().st_nlink == 2
    undo(scene.store)
    assert (top / "below/inner").stat().st_nlink == 1


def test_the_second_time_nothing_happens(scene):
    apply(scene.store)
    applied = described(scene.top, inodes=True)
    assert apply(scene.store).state == "applied"
    assert resume(scene.store).state == "applied"
    assert described(scene.top, inodes=True) == applied
    undo(scene.store)
    assert undo(scene.store).state == "undone"
    assert resume(scene.store).state == "undone"
    scene.expect("undone", scene.before, applied=False)


def test_without_changes_nothing_waits_for_the_disk(monkeypatch):
    def flush(*_args):
        raise AssertionError("nothing has to survive a power failure")

    with public_directory() as real, public_directory() as kept:
        store = str(kept / "store")
        previewed(Path(store), real, lambda: None)
        monkeypatch.setattr(os, "fsync", flush)
        monkeypatch.setattr(transition, "flush_file_system", flush)
        assert read_changes(store).is_empty
        assert (apply(store).is_empty, undo(store).is_empty, apply(store).is_empty) == (True, True, True)
        with pytest.raises(TransitionFailed, match="not among the changes"):
            undo_only(store, [str(real / "file")])
        os.truncate(f"{store}/plan.json", 0)
        assert load_plan(store).is_empty


def test_what_an_earlier_version_has_applied_is_undone(scene):
    apply(scene.store)
    results = load_results(scene.store)
    whole = [number for number, each in results.items() if each.found is None or each.inside is not None]
    rows = [struct.pack("<IIIIqqqQI", number, *each.found) for number, each in results.items() if number not in whole]
    found = {"alone": b64encode(b"".join(rows)).decode(), "others": [(number, *results[number]) for number in whole]}
    Path(scene.store, "results.json").write_text(json.dumps(found))
    assert load_results(scene.store) == results
    undo(scene.store)
    scene.expect("undone", scene.before, applied=False)


@pytest.mark.parametrize("steps", [0, 4])
def test_an_undo_that_was_interrupted_is_finished_before_all_is_applied_again(scene, monkeypatch, steps):
    apply(scene.store)
    take_back, done = ChangeSteps.take_back, []

    def interrupted(self: ChangeSteps, number: int, change: FileChange, result: Stamp | None) -> Stamp | None:
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(number)
        return take_back(self, number, change, result)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ChangeSteps, "take_back", interrupted)
        undo(scene.store)
    assert load_plan(scene.store).state == "undoing"
    assert apply(scene.store).state == "applied"
    scene.expect("applied", scene.after, applied=True)
    undo(scene.store)
    scene.expect("undone", scene.before, applied=False)


def test_changes_that_were_not_applied_cannot_be_undone(near):
    assert undo(near.store).state == "previewed"
    assert resume(near.store).state == "previewed"
    near.expect("previewed", near.before, applied=False)
    untouched(near, lambda store: undo_only(store, [str(near.top)]), TransitionFailed, "not applied")


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_applies_and_undoes_all_kinds_of_changes():
    for memory in (None, "/dev/shm"):
        with public_directory() as real, public_directory(memory) as kept:
            for path in (real, kept):
                os.chown(path, NOBODY, NOBODY)
            with as_nobody() as status:
                if status.child:
                    scene = Scene(real, kept, make_all_kinds, change_all_kinds)
                    apply(scene.store)
                    scene.expect("applied", scene.after, applied=True)
                    undo(scene.store)
                    scene.expect("undone", scene.before, applied=False)
            assert status.code == 0


# Conflicts


def replace_directory(top: Path) -> None:
    (top / "below").rename(top / "elsewhere")
    (top / "below").mkdir()
    shutil.copytree(top / "elsewhere", top / "below", dirs_exist_ok=True)


def to_soft_link(top: Path) -> None:
    (top / "below").rename(top / "elsewhere")
    (top / "below").symlink_to("elsewhere")


def rewrite_at_the_same_time(path: Path) -> None:
    """Change a file so that its size and modification time stay the same."""
    found = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


RENAMED = "below/with another name"

BEFORE_APPLY: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file to write is written": (lambda top: (top / "written").write_text("other"), "written"),
    "a file to write is changed behind its times": (lambda top: rewrite_at_the_same_time(top / "written"), "written"),
    "a file to write is gone": (lambda top: (top / "written").unlink(), "written"),
    "a file to write is another": (lambda top: shutil.move(top / "removed", top / "written"), "written"),
    "a file to replace is written": (lambda top: (top / "replaced").write_text("other"), "replaced"),
    "a file to replace is a link": (
        lambda top: ((top / "replaced").unlink(), (top / "replaced").symlink_to("x")),
        "replaced",
    ),
    "a file to remove is written": (lambda top: (top / "removed").write_text("other"), "removed"),
    "a file to remove is gone": (lambda top: (top / "removed").unlink(), "removed"),
    "a file to rename is changed behind its times": (lambda top: rewrite_at_the_same_time(top / "renamed"), "renamed"),
    "a file to rename is gone": (lambda top: (top / "renamed").unlink(), "renamed"),
    "the new name of a file is taken": (lambda top: (top / RENAMED).touch(), RENAMED),
    "a file to change has another mode": (lambda top: (top / "chmodded").chmod(0o777), "chmodded"),
    "a file to change has another attribute": (lambda top: os.setxattr(top / "chmodded", "user.x", b""), "chmodded"),
    "a file to change has a further name": (lambda top: os.link(top / "chmodded", top / "y"), "chmodded"),
    "a new name is taken": (lambda top: (top / "tree").mkdir(), "tree"),
    "a new name is a broken link": (lambda top: (top / "tree").symlink_to("nowhere"), "tree"),
    "a new link is taken": (lambda top: (top / "further").touch(), "further"),
    "a new name beside others is taken": (lambda top: (top / "anew" / "new").touch(), "anew/new"),
    "a directory to remove has a new file": (lambda top: (top / "becomes_file" / "more").touch(), "becomes_file/more"),
    "a file in a directory to remove is written": (
        lambda top: (top / "becomes_file" / "inside").write_text("x"),
        "becomes_file/inside",
    ),
    "a file in a directory to remove is gone": (
        lambda top: (top / "becomes_file" / "inside").unlink(),
        "becomes_file/inside",
    ),
    "a parent is another directory": (replace_directory, "below"),
    "a parent is a symbolic link": (to_soft_link, "below"),
    "a directory has another mode": (lambda top: (top / "shut").chmod(0o700), "shut"),
    "the target of a new link is written": (lambda top: (top / "below" / "inner").write_text("x"), "below/inner"),
}


@pytest.mark.parametrize("case", BEFORE_APPLY)
def test_nothing_is_applied_over_changes_of_somebody_else(near, case):
    change, path = BEFORE_APPLY[case]
    change(near.top)
    assert str(near.top / path) in conflicts(near.store, load_plan(near.store))
    error = untouched(near, apply, Conflict, "Nothing was done")
    assert isinstance(error, Conflict)
    assert str(near.top / path) in error.paths
    assert load_plan(near.store).state == "previewed"


def add_to(directory: Path) -> None:
    """Make a file in a directory, also in one that its owner may not write."""
    mode = directory.stat().st_mode
    directory.chmod(0o700)
    (directory / "more").touch()
    directory.chmod(stat.S_IMODE(mode))


BEFORE_UNDO: dict[str, tuple[Callable[[Path], object], str]] = {
    "a written file is written again": (lambda top: (top / "written").write_text("other"), "written"),
    "a replaced file is gone": (lambda top: (top / "replaced").unlink(), "replaced"),
    "a changed file has another mode": (lambda top: (top / "chmodded").chmod(0o777), "chmodded"),
    "a removed file is there again": (lambda top: (top / "removed").write_text("again"), "removed"),
    "a renamed file is written": (lambda top: (top / RENAMED).write_text("other"), RENAMED),
    "the old name of a file is taken": (lambda top: (top / "renamed").touch(), "renamed"),
    "a new directory has a new file": (lambda top: add_to(top / "tree"), "tree/more"),
    "a file in a new directory is written": (lambda top: (top / "tree" / "a" / "file").write_text("x"), "tree/a/file"),
    "a new name is another file": (lambda top: ((top / "further").unlink(), (top / "further").touch()), "further"),
    "a parent is a symbolic link": (to_soft_link, "below"),
}


@pytest.mark.parametrize("case", BEFORE_UNDO)
def test_nothing_is_undone_over_later_work(near, case):
    change, path = BEFORE_UNDO[case]
    apply(near.store)
    change(near.top)
    error = untouched(near, undo, Conflict, "Nothing was done")
    assert isinstance(error, Conflict)
    assert str(near.top / path) in error.paths
    assert load_plan(near.store).state == "applied"


def test_other_files_of_the_same_directories_may_change(scene):
    (scene.top / "mine").write_text("mine")
    changed = scene.top.stat().st_mtime_ns
    apply(scene.store)
    assert scene.top.stat().st_mtime_ns > changed
    (scene.top / "below" / "mine").write_text("mine")
    undo(scene.store)
    for path in (scene.top / "mine", scene.top / "below" / "mine"):
        path.unlink()
    found = {name: row for name, row in scene.described().items() if name not in (".", "below")}
    assert found == {name: row for name, row in scene.before.items() if name not in (".", "below")}


def test_a_plan_that_is_a_conflict_from_the_start_is_never_applied(near):
    plan = load_plan(near.store)
    save_plan(near.store, plan._replace(meanwhile=(f"{near.top}/elsewhere",)))
    assert conflicts(near.store, load_plan(near.store)) == [f"{near.top}/elsewhere"]
    untouched(near, apply, Conflict, "elsewhere")


# Steps that fail


class Failing:
    """Makes the nth changing call fail, as on a full disk, and no other."""

    def __init__(self, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = calls
        for module, name in (
            *((os, name) for name in ("rename", "link", "mkdir", "unlink", "utime", "chmod", "setxattr", "ftruncate")),
            (syscalls, "call"),
        ):
            monkeypatch.setattr(module, name, self._failing(getattr(module, name)))

    def _failing(self, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            self.left -= 1
            if self.left == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
            return function(*arguments, **named)

        return call


@pytest.mark.parametrize(
    "remainder", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("other", [None, pytest.param("/dev/shm", marks=pytest.mark.slow)])
def test_after_any_step_that_fails_all_or_nothing_is_real(monkeypatch, other, remainder):
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)
    calls = remainder
    while True:
        with public_directory() as real, public_directory(other) as kept:
            scene = Scene(real, kept, make_all_kinds, change_all_kinds)
            with monkeypatch.context() as patch:
                failing = Failing(calls, patch)
                try:
                    apply(scene.store)
                except TransitionFailed as error:
                    # Where a directory could not be opened for a step, an ordinary user is refused the step itself.
                    assert "No space left" in str(error) or (os.geteuid() and "Permission denied" in str(error))
                    if "Nothing was changed" in str(error):
                        scene.expect(load_plan(scene.store).state, scene.before, applied=False)
            state = resume(scene.store).state
            if state == "applied":
                scene.expect("applied", scene.after, applied=True)
            else:
                scene.expect(state, scene.before, applied=False)
                apply(scene.store)
                scene.expect("applied", scene.after, applied=True)
            undo(scene.store)
            scene.expect("undone", scene.before, applied=False)
            if failing.left >= 0:
                return
        calls += 3


@pytest.mark.parametrize(
    "remainder", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("other", [None, pytest.param("/dev/shm", marks=pytest.mark.slow)])
def test_after_any_step_of_an_undo_that_fails_all_stays_applied_and_nothing_is_left_beside(
    monkeypatch, other, remainder
):
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)
    calls, restored = remainder, 0
    while True:
        with public_directory() as real, public_directory(other) as kept:
            scene = Scene(real, kept, make_all_kinds, change_all_kinds)
            apply(scene.store)
            with monkeypatch.context() as patch:
                failing = Failing(calls, patch)
                try:
                    undo(scene.store)
                except TransitionFailed as error:
                    assert "No space left" in str(error) or (os.geteuid() and "Permission denied" in str(error))
                    if load_plan(scene.store).state != "undone":
                        scene.expect("applied", scene.after, applied=True)
                        restored += "Nothing was changed" in str(error)
            undo(scene.store)
            scene.expect("undone", scene.before, applied=False)
            apply(scene.store)
            scene.expect("applied", scene.after, applied=True)
            undo(scene.store)
            scene.expect("undone", scene.before, applied=False)
            if failing.left >= 0:
                assert restored > 5
                return
        calls += 7


def test_a_part_of_an_undo_that_fails_leaves_what_was_taken_back_before(scene, monkeypatch):
    apply(scene.store)
    undo_only(scene.store, [str(scene.top / "written")])
    between = described(scene.top)
    take_back, done = ChangeSteps.take_back, []

    def full(self: ChangeSteps, number: int, change: FileChange, result: Stamp | None) -> Stamp | None:
        done.append(number)
        if len(done) == 6:
            raise OSError(errno.ENOSPC, "No space left on device", change.path)
        return take_back(self, number, change, result)

    with monkeypatch.context() as patched:
        patched.setattr(ChangeSteps, "take_back", full)
        with pytest.raises(TransitionFailed, match=r"No space left on device\. Nothing was changed"):
            undo(scene.store)
    assert described(scene.top) == between and load_plan(scene.store).state == "applied"
    undo(scene.store)
    scene.expect("undone", scene.before, applied=False)


def test_a_failed_step_says_what_failed_and_that_nothing_was_changed(near, monkeypatch):
    pour = change_steps.pour

    def full(source: str, target: int) -> None:
        monkeypatch.setattr(change_steps, "pour", pour)
        raise OSError(errno.ENOSPC, "No space left on device", "/some/file")

    monkeypatch.setattr(change_steps, "pour", full)
    with pytest.raises(TransitionFailed, match=r"^/some/file: No space left on device\. Nothing was changed"):
        apply(near.store)
    near.expect("undone", near.before, applied=False)


def test_a_store_without_a_plan_is_named(tmp_path):
    with pytest.raises(TransitionFailed, match=r"plan\.json: No such file"):
        apply(str(tmp_path))


# Symbolic links put in the way during the transition


def make_two(top: Path) -> None:
    for directory in ("below", "elsewhere"):
        (top / directory).mkdir(parents=True)
        for file in ("written", "gone", "replaced", "changed"):
            (top / directory / file).write_text(directory)


def change_below() -> None:
    Path("below/new").write_text("new")
    with open("below/written", "a") as file:
        file.write("more")
    os.unlink("below/gone")
    Path("below/other").write_text("other")
    os.rename("below/other", "below/replaced")
    os.chmod("below/changed", 0o777)


@pytest.mark.parametrize("other", [None, "/dev/shm"])
@pytest.mark.parametrize("when", ["checks", "new", "written", "gone", "replaced", "changed"])
def test_a_parent_that_becomes_a_symbolic_link_redirects_nothing(monkeypatch, other, when):
    with public_directory() as real, public_directory(other) as kept:
        scene = Scene(real, kept, make_two, change_below)
        elsewhere = described(scene.top / "elsewhere", inodes=True)
        began, make_real = transition._begin_apply, ChangeSteps.make_real

        def swap() -> None:
            (scene.top / "below").rename(scene.top / "was_below")
            (scene.top / "below").symlink_to("elsewhere")

        def begin(*arguments: Any) -> None:
            began(*arguments)
            if when == "checks":
                swap()

        def step(self: ChangeSteps, number: int, change: FileChange) -> None:
            if change.path == str(scene.top / "below" / when):
                swap()
            make_real(self, number, change)

        monkeypatch.setattr(transition, "_begin_apply", begin)
        monkeypatch.setattr(ChangeSteps, "make_real", step)
        if when == "checks":
            with pytest.raises(TransitionFailed, match="Too many levels of symbolic links"):
                apply(scene.store)
            assert not (scene.top / "was_below" / "new").exists()
        else:
            # The directory that was checked stays open, and is the one that changes.
            apply(scene.store)
            assert (scene.top / "was_below" / "new").read_text() == "new"
            assert not (scene.top / "was_below" / "gone").exists()
        assert described(scene.top / "elsewhere", inodes=True) == elsewhere


def test_another_directory_in_place_of_a_parent_is_a_conflict(near, monkeypatch):
    began = transition._begin_apply

    def begin(*arguments: Any) -> None:
        began(*arguments)
        (near.top / "below").rename(near.top / "was_below")
        shutil.copytree(near.top / "was_below", near.top / "below", symlinks=True)

    monkeypatch.setattr(transition, "_begin_apply", begin)
    with pytest.raises(Conflict) as raised:
        apply(near.store)
    assert raised.value.paths == [str(near.top / "below")]
    assert (near.top / "below" / "inner").exists()
    assert (near.top / "removed").exists()


def to_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("mine")


def to_other(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.write_text("other")


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("become", [to_link, to_other, to_fifo, Path.unlink])
@pytest.mark.parametrize("direction", [apply, undo])
def test_what_takes_the_place_of_a_file_just_before_it_is_written_is_not_written(near, monkeypatch, become, direction):
    (near.top / "mine").write_text("mine")
    written = near.top / "written"
    if direction is undo:
        apply(near.store)
    open_file, swapped = real_paths.open_file, []

    def opened(path: str, flags: int, directory: int | None = None) -> int:
        if path == "written" and flags & os.O_RDWR and not swapped:
            become(written)
            swapped.append(described(near.top, inodes=True))
        return open_file(path, flags, directory)

    monkeypatch.setattr(real_paths, "open_file", opened)
    with pytest.raises(Conflict, match="written"):
        direction(near.store)
    found = described(near.top, inodes=True)
    assert all(found.get(name) == swapped[0].get(name) for name in ("written", "mine", "moved"))
    assert (near.top / "mine").read_text() == "mine"


@pytest.mark.parametrize("direction", [apply, undo])
def test_what_takes_the_place_of_a_file_just_before_it_is_renamed_gets_its_name_back(near, monkeypatch, direction):
    if direction is undo:
        apply(near.store)
    old = near.top / ("renamed" if direction is apply else RENAMED)
    real_rename = change_steps.rename

    def rename(source: syscalls.Place, target: syscalls.Place, flags: int) -> None:
        if source[1] == old.name and not old.with_name("moved").exists():
            to_other(old)
        real_rename(source, target, flags)

    monkeypatch.setattr(change_steps, "rename", rename)
    with pytest.raises(Conflict, match=old.name):
        direction(near.store)
    assert old.read_text() == "other"
    assert old.with_name("moved").read_text() == "old renamed\n" * 10


def test_what_takes_the_new_name_of_a_file_just_before_it_is_renamed_stays(near, monkeypatch):
    real_rename = change_steps.rename

    def rename(source: syscalls.Place, target: syscalls.Place, flags: int) -> None:
        if source[1] == "renamed":
            (near.top / RENAMED).write_text("mine")
        real_rename(source, target, flags)

    monkeypatch.setattr(change_steps, "rename", rename)
    with pytest.raises(Conflict, match="with another name"):
        apply(near.store)
    assert (near.top / RENAMED).read_text() == "mine"
    assert (near.top / "renamed").read_text() == "old renamed\n" * 10


def test_what_takes_the_name_of_a_deleted_file_while_it_is_restored_stays_until_both_can_be_kept(scene, monkeypatch):
    apply(scene.store)
    gone = scene.top / "removed"
    begin_undo = transition._begin_undo

    def begin(*arguments: Any) -> None:
        begin_undo(*arguments)
        gone.write_text("mine")

    with monkeypatch.context() as patched:
        patched.setattr(transition, "_begin_undo", begin)
        with pytest.raises(Conflict, match=r"What was done to \S+/removed stays"):
            undo(scene.store)
    assert gone.read_text() == "mine"
    gone.unlink()
    assert undo(scene.store).state == "undone"
    # Somebody else has changed the entries of the directory itself.
    assert scene.described() | {".": ()} == scene.before | {".": ()}


def just_before_the_first_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have somebody act after the check of all files, before the first of them is changed."""
    begin_apply = transition._begin_apply

    def begin(*arguments: Any) -> None:
        begin_apply(*arguments)
        act()

    monkeypatch.setattr(transition, "_begin_apply", begin)


def test_what_takes_the_place_of_a_file_just_before_it_is_replaced_stays(scene, monkeypatch):
    just_before_the_first_step(monkeypatch, lambda: to_other(scene.top / "replaced"))
    with pytest.raises(Conflict, match="replaced"):
        apply(scene.store)
    assert (scene.top / "replaced").read_text() == "other"
    assert (scene.top / "moved").read_text() == "old replaced\n" * 10
    assert (scene.top / "written").read_text() == "old written\n" * 10


def add_to_file(path: Path) -> None:
    with path.open("a") as file:
        file.write("mine\n")


@pytest.mark.parametrize("name", ["written", "replaced", "removed"])
def test_what_is_added_to_a_file_just_before_its_step_stays(scene, monkeypatch, name):
    just_before_the_first_step(monkeypatch, lambda: add_to_file(scene.top / name))
    with pytest.raises(Conflict, match=name):
        apply(scene.store)
    assert (scene.top / name).read_text().endswith("mine\n")
    others = [path for path in ("written", "replaced", "removed") if path != name]
    assert not any("mine" in (scene.top / path).read_text() for path in others)
    assert all((scene.top / path).read_text().startswith("old ") for path in others)


def test_who_waits_to_open_a_file_while_it_is_replaced_loses_nothing(near, monkeypatch):
    path, exchange, writers = near.top / "replaced", change_steps.exchange, []

    def exchanged(one: syscalls.Place, other: syscalls.Place) -> None:
        if one[1] == "replaced" and not writers:
            writers.append(subprocess.Popen(["/bin/sh", "-c", 'echo mine >> "$0"', path]))
            deadline = time.monotonic() + 30
            while not re.search(r"LEASE +BREAKING", Path("/proc/locks").read_text()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        exchange(one, other)

    monkeypatch.setattr(change_steps, "exchange", exchanged)
    with pytest.raises(Conflict, match="replaced"):
        apply(near.store)
    assert writers[0].wait(60) == 0
    assert path.read_text() == "old replaced\n" * 10 + "mine\n"


@pytest.mark.parametrize("name", ["written", "replaced"])
def test_what_somebody_is_just_adding_to_a_file_is_waited_for_and_stays(near, monkeypatch, name):
    path, opened = near.top / name, threading.Event()
    monkeypatch.setattr(real_paths, "OTHERS_CLOSE_S", 60.0)
    begin_apply = transition._begin_apply

    def add() -> None:
        with path.open("a") as file:
            opened.set()
            # Until the apply has looked at the file and found it open.
            assert tried.wait(60)
            file.write("mine\n")

    tried, sleep = threading.Event(), time.sleep

    def slept(seconds: float) -> None:
        tried.set()
        sleep(seconds)

    adding = threading.Thread(target=add)

    def begun(*arguments: Any) -> None:
        begin_apply(*arguments)
        adding.start()
        assert opened.wait(60)

    monkeypatch.setattr(real_paths.time, "sleep", slept)
    monkeypatch.setattr(transition, "_begin_apply", begun)
    with pytest.raises(Conflict, match=name):
        apply(near.store)
    adding.join()
    assert path.read_text() == f"old {name}\n" * 10 + "mine\n"


@pytest.mark.parametrize(("direction", "first"), [(apply, ""), (undo, "old ")])
def test_what_is_added_after_a_kill_to_a_file_that_was_written_stays(near, monkeypatch, direction, first):
    class Killed(BaseException):
        pass

    if direction is undo:
        apply(near.store)
    path, done = near.top / "written", WrittenFile.__exit__

    def killed(self: WrittenFile, *raised: Any) -> None:
        done(self, *raised)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(WrittenFile, "__exit__", killed)
        with pytest.raises(Killed):
            direction(near.store)
    made = path.read_text()
    add_to_file(path)
    state = resume(near.store).state
    assert path.read_text() == made + "mine\n" and made.startswith(first)
    assert state == ("applied" if direction is apply else "undone")


def test_what_is_added_after_a_kill_to_a_file_that_was_not_written_yet_takes_the_rest_back(near, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(self: WrittenFile) -> None:
        self.__exit__(None, None, None)  # its end closes the file; a lease that stays delays the next writer for 45 s
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(WrittenFile, "__enter__", killed)
        with pytest.raises(Killed):
            apply(near.store)
    add_to_file(near.top / "written")
    with pytest.raises(Conflict, match="written"):
        resume(near.store)
    assert (near.top / "written").read_text() == "old written\n" * 10 + "mine\n"
    assert all((near.top / name).read_text().startswith("old ") for name in ("replaced", "removed"))


def test_what_is_written_meanwhile_to_files_of_later_steps_stays_when_a_step_fails(scene, monkeypatch):
    paths = [change.path for change in load_plan(scene.store).changes]
    later = [name for name in ("replaced", "large", "chmodded", "becomes_directory") if (scene.top / name).exists()]
    first = min(paths.index(str(scene.top / name)) for name in later)

    def full(steps: ChangeSteps, number: int, change: FileChange) -> None:
        if number < first:
            make_real(steps, number, change)
            return
        for name in later:
            with (scene.top / name).open("a") as file:
                file.write("mine\n")
            (scene.top / name).chmod(0o600)
        raise OSError(errno.ENOSPC, "No space left on device", change.path)

    make_real = ChangeSteps.make_real
    monkeypatch.setattr(ChangeSteps, "make_real", full)
    with pytest.raises(TransitionFailed, match="Nothing was changed"):
        apply(scene.store)
    for name in later:
        found = (scene.top / name).stat()
        assert (scene.top / name).read_text().endswith("mine\n"), name
        assert stat.S_IMODE(found.st_mode) == 0o600, name


def test_a_file_that_is_written_just_before_it_is_renamed_is_a_conflict(near, monkeypatch):
    just_before_the_first_step(monkeypatch, lambda: rewrite_at_the_same_time(near.top / "renamed"))
    with pytest.raises(Conflict) as raised:
        apply(near.store)
    assert raised.value.paths == [str(near.top / "renamed")]


def test_a_renamed_file_stays_the_same_file_and_both_its_names_take_it_back(scene):
    inode = (scene.top / "renamed").stat().st_ino
    for name in ("renamed", RENAMED):
        apply(scene.store)
        assert (scene.top / RENAMED).stat().st_ino == inode
        undo_only(scene.store, [str(scene.top / name)])
        assert (scene.top / "renamed").stat().st_ino == inode
        assert not (scene.top / RENAMED).exists()
        undo(scene.store)
    scene.expect("undone", scene.before, applied=False)


# Files that are written in place


def test_small_old_contents_lie_in_one_file_of_the_store(scene):
    apply(scene.store)
    kept = Path(scene.store, "kept")
    assert (kept / "contents").read_text() == "old written\n" * 10
    numbers = [
        number for number, change in enumerate(load_plan(scene.store).changes) if change.path.endswith("/written")
    ]
    assert KeptContents(scene.store).content(numbers[0]) == b"old written\n" * 10


def test_a_file_that_grows_after_the_check_is_not_overwritten(near, monkeypatch):
    begin = transition._begin_apply

    def grown(*arguments: Any) -> None:
        with (near.top / "written").open("a") as file:
            file.write("mine\n")
        begin(*arguments)

    monkeypatch.setattr(transition, "_begin_apply", grown)
    with pytest.raises(TransitionFailed, match=r"it changes just now\. Nothing was changed"):
        apply(near.store)
    assert (near.top / "written").read_text().endswith("mine\n")
    assert (near.top / "removed").exists() and load_plan(near.store).state == "previewed"


def make_many(top: Path) -> None:
    top.mkdir()
    for number in range(300):
        (top / f"f{number}").write_text(f"{number}\n")


def remove_many() -> None:
    for number in range(300):
        os.unlink(f"f{number}")


@pytest.mark.parametrize("is_old_layout", [False, True])
def test_hundreds_of_removed_files_are_restored_also_from_the_layout_of_earlier_versions(is_old_layout):
    with public_directory() as real, public_directory() as kept:
        scene = Scene(real, kept, make_many, remove_many)
        apply(scene.store)
        directory = Path(scene.store, "kept")
        moved = sorted(path for path in directory.rglob("*") if path.is_file() and path.parent != directory)
        assert {path.parent.name for path in moved} == {"0", "1"} and len(moved) == 300
        if is_old_layout:
            shutil.move(directory / "groups", real / "groups")
            for path in moved:
                (real / path.relative_to(directory)).rename(directory / path.name)
        undo(scene.store)
        scene.expect("undone", scene.before, applied=False)
        apply(scene.store)
        scene.expect("applied", scene.after, applied=True)


def test_an_old_content_of_which_the_end_is_lost_replaces_nothing(near):
    apply(near.store)
    contents = Path(near.store, "kept", "contents")
    os.truncate(contents, contents.stat().st_size - 1)
    with pytest.raises(TransitionFailed, match="shorter than when it was written"):
        undo(near.store)
    assert (near.top / "written").read_text().endswith("more\n")


def test_a_reader_of_a_written_file_sees_the_new_content_and_the_old_again(scene):
    with (scene.top / "written").open() as reader, (scene.top / "large").open() as large:
        apply(scene.store)
        assert reader.read().endswith("more\n")
        large.seek(LARGE)
        assert large.read() == "more\n"
        undo(scene.store)
        reader.seek(0)
        assert "more" not in reader.read()


def test_a_large_file_is_exchanged_unless_somebody_has_it_open(near):
    before = (near.top / "large").stat().st_ino
    apply(near.store)
    assert (near.top / "large").stat().st_ino != before
    undo(near.store)
    assert (near.top / "large").stat().st_ino == before
    with (near.top / "large").open():
        apply(near.store)
    assert (near.top / "large").stat().st_ino == before


# Undo of chosen paths


def test_chosen_paths_are_undone_and_the_rest_stays_applied(scene):
    apply(scene.store)
    top = scene.top
    plan = undo_only(scene.store, [str(top / name) for name in ("written", "removed", "further", "anew")])
    assert plan.state == "applied"
    assert plan.undone == load_plan(scene.store).undone
    found = described(top)
    for name in ("written", "removed"):
        assert found[name][:6] == scene.before[name][:6]
    assert "further" not in found
    assert set(os.listdir(top / "anew")) == {"old"}
    assert stat.S_IMODE((top / "anew").stat().st_mode) == 0o755
    for name in ("replaced", "tree/a/file", "shut", "chmodded"):
        assert found[name][:5] == scene.after[name][:5]
    assert apply(scene.store).state == "applied"
    assert undo(scene.store).state == "undone"
    scene.expect("undone", scene.before, applied=False)
    apply(scene.store)
    scene.expect("applied", scene.after, applied=True)


def test_all_paths_undone_one_by_one_are_an_undo(scene):
    apply(scene.store)
    plan = load_plan(scene.store)
    for change in sorted(plan.changes, key=lambda change: change.op != "link"):
        present = load_plan(scene.store)
        if present.state == "applied" and change.path not in {plan.changes[number].path for number in present.undone}:
            undo_only(scene.store, [change.path])
    scene.expect("undone", scene.before, applied=False)


def test_a_part_of_a_new_directory_is_not_undone_alone(near):
    apply(near.store)
    untouched(near, lambda store: undo_only(store, [str(near.top / "tree/a/file")]), TransitionFailed, "as a whole")


def test_a_path_that_did_not_change_is_not_undone(near):
    apply(near.store)
    untouched(
        near, lambda store: undo_only(store, [str(near.top / "missing")]), TransitionFailed, "not among the changes"
    )


def test_a_file_is_not_undone_without_its_further_names(near):
    apply(near.store)
    untouched(near, lambda store: undo_only(store, [str(near.top / "chmodded")]), TransitionFailed, "further name")
    undo_only(near.store, [str(near.top / "chmodded"), str(near.top / "further")])
    assert described(near.top)["chmodded"][:6] == near.before["chmodded"][:6]


def test_names_that_a_file_had_before_are_undone_together():
    def make(top: Path) -> None:
        top.mkdir()
        (top / "one").write_text("one")
        os.link(top / "one", top / "two")

    def work() -> None:
        os.chmod("one", 0o700)
        os.chmod("two", 0o711)

    with public_directory() as real, public_directory() as kept:
        scene = Scene(real, kept, make, work)
        apply(scene.store)
        paths = [str(scene.top / name) for name in ("one", "two")]
        for path in paths:
            untouched(scene, lambda store, path=path: undo_only(store, [path]), TransitionFailed, "further name")
        undo_only(scene.store, paths)
        scene.expect("undone", scene.before, applied=False)


def test_later_work_prevents_only_the_undo_of_the_same_path(near):
    apply(near.store)
    (near.top / "written").write_text("later")
    undo_only(near.store, [str(near.top / "removed")])
    assert (near.top / "removed").exists()
    untouched(near, lambda store: undo_only(store, [str(near.top / "written")]), Conflict, "written")
    untouched(near, undo, Conflict, "written")


def test_two_transitions_at_the_same_time_follow_each_other(near):
    plans = []
    threads = [threading.Thread(target=lambda: plans.append(in_child(lambda: apply(near.store)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [plan.state for plan in plans] == ["applied"] * 3
    near.expect("applied", near.after, applied=True)
