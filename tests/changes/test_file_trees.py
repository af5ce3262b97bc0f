"""Trees are copied, stamped and removed exactly, however deep they are and whatever their permissions say."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from tests.changes.trees import NOBODY, as_nobody, described, public_directory
from whisper_tui.changes import file_trees
from whisper_tui.changes.file_trees import (
    PreviewTooLarge,
    TreeWalker,
    attributes,
    change_mode,
    copy_tree,
    dress,
    open_file,
    overlay_mark,
    remove_marks,
    remove_tree,
    set_attributes,
    stamp,
    stamps_inside,
)
from whisper_tui.system.syscalls import AT_FDCWD, RENAME_EXCHANGE, RENAME_NOREPLACE, rename

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with everything that a tree may contain."""
    return made(tmp_path / "tree")


def made(top: Path) -> Path:
    (top / "below" / "empty").mkdir(parents=True)
    (top / "file").write_bytes(b"content\n" * 40_000)
    os.setxattr(top / "file", "user.note", b"kept")
    os.link(top / "file", top / "below" / "twin")
    (top / "link").symlink_to("nowhere")
    os.mkfifo(top / "fifo", 0o640)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(top / "socket"))
    (top / "below" / "secret").write_text("no permissions")
    (top / "below" / "secret").chmod(0)
    (top / "below" / "empty").chmod(0o1753)
    for number, path in enumerate(sorted(top.rglob("*"), reverse=True)):
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number), follow_symlinks=False)
    (top / "below").chmod(0o500)
    os.utime(top, ns=(0, 1_500_000_000_000_000_001))
    return top


def deep(top: Path, levels: int) -> None:
    """Make directories in each other, so many that no path reaches the lowest, with a file at the bottom."""
    top.mkdir()
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("a" * 100, dir_fd=fd)
        below = os.open("a" * 100, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fd))
    os.close(fd)


