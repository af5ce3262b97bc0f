"""Where words really lead: links, what is behind them, and files that are none, in real directories."""

import os
import socket
from pathlib import Path

import pytest

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.judge import judge_alone


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    (made / "sub").mkdir(parents=True)
    (made / "file").write_text("x\n")
    (made / "sub" / "more").write_text("x\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x\n")
    return made


def kind(workspace: Path, text: str, *, own: tuple[str, ...] = ()) -> str:
    """What is said to a text for bash there."""
    spec = CommandSpec(command=Shell(text=text), cwd=str(workspace))
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/home/nobody-here"}
    rules = Rules(read_only=True)
    return judge_alone(spec, rules, environment, root=str(workspace), own=own, now=0)[0].kind


def test_ordinary_files_and_directories_may_be_read(workspace: Path) -> None:
    (workspace / "link").symlink_to("sub/more")
    for text in ("cat file sub/more", "cat link", "cat sub/../file", "cd sub && cat more ../file", "grep -rn x ."):
        assert kind(workspace, text) == "allow", text


def test_a_link_that_leads_to_a_home_is_asked(workspace: Path) -> None:
    (workspace / "link").symlink_to("/home")
    (workspace / "sub" / "link").symlink_to("../link")
    for text in (
        "cat link",
        "grep x link",
        "head -3 sub/link",
        "cd sub && cat link",
        "grep -f link file",
        "wc -l link/",
    ):
        assert kind(workspace, text) == "ask", text
    assert kind(workspace, "ls -l link") == "allow"


def test_the_parent_of_a_link_is_the_parent_of_its_target(workspace: Path) -> None:
    (workspace / "home").mkdir()
    (workspace / "link").symlink_to("/usr/share")
    assert os.path.samefile(workspace / "link" / ".." / ".." / "home", "/home")
    assert kind(workspace, "cat link/../../home") == "ask"
    assert kind(workspace, "cat home") == "allow"
    (workspace / "fd").symlink_to("/dev/fd")
    assert kind(workspace, "cat fd/../root/home") == "ask"


def test_a_directory_that_a_link_leads_out_to_is_no_place_to_go_on(workspace: Path) -> None:
    (workspace / "link").symlink_to(workspace.parent / "other")
    (workspace / "inner").symlink_to("sub")
    assert kind(workspace, "cd link && cat file") == "ask"
    assert kind(workspace, "cd inner && cat more") == "allow"
    assert kind(workspace, "cd link/.. && cat file") == "ask"


def test_a_secret_behind_a_link_with_an_ordinary_name_is_asked_with_a_risk(workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1\n")
    (workspace / "notes").symlink_to(".env")
    spec = CommandSpec(command=Shell(text="cat notes"), cwd=str(workspace))
    verdict, _ = judge_alone(spec, Rules(read_only=True), {"PATH": "/usr/bin:/bin"}, root=str(workspace), now=0)
    assert verdict.kind == "ask"
    assert "reads-secrets" in {risk.id for risk in verdict.risks}


def test_only_files_and_directories_are_read(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        monkeypatch.chdir(workspace)
        made.bind("socket")
    (workspace / "terminal").symlink_to("/dev/tty")
    (workspace / "nothing").symlink_to("/dev/null")
    assert kind(workspace, "cat fifo") == "ask"
    assert kind(workspace, "cat socket") == "ask"
    assert kind(workspace, "head -c 7 terminal") == "ask"
    assert kind(workspace, "cat nothing") == "allow"


def test_other_processes_are_not_inspected(workspace: Path) -> None:
    (workspace / "link").symlink_to("/proc/self/environ")
    assert kind(workspace, "cat link") == "ask"
    assert kind(workspace, f"cat /proc/{os.getppid()}/cmdline") == "ask"
    assert kind(workspace, "cat /proc/cpuinfo /proc/meminfo /proc/net/dev") == "allow"


def test_own_directories_are_asked_wherever_they_are(workspace: Path) -> None:
    own = workspace / "sub" / "mine"
    own.mkdir()
    (own / "journal").write_text("x")
    for text in (
        "cat sub/mine/journal",
        "ls sub/mine",
        "cd sub/mine && cat journal",
        "grep -rn x .",
        "rg x",
        "grep -r x sub",
    ):
        assert kind(workspace, text, own=(str(own),)) == "ask", text
    assert kind(workspace, "cat file", own=(str(own),)) == "allow"
