"""A path that cannot be looked up leads to a question, and never to a refusal that no human can lift."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.approvals import resolve as resolving
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.system import host_files

READING = Rules(read_only=True)


def judged(text: str, cwd: Path, rules: Rules = READING) -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=str(cwd))
    verdict, _ = judge_alone(spec, rules, dict(os.environ), root=str(cwd), now=0.0)
    return verdict


@pytest.fixture
def unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file that nobody may look at, as the namespaces of another user's process are."""
    (tmp_path / "held").write_text("x")

    def refuses(path: Any) -> os.stat_result:
        if "held" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os.stat(path)

    monkeypatch.setattr(host_files.LocalFiles, "stat", staticmethod(refuses))
    return "held"


@pytest.mark.parametrize(
    "text", ["cat held", "cat held > out", "cp held x", "bash held", "python3 held", "rm -r held/x"]
)
def test_a_command_about_a_file_that_may_not_be_looked_at_is_asked(unreadable: str, tmp_path: Path, text: str) -> None:
    assert unreadable in text
    assert judged(text, tmp_path).kind == "ask"


def test_a_command_about_the_namespace_of_another_process_is_asked(tmp_path: Path) -> None:
    # For an ordinary user, the link of process 1 exists and may not be read.
    for text in (
        "cat /proc/1/ns/net",
        "cp /proc/1/ns/net x",
        "nsenter --net=/proc/1/ns/net ls",
    ):
        assert judged(text, tmp_path).kind == "ask"


@pytest.mark.parametrize("name", ["round", "round/x"])
def test_links_in_a_circle_are_asked_about(tmp_path: Path, name: str) -> None:
    (tmp_path / "round").symlink_to("back")
    (tmp_path / "back").symlink_to("round")
    assert judged(f"cat {name}", tmp_path).kind == "ask"


def test_a_name_that_is_too_long_for_a_file_is_just_a_word(tmp_path: Path) -> None:
    assert judged(f"grep {'x' * 300} notes", tmp_path).kind == "allow"


@pytest.mark.parametrize("where", ["find_places", "sensitive_files", "find_scripts", "expand_command"])
def test_any_error_of_a_lookup_is_a_question_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(resolving, where, fails)
    verdict = judged("cat notes", tmp_path)
    assert (verdict.kind, verdict.reason) == ("ask", "a path in it cannot be looked up: Input/output error")
    denying = Rules(read_only=True, deny=(Rule(name="no", prefix=("cat",)),))
    assert judged("cat notes", tmp_path, denying).kind == "refuse"


def test_code_that_cannot_be_looked_up_is_said_to_be_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ELOOP, "Too many levels of symbolic links")

    (tmp_path / "run.sh").write_text("echo x\n")
    monkeypatch.setattr(resolving, "code_of", fails)
    spec = CommandSpec(command=Shell(text="bash run.sh"), cwd=str(tmp_path))
    verdict, resolved = judge_alone(spec, READING, dict(os.environ), root=str(tmp_path), now=0.0)
    assert verdict.kind == "ask"
    assert "cannot be looked up: Too many levels" in resolved.code[0].not_inspected


async def test_a_human_can_approve_what_could_not_be_looked_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(resolving, "find_places", fails)
    session = await bench.session()
    call = await bench.submit(session, text="echo x")
    assert (await bench.record(call)).state.kind == "waiting"
    await bench.approve(call)
    record = await bench.record(call)
    assert record.state.kind != "waiting"
    assert record.decision is not None and record.decision.kind == "approve"