def test_a_copy_equals_its_original_and_leaves_it_as_it_was(tree, tmp_path):
    before = described(tree)
    copy_tree(str(tree), str(tmp_path / "copy"))
    assert described(tmp_path / "copy") == before == described(tree)
    assert (tmp_path / "copy" / "file").samefile(tmp_path / "copy" / "below" / "twin")
    assert stat.S_ISSOCK((tmp_path / "copy" / "socket").lstat().st_mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_copies_and_removes_what_its_modes_forbid():
    with public_directory() as place:
        tree = made(place / "tree")
        for path in (place, tree, *tree.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        before = described(tree)
        with as_nobody() as status:
            if status.child:
                copy_tree(str(tree), str(place / "copy"))
                remove_tree(str(tree))
        assert status.code == 0
        assert described(place / "copy") == before
        assert not tree.exists()


def test_copies_share_hard_links_over_several_calls(tree, tmp_path):
    links: file_trees.Links = {}
    copy_tree(str(tree / "file"), str(tmp_path / "one"), links)
    copy_tree(str(tree / "below"), str(tmp_path / "two"), links)
    assert (tmp_path / "one").samefile(tmp_path / "two" / "twin")


def test_records_of_overlayfs_are_copied_only_where_they_are_asked_for(tmp_path):
    (tmp_path / "file").write_text("x")
    os.setxattr(tmp_path / "file", "user.overlay.origin", b"")
    (tmp_path / "file").chmod(0)
    copy_tree(str(tmp_path / "file"), str(tmp_path / "plain"))
    copy_tree(str(tmp_path / "file"), str(tmp_path / "marked"), marks=True)
    assert overlay_mark(str(tmp_path / "plain"), "origin") is None
    assert overlay_mark(str(tmp_path / "marked"), "origin") == b""
    remove_marks(str(tmp_path / "marked"))
    assert overlay_mark(str(tmp_path / "marked"), "origin") is None
    assert stat.S_IMODE((tmp_path / "marked").stat().st_mode) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_copies_whiteouts():
    with public_directory() as place:
        os.chown(place, NOBODY, NOBODY)
        os.mknod(place / "gone", stat.S_IFCHR, 0)
        with as_nobody() as status:
            if status.child:
                copy_tree(str(place / "gone"), str(place / "copy"), marks=True)
        assert status.code == 0
        copied = (place / "copy").lstat()
        assert stat.S_ISCHR(copied.st_mode)
        assert copied.st_rdev == 0


def test_a_tree_deeper_than_any_path_is_stamped_copied_and_removed(tmp_path):
    deep(tmp_path / "deep", 60)
    copy_tree(str(tmp_path / "deep"), str(tmp_path / "copy"))
    assert len(stamps_inside(str(tmp_path / "copy"))) == 61
    remove_tree(str(tmp_path / "deep"))
    remove_tree(str(tmp_path / "copy"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_tree_of_thousands_of_levels_needs_no_recursion(tmp_path):
    deep(tmp_path / "deep", 3_000)
    assert len(stamps_inside(str(tmp_path / "deep"))) == 3_001
    remove_tree(str(tmp_path / "deep"))
    assert not (tmp_path / "deep").exists()


def test_removal_follows_no_symbolic_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kept").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "real")
    remove_tree(str(tmp_path / "tree"))
    remove_tree(str(tmp_path / "tree"))
    assert (tmp_path / "real" / "kept").exists()


def test_a_directory_that_became_a_symbolic_link_is_not_entered(tmp_path):
    (tmp_path / "top" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    with TreeWalker(str(tmp_path / "top")) as walker:
        assert walker.entries() == [("below", True)]
        (tmp_path / "top" / "below").rmdir()
        (tmp_path / "top" / "below").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match=r"directory|symbolic"):
            walker.down("below")


def test_a_directory_that_was_moved_away_does_not_lead_out_of_the_tree(tmp_path):
    (tmp_path / "top" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    with TreeWalker(str(tmp_path / "top")) as walker:
        walker.down("below")
        (tmp_path / "top" / "below").rename(tmp_path / "elsewhere" / "below")
        with pytest.raises(OSError, match="moved"):
            walker.up()


def test_a_symbolic_link_in_place_of_a_file_is_neither_opened_nor_changed(tmp_path):
    (tmp_path / "target").write_text("x")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="symbolic"):
        open_file(str(tmp_path / "link"), os.O_RDONLY)
    with pytest.raises(OSError, match=r"not supported|symbolic"):
        change_mode(str(tmp_path / "link"), 0o777)
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600


def test_stamps_differ_after_any_change(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    before = stamp(str(path))
    assert before is not None
    assert before.is_file
    assert not before.is_directory
    path.chmod(0o755)
    assert stamp(str(path)) != before
    assert stamp(str(tmp_path / "missing")) is None
    assert stamp(str(path / "below")) is None


def test_more_entries_than_a_preview_lists_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(file_trees, "MOST_ENTRIES", 3)
    for number in range(4):
        (tmp_path / str(number)).touch()
    with pytest.raises(PreviewTooLarge, match="more than 3 files"):
        stamps_inside(str(tmp_path))


def test_a_file_gets_exactly_the_attributes_of_another(tmp_path):
    (tmp_path / "file").touch()
    os.setxattr(tmp_path / "file", "user.old", b"1")
    (tmp_path / "file").chmod(0o400)
    set_attributes(str(tmp_path / "file"), {"user.new": b"2"})
    assert attributes(str(tmp_path / "file")) == {"user.new": b"2"}
    wanted = stamp(str(tmp_path / "file"))
    assert wanted is not None
    dress(str(tmp_path / "file"), wanted._replace(mode=0o100_640, mtime=1_000_000_007), {})
    found = (tmp_path / "file").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o640, 1_000_000_007)
    assert attributes(str(tmp_path / "file")) == {}


def test_renames_replace_nothing_or_exchange_both(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    one, two = ((AT_FDCWD, str(tmp_path / name)) for name in ("one", "two"))
    with pytest.raises(FileExistsError):
        rename(one, two, RENAME_NOREPLACE)
    rename(one, two, RENAME_EXCHANGE)
    assert ((tmp_path / "one").read_text(), (tmp_path / "two").read_text()) == ("2", "1")
