"""`approve` and `deny` on the command line: severe risks are confirmed, and a reason needs no option."""

import os

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.cli.terminal import Terminal
from tests.outside import outside_only

pytestmark = outside_only
SEVERE = "rm -rf build"


def waiting(instance: Instance, *commands: str) -> None:
    instance.run("restart")
    for command in commands:
        instance.call("run_shell_command", command=command)


@pytest.mark.slow
def test_a_severe_risk_is_not_approved_by_a_script_without_yes(instance: Instance) -> None:
    waiting(instance, "echo 1", SEVERE)
    refused = instance.run("approve", "1", "2")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "call 2: " in refused.stderr and "--yes" in refused.stderr
    assert {row["state"] for row in instance.seen("list")} == {"waiting"}
    assert instance.run("approve", "1").returncode == 0
    assert instance.run("approve", "2", "--dry-run", "--session").returncode == 0
    assert instance.run("approve", "2", "--yes").stdout.startswith("Approved 2: rm -rf build")
    instance.until(lambda: instance.rows("show", "2")["exit_code"] == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("", 1)])
def test_on_a_terminal_a_severe_risk_is_asked_about(instance: Instance, typed: str, code: int) -> None:
    waiting(instance, SEVERE)
    words = [*PROGRAM, "approve", "1", "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        terminal.shows(b"[y/N]")
        assert "▲▲ ".encode() in terminal.text and b"1: rm -rf build" in terminal.text
        terminal.types(typed.encode() + b"\n")
        assert terminal.process.wait(60) == code
    assert ({row["state"] for row in instance.seen("list")} == {"waiting"}) == bool(code)


@pytest.mark.slow
def test_the_last_word_of_deny_may_be_the_reason(instance: Instance) -> None:
    waiting(instance, "echo 1", "echo 2", "echo 3")
    assert instance.run("deny", "1", "2", "use the staging server").stdout.count("Denied") == 2
    for call_id in ("1", "2"):
        assert instance.rows("show", call_id)["reason"] == "use the staging server"
    assert instance.run("deny", "3", "word", "--reason", "another").returncode == 4
    assert instance.run("deny", "3", "--reason", "another").returncode == 0
    assert instance.rows("show", "3")["reason"] == "another"


@pytest.mark.slow
def test_a_script_is_printed_line_by_line_when_approved_and_shortly_when_denied(instance: Instance) -> None:
    script = "\n".join(f"echo line {number}" for number in range(40))
    waiting(instance, script, script)
    approved = instance.run("approve", "1").stdout.splitlines()
    assert approved[:3] == ["Approved 1:", "  echo line 0", "  echo line 1"] and "  echo line 39" in approved
    (denied,) = instance.run("deny", "2").stdout.splitlines()
    assert denied.startswith("Denied 2: echo line 0") and denied.endswith("…") and len(denied) < 140
