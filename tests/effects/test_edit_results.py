"""What an edit makes of files: computed from its changes and the disk, without writing anything."""

import codecs
import hashlib
import json
import os
from pathlib import Path

import pytest

from whisper_tui.effects.edit_results import examine, versions
from whisper_tui.model.call import (
    DeleteFile,
    EditCell,
    EditedFile,
    FileChange,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def look(root: Path, *changes: FileChange) -> tuple[EditedFile, ...]:
    return examine(changes, (str(root),), "/home/nobody")


def new_text(root: Path, *changes: FileChange) -> str | None:
    (shown,) = versions(changes, look(root, *changes))
    assert not shown.not_shown, shown.not_shown
    return shown.new


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text("one\ntwo\nthree\n")
    path.chmod(0o640)
    return path


def test_a_new_file_is_created(tmp_path: Path):
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / "new.txt"), content="a\nb\n"))
    assert (found.action, found.before, found.after, found.size, found.mode) == (
        "creates",
        None,
        sha("a\nb\n"),
        None,
        None,
    )
    assert (found.added, found.removed, found.outside) == (2, 0, False)


def test_a_whole_file_is_compared_with_what_is_there(file: Path):
    (found,) = look(file.parent, WriteFile(path=str(file), content="one\n2\nthree\n"))
    assert (found.action, found.added, found.removed) == ("changes", 1, 1)
    assert (found.before, found.after) == (sha("one\ntwo\nthree\n"), sha("one\n2\nthree\n"))
    assert (found.size, found.mode) == (14, 0o640)


def test_a_text_that_occurs_once_is_replaced(file: Path):
    change = ReplaceText(path=str(file), old="two", new="TWO")
    assert new_text(file.parent, change) == "one\nTWO\nthree\n"


def test_a_text_that_occurs_twice_is_only_replaced_everywhere(file: Path):
    file.write_text("a b a")
    (found,) = look(file.parent, ReplaceText(path=str(file), old="a", new="x"))
    assert found.after is None
    assert found.problem == "the text to be replaced occurs 2 times"
    assert new_text(file.parent, ReplaceText(path=str(file), old="a", new="x", every=True)) == "x b x"


def test_a_text_that_is_not_there_leaves_the_result_unknown(file: Path):
    (found,) = look(file.parent, ReplaceText(path=str(file), old="four", new="x"))
    assert (found.after, found.problem) == (None, "the text to be replaced is not in the file")


def test_line_ends_of_windows_are_kept_where_the_agent_does_not_see_them(file: Path):
    file.write_bytes(b"one\r\ntwo\r\nthree")
    assert new_text(file.parent, ReplaceText(path=str(file), old="one\ntwo", new="1\n2")) == "1\r\n2\r\nthree"


def test_an_empty_old_text_creates_a_file_and_changes_none(tmp_path: Path, file: Path):
    assert new_text(tmp_path, ReplaceText(path=str(tmp_path / "n"), old="", new="x")) == "x"
    (found,) = look(tmp_path, ReplaceText(path=str(file), old="", new="x"))
    assert found.after is None


def test_a_later_change_finds_what_an_earlier_one_has_made(file: Path):
    changes = (
        ReplaceText(path=str(file), old="two", new="2"),
        ReplaceText(path=str(file), old="2\nthree", new="the end"),
    )
    assert new_text(file.parent, *changes) == "one\nthe end\n"


def test_a_patch_is_found_by_its_lines(file: Path):
    file.write_text("def a():\n    pass\n\ndef b():\n    pass\n")
    hunk = Hunk(heading="def b():", lines=("-    pass", "+    return 1"))
    changed = new_text(file.parent, PatchFile(path=str(file), hunks=(hunk,)))
    assert changed == "def a():\n    pass\n\ndef b():\n    return 1\n"


def test_a_patch_with_false_context_makes_nothing_known(file: Path):
    hunk = Hunk(lines=(" one", "-zwei", "+2"))
    (found,) = look(file.parent, PatchFile(path=str(file), hunks=(hunk,)))
    assert (found.after, found.problem) == (None, "part 1 of the patch does not fit the file")


