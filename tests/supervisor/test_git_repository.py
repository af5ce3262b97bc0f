"""What a git that nobody was asked about is held to: a repository that was judged, and none that it could find."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from whisper_tui.effects.git_repository import find_repository
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.runs.start_order import read_only_environment

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
PERSON = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run git with nothing of the machine's own configuration."""
    plain = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1", **PERSON}
    plain |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    return subprocess.run(
        ["git", *words],
        cwd=directory,
        env=plain | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def commit(directory: Path) -> Path:
    """A repository with one commit and one line changed since."""
    directory.mkdir(exist_ok=True, parents=True)
    git(directory, "init", "-q", "-b", "main")
    (directory / "file.txt").write_text("before\n")
    git(directory, "add", "file.txt")
    assert git(directory, "commit", "-qm", "first").returncode == 0
    (directory / "file.txt").write_text("after\n")
    return directory


def judged(directory: Path, text: str) -> tuple[str, dict[str, str]]:
    """What is said to a command there, and the environment that it would get."""
    spec = CommandSpec(command=Shell(text=text), cwd=str(directory))
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    verdict, resolved = judge_alone(spec, Rules(read_only=True), environment, root=str(directory), now=0)
    return verdict.kind, read_only_environment(spec, resolved)


def runs(directory: Path, *words: str, mark: Path) -> str:
    """What happens to a git there: it is asked about, or runs and leaves the mark of an intruder or does not."""
    kind, environment = judged(directory, " ".join(["git", *words]))
    if kind != "allow":
        return "asked"
    git(directory, *words, environment=environment)
    return "harmed" if mark.exists() else "harmless"


@pytest.mark.parametrize("words", [("diff",), ("diff", "--stat"), ("show",), ("log", "-p"), ("status", "--short")])
@pytest.mark.parametrize("place", [".", "sub"])
def test_git_works_as_usual_without_being_asked(tmp_path: Path, place: str, words: tuple[str, ...]) -> None:
    top = commit(tmp_path)
    (top / "sub").mkdir()
    kind, environment = judged(top / place, " ".join(["git", *words]))
    plain, neutral = git(top / place, *words), git(top / place, *words, environment=environment)
    assert kind == "allow"
    assert neutral.returncode == 0
    assert neutral.stdout == plain.stdout != ""


def test_a_linked_work_tree_follows_its_repository(tmp_path: Path) -> None:
    top, linked = commit(tmp_path / "top"), tmp_path / "linked"
    assert git(top, "worktree", "add", "-q", str(linked)).returncode == 0
    (linked / "file.txt").write_text("elsewhere\n")
    kind, environment = judged(linked, "git diff")
    assert kind == "allow"
    assert "+elsewhere" in git(linked, "diff", environment=environment).stdout


def test_a_file_that_leads_to_a_repository_which_does_not_know_of_it_is_asked(tmp_path: Path) -> None:
    top, linked, false = commit(tmp_path / "top"), tmp_path / "linked", tmp_path / "false"
    git(top, "worktree", "add", "-q", str(linked))
    false.mkdir()
    shutil.copy(linked / ".git", false / ".git")
    assert judged(false, "git log")[0] == "ask"
    (false / ".git").write_text(f"gitdir: {top}/.git\n")
    assert judged(false, "git log")[0] == "ask"


def test_an_external_diff_of_the_user_is_not_started(tmp_path: Path) -> None:
    top, mark = commit(tmp_path), tmp_path / "mark"
    (top / ".gitconfig").write_text(f'[diff]\n\texternal = "touch {mark};:"\n')
    assert runs(top, "diff", mark=mark) == "harmless"
    git(top, "diff")
    assert mark.exists()


def disguised(directory: Path, mark: Path) -> Path:
    """A directory that a clone could bring along, and that git takes for a repository without a work tree."""
    other = commit(directory.parent / "other")
    inner = directory / "c"
    shutil.copytree(other / ".git", inner)
    (inner / "HEAD").unlink()
    shutil.copy(other / ".git" / "HEAD", directory / "HEAD")
    (directory / "commondir").write_text("c\n")
    with (inner / "config").open("a") as config:
        config.write(f'[diff "evil"]\n\ttextconv = "touch {mark}; cat"\n')
    (inner / "info").mkdir(exist_ok=True)
    (inner / "info" / "attributes").write_text("* diff=evil\n")
    return directory


def test_files_of_a_clone_that_look_like_a_repository_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    top = commit(tmp_path / "top")
    (top / "sub").mkdir()
    sub = disguised(top / "sub", mark)
    git(sub, "show")
    assert mark.exists(), "the trick does not work with this git"
    mark.unlink()
    assert runs(sub, "show", mark=mark) != "harmed"
    alone = tmp_path / "alone"
    shutil.copytree(sub, alone)
    assert runs(alone, "show", mark=mark) == "asked"


def filtering(mark: Path) -> str:
    return f'[filter "evil"]\n\tclean = "touch {mark}; cat"\n'


def test_a_repository_with_its_configuration_elsewhere_is_asked(tmp_path: Path) -> None:
    top, mark = commit(tmp_path / "top"), tmp_path / "mark"
    shutil.copytree(top / ".git", top / "c")
    with (top / "c" / "config").open("a") as config:
        config.write(filtering(mark))
    (top / "c" / "info").mkdir(exist_ok=True)
    (top / "c" / "info" / "attributes").write_text("* filter=evil\n")
    (top / ".git" / "commondir").write_text("../c\n")
    assert runs(top, "status", mark=mark) == "asked"
    assert not mark.exists()


def test_the_configuration_of_a_submodule_runs_nothing(tmp_path: Path) -> None:
    module, top, mark = commit(tmp_path / "module"), commit(tmp_path / "top"), tmp_path / "mark"
    assert git(top, "submodule", "add", "-q", str(module), "sub").returncode == 0
    git(top, "commit", "-qm", "second")
    with (top / ".git" / "modules" / "sub" / "config").open("a") as config:
        config.write(filtering(mark))
    (top / ".git" / "modules" / "sub" / "info").mkdir(exist_ok=True)
    (top / ".git" / "modules" / "sub" / "info" / "attributes").write_text("* filter=evil\n")
    (top / "sub" / "file.txt").write_text("BEFORE\n")  # of the same size, so that git has to compare
    git(top, "status")
    assert mark.exists(), "the trick does not work with this git"
    mark.unlink()
    assert runs(top, "status", mark=mark) == "asked"
    assert runs(top, "log", "-p", mark=mark) == "harmless"


@pytest.mark.parametrize("name", ["config", "HEAD", "index", "objects"])
def test_a_repository_of_which_a_part_is_a_link_is_asked(tmp_path: Path, name: str) -> None:
    top = commit(tmp_path / "top")
    (top / ".git" / name).rename(tmp_path / name)
    (top / ".git" / name).symlink_to(tmp_path / name)
    assert judged(top, "git log")[0] == "ask"


@pytest.mark.parametrize("name", ["objects/info/alternates", "config.worktree"])
def test_a_repository_that_reads_from_elsewhere_is_asked(tmp_path: Path, name: str) -> None:
    top = commit(tmp_path)
    (top / ".git" / name).parent.mkdir(exist_ok=True)
    (top / ".git" / name).write_text("/elsewhere\n")
    assert judged(top, "git log")[0] == "ask"


def test_a_configuration_that_could_run_something_is_asked(tmp_path: Path) -> None:
    top = commit(tmp_path)
    with (top / ".git" / "config").open("a") as config:
        config.write("[core]\n\tfsmonitor = ./x\n")
    assert judged(top, "git status")[0] == "ask"
    (top / "sub").mkdir()
    assert find_repository(str(top / "sub"))[1] is False


def test_an_empty_directory_named_git_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    kind, environment = judged(inner, "git log")
    assert kind == "allow"
    commit(tmp_path)
    assert git(inner, "log").returncode == 0
    assert git(inner, "log", environment=environment).returncode == 128, "what appears there later is not used"
    (inner / ".git").mkdir()
    found = find_repository(str(inner)).repository
    assert found is not None and found.work_tree == str(tmp_path), "git looks further up, too"


def test_without_a_repository_git_finds_none_later(tmp_path: Path) -> None:
    kind, environment = judged(tmp_path, "git log")
    commit(tmp_path.parent / f"{tmp_path.name}-other")
    assert kind == "allow"
    assert git(tmp_path, "log", environment=environment).returncode == 128
    inner = tmp_path / "inner"
    inner.mkdir()
    assert read_only_environment(CommandSpec(command=Shell(text="git log"), cwd=str(inner)), Resolved(cwd=str(inner)))[
        "GIT_DIR"
    ] == str(inner / ".git")


def test_git_beside_a_command_that_a_rule_allows_needs_approval(tmp_path: Path) -> None:
    top = commit(tmp_path)
    assert judged(top, "git status && ls")[0] == "allow"
    spec = CommandSpec(command=Shell(text="make && git status"), cwd=str(top))
    from whisper_tui.policy.rules.rule import Rule

    rules = Rules(read_only=True, allow=(Rule(name="make", program="make"),))
    assert judge_alone(spec, rules, os.environ, root=str(top), now=0)[0].kind == "ask"
