"""A git that looks at a repository runs nothing that the repository names, reads nothing else, and ends in time."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside import needs_sandbox
from whisper_tui.effects import effects_of
from whisper_tui.effects.file_view import Deadline
from whisper_tui.effects.git_reader import MAY_RUN_PROGRAMS, GitReader
from whisper_tui.model.call import Shell
from whisper_tui.model.verdict import Repository
from whisper_tui.system.processes import children_of

pytestmark = [needs_sandbox, pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")]
PATIENCE_S = 60.0

BUILD = """
git init -q -b main; git config user.name n; git config user.email e
echo '* filter=evil diff=evil' > .gitattributes; echo a > a; echo b > b; git add .; git commit -qm first
echo c > c; git add .; git commit -qm second; echo changed > a; echo new > new; touch b
"""

EVIL = {
    "core.fsmonitor": "touch {ran}; false",
    "core.sshCommand": "touch {ran}; false",
    "filter.evil.clean": "touch {ran}; cat",
    "filter.evil.smudge": "touch {ran}; cat",
    "filter.evil.process": "touch {ran}; false",
    "diff.evil.textconv": "touch {ran}; cat",
    "diff.evil.command": "touch {ran}",
    "diff.external": "touch {ran}",
    "log.showSignature": "true",
    "gpg.program": "touch {ran}; false",
    "credential.helper": "!touch {ran}",
    "core.pager": "touch {ran}; cat",
    "pager.log": "touch {ran}; cat",
    "alias.status": "!touch {ran}",
    "extensions.partialClone": "origin",
    "remote.origin.url": "ext::touch {ran}",
    "remote.origin.promisor": "true",
}
"""Settings with which a repository makes plain git run programs."""


def sh(script: str, directory: Path) -> None:
    subprocess.run(
        ["sh", "-euc", script], cwd=directory, check=True, env={"PATH": os.environ["PATH"], "HOME": str(directory)}
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    sh(BUILD, directory)
    return directory


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Path]:
    """A file that a program of the repository makes."""
    yield tmp_path / "workspace" / ".git" / "ran"


def make_evil(workspace: Path, ran: Path) -> None:
    for name, command in EVIL.items():
        subprocess.run(["git", "config", name, command.format(ran=ran)], cwd=workspace, check=True)


def found(workspace: Path, closed: tuple[str, ...] = ()) -> tuple[GitReader, Repository]:
    reader = GitReader(Deadline(PATIENCE_S), closed)
    repository, _ = reader.repository(str(workspace))
    assert repository is not None
    return reader, repository


def test_a_repository_whose_settings_run_programs_is_asked_and_runs_none(workspace: Path, ran: Path) -> None:
    make_evil(workspace, ran)
    reader, repository = found(workspace)
    assert reader.repository(str(workspace))[1] == MAY_RUN_PROGRAMS
    assert reader.state(repository) == ("main", 2)
    assert reader.statuses(repository, "HEAD") == [("M", str(workspace / "a"))]
    assert [commit.subject for commit in reader.commits(repository, "HEAD")[0]] == ["second", "first"]
    assert reader.count(repository, "HEAD") == 2
    assert reader.line(repository, "config", "--get", "remote.origin.url") is not None
    assert not ran.exists()


def test_the_same_settings_run_programs_without_the_cage(workspace: Path, ran: Path) -> None:
    make_evil(workspace, ran)
    subprocess.run(["git", "status"], cwd=workspace, check=False, capture_output=True)
    assert ran.exists()


@pytest.mark.parametrize("name", [name for name, value in EVIL.items() if "{ran}" in value])
def test_settings_that_are_written_after_the_look_at_them_run_nothing(name: str, workspace: Path, ran: Path) -> None:
    reader, repository = found(workspace)
    assert reader.repository(str(workspace))[1] == ""
    subprocess.run(["git", "config", name, EVIL[name].format(ran=ran)], cwd=workspace, check=True)
    reader.state(repository)
    reader.statuses(repository, "HEAD")
    reader.commits(repository, "HEAD")
    reader.names(repository, "ls-files", "-z", "-m", "-d")
    assert reader.content(repository, "HEAD", str(workspace / "a")) == b"a\n"
    assert not ran.exists()


def test_what_is_said_about_such_a_repository_is_not_all(workspace: Path, ran: Path) -> None:
    make_evil(workspace, ran)
    effects = effects_of(Shell(text="git reset --hard"), str(workspace), [str(workspace)], {}, budget_s=PATIENCE_S)
    assert effects.git[0].branch == "main"
    assert [file.path for file in effects.files] == [str(workspace / "a")]
    assert not effects.files_are_certain
    assert {each.reason for each in effects.unknown} == {MAY_RUN_PROGRAMS}


@pytest.mark.parametrize("named", ["include.path", "packed-refs", "commondir", "info/exclude", "HEAD of a branch"])
def test_a_fifo_in_a_repository_costs_no_more_than_the_time_that_there_is(named: str, workspace: Path) -> None:
    os.mkfifo(workspace / ".git" / "fifo")
    if named == "include.path":
        subprocess.run(["git", "config", "include.path", "fifo"], cwd=workspace, check=True)
    else:
        place = {"HEAD of a branch": "refs/heads/main"}.get(named, named)
        (workspace / ".git" / place).unlink(missing_ok=True)
        (workspace / ".git" / "fifo").rename(workspace / ".git" / place)
    before = set(children_of(os.getpid()))
    command = Shell(text="git reset --hard; git status")
    effects = effects_of(command, str(workspace), [str(workspace)], {}, budget_s=0.15)
    assert not effects.files_are_certain or named == "commondir"
    assert set(children_of(os.getpid())) == before


def test_git_reads_nothing_outside_of_the_repository(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('[remote "origin"]\n\turl = SECRET\n')
    subprocess.run(["git", "config", "include.path", str(tmp_path / "secret")], cwd=workspace, check=True)
    reader, repository = found(workspace)
    assert reader.line(repository, "config", "--get", "remote.origin.url") is None
    assert reader.ask(repository, "hash-object", "--", str(tmp_path / "secret")) is None


def test_git_reads_no_closed_path_of_a_work_tree(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    for name in (".ssh", "own", "open"):
        (workspace / name).mkdir()
        (workspace / name / "file").write_text("SECRET")
    reader, repository = found(workspace, (str(workspace / "own"),))
    assert reader.ask(repository, "hash-object", "--", "open/file") is not None
    for name in (".ssh", "own"):
        assert reader.ask(repository, "hash-object", "--", f"{name}/file") is None
