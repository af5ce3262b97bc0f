"""Pre-images: after an undo the tree is exactly as before the command, and after a redo as the command left it."""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.changes.power import Disk, on_a_disk
from tests.changes.trees import described
from whisper_tui.changes import pre_images, transition
from whisper_tui.changes.change_records import Plan, save_plan
from whisper_tui.changes.change_steps import Conflict
from whisper_tui.changes.pre_images import NotKept
from whisper_tui.changes.real_paths import move
from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell
from whisper_tui.supervisor.runs.start_order import roots_of
from whisper_tui.system.syscalls import Place

TREE = """
mkdir -p build/sub other empty; echo one > a; echo three > c; echo o > build/x.o; echo p > build/sub/y.o
ln build/x.o build/h; ln -s a l; echo q > other/a; echo r > build/keep; chmod 750 build/keep; mkfifo build/pipe
touch -d 2001-01-01 build/keep build/sub; chmod 500 empty
mkdir -p locked/in; echo z > locked/in/f; chmod 555 locked/in locked
"""


class Kept:
    """A tree, and the pre-images of one command in it."""

    def __init__(self, directory: Path) -> None:
        self.place, self.store = directory / "work", str(directory / "store")
        self.place.mkdir()
        self.shell(TREE)
        os.setxattr(self.place / "build" / "keep", "user.k", b"v")

    def shell(self, text: str) -> None:
        subprocess.run(["bash", "-c", text], cwd=self.place, check=False, capture_output=True)

    def keep(self, text: str) -> None:
        found = effects_of(Shell(text=text), str(self.place), (str(self.place),), dict(os.environ), budget_s=10)
        pre_images.keep(self.store, roots_of(found))

    def run(self, text: str) -> None:
        self.keep(text)
        self.shell(text)
        pre_images.seal(self.store, time.time_ns())

    def tree(self) -> dict[str, tuple[object, ...]]:
        return described(self.place)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf build",
        "rm a l; rmdir empty",
        "rm -rf *",
        "rm -rf build; mkdir build; cp a build/a",
        "chmod 600 a; rm a",
        "chmod -R u+w build; rm -rf build",
        "chmod -R u+w locked && rm -rf locked",
        "mv a b",
        "mv a c",
        "mv build gone",
        "mv c a other/",
        "cp c a",
        "cp -r build out",
        "cp -r build/. other",
        "install -m 755 c bin",
        "ln -sf c l; ln a hard; echo x >> a",
        "echo hi > a",
        "mkdir -p x/y; touch x/y/z",
        "chmod -R 700 build; touch a",
        "truncate -s 0 a; tee c < a",
        "sed -i s/one/two/ a",
        "dd if=c of=a",
        "true; rm -rf nothing",
    ],
)
def test_an_undo_restores_the_tree_and_a_redo_makes_the_changes_again(kept: Kept, text: str) -> None:
    before = kept.tree()
    kept.run(text)
    after = kept.tree()
    transition.undo(kept.store)
    assert kept.tree() == before
    transition.apply(kept.store)
    assert kept.tree() == after
    transition.undo(kept.store)
    assert kept.tree() == before


def test_single_paths_are_taken_back(kept: Kept) -> None:
    kept.run("rm -r build other; echo hi > a")
    transition.undo_only(kept.store, [str(kept.place / "build")])
    assert (kept.place / "build" / "sub" / "y.o").read_text() == "p\n"
    assert not (kept.place / "other").exists() and (kept.place / "a").read_text() == "hi\n"


def test_a_file_that_changed_since_is_not_touched(kept: Kept) -> None:
    kept.run("cp c a; rm -r build")
    (kept.place / "a").write_text("work\n")
    with pytest.raises(Conflict):
        transition.undo(kept.store)
    assert (kept.place / "a").read_text() == "work\n" and not (kept.place / "build").exists()


def test_what_is_written_under_another_name_of_a_deleted_file_is_no_pre_image(kept: Kept, tmp_path: Path) -> None:
    os.link(kept.place / "a", tmp_path / "elsewhere")
    kept.keep("rm a")
    kept.shell("rm a")
    (tmp_path / "elsewhere").write_text("other content\n")
    with pytest.raises(NotKept, match="nothing has said so"):
        pre_images.seal(kept.store, time.time_ns())


