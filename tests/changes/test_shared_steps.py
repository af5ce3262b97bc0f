"""Two processes make a large transition as one does: all or nothing, whatever fails and whoever is killed."""

import errno
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes import kills, random_runs
from tests.changes.kills import Scene, change_all_kinds, make_all_kinds
from tests.changes.shared import everything_shared
from tests.changes.trees import described, public_directory
from tests.outside import EXHAUSTIVE, needs_overlays
from whisper_tui.changes import transition
from whisper_tui.changes.change_records import ADD, DELETE, LINK, MOVE, WRITE, FileChange
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.file_trees import Stamp
from whisper_tui.changes.real_paths import Conflict
from whisper_tui.changes.shared_steps import SecondProcess, steps_in_order
from whisper_tui.changes.transition import TransitionFailed, apply, conflicts, load_plan, undo

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]

FILES = 40


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every transition has a second process; the disks of the tests need not survive a power cut."""
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)
    with everything_shared():
        yield


def make_files(top: Path) -> None:
    top.mkdir()
    for number in range(FILES):
        (top / f"{number:02}").write_text(f"old {number}\n")


def change_files() -> None:
    """Write, replace, rename and remove files in turn, and add others."""
    for number in range(FILES):
        name = f"{number:02}"
        if number % 4 == 0:
            with open(name, "a") as file:
                file.write("more\n")
        elif number % 4 == 1:
            Path("new~").write_text("new\n")
            os.rename("new~", name)
        elif number % 4 == 2:
            os.rename(name, f"renamed {name}")
        else:
            os.unlink(name)
            Path(f"added {name}").write_text("added\n")


@pytest.fixture(params=[None, "/dev/shm"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Changes of single files, previewed with the store on the same and on another file system."""
    with public_directory() as real, public_directory(request.param) as kept:
        yield Scene(real, kept, make_files, change_files)


