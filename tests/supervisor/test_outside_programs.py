"""Programs in a home directory: which of them a sandbox runs, and about which a human is asked before they fail."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.approvals.resolve import outside_programs
from whisper_tui.supervisor.runs.sandbox_profile import minimal_environment


@pytest.fixture
def tools() -> Iterator[Path]:
    """A directory of programs in a home directory."""
    with TemporaryDirectory(prefix="tools-") as directory:
        yield Path(directory)


def binary(path: Path) -> Path:
    shutil.copy("/bin/cat", path)
    path.chmod(0o755)
    return path


def script(path: Path) -> Path:
    path.write_text("#!/bin/sh\necho hello\n")
    path.chmod(0o755)
    return path


def runs_alone(program: Path) -> bool:
    (found,) = outside_programs([str(program)], ["/nowhere"])
    return found.runs_alone


def test_a_binary_that_only_the_user_can_change_runs_alone(tools: Path) -> None:
    assert runs_alone(binary(tools / "rg"))
    (tools / "linked").symlink_to(tools / "rg")
    assert runs_alone(tools / "linked")


def test_a_script_and_what_others_can_change_do_not(tools: Path) -> None:
    assert not runs_alone(script(tools / "jq"))
    (written := binary(tools / "written")).chmod(0o777)
    assert not runs_alone(written)
    (tools / "shared").mkdir()
    shared = binary(tools / "shared" / "rg")
    assert runs_alone(shared)
    shared.parent.chmod(0o777)
    assert not runs_alone(shared)


def test_a_program_that_starts_another_of_its_name_does_not(tools: Path) -> None:
    binary(tools / "rustup")
    (tools / "cargo").symlink_to(tools / "rustup")
    assert not runs_alone(tools / "cargo")


def test_programs_of_the_system_and_of_the_workspace_are_not_outside(tools: Path, tmp_path: Path) -> None:
    (tools / "sh").symlink_to("/bin/sh")
    inside = binary(tmp_path / "rg")
    (tools / "rg").symlink_to(inside)
    programs = ["/bin/cat", str(tools / "sh"), str(inside), str(tools / "rg")]
    assert outside_programs(programs, [str(tmp_path)]) == ()


def judged(text: str, tools: Path, root: Path, rules: Rules = NO_RULES) -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=str(root))
    environment = {"PATH": f"{tools}:/usr/bin:/bin"}
    return judge_alone(spec, rules, environment, root=str(root), now=0.0)[0]


READING = Rules(unasked="reading", read_only=True)


def test_a_binary_is_opened_to_the_sandbox(tools: Path, tmp_path: Path) -> None:
    binary(tools / "jq")
    verdict = judged("jq . a.json", tools, tmp_path, READING)
    assert verdict.kind == "allow" and verdict.sandbox is not None
    assert verdict.sandbox.programs == (str(tools / "jq"),)
    assert minimal_environment({}, verdict.sandbox)["PATH"].endswith(f":/bin:{tools}")


@pytest.mark.parametrize("text", ["jq . a.json", "cat a.json | jq .", "jq --version"])
def test_a_script_is_asked_about_before_it_fails(text: str, tools: Path, tmp_path: Path) -> None:
    script(tools / "jq")
    verdict = judged(text, tools, tmp_path, READING)
    assert verdict.kind == "ask"
    assert f"does not execute {tools}/jq" in verdict.reason


def test_a_rule_may_open_its_directory(tools: Path, tmp_path: Path) -> None:
    script(tools / "jq")
    rule = Rule(name="jq", prefix=("jq", "."))
    assert judged("jq . a", tools, tmp_path, Rules(allow=(rule,))).kind == "ask"
    opened = rule.model_copy(update={"execute": (str(tools),)})
    verdict = judged("jq . a", tools, tmp_path, Rules(allow=(opened,)))
    assert verdict.kind == "allow" and verdict.sandbox is not None and verdict.sandbox.programs == ()
    without = rule.model_copy(update={"sandbox": False})
    assert judged("jq . a", tools, tmp_path, Rules(allow=(without,))).kind == "allow"
