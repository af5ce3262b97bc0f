"""A repository whose settings could run something is never looked at without a question."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from whisper_tui.supervisor.git_configuration import NEUTRAL, configuration_is_neutral, is_neutral

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

ORDINARY = """
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
[remote "origin"]
	url = git@example.org:a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = A "quoted" name
"""


def test_an_ordinary_configuration_runs_nothing() -> None:
    assert configuration_is_neutral(ORDINARY)


@pytest.mark.parametrize(
    "setting",
    [
        "[core]\n\tfsmonitor = ./x",
        "[core]\n\thooksPath = x",
        "[core]\n\tpager = x",
        "[core]\n\tsshCommand = x",
        "[core]\n\tattributesFile = x",
        "[core]\n\tworktree = /elsewhere",
        "[diff]\n\texternal = x",
        '[diff "x"]\n\ttextconv = x',
        '[filter "x"]\n\tclean = x',
        "[alias]\n\tstatus = !x",
        "[include]\n\tpath = x",
        '[includeIf "gitdir:/"]\n\tpath = x',
        "[gpg]\n\tprogram = x",
        '[remote "origin"]\n\turl = ext::x',
        '[submodule "x"]\n\tupdate = !x',
        "[core] fsmonitor = x",
        "[log]\n\tshowSignature = true",
        "[core]\n\tfilemode = tr\\\nue",
        "[core]\n\tnonsense here",
        "filemode = true",
    ],
)
def test_a_setting_that_could_run_something_or_is_not_understood_is_not_neutral(setting: str) -> None:
    assert not configuration_is_neutral(ORDINARY + setting + "\n")


def repository(tmp_path: Path, config: str = ORDINARY) -> Path:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "config").write_text(config)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    return inner


def test_the_repository_around_a_directory_counts(tmp_path: Path) -> None:
    assert is_neutral(str(repository(tmp_path)))


def test_a_repository_that_cannot_be_read_or_lies_elsewhere_is_not_neutral(tmp_path: Path) -> None:
    inner = repository(tmp_path, ORDINARY + "[core]\n\tpager = x\n")
    assert not is_neutral(str(inner))
    (inner / ".git").write_text("gitdir: /elsewhere\n")
    assert not is_neutral(str(inner))


def test_a_directory_that_git_would_take_for_a_repository_is_not_neutral(tmp_path: Path) -> None:
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / name).mkdir()
    assert not is_neutral(str(tmp_path))


def git(directory: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run git with nothing of the machine's own configuration but what is given."""
    plain = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=directory, env=plain | environment, capture_output=True, text=True, check=False, timeout=30
    )


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A repository with one commit and one line changed since."""
    person = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "file.txt").write_text("before\n")
    git(tmp_path, "add", "file.txt")
    assert git(tmp_path, "commit", "-qm", "first", **person).returncode == 0
    (tmp_path / "file.txt").write_text("after\n")
    return tmp_path


@needs_git
@pytest.mark.parametrize("words", [("diff",), ("diff", "--stat"), ("show",), ("log", "-p"), ("status", "--short")])
def test_git_works_as_usual_in_the_neutral_environment(changed: Path, words: tuple[str, ...]) -> None:
    plain, neutral = git(changed, *words), git(changed, *words, **NEUTRAL)
    assert neutral.returncode == 0
    assert neutral.stdout == plain.stdout != ""


@needs_git
def test_an_external_diff_of_the_user_is_not_started_for_a_git_that_only_looks(changed: Path) -> None:
    mark = changed / "mark"
    (changed / ".gitconfig").write_text(f'[diff]\n\texternal = "touch {mark};:"\n')
    git(changed, "diff", **NEUTRAL)
    assert not mark.exists()
    git(changed, "diff")
    assert mark.exists()