def test_a_change_after_the_end_of_the_command_is_not_counted_as_its_own(kept: Kept) -> None:
    kept.keep("cp c a")
    ended = time.time_ns() - 10_000_000_000
    kept.shell("cp c a")
    with pytest.raises(NotKept, match="after its end"):
        pre_images.seal(kept.store, ended)
    assert not Path(kept.store).exists()


def test_an_interrupted_look_at_the_changes_is_finished(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept.tree()
    kept.keep("mv a other/a; rm -r build; echo x > c")
    kept.shell("mv a other/a; rm -r build; echo x > c")
    moved = []

    def killed(source: Place, target: Place) -> None:
        if moved:
            raise KeyboardInterrupt
        moved.append(source)
        move(source, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pre_images, "move", killed)
        pre_images.seal(kept.store, time.time_ns())
    pre_images.seal(kept.store, time.time_ns())
    transition.undo(kept.store)
    assert kept.tree() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("git clean -fdx", "what git changes"),
        ("rm -rf $(cat a)", "only known when it runs"),
        ("make && rm -rf build", "make"),
        ("echo x > build/pipe", "no regular file"),
        ("rm -rf ..", "contains the files of whisper_tui"),
    ],
)
def test_nothing_is_kept_of_what_is_not_certain(kept: Kept, text: str, why: str) -> None:
    with pytest.raises(NotKept, match=why):
        kept.keep(text)
    assert not Path(kept.store).exists()


@pytest.mark.parametrize(
    ("bound", "text", "why"),
    [
        ("MOST_ENTRIES", "rm -rf build", "more than 1 files"),
        ("MOST_COPIED", "cp c a", "overwrites more than"),
        ("PATIENCE_S", "rm -rf build", "seconds"),
    ],
)
def test_pre_images_of_one_command_are_bounded(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, bound: str, text: str, why: str
) -> None:
    monkeypatch.setattr(pre_images, bound, {"MOST_ENTRIES": 1, "MOST_COPIED": 1, "PATIENCE_S": -1.0}[bound])
    with pytest.raises(NotKept, match=why):
        kept.keep(text)


def test_nothing_is_kept_on_a_disk_that_is_almost_full(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pre_images, "LEAST_FREE", 1 << 62)
    with pytest.raises(NotKept, match="almost full"):
        kept.keep("rm -rf build")


def with_a_disk(directory: Path, work: Callable[[Kept, Disk], None]) -> None:
    """Do something in a child, with the pre-images on a disk of its own."""

    def kept_there(disk: Disk) -> None:
        kept = Kept(directory)
        kept.store = str(disk.top / "store")
        work(kept, disk)

    on_a_disk(directory, kept_there)


def saved_and_killed(store: str, plan: Plan) -> None:
    save_plan(store, plan)
    raise KeyboardInterrupt


DELETES = "rm -rf build other; cp c a; echo x > new"


def test_pre_images_survive_a_power_failure_right_after_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_images, "LEAST_FREE", 0)

    def work(kept: Kept, disk: Disk) -> None:
        before = kept.tree()
        kept.keep(DELETES)
        kept.shell(DELETES)
        disk.fail()
        pre_images.seal(kept.store, time.time_ns())
        transition.undo(kept.store)
        assert kept.tree() == before

    with_a_disk(tmp_path, work)


@pytest.mark.parametrize("halfway", [False, True], ids=["at its end", "while its changes are looked at"])
def test_an_undo_is_possible_after_a_power_failure_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, halfway: bool
) -> None:
    monkeypatch.setattr(pre_images, "LEAST_FREE", 0)

    def work(kept: Kept, disk: Disk) -> None:
        before = kept.tree()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt) if halfway else nullcontext():
            if halfway:
                patched.setattr(pre_images, "save_plan", saved_and_killed)
            kept.run(DELETES)
        disk.fail()
        if halfway:
            pre_images.seal(kept.store, time.time_ns())
        after = kept.tree()
        transition.undo(kept.store)
        assert kept.tree() == before
        transition.apply(kept.store)
        assert kept.tree() == after

    with_a_disk(tmp_path, work)


def test_deleted_files_take_no_room_of_their_own(kept: Kept) -> None:
    inode = (kept.place / "a").stat().st_ino
    kept.run("rm a")
    (kept_file,) = (Path(kept.store) / "kept").iterdir()
    assert kept_file.stat().st_ino == inode
