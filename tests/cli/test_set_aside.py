"""`whisper-tui aside`: a call moves out of the way without an answer, and its agent is told so."""

import json
import shlex
import signal
import subprocess

import pytest

from tests.cli.agent_shell import Shell, finished, reason, rewritten, shell
from tests.cli.conftest import PROGRAM, Instance
from tests.cli.test_watch import WatchPlayer, player
from tests.outside import outside_only

__all__ = ["player", "shell"]
pytestmark = outside_only


def test_a_hook_is_answered_at_once_and_the_command_runs_once_it_is_approved_and_asked_for_again(shell: Shell) -> None:
    asking = shell.ask("echo later")
    call_id = shell.waiting()
    shell.instance.run("aside", call_id)
    told = reason(finished(asking))
    assert told.startswith("Set aside by the human in whisper_tui, and nothing ran: this command is still to be")
    assert f"(ticket {call_id})" in told and "Run the same command again later to wait for the decision" in told
    row = shell.row(call_id)
    assert (row["state"], row["agent_gave_up"]) == ("set aside", "it was told that the call is set aside")
    again = shell.ask("echo later")
    shell.instance.until(lambda: shell.row(call_id)["agent_gave_up"] is None)
    assert shell.row(call_id)["state"] == "set aside" and again.poll() is None
    shell.approve(call_id)
    assert shell.run(shlex.split(rewritten(finished(again)))).stdout == b"later\n"
    assert len(shell.instance.rows("history")) == 1


@pytest.mark.slow
def test_an_edit_that_is_set_aside_is_made_only_when_it_is_asked_for_again(shell: Shell) -> None:
    path = shell.instance.workspace / "notes.md"
    (shell.instance.root / "config" / "rules.toml").write_text('unasked = "reading"\n')
    path.write_text("one\n")
    given = {"file_path": str(path), "old_string": "one", "new_string": "two"}
    asking = shell.ask("", tool_name="Edit", tool_input=given)
    call_id = shell.waiting()
    shell.instance.run("aside", call_id)
    assert "nothing was changed: this edit is still to be decided" in reason(finished(asking))
    shell.approve(call_id)
    assert shell.row(call_id)["state"] == "held"
    answer = finished(shell.ask("", tool_name="Edit", tool_input=given))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "allow"


def test_it_is_said_listed_and_taken_back_on_the_command_line(instance: Instance) -> None:
    instance.run("restart")
    for name in "ab":
        instance.call("execute_command", command="touch", args=[name])
        instance.until(lambda: name in str(instance.seen("list")))  # noqa: B023 (it is called at once)
    assert instance.run("aside", "1", "2").stdout == "Set aside 1: touch a\nSet aside 2: touch b\n"
    assert instance.run("aside", "2", "--back").stdout == "Waits again 2: touch b\n"
    assert [(row["id"], row["state"]) for row in instance.rows("list")] == [("2", "waiting"), ("1", "set aside")]
    assert "by" in instance.run("show", "1").stdout
    refused = instance.run("aside", "9")
    assert refused.returncode != 0 and "There is no call 9" in refused.stderr
    instance.run("deny", "2", "no")
    refused = instance.run("aside", "1", "2", "--back")
    assert instance.rows("show", "1")["state"] == "set aside"  # nothing is moved unless all of them wait
    assert refused.returncode != 0 and "Call 2 does not wait for a decision: it is ended" in refused.stderr
    assert instance.run("approve", "1").returncode == 0
    instance.until(lambda: instance.rows("show", "1")["exit_code"] == 0)
    assert (instance.workspace / "a").exists()


@pytest.mark.slow
def test_list_waits_for_another_call_than_one_that_is_set_aside(instance: Instance) -> None:
    instance.run("restart")
    instance.call("execute_command", command="touch", args=["a"])
    instance.until(lambda: instance.seen("list"))
    instance.run("aside", "1")
    waits = instance.start("list", "--wait", "--json")
    with pytest.raises(subprocess.TimeoutExpired):
        waits.wait(1)
    instance.call("execute_command", command="touch", args=["b"])
    out, _ = waits.communicate(timeout=60)
    assert [row["state"] for row in json.loads(out)] == ["waiting", "set aside"]


@pytest.mark.slow
def test_it_outlives_a_supervisor_that_is_killed(instance: Instance) -> None:
    instance.run("restart")
    instance.call("execute_command", command="touch", args=["a"])
    instance.until(lambda: instance.seen("list"))
    instance.run("aside", "1")
    instance.kill_supervisor(signal.SIGKILL)
    instance.run("restart")
    row = instance.rows("show", "1")
    assert row["state"] == "set aside" and row["set_aside"]["by"]["surface"] == "command line"


@pytest.mark.slow
def test_no_supervised_command_sets_a_call_aside_or_brings_it_back(instance: Instance) -> None:
    instance.run("restart")
    for name in "ab":
        instance.call("execute_command", command="touch", args=[name])
    instance.until(lambda: len(instance.seen("list")) == 2)
    instance.run("aside", "2")
    tries = " ; ".join(
        shlex.join((*PROGRAM, "aside", *words, "--home", str(instance.root))) for words in (("1",), ("2", "--back"))
    )
    instance.call("run_shell_command", command=tries)
    instance.until(lambda: len(instance.seen("list")) == 3)
    instance.run("approve", "3", "--yes")
    instance.until(lambda: instance.rows("show", "3")["state"] == "ended")
    states = {row["id"]: row["state"] for row in instance.rows("list")}
    assert states == {"1": "waiting", "2": "set aside"}
    refused = instance.run("history", "refused").stdout
    assert refused.count("set call ") == 2 and "set call 1 aside" in refused, refused


@pytest.mark.slow
def test_watch_tells_what_was_set_aside_elsewhere_and_goes_on_with_the_next(
    instance: Instance, player: WatchPlayer
) -> None:
    player.sees("> ")
    for name in ("one", "two"):
        instance.call("execute_command", command="touch", args=[name])
    player.sees("Call 1> ")
    instance.run("aside", "1")
    player.sees("Call 1 is set aside by ")
    player.says("")
    player.sees("Call 2 waits for you.")
    player.says("aside")
    player.sees("Call 2 is set aside.")
    player.says("call 1")
    player.sees("Call 1 is set aside and still waits.")
    player.says("approve")
    player.sees("Call 1 is approved.")
    instance.until((instance.workspace / "one").exists)
