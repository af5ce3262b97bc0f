"""Real paths: what the kernel finds at once is what is found step by step."""

import os
from pathlib import Path

import pytest

from whisper_tui.system import host_files
from whisper_tui.system.host_files import realpath_here

NAMES = [
    ".",
    "a",
    "a/b/file",
    "a/b/file/",
    "a//b",
    "a/./b",
    "a/../a",
    "a/b/..",
    "to",
    "to/file",
    "to/../a",
    "to/none",
    "none",
    "none/../a",
    "fifo",
    "gone",
    "a/b/file/below",
    "closed/file",
    "closed",
    "loop",
    "loop/x",
    "dots",
    "(deleted)",
    "here",
    "here/x",
]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    (top / "a" / "b").mkdir(parents=True)
    (top / "closed").mkdir()
    for name in ("a/b/file", "closed/file", "(deleted)"):
        (top / name).touch()
    links = {"to": "a/b", "loop": "loop", "dots": "../" + top.name, "gone": "nowhere", "here": "/proc/self/cwd"}
    for name, target in links.items():
        (top / name).symlink_to(target)
    os.mkfifo(top / "fifo")
    return top


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_path_is_as_real_as_step_by_step(
    name: str, top: Path, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool
) -> None:
    (top / "closed").chmod(0o000 if is_closed else 0o700)
    monkeypatch.chdir(top)
    for path in (f"{top}/{name}", name):
        found = host_files.realpath(path), realpath_here(path)
        with monkeypatch.context() as without:
            without.setattr(host_files, "_ONLY_PATH", 0)
            assert found == (host_files.realpath(path), realpath_here(path))
    (top / "closed").chmod(0o700)


def test_a_name_that_no_system_takes_is_refused(top: Path) -> None:
    for ask in (host_files.realpath, realpath_here):
        with pytest.raises(ValueError, match="null"):
            ask(f"{top}/a\0b")
