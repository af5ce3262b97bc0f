"""Files that somebody has only touched are no conflict; those with another content, mode or owner are."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.changes.kills import Scene
from tests.changes.trees import public_directory
from tests.outside import needs_overlays
from whisper_tui.changes.change_records import load_plan
from whisper_tui.changes.meanings import MEANINGS
from whisper_tui.changes.real_paths import Conflict
from whisper_tui.changes.transition import apply, conflicts, undo

pytestmark = needs_overlays


def make(top: Path) -> None:
    top.mkdir()
    for name in ("written", "replaced", "deleted", "tree/inner"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(f"{name} before\n")
    (top / "link").symlink_to("written")


def change() -> None:
    with open("written", "a") as file:
        file.write("more\n")
    Path("new").write_text("replaced after\n")
    Path("new").rename("replaced")
    Path("deleted").unlink()
    Path("made").mkdir()
    Path("made/inner").write_text("made\n")
    Path("added").write_text("added\n")
    Path("tree/inner").unlink()
    Path("tree").rmdir()
    Path("link").unlink()
    Path("link").symlink_to("added")


@pytest.fixture(params=["same file system", "other file system"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    elsewhere = "/dev/shm" if request.param == "other file system" else None
    with public_directory() as real, public_directory(elsewhere) as kept:
        yield Scene(real, kept, make, change)


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1), follow_symlinks=False)


def same_mode(path: Path) -> None:
    path.chmod(path.stat().st_mode)


def name_twice(path: Path) -> None:
    os.link(path, f"{path}.twin")
    os.unlink(f"{path}.twin")


def make_anew(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


TOUCHES = [touch, same_mode, name_twice, make_anew]


def other_content(path: Path) -> None:
    """Write as many other bytes, and restore the time."""
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def other_mode(path: Path) -> None:
    path.chmod(0o640)


def twin(path: Path) -> None:
    os.link(path, path.parent.parent / "twin")


@pytest.mark.parametrize("act", TOUCHES)
def test_an_undo_and_a_redo_follow_touched_files(scene: Scene, act: Callable[[Path], None]) -> None:
    before = contents(scene.top)
    apply(scene.store)
    after = contents(scene.top)
    for name in ("written", "replaced", "made/inner", "added"):
        act(scene.top / name)
    undo(scene.store)
    assert contents(scene.top) == before
    for name in ("written", "replaced", "deleted", "tree/inner"):
        act(scene.top / name)
    apply(scene.store)
    assert contents(scene.top) == after
    undo(scene.store)
    assert contents(scene.top) == before


@pytest.mark.parametrize("act", TOUCHES)
def test_touched_files_do_not_prevent_an_application(scene: Scene, act: Callable[[Path], None]) -> None:
    before = contents(scene.top)
    for name in ("written", "replaced", "deleted", "tree/inner"):
        act(scene.top / name)
    assert conflicts(scene.store, load_plan(scene.store)) == []
    apply(scene.store)
    assert contents(scene.top) != before
    undo(scene.store)
    assert contents(scene.top) == before


@pytest.mark.parametrize("act", [other_content, other_mode])
@pytest.mark.parametrize("name", ["written", "replaced", "made/inner", "added"])
def test_what_has_another_content_or_mode_is_not_taken_back(
    scene: Scene, act: Callable[[Path], None], name: str
) -> None:
    apply(scene.store)
    act(scene.top / name)
    found = contents(scene.top)
    with pytest.raises(Conflict, match=name):
        undo(scene.store)
    assert contents(scene.top) == found


@pytest.mark.parametrize("act", [other_content, other_mode])
@pytest.mark.parametrize("name", ["written", "replaced", "deleted", "tree/inner"])
def test_what_has_another_content_or_mode_is_not_overwritten(
    scene: Scene, act: Callable[[Path], None], name: str
) -> None:
    act(scene.top / name)
    found = contents(scene.top)
    with pytest.raises(Conflict, match=name):
        apply(scene.store)
    assert contents(scene.top) == found


def test_a_file_that_is_written_in_place_has_no_further_name_since(scene: Scene) -> None:
    twin(scene.top / "written")
    with pytest.raises(Conflict, match="written"):
        apply(scene.store)


def test_without_digests_size_and_time_have_to_be_the_same(scene: Scene) -> None:
    os.unlink(f"{scene.store}/{MEANINGS}")
    apply(scene.store)
    name_twice(scene.top / "written")
    undo(scene.store)
    touch(scene.top / "written")
    with pytest.raises(Conflict, match="written"):
        apply(scene.store)


def contents(top: Path) -> dict[str, str]:
    """Return the contents and modes of all files."""
    return {
        str(path.relative_to(top)): os.readlink(path)
        if path.is_symlink()
        else f"{path.stat().st_mode:o} {path.read_text()}"
        for path in sorted(top.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
