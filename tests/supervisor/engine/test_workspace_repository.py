"""A sandbox opens the repository of its workspace, and nothing that a workspace merely claims to be its repository."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.outside import needs_sandbox
from tests.supervisor.engine.test_unasked import Place
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.runs import sandboxed_git
from whisper_tui.supervisor.runs.sandboxed_git import GitInSandbox, git_in_sandbox
from whisper_tui.system.caged_program import Looked

pytestmark = [needs_sandbox, pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")]

RULES = Rules(
    allow=(
        Rule(name="commit", prefix=("git", "commit"), options=None, sandbox="workspace"),
        Rule(name="add", prefix=("git", "add"), options=None, sandbox="workspace"),
        Rule(name="tests", prefix=("/bin/sh", "t.sh"), sandbox="workspace"),
    )
)
TRY = """
cat {home}/.ssh/id_rsa {home}/notes
echo pwned >> {home}/.bashrc
echo pwned > {home}/other/.git/hooks/post-commit
echo ended
"""
COMMIT = "git commit -q --allow-empty -m x"


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    (made.home / ".bashrc").write_text("mine\n")
    (made.home / "notes").write_text("PRIVATE")
    repository(made.home, "other")
    await made.open(RULES)
    yield made
    await made.supervisor.close()


def git(directory: Path, *words: str) -> None:
    person = {f"GIT_{who}_{what}": "n@e" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True, env=os.environ | person)


def repository(directory: Path, *words: str) -> None:
    """Make a repository that knows who commits."""
    git(directory, "init", "-q", *words)
    for name in ("user.name", "user.email"):
        git(directory / "".join(words), "config", name, "n@e")


def code_of_the_workspace(place: Place) -> None:
    """What the rules let run: a test runner, and a hook of a repository that is in the workspace."""
    (place.workspace / "t.sh").write_text(TRY.format(home=place.home))


async def tried(place: Place, text: str = f"{COMMIT}; /bin/sh t.sh") -> CallRecord:
    """Run it unasked, and find the home as it was."""
    before = place.tree()
    record = await place.unasked(text)
    said = await place.said(record)
    assert b"ended" in said and b"PRIVATE" not in said
    after = place.tree()
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert not {name for name in changed if not name.startswith(str(place.workspace))}
    return record


def false_repository(place: Place, common: Path | str) -> None:
    """A directory in the workspace that git takes for one of a linked work tree, with a common directory elsewhere."""
    (place.workspace / "x").mkdir(exist_ok=True)
    (place.workspace / "x" / "HEAD").write_text("ref: refs/heads/m\n")
    (place.workspace / "x" / "commondir").write_text(str(common))
    (place.workspace / ".git").write_text("gitdir: x\n")


async def test_a_common_directory_whose_name_begins_with_a_blank_opens_no_home(place: Place) -> None:
    code_of_the_workspace(place)
    named = f" {place.home}"
    false_repository(place, named)
    inner = place.workspace / "x" / named
    inner.parent.mkdir(parents=True, exist_ok=True)
    git(place.workspace / "x", "init", "-q", "--bare", named)
    git(place.workspace / "x", "config", "-f", f"{named}/config", "core.bare", "false")
    hook = inner / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\n{TRY.format(home=place.home)} >&2\n")
    hook.chmod(0o755)
    await tried(place)


async def test_a_common_directory_that_is_the_home_opens_no_home(place: Place) -> None:
    code_of_the_workspace(place)
    false_repository(place, place.home)
    await tried(place)


@pytest.mark.parametrize("way", ["a file", "a file of a work tree", "a link"])
async def test_the_repository_of_another_work_tree_is_not_opened(way: str, place: Place) -> None:
    code_of_the_workspace(place)
    other = place.home / "other"
    if way == "a file":
        (place.workspace / ".git").write_text(f"gitdir: {other}/.git\n")
    elif way == "a link":
        (place.workspace / ".git").symlink_to(other / ".git")
    else:
        git(other, "commit", "-q", "--allow-empty", "-m", "x")
        git(other, "worktree", "add", "-q", str(place.elsewhere / "tree"))
        shutil.copy(place.elsewhere / "tree" / ".git", place.workspace / ".git")
    await tried(place)


async def test_a_repository_that_contains_the_home_is_not_opened(tmp_path: Path, place: Place) -> None:
    repository(place.home)
    inner = place.home / "below"
    place.workspace.rename(inner)
    place.workspace = inner
    await place.supervisor.close()
    await place.open(RULES)
    code_of_the_workspace(place)
    record = await tried(place)
    assert record.resolved is not None and record.resolved.repository is not None
    assert record.resolved.repository.work_tree == str(place.home)


async def test_a_workspace_that_is_the_home_keeps_its_private_paths_closed(place: Place) -> None:
    repository(place.home)
    shutil.rmtree(place.workspace)
    place.workspace = place.home
    await place.supervisor.close()
    await place.open(RULES)
    (place.home / "t.sh").write_text("cat .ssh/id_rsa; echo x > .ssh/made; echo x > notes; echo ended")
    said = await place.said(await place.unasked("/bin/sh t.sh"))
    assert b"PRIVATE" not in said
    assert (place.home / "notes").read_text() == "x\n" and not (place.home / ".ssh" / "made").exists()


async def committed(place: Place, repository: Path) -> None:
    record = await place.unasked(COMMIT)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0), await place.said(record)
    told = subprocess.run(["git", "log", "--format=%s"], cwd=repository, check=True, capture_output=True, text=True)
    assert told.stdout.startswith("x\n")


async def test_the_repository_of_the_workspace_takes_a_commit(place: Place) -> None:
    repository(place.workspace)
    await committed(place, place.workspace)


async def test_a_commit_names_the_user_though_the_configuration_of_the_home_stays_closed(place: Place) -> None:
    (place.home / ".gitconfig").write_text("[user]\n\tname = Me Myself\n\temail = me@here\n[x]\n\ty = PRIVATE\n")
    git(place.workspace, "init", "-q")
    (place.workspace / "t.sh").write_text(f"cat {place.home}/.gitconfig; git config --list --show-origin; git status")
    await committed(place, place.workspace)
    said = await place.said(await place.unasked("/bin/sh t.sh"))
    assert b"On branch" in said and b"PRIVATE" not in said
    told = ["git", "log", "--format=%an %ae %cn %ce"]
    log = subprocess.run(told, cwd=place.workspace, check=True, capture_output=True, text=True).stdout
    assert log == "Me Myself me@here Me Myself me@here\n"


async def test_the_configuration_of_a_repository_says_who_commits_in_it(place: Place) -> None:
    (place.home / ".gitconfig").write_text("[user]\n\tname = Me\n\temail = me@home\n")
    repository(place.workspace)
    await committed(place, place.workspace)
    assert author(place.workspace) == "n@e n@e"


@pytest.mark.parametrize("condition", ["", 'If "gitdir:{workspace}/"'])
async def test_a_configuration_that_is_included_says_who_commits(condition: str, place: Place) -> None:
    included = f"[include{condition.format(workspace=place.workspace)}]\n\tpath = work.inc\n"
    (place.home / ".gitconfig").write_text("[user]\n\tname = Me\n\temail = me@home\n" + included)
    (place.home / "work.inc").write_text("[user]\n\temail = me@work\n")
    git(place.workspace, "init", "-q")
    await committed(place, place.workspace)
    assert author(place.workspace) == "Me me@work"


def author(repository: Path) -> str:
    told = ["git", "log", "--format=%an %ae"]
    return subprocess.run(told, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("named", ["~/ignored", ""])
async def test_what_the_user_ignores_everywhere_is_not_added(named: str, place: Place) -> None:
    repository(place.workspace)
    list_of_files = place.home / ".config" / "git" / "ignore"
    if named:
        (place.home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {named}\n")
        list_of_files = place.home / "ignored"
    list_of_files.parent.mkdir(parents=True, exist_ok=True)
    list_of_files.write_text("*.bak\n")
    for name in ("a.txt", "a.bak"):
        (place.workspace / name).write_text("x\n")
    record = await place.unasked("git add -A")
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0), await place.said(record)
    listed = subprocess.run(["git", "ls-files"], cwd=place.workspace, check=True, capture_output=True, text=True)
    assert "a.txt\n" in listed.stdout and ".bak" not in listed.stdout


def test_a_home_that_an_agent_has_set_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesFile = ~/secret\n[include]\n\tpath = secret\n")
    (tmp_path / "secret").write_text("[user]\n\tname = PRIVATE\n")
    session = {"HOME": str(tmp_path)}
    assert git_in_sandbox(session, (), None, commits=True) == GitInSandbox({"GIT_CONFIG_GLOBAL": "/dev/null"})
    monkeypatch.setenv("HOME", str(tmp_path))
    opened = git_in_sandbox(session, (), None, commits=True)
    assert opened.read == (f"{tmp_path}/secret",) and opened.variables["GIT_AUTHOR_NAME"] == "PRIVATE"


def test_git_is_asked_again_who_commits_if_it_did_not_answer_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Me\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = partial(git_in_sandbox, {"HOME": str(tmp_path)}, (), None, commits=True)
    with monkeypatch.context() as late:
        late.setattr(sandboxed_git, "look", lambda *_, **__: Looked(None, was_late=True))
        assert "GIT_AUTHOR_NAME" not in asked().variables
    assert asked().variables["GIT_AUTHOR_NAME"] == "Me"


async def test_a_repository_whose_settings_run_programs_is_still_that_of_its_workspace(place: Place) -> None:
    repository(place.workspace)
    git(place.workspace, "config", "core.fsmonitor", "true")
    await committed(place, place.workspace)


async def test_a_linked_work_tree_takes_a_commit_in_the_repository_that_names_it(place: Place) -> None:
    main = place.elsewhere / "main"
    repository(place.elsewhere, "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    shutil.rmtree(place.workspace)
    git(main, "worktree", "add", "-q", str(place.workspace))
    await committed(place, place.workspace)


async def test_a_directory_of_a_repository_takes_a_commit_and_its_files_elsewhere_are_only_read(place: Place) -> None:
    repository(place.top)
    (place.elsewhere / "read").write_text("around\n")
    (place.workspace / "t.sh").write_text(f"cat {place.elsewhere}/read; echo x > {place.elsewhere}/made; echo ended")
    # The home of these tests lies in the same directory.
    os.environ["HOME"] = str(place.top.parent / "another")
    await committed(place, place.workspace)
    said = await place.said(await place.unasked(f"{COMMIT}; /bin/sh t.sh"))
    assert b"around" in said and b"ended" in said
    assert not (place.elsewhere / "made").exists()