def test_a_patch_at_the_end_does_not_take_an_earlier_place(file: Path):
    file.write_text("x\ny\nx\n")
    hunk = Hunk(lines=("-x", "+z"), at_end=True)
    assert new_text(file.parent, PatchFile(path=str(file), hunks=(hunk,))) == "x\ny\nz\n"


def test_a_moved_file_counts_at_both_places(tmp_path: Path, file: Path):
    hunk = Hunk(lines=(" one", "-two"))
    left, came = look(tmp_path, PatchFile(path=str(file), hunks=(hunk,), move_to=str(tmp_path / "b.py")))
    assert (left.action, left.before, left.after, left.removed) == ("deletes", sha("one\ntwo\nthree\n"), None, 0)
    assert (came.action, came.moved_from, came.before, came.after) == ("moves", str(file), None, sha("one\nthree\n"))
    assert (came.added, came.removed) == (0, 1)


def test_a_deleted_file_is_counted_by_its_lines(file: Path):
    (found,) = look(file.parent, DeleteFile(path=str(file)))
    assert (found.action, found.after, found.removed) == ("deletes", None, 3)


def test_deleting_a_file_that_is_not_there_is_no_known_change(tmp_path: Path):
    (found,) = look(tmp_path, DeleteFile(path=str(tmp_path / "none")))
    assert found.problem == "there is no such file"


def test_a_link_that_leads_out_is_judged_by_its_target(tmp_path: Path):
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "link").symlink_to(outside)
    (found,) = look(workspace, WriteFile(path=str(workspace / "link" / "x"), content=""))
    assert (found.real, found.outside, found.through_link) == (str(outside / "x"), True, True)


def test_dots_after_a_link_have_two_meanings(tmp_path: Path):
    workspace = tmp_path / "w"
    (workspace / "sub").mkdir(parents=True)
    (tmp_path / "far" / "away").mkdir(parents=True)
    (workspace / "link").symlink_to(tmp_path / "far" / "away")
    (found,) = look(workspace, WriteFile(path=str(workspace / "link" / ".." / "x"), content="x"))
    assert "`..`" in found.problem
    assert found.outside


def test_dots_that_lead_out_only_where_links_are_not_followed_count_as_outside(tmp_path: Path):
    workspace = tmp_path / "w"
    (workspace / "a" / "b" / "c").mkdir(parents=True)
    (workspace / "link").symlink_to(workspace / "a" / "b" / "c")
    (found,) = look(workspace, WriteFile(path=f"{workspace}/link/../../../x", content="x"))
    assert found.real == str(workspace / "x")
    assert found.outside


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".claude/settings.json", ".git/config"])
def test_files_that_decide_have_a_kind(tmp_path: Path, path: str):
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / path), content="x"))
    assert found.sensitive


def test_a_link_to_a_file_that_decides_has_its_kind(tmp_path: Path):
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "innocent").symlink_to(tmp_path / ".git" / "hooks")
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / "innocent" / "post-merge"), content="x"))
    assert found.sensitive == "hooks or settings of git"


def test_secrets_are_known_by_their_names(tmp_path: Path):
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / ".env"), content="A=1"))
    assert found.secret


def test_a_binary_file_is_not_compared_as_text(file: Path):
    file.write_bytes(b"\x00\x01\xff")
    changes = (WriteFile(path=str(file), content="text"),)
    (found,) = look(file.parent, *changes)
    assert (found.binary, found.before, found.after) == (True, sha(b"\x00\x01\xff"), sha("text"))
    assert versions(changes, (found,))[0].not_shown == "the content is not UTF-8 text"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
def test_a_file_in_another_encoding_is_compared_as_text(file: Path, encoding: str):
    file.write_bytes("straße\nzwei\n".encode(encoding))
    changes = (WriteFile(path=str(file), content="straße\n"),)
    (shown,) = versions(changes, look(file.parent, *changes))
    assert (shown.old, shown.new, shown.not_shown) == ("straße\nzwei\n", "straße\n", "")


