"""Which created files are deleted ones under another name: as `git diff -M` says, with percentages close to its own."""

import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from whisper_tui.supervisor.runs import renames as module
from whisper_tui.supervisor.runs.renames import KnownFile, renames

LINES = "".join(f"def function_{number}():\n    return {number * number}\n\n" for number in range(40))


def known(files: Mapping[str, str], first: int) -> list[KnownFile]:
    """Files with these contents; those with the same size are alike from the outside."""
    return [
        KnownFile(number, path, len(text), (stat.S_IFREG | 0o644, len(text)), text.encode)
        for number, (path, text) in enumerate(files.items(), first)
    ]


def found(gone: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Old path and percentage by new path."""
    old_files, new_files = known(gone, 0), known(new, 1000)
    paths = {each.number: each.path for each in (*old_files, *new_files)}
    return {paths[number]: (paths[each.old], each.alike) for number, each in renames(old_files, new_files).items()}


def by_git(directory: Path, gone: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """The same as git sees it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(directory), "-c", "user.name=x", "-c", "user.email=x", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    for files in (gone, new):
        git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
        for name, text in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", "x")
    rows = [line.split("\t") for line in git("diff", "-M", "--name-status", "HEAD~", "HEAD").splitlines()]
    return {row[2]: (row[1], int(row[0][1:])) for row in rows if row[0].startswith("R")}


CASES = {
    "moved": ({"src/a.py": LINES}, {"lib/a.py": LINES}),
    "moved and edited": ({"src/a.py": LINES}, {"lib/b.py": LINES.replace("function_7()", "renamed()")}),
    "half of it": ({"a": LINES}, {"b": LINES[: len(LINES) * 2 // 3]}),
    "another file": ({"a": LINES}, {"b": LINES.upper()}),
    "much more": ({"a": LINES}, {"b": LINES + LINES.replace("function", "other") * 2}),
    "two, by name": (
        {"src/a.py": LINES, "src/b.py": LINES},
        {"lib/b.py": LINES, "lib/a.py": LINES},
    ),
    "two edited": (
        {"src/a.py": LINES, "src/b.py": LINES.replace("return", "yield")},
        {"lib/x.py": LINES.replace("return 1\n", "return 2\n"), "lib/y.py": LINES.replace("return", "yield") + "\n"},
    ),
    "copied and removed": ({"a": LINES}, {"b": LINES, "c": LINES}),
    "short": ({"a": "one\n"}, {"b": "two\n"}),
}


@pytest.mark.parametrize("case", CASES)
def test_renames_are_those_of_git(tmp_path: Path, case: str) -> None:
    gone, new = CASES[case]
    ours, theirs = found(gone, new), by_git(tmp_path, gone, new)
    assert {path: old for path, (old, _) in ours.items()} == {path: old for path, (old, _) in theirs.items()}
    for path, (_, alike) in ours.items():
        assert abs(alike - theirs[path][1]) <= 3 and (alike == 100) == (theirs[path][1] == 100)


def test_files_that_are_too_many_or_too_large_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, new = CASES["moved and edited"]
    monkeypatch.setattr(module, "MOST_PAIRS", 0)
    assert found(gone, new) == {}
    assert found(*CASES["moved"]) == {"lib/a.py": ("src/a.py", 100)}
    monkeypatch.setattr(module, "MOST_BYTES", len(LINES))
    assert found(*CASES["moved"]) == {}


def test_a_file_that_cannot_be_read_was_not_renamed() -> None:
    (old,), (new,) = known({"a": LINES}, 0), known({"b": LINES}, 1)
    assert renames([old._replace(read=lambda: None)], [new]) == {}
    assert renames([old], [new._replace(read=lambda: None)]) == {}
