"""`show --told`: what an agent was told, beside what its hook and its shell really printed."""

import json
import shlex

import pytest

from tests.cli.agent_shell import Shell, finished, shell
from tests.cli.conftest import Instance
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only


def parts(instance: Instance, call_id: str, *options: str) -> dict[str, str]:
    return {part["label"]: part["text"] for part in instance.rows("show", call_id, "--told", *options)["parts"]}


@pytest.mark.slow
def test_a_denied_command_of_a_shell_has_exactly_the_answer_of_its_hook(shell: Shell) -> None:
    asking = shell.ask("rm -rf build")
    shell.deny(shell.waiting(), "use make clean")
    out, _ = asking.communicate(timeout=90)
    found = parts(shell.instance, "1")
    assert found["answer of the hook"] == out.decode()
    assert found["reason of the denial"] == "Denied by the human. Nothing ran. Reason: use make clean"


@pytest.mark.slow
def test_a_command_of_a_shell_has_the_output_the_note_and_the_exit_code_that_its_agent_got(shell: Shell) -> None:
    asking = shell.ask("printf out; echo wrong >&2; exit 3")
    shell.approve(shell.waiting(), "printf 'out\\n'; echo wrong >&2; exit 7")
    answered = finished(asking)
    ran = shell.run(shlex.split(answered["hookSpecificOutput"]["updatedInput"]["command"]))
    assert parts(shell.instance, "1") == {
        "note with the approval": answered["hookSpecificOutput"]["additionalContext"],
        "standard output": ran.stdout.decode(),
        "standard error": ran.stderr.decode(),
        "exit code": str(ran.returncode),
    }
    lines = shell.instance.run("show", "1", "--told").stdout.splitlines()
    assert lines[lines.index("standard output:") + 1] == "  out"


@pytest.mark.slow
def test_a_call_of_the_command_line_is_told_again_and_secrets_are_shown_only_on_demand(instance: Instance) -> None:
    text = "echo 'Authorization: Bearer abcdefghijklmnop123456'"
    process = instance.call("run_shell_command", command=text)
    assert instance.run("approve", "1", "--yes").returncode == 0
    out, _ = process.communicate(timeout=90)
    assert json.loads(parts(instance, "1", "--unmasked")["result"]) == json.loads(out)
    assert "abcdefghijklmnop" in out and "abcdefghijklmnop" not in instance.run("show", "1", "--told").stdout


@pytest.mark.slow
def test_a_call_that_has_not_ended_has_no_answer(instance: Instance) -> None:
    instance.call("run_shell_command", command="echo 1")
    assert "note: The call has not ended" in instance.run("show", "1", "--told").stdout
    assert instance.run("show", "77", "--told").returncode == 4