def in_encoding(text: str, encoding: str) -> bytes:
    """The text as programs write it, with a byte order mark where the encoding has one."""
    marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE, "utf-32-le": codecs.BOM_UTF32_LE}
    return marks.get(encoding, b"") + text.encode(encoding)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig"])
def test_a_part_of_a_file_in_another_encoding_is_replaced_in_it(file: Path, encoding: str):
    file.write_bytes(in_encoding("straße\r\nzwei\r\ndrei\r\n", encoding))
    replaced = ReplaceText(path=str(file), old="zwei\n", new="größer\n2\n")
    patch = PatchFile(path=str(file), hunks=(Hunk(lines=(" straße\r", "-zwei\r", "+größer\r", "+2\r")),))
    if encoding == "utf-8-sig":
        patch = PatchFile(path=str(file), hunks=(Hunk(lines=("-zwei\r", "+größer\r", "+2\r")),))
    for change in (replaced, patch):
        (found,) = look(file.parent, change)
        assert found.problem == "" and (found.added, found.removed, found.binary) == (2, 1, False)
        assert found.after == sha(in_encoding("straße\r\ngrößer\r\n2\r\ndrei\r\n", encoding))
        (shown,) = versions((change,), (found,))
        assert shown.old is not None and shown.old.endswith("straße\r\nzwei\r\ndrei\r\n")
        assert shown.new is not None and shown.new.endswith("straße\r\ngrößer\r\n2\r\ndrei\r\n")


def test_a_character_that_the_encoding_does_not_have_makes_the_result_unknown(file: Path):
    file.write_bytes("straße\n".encode("latin-1"))
    (found,) = look(file.parent, ReplaceText(path=str(file), old="e\n", new="€\n"))
    assert (found.after, found.problem) == (None, "the encoding of the file has no '€'")


@pytest.mark.parametrize("data", [b"\xff\xfea\0\0\xd8", b"\xff\xfea", b"caf\xe9\0"])
def test_what_is_no_text_in_any_encoding_has_no_known_result(file: Path, data: bytes):
    file.write_bytes(data)
    (found,) = look(file.parent, ReplaceText(path=str(file), old="a", new="b"))
    assert found.problem == "the content is not UTF-8 text"


def test_a_fifo_is_never_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / "pipe"), content="x"))
    assert (found.unread, found.before) == ("it is not a regular file", None)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(5 << 20)
    (found,) = look(tmp_path, ReplaceText(path=str(tmp_path / "huge"), old="a", new="b"))
    assert found.before is None
    assert found.after is None
    assert "larger" in found.unread


def test_an_impossible_path_is_outside_and_nothing_is_read(tmp_path: Path):
    (found,) = look(tmp_path, WriteFile(path=f"{tmp_path}/a\0b", content="x"))
    assert found.unread == "its name contains a null character"


def test_two_megabytes_are_compared_in_blocks(tmp_path: Path):
    lines = [f"line {number}\n" for number in range(100_000)]
    (tmp_path / "big").write_text("".join(lines))
    (found,) = look(tmp_path, WriteFile(path=str(tmp_path / "big"), content="".join(lines[:-1])))
    assert found.after == sha("".join(lines[:-1]))
    assert found.removed > 0


def test_a_cell_of_a_notebook_is_shown_by_its_source(tmp_path: Path):
    book = tmp_path / "n.ipynb"
    book.write_text(json.dumps({"cells": [{"id": "c1", "source": ["a = 1\n", "b = 2"]}]}))
    changes = (EditCell(path=str(book), cell="c1", source="a = 2"),)
    (found,) = look(tmp_path, *changes)
    assert found.after is None
    (shown,) = versions(changes, (found,))
    assert (shown.old, shown.new) == ("a = 1\nb = 2", "a = 2")
