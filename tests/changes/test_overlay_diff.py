"""The upper directory of an overlay is read as the changes that the command made, and as nothing else."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.changes.overlay import make_store, on_overlay, previewed, tick
from tests.changes.trees import NOBODY, as_nobody, described, public_directory
from tests.outside import needs_overlays
from whisper_tui.changes import file_trees
from whisper_tui.changes.change_records import FileChange, Plan, load_plan
from whisper_tui.changes.file_trees import PreviewTooLarge
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.changes.transition import apply
from whisper_tui.supervisor.preview.overlay_mounts import save_outside

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]


class Workshop:
    """A real directory, and the changes that some work in it would make."""

    def __init__(self, place: Path) -> None:
        self.top = place / "top"
        self.store = place / "store"
        (self.top / "below").mkdir(parents=True)
        (self.top / "file").write_text("old\n")
        (self.top / "below" / "inner").write_text("inner\n")
        (self.top / "link").symlink_to("file")

    def plan(self, work: Callable[[], None]) -> Plan:
        before = described(self.top, inodes=True)
        previewed(self.store, self.top, work)
        plan = read_changes(str(self.store))
        assert described(self.top, inodes=True) == before
        return plan

    def changes(self, work: Callable[[], None]) -> dict[str, FileChange]:
        return {change.path.removeprefix(f"{self.top}/"): change for change in self.plan(work).changes}

    def ops(self, work: Callable[[], None]) -> set[tuple[str, str]]:
        return {(change.op, change.path.removeprefix(f"{self.top}/")) for change in self.plan(work).changes}


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    if os.getuid() == 0:
        yield Workshop(tmp_path)
        return
    with public_directory() as place:
        yield Workshop(place)


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


def moved_over(path: str, text: str) -> None:
    """Replace a file as editors do."""
    write(path + ".new", text)
    Path(path + ".new").rename(path)


def test_nothing_is_listed_when_nothing_changed(workshop):
    def look() -> None:
        Path("file").read_text()
        os.close(os.open("file", os.O_RDWR))

    plan = workshop.plan(look)
    assert (plan.changes, plan.directories, plan.meanwhile, plan.state) == ((), (), (), "previewed")


def test_a_new_tree_is_one_change_with_the_stamps_inside(workshop):
    def work() -> None:
        os.makedirs("new/a/b")
        write("new/a/file", "x")

    change = workshop.changes(work)["new"]
    assert (change.op, change.before) == ("add", None)
    assert change.new_inside is not None
    assert set(change.new_inside) == {"a", "a/b", "a/file"}
    assert Path(change.content, "a/file").read_text() == "x"


def test_a_removed_tree_is_one_change_with_the_stamps_inside(workshop):
    change = workshop.changes(lambda: shutil.rmtree("below"))["below"]
    assert (change.op, change.after, change.content) == ("delete", None, "")
    assert change.old_inside is not None
    assert set(change.old_inside) == {"inner"}


def test_writing_in_place_and_replacing_are_told_apart(workshop):
    def work() -> None:
        with open("file", "a") as file:
            file.write("more\n")
        moved_over("below/inner", "other\n")

    assert workshop.ops(work) == {("write", "file"), ("replace", "below/inner")}


def test_a_replacement_with_the_same_content_and_time_is_no_change(workshop):
    def work() -> None:
        status = os.stat("file")
        moved_over("file", "old\n")
        os.utime("file", ns=(0, status.st_mtime_ns))

    assert workshop.ops(work) == set()


def renamed() -> None:
    os.rename("file", "below/other")


def renamed_and_written_behind_its_times() -> None:
    found = os.stat("file")
    write("file", "new\n")
    os.utime("file", ns=(found.st_atime_ns, found.st_mtime_ns))
    renamed()


def renamed_with_another_mode() -> None:
    renamed()
    os.chmod("below/other", 0o600)


def renamed_with_an_attribute() -> None:
    renamed()
    os.setxattr("below/other", "user.new", b"x")


def copied_and_removed() -> None:
    shutil.copy2("file", "below/other")
    os.unlink("file")


def renamed_over_another() -> None:
    os.rename("file", "below/inner")


def names_exchanged() -> None:
    os.rename("file", "between")
    os.rename("below/inner", "file")
    os.rename("between", "below/inner")


def names_passed_on() -> None:
    os.rename("below/inner", "third")
    os.rename("file", "below/inner")


def test_a_renamed_file_is_one_change(workshop):
    change = workshop.changes(renamed)["file"]
    assert (change.op, change.moved_to) == ("move", f"{workshop.top}/below/other")
    assert change.before is not None and change.before.inode == (workshop.top / "file").stat().st_ino


@pytest.mark.parametrize(
    "work",
    [
        renamed_and_written_behind_its_times,
        renamed_with_another_mode,
        renamed_with_an_attribute,
        copied_and_removed,
        renamed_over_another,
        names_exchanged,
        names_passed_on,
    ],
)
def test_a_file_that_is_not_certainly_renamed_alone_is_deleted_and_created(workshop, work):
    assert "move" not in {op for op, _ in workshop.ops(work)}


@pytest.mark.skipif(
    os.getuid() != 0, reason="overlays of ordinary users do not mark copies of files with several names"
)
def test_a_renamed_file_keeps_its_further_name(workshop):
    os.link(workshop.top / "file", workshop.top / "twin")
    assert workshop.ops(renamed) == {("move", "file")}
    apply(str(workshop.store))
    assert (workshop.top / "below" / "other").samefile(workshop.top / "twin")


def both_names_renamed() -> None:
    renamed()
    os.rename("twin", "below/twin")


def a_further_name_removed() -> None:
    renamed()
    os.unlink("twin")


def linked_anew() -> None:
    renamed()
    os.link("below/other", "new")


@pytest.mark.parametrize("work", [both_names_renamed, a_further_name_removed, linked_anew])
def test_a_file_of_which_another_name_changes_is_not_renamed(workshop, work):
    os.link(workshop.top / "file", workshop.top / "twin")
    assert "move" not in {op for op, _ in workshop.ops(work)}


def test_files_that_are_alike_are_each_renamed_once(workshop):
    for name in ("one", "two"):
        (workshop.top / name).write_text("alike")
        os.utime(workshop.top / name, (5, 5))

    def work() -> None:
        os.rename("one", "below/first")
        os.rename("two", "below/second")

    assert workshop.ops(work) == {("move", "one"), ("move", "two")}


def test_modes_times_and_extended_attributes_are_changes_of_attributes(workshop):
    def work() -> None:
        Path("file").chmod(0o755)
        os.setxattr("below", "user.note", b"x")
        os.utime("below/inner", (5, 5))

    changes = workshop.changes(work)
    assert {name: change.op for name, change in changes.items()} == dict.fromkeys(
        ("file", "below", "below/inner"), "attributes"
    )
    assert changes["below"].new_attributes == {"user.note": "78"}
    assert changes["file"].after is not None
    assert stat.S_IMODE(changes["file"].after.mode) == 0o755


def test_a_file_becomes_a_directory_and_a_directory_a_link(workshop):
    def work() -> None:
        os.unlink("file")
        os.mkdir("file")
        shutil.rmtree("below")
        os.symlink("link", "below")

    assert workshop.ops(work) == {("replace", "file"), ("replace", "below")}


def test_a_directory_made_anew_under_the_same_name_has_lost_what_was_in_it(workshop):
    def work() -> None:
        shutil.rmtree("below")
        os.mkdir("below")
        write("below/new", "x")

    assert workshop.ops(work) == {("delete", "below/inner"), ("add", "below/new")}


def test_a_further_name_of_a_real_file_is_a_link_to_it(workshop):
    def work() -> None:
        os.link("file", "twin")
        os.mkdir("new")
        os.link("below/inner", "new/inner")

    changes = workshop.changes(work)
    assert (changes["twin"].op, changes["twin"].target) == ("link", str(workshop.top / "file"))
    assert changes["new"].relinks == (("inner", str(workshop.top / "below" / "inner")),)


def test_a_file_that_gives_way_to_a_link_is_removed_first(workshop):
    def work() -> None:
        os.unlink("below/inner")
        os.link("file", "below/inner")

    plan = workshop.plan(work)
    assert [(change.op, Path(change.path).name) for change in plan.changes] == [("delete", "inner"), ("link", "inner")]


def test_a_file_with_several_names_is_flagged_and_not_written_in_place(workshop):
    os.link(workshop.top / "file", workshop.top / "twin")

    def work() -> None:
        with open("file", "a") as file:
            file.write("more\n")

    change = workshop.changes(work)["file"]
    assert (change.op, change.links) == ("replace", 2)


def test_only_directories_whose_entries_changed_are_listed_with_their_times(workshop):
    plan = workshop.plan(lambda: write("below/new", "x"))
    assert [directory.path for directory in plan.directories] == [str(workshop.top / "below")]
    (below,) = plan.directories
    assert below.old_mtime < below.new_mtime
    assert below.inode == (workshop.top / "below").stat().st_ino


def test_what_somebody_else_changed_during_the_preview_is_named(workshop):
    def work() -> None:
        write("file", "new\n")
        shutil.rmtree("below")

    make_store(workshop.store, workshop.top)
    (workshop.top / "file").chmod(0o600)
    (workshop.top / "below" / "inner").chmod(0o600)
    on_overlay(workshop.top, workshop.store / "0u", workshop.store / "0w", work)
    plan = read_changes(str(workshop.store))
    assert set(plan.meanwhile) == {str(workshop.top / "file"), str(workshop.top / "below" / "inner")}


def test_names_that_are_not_utf8_and_unreadable_new_files_are_read(workshop):
    def work() -> None:
        os.close(os.open(b"\xff\n", os.O_CREAT | os.O_WRONLY))
        os.mkdir("shut")
        write("shut/file", "x")
        os.chmod("shut/file", 0)
        os.chmod("shut", 0)
        os.chmod("below", 0o500)

    changes = workshop.changes(work)
    assert changes["\udcff\n"].op == "add"
    assert changes["shut"].new_inside is not None
    assert set(changes["shut"].new_inside) == {"file"}
    assert changes["below"].op == "attributes"


def test_a_plan_is_the_same_after_it_was_loaded(workshop):
    def work() -> None:
        shutil.rmtree("below")
        os.mkdir("new")
        os.link("file", "new/twin")
        os.chmod("file", 0o755)

    plan = workshop.plan(work)
    assert load_plan(str(workshop.store)) == plan == read_changes(str(workshop.store))


def test_a_plan_and_new_stamps_that_an_earlier_version_wrote_are_loaded(workshop):
    plan = workshop.plan(lambda: write("file", "new\n"))
    store = Path(workshop.store)
    changes = [
        {name: value for name, value in change._asdict().items() if value is not None} for change in plan.changes
    ]
    (store / "plan.json").write_text(json.dumps({"changes": changes, "directories": plan.directories, "meanwhile": []}))
    assert load_plan(str(store)) == plan
    before = plan.changes[0].before
    assert before is not None
    (store / "renewed.json").write_text(json.dumps([(0, {"before": before._replace(ctime=7)})]))
    assert load_plan(str(store)).changes == (plan.changes[0]._replace(before=before._replace(ctime=7)),)


def test_a_new_directory_has_no_records_of_overlayfs_unless_a_real_file_was_moved_to_it(workshop):
    def work() -> None:
        for name in ("plain", "plain/below", "mixed"):
            os.mkdir(name)
            write(f"{name}/new", "new\n")
        os.symlink("new", "plain/soft")
        os.rename("file", "mixed/moved")

    changes = {os.path.basename(change.path): change for change in workshop.plan(work).changes}
    assert changes["plain"].unmarked_inside
    assert not changes["mixed"].unmarked_inside


def test_more_changes_than_a_preview_lists_are_refused(workshop, monkeypatch):
    monkeypatch.setattr(file_trees, "MOST_ENTRIES", 3)

    def work() -> None:
        os.mkdir("new")
        for number in range(3):
            write(f"new/{number}", "")

    with pytest.raises(PreviewTooLarge, match="more than 3"):
        workshop.plan(work)


def test_a_removed_directory_around_a_mount_is_a_conflict_only_if_the_command_changed_it(tmp_path):
    top, upper, store = tmp_path / "top", tmp_path / "store" / "0u", tmp_path / "store"
    upper.mkdir(parents=True)
    (upper / "same").write_text("same")
    layer = {"path": str(top), "upper": str(upper), "work": "", "kind": "split"}
    layer["base"] = {"same": (upper / "same").stat().st_ctime_ns, "mounted": None, "large": -1}

    def meanwhile() -> tuple[str, ...]:
        (store / "plan.json").unlink(missing_ok=True)
        (store / "layers.json").write_text(json.dumps({"layers": [layer], "began_ns": began, "marks": "user"}))
        return read_changes(str(store)).meanwhile

    began = tick(store)
    assert meanwhile() == ()
    (upper / "new").write_text("new")
    assert meanwhile() == (str(top),)
    (upper / "new").unlink()
    (upper / "same").unlink()
    assert meanwhile() == (str(top),)


def test_a_directory_around_a_mount_is_read_against_the_copies_that_lay_in_it(tmp_path):
    top, upper, store = tmp_path / "top", tmp_path / "store" / "0u", tmp_path / "store"
    for path in (top, upper):
        path.mkdir(parents=True)
        for name in ("same", "changed", "gone"):
            (path / name).write_text(name)
        (path / "mounted").mkdir()
        (path / "large").touch()
    base = {name: (upper / name).stat().st_ctime_ns for name in ("same", "changed", "gone")}
    began = tick(store)
    (upper / "changed").write_text("other")
    (upper / "gone").unlink()
    (upper / "new").write_text("new")
    layer = {"path": str(top), "upper": str(upper), "work": "", "kind": "split"}
    layer["base"] = {**base, "mounted": None, "large": -1, "forbidden": 0}
    (store / "layers.json").write_text(json.dumps({"layers": [layer], "began_ns": began, "marks": "user"}))
    plan = read_changes(str(store))
    found = {(change.op, Path(change.path).name) for change in plan.changes}
    assert found == {("replace", "changed"), ("delete", "gone"), ("add", "new")}
    (directory,) = plan.directories
    assert (directory.path, directory.new_mtime) == (str(top), upper.stat().st_mtime_ns)
    apply(str(store))
    assert {path.name: path.read_text() for path in top.iterdir() if path.name in ("changed", "gone", "new")} == {
        "changed": "other",
        "new": "new",
    }
    assert top.stat().st_mtime_ns == directory.new_mtime


def test_upper_directories_in_memory_are_read_after_they_were_copied_out(workshop, tmp_path):
    def work() -> None:
        moved_over("file", "new\n")
        os.link("file", "twin")
        shutil.rmtree("below")
        os.mkdir("below")
        os.unlink("link")
        with open("written", "w") as file:
            file.write("x")

    with public_directory("/dev/shm") as memory:
        make_store(workshop.store, workshop.top)
        for name in ("0u", "0w"):
            (memory / name).mkdir()
        path = workshop.store / "layers.json"
        found = json.loads(path.read_text())
        found["layers"][0] |= {"upper": str(memory / "0u"), "work": str(memory / "0w")}
        path.write_text(json.dumps({**found, "memory": True}))
        on_overlay(workshop.top, memory / "0u", memory / "0w", work)
        save_outside(str(workshop.store))
    plan = read_changes(str(workshop.store))
    assert {(change.op, Path(change.path).name) for change in plan.changes} == {
        ("replace", "file"),
        ("add", "twin"),
        ("delete", "inner"),
        ("delete", "link"),
        ("add", "written"),
    }
    new = {Path(change.path).name: change.content for change in plan.changes if change.content}
    assert Path(new["file"]).samefile(new["twin"])


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_reads_what_it_changed():
    with public_directory() as place:
        os.chown(place, NOBODY, NOBODY)
        with as_nobody() as status:
            if status.child:
                workshop = Workshop(place)

                def work() -> None:
                    with open("file", "a") as file:
                        file.write("more\n")
                    os.link("below/inner", "twin")
                    shutil.rmtree("below")
                    os.chmod(".", 0o500)

                found = workshop.ops(work)
                assert found == {
                    ("write", "file"),
                    ("delete", "below"),
                    ("add", "twin"),
                    ("attributes", str(workshop.top)),
                }
        assert status.code == 0