def steps_there(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the changes that the second process is given from now on."""
    given: list[int] = []
    give = SecondProcess.give

    def noted(self: SecondProcess, job: str, part: list[int]) -> None:
        if job == "step":
            given.extend(part)
        give(self, job, part)

    monkeypatch.setattr(SecondProcess, "give", noted)
    return given


def test_both_make_steps_and_the_result_is_that_of_one(scene, monkeypatch):
    given = steps_there(monkeypatch)
    for _ in range(2):
        apply(scene.store)
        scene.expect("applied", scene.after, applied=True)
        undo(scene.store)
        scene.expect("undone", scene.before, applied=False)
    assert 0 < len(given) < 4 * len(load_plan(scene.store).changes)


def test_changes_of_all_kinds_are_made_in_their_order():
    with public_directory() as real, public_directory() as kept:
        scene = Scene(real, kept, make_all_kinds, change_all_kinds)
        for _ in range(2):
            apply(scene.store)
            scene.expect("applied", scene.after, applied=True)
            undo(scene.store)
            scene.expect("undone", scene.before, applied=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_random_sequences_are_applied_and_undone_exactly():
    assert random_runs.failures(200 if EXHAUSTIVE else 20) == []


def test_what_others_changed_is_found_in_any_part(scene):
    named = [str(scene.top / f"{number:02}") for number in range(0, FILES, 4)]
    for path in named:
        with open(path, "a") as file:
            file.write("mine\n")
    before = described(scene.top, inodes=True)
    with pytest.raises(Conflict) as raised:
        apply(scene.store)
    assert sorted(raised.value.paths) == named
    assert raised.value.paths == conflicts(scene.store, load_plan(scene.store))
    assert described(scene.top, inodes=True) == before


def test_later_work_is_found_before_an_undo(scene):
    apply(scene.store)
    named = [str(scene.top / f"added {number:02}") for number in range(3, FILES, 4)]
    for path in named:
        with open(path, "a") as file:
            file.write("mine\n")
    with pytest.raises(Conflict) as raised:
        undo(scene.store)
    assert sorted(raised.value.paths) == named


@pytest.mark.parametrize(
    ("direction", "job"),
    [("apply", "check"), ("apply", "keep"), ("apply", "step"), ("undo", "check"), ("undo", "step")],
)
@pytest.mark.few(3)
def test_the_part_of_a_second_process_that_is_killed_is_done_here(scene, monkeypatch, direction, job):
    if direction == "undo":
        apply(scene.store)
    give, killed = SecondProcess.give, []

    def killing(self: SecondProcess, said: str, part: list[int]) -> None:
        give(self, said, part)
        if said == job and not killed:
            killed.append(part)
            self._process.send_signal(signal.SIGKILL)

    monkeypatch.setattr(SecondProcess, "give", killing)
    (apply if direction == "apply" else undo)(scene.store)
    assert killed
    if direction == "apply":
        scene.expect("applied", scene.after, applied=True)
        undo(scene.store)
    scene.expect("undone", scene.before, applied=False)


@pytest.mark.parametrize("other", [None, "/dev/shm"])
def test_names_of_one_file_stay_together_when_the_second_process_is_killed_between_them(monkeypatch, other):
    def change() -> None:
        Path("one").write_text("one file\n")
        for number in range(8):
            Path(f"single {number}").write_text("alone\n")
        os.link("one", "two")

    give = SecondProcess.give

    def killing(self: SecondProcess, said: str, part: list[int]) -> None:
        give(self, said, part)
        if said == "step":
            self._process.kill()

    monkeypatch.setattr(SecondProcess, "give", killing)
    with public_directory() as real, public_directory(other) as kept:
        scene = Scene(real, kept, make_files, change)
        apply(scene.store)
        assert (scene.top / "one").samefile(scene.top / "two")
        scene.expect("applied", scene.after, applied=True)


def test_without_a_second_process_everything_is_done_here(scene, monkeypatch):
    monkeypatch.setattr(SecondProcess, "start", lambda *_, **__: None)
    apply(scene.store)
    scene.expect("applied", scene.after, applied=True)


def occupied_just_before_the_steps(scene: Scene, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let somebody else take the name of a new file between the checks and the first step."""
    begin = transition._begin_apply

    def occupied(*arguments: Any) -> None:
        begin(*arguments)
        (scene.top / name).write_text("mine\n")

    monkeypatch.setattr(transition, "_begin_apply", occupied)


@pytest.mark.parametrize("position", [0, -1])
def test_a_step_that_fails_on_either_side_takes_all_others_back(scene, monkeypatch, position):
    # The first process begins with the first changes, the second one with the last.
    added = [Path(change.path).name for change in load_plan(scene.store).changes if change.op == ADD]
    occupied_just_before_the_steps(scene, monkeypatch, added[position])
    with pytest.raises(Conflict) as raised:
        apply(scene.store)
    assert raised.value.paths == [str(scene.top / added[position])]
    assert (scene.top / added[position]).read_text() == "mine\n"
    (scene.top / added[position]).unlink()
    os.utime(scene.top, ns=(0, scene.top.stat().st_mtime_ns))
    found, wanted = described(scene.top, inodes=False), dict(scene.before)
    assert {name: row[:3] for name, row in found.items()} == {name: row[:3] for name, row in wanted.items()}


def test_files_of_steps_that_nobody_began_keep_what_others_wrote_when_one_fails(scene, monkeypatch):
    changes, given = load_plan(scene.store).changes, steps_there(monkeypatch)
    written = [number for number, change in enumerate(changes) if change.op == WRITE]
    others = Path(changes[written[len(written) // 2]].path)
    make_real, is_free = ChangeSteps.make_real, SecondProcess.is_free
    failed: list[int] = []
    monkeypatch.setattr(SecondProcess, "is_free", lambda self: is_free(self) and (bool(failed) or len(given) < 2))

    def full(steps: ChangeSteps, number: int, change: FileChange) -> Stamp | None:
        if number == written[0]:
            others.write_text("mine\n")
            failed.append(number)
            raise OSError(errno.ENOSPC, "No space left on device", change.path)
        return make_real(steps, number, change)

    monkeypatch.setattr(ChangeSteps, "make_real", full)
    with pytest.raises(TransitionFailed, match="Nothing was changed"):
        apply(scene.store)
    assert given
    assert written[len(written) // 2] not in given[:2]
    assert others.read_text() == "mine\n"


def test_steps_of_a_second_process_are_taken_back_when_one_fails_here(scene, monkeypatch):
    before = described(scene.top)

    def full(steps: ChangeSteps, number: int, change: FileChange) -> None:
        deadline = time.monotonic() + 60
        while described(scene.top) == before:
            assert time.monotonic() < deadline
        raise OSError(errno.ENOSPC, "No space left on device", change.path)

    monkeypatch.setattr(ChangeSteps, "make_real", full)
    with pytest.raises(TransitionFailed, match="Nothing was changed"):
        apply(scene.store)
    scene.expect("undone", scene.before, applied=False)


def test_an_error_of_the_second_process_says_what_it_would_say_here(scene, monkeypatch):
    store = Path(scene.store)
    plan = load_plan(scene.store)
    number = max(number for number, change in enumerate(plan.changes) if change.op == ADD)
    Path(plan.changes[number].content).unlink()
    with pytest.raises(TransitionFailed, match="No such file or directory") as raised:
        apply(scene.store)
    assert "Nothing was changed: all steps before were undone." in str(raised.value)
    assert load_plan(str(store)).state == "undone"


@pytest.mark.parametrize("kill", [kills.kill_apply, kills.kill_undo])
@pytest.mark.parametrize("calls", [3, 9, 20])
@pytest.mark.few(3)
def test_what_two_processes_began_is_finished_when_the_first_is_killed(scene, kill, calls):
    assert kill(scene, calls)


def test_a_second_process_holds_the_lock_until_it_ends_and_ends_when_the_first_is_gone(scene):
    pid = os.fork()
    if pid == 0:
        try:
            lock = os.open(scene.store, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = SecondProcess.start(scene.store, is_undo=False, resumed=False, lock=lock)
            second._process.send_signal(signal.SIGSTOP)
            Path(scene.store, "second").write_text(str(second._process.pid))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    stopped = int(Path(scene.store, "second").read_text())
    lock = os.open(scene.store, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.kill(stopped, signal.SIGCONT)
    # It would wait for ever if the second process stayed.
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.close(lock)


# The order of steps


def a_file(links: int = 1, kind: int = 0o100644) -> Stamp:
    return Stamp(kind, 0, 0, 1, 1, 1, 7, links)


def changed(op: str, path: str, **more: Any) -> FileChange:
    if op in (DELETE, WRITE, MOVE):
        more.setdefault("before", a_file())
    if op != DELETE:
        more.setdefault("after", a_file())
    return FileChange(op, path, **more)


FREE = [changed(WRITE, "/a/w"), changed(ADD, "/a/n"), changed(DELETE, "/b/d"), changed(MOVE, "/b/x", moved_to="/c/y")]


def free_steps(*changes: FileChange) -> list[int]:
    """Return the changes whose steps may be made in any order, those of a list with the free ones before them."""
    every = [*FREE, *changes]
    order = steps_in_order(every, range(len(every)))
    assert [number for numbers, _ in order for number in numbers] == list(range(len(every)))
    return [number for numbers, is_free in order if is_free for number in numbers]


def test_changes_of_single_files_may_be_made_in_any_order():
    assert free_steps() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        changed(LINK, "/a/l", target="/a/w"),
        changed(WRITE, "/a/twin", before=a_file(2), after=a_file(2)),
        changed(ADD, "/a/tree", after=a_file(2, 0o40755)),
        changed(DELETE, "/d", before=a_file(2, 0o40755)),
    ],
)
def test_a_change_of_a_directory_or_of_a_file_with_several_names_keeps_its_place(change):
    assert free_steps(change) == [0, 1, 2, 3]


def test_two_changes_of_one_name_keep_their_order():
    assert free_steps(changed(ADD, "/b/d")) == [0, 1, 3]
    assert free_steps(changed(ADD, "/b/x")) == [0, 1, 2]
    assert free_steps(changed(DELETE, "/c/y")) == [0, 1, 2]


def test_a_file_that_leaves_a_directory_does_so_before_that_is_removed():
    assert free_steps(changed(DELETE, "/b", before=a_file(2, 0o40755))) == [0, 1]
