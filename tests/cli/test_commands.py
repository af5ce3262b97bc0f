"""Every subcommand does what it says, in words for people and in JSON for scripts."""

import json
import os
import re
import signal
import subprocess

import pytest

from tests.cli.conftest import PROGRAM
from tests.outside import needs_sandbox, outside_only
from tests.rows import each_row
from whisper_tui.wire.light_client import light_client

pytestmark = outside_only

ALWAYS = {"id", "state", "tool", "description", "command", "cwd", "session"}
ONCE_KNOWN = {"pid", "exit_code", "signal", "ending", "background"}


@pytest.mark.slow
def test_a_call_waits_is_listed_approved_and_answered(instance):
    call = instance.call("execute_command", command="sh", args=["-c", "echo out; echo err >&2; exit 3"])
    (row,) = instance.rows("list")
    assert row.keys() >= ALWAYS | ONCE_KNOWN
    assert (row["state"], row["command"][0], row["cwd"]) == ("waiting", "sh", str(instance.workspace))
    assert (row["pid"], row["exit_code"], row["ending"], row["background"]) == (None, None, None, [])
    approved = instance.run("approve", row["id"])
    assert approved.returncode == 0 and "echo out; echo err >&2; exit 3" in approved.stdout
    out, err = call.communicate(timeout=90)
    assert json.loads(out) == {"stdout": "out\n", "stderr": "err\n", "return_code": 3, "timed_out": False}
    assert (call.returncode, err) == (0, "")
    shown = instance.rows("show", row["id"])
    assert (shown["state"], shown["ending"], shown["exit_code"]) == ("ended", "exited", 3)
    assert instance.rows("list") == []
    (past,) = instance.rows("history")
    assert past["id"] == row["id"] and past["pid"] > 1


@pytest.mark.slow
@needs_sandbox
def test_blocked_attempts_are_shown_and_marked_in_the_history(instance):
    call = instance.call("execute_command", command="touch", args=["made"])
    assert instance.run("approve", "1", "--read-only").returncode == 0
    call.communicate(timeout=90)
    shown = instance.run("show", "1").stdout
    assert "call          1, exit 1, blocked" in shown
    assert f"blocked       tried to write {instance.workspace}/made" in shown
    assert "sandbox       read-only, no network" in shown
    assert "exit 1, blocked" in instance.run("history").stdout
    (row,) = instance.rows("history")
    assert row["blocked"]["attempts"] == [{"what": "write", "subject": f"{instance.workspace}/made"}]


@pytest.mark.slow
def test_show_states_the_effects_of_a_waiting_call_and_of_no_other(instance):
    (instance.workspace / "app.conf").write_text("rate = 10\n")
    call = instance.call("run_shell_command", command="echo 'rate = 20' > app.conf; ssh prod.example true")
    shown = instance.run("show", "1").stdout
    assert "effect        writes app.conf (exists, 10 B, +1 -1 lines)\n" in shown
    assert "effect        talks to prod.example (ssh)\n" in shown
    assert f"diff          {instance.workspace}/app.conf\n" in shown and "\n              -rate = 10\n" in shown
    effects = json.loads(instance.run("show", "--json", "1").stdout)["effects"]
    assert effects["files"][0]["diff"]["text"] == "@@ -1 +1 @@\n-rate = 10\n+rate = 20\n"
    instance.run("deny", "1", "--reason", "no")
    call.communicate(timeout=90)
    assert json.loads(instance.run("show", "--json", "1").stdout)["effects"] is None


@pytest.mark.slow
def test_show_has_the_lines_that_git_would_throw_away(instance):
    subprocess.run(["git", "init", "-q"], cwd=instance.workspace, check=True)
    (instance.workspace / "notes").write_text("my only copy\n")
    call = instance.call("run_shell_command", command="git clean -f")
    shown = instance.run("show", "1").stdout
    assert "loses 1 line of " in shown and "\n              -my only copy\n" in shown
    instance.run("deny", "1", "--reason", "no")
    call.communicate(timeout=90)


@pytest.mark.slow
def test_a_denial_reaches_the_caller_verbatim(instance):
    reason = 'Not   here: use "make", please…'
    call = instance.call("run_shell_command", command="rm -rf build", description="Clean")
    assert instance.run("deny", "1", "--reason", reason).returncode == 0
    out, err = call.communicate(timeout=90)
    assert (call.returncode, out) == (1, "") and reason in err
    shown = instance.rows("show", "1")
    assert (shown["ending"], shown["reason"], shown["exit_code"], shown["command"]) == (
        "denied",
        reason,
        None,
        "rm -rf build",
    )


def test_an_edited_call_runs_and_the_caller_is_told(instance):
    call = instance.call("execute_command", command="echo", args=["asked"])
    missing = instance.run("approve", "1", "--cwd", "/no/such")
    assert missing.returncode == 2 and "There is no directory /no/such. Nothing was approved" in missing.stderr
    approved = instance.run("approve", "1", "--command", "echo 'two words'", "--cwd", "/")
    assert "echo 'two words'" in approved.stdout and "changed" in approved.stdout
    out, err = call.communicate(timeout=90)
    assert json.loads(out)["stdout"] == "two words\n"
    assert "echo 'two words'" in err
    shown = instance.rows("show", "1")
    assert (shown["command"], shown["cwd"]) == (["echo", "two words"], "/")
    assert shown["asked"] == {"command": ["echo", "asked"], "cwd": str(instance.workspace), "place": None}


@pytest.mark.slow
def test_the_text_of_a_shell_is_replaced_as_it_is(instance):
    call = instance.call("run_shell_command", command="echo asked")
    instance.run("approve", "1", "--command", "echo 'a  b' | tr a-z A-Z")
    out, _ = call.communicate(timeout=90)
    assert json.loads(out)["stdout"] == "A  B\n"


@pytest.mark.slow
def test_a_decision_that_comes_too_late_is_refused(instance):
    call = instance.call("execute_command", command="true")
    seen = instance.rows("show", "1")["seen"]
    changed = instance.run("approve", "1", "--seen", "0" * 32)
    assert changed.returncode == 1 and "changed since" in changed.stderr
    assert instance.run("approve", "1", "--seen", seen).returncode == 0
    call.communicate(timeout=90)
    for late in (("approve", "1"), ("deny", "1", "--reason", "no")):
        answer = instance.run(*late)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert "does not wait for a decision" in answer.stderr


@pytest.mark.slow
def test_background_processes_are_shown_and_ended(instance):
    call = instance.call("run_shell_command", command="sleep 300 & echo hi")
    instance.run("approve", "1")
    (left,) = json.loads(call.communicate(timeout=90)[0])["backgroundPids"]
    there = [{"pid": left, "command": "sleep 300", "alive": True}]  # once it is no copy of its shell any more
    assert instance.until(lambda: any(row["background"] == there for row in instance.seen("ps")))
    assert re.search(rf"^1 +{left} +background", instance.run("ps").stdout, re.MULTILINE)
    assert "SIGKILL" in instance.run("signal", "1", "KILL").stdout
    instance.until(lambda: instance.seen("ps") == [])
    with pytest.raises(ProcessLookupError):
        os.kill(left, 0)
    assert instance.run("signal", "1", "KILL").returncode == 1


@pytest.mark.slow
def test_several_runs_are_signalled_and_killed_at_once_or_none(instance):
    calls = [instance.call("run_shell_command", command=f"trap '' TERM; sleep {n}; sleep 300") for n in (301, 302)]
    assert instance.run("kill", "1").returncode == 1  # it waits, and has no process
    instance.run("approve", "1", "2")
    instance.until(lambda: len([row for row in instance.seen("ps") if row["state"] == "running"]) == 2)
    assert re.search(r"^ID +PID +STATE +AGE +RISK ", instance.run("ps").stdout)
    missing = instance.run("signal", "1", "99", "TERM")
    assert (missing.returncode, missing.stdout) == (4, "")
    assert instance.run("signal", "1", "2", "CONT").stdout.count("Sent SIGCONT to the tree of call") == 2
    assert instance.run("kill", "1", "2", "--now").stdout == "Ended call 1\nEnded call 2\n"
    for call in calls:
        call.communicate(timeout=90)
    assert {instance.rows("show", call_id)["signal_name"] for call_id in ("1", "2")} == {"SIGKILL"}
    assert instance.run("kill", "1").returncode == 1


def test_a_signal_is_named_in_the_row(instance):
    call = instance.call("execute_command", command="sleep", args=["300"])
    instance.run("approve", "1")
    instance.until(lambda: [row for row in instance.seen("ps") if row["state"] == "running"])
    assert instance.run("signal", "1", "sigterm", "--target", "leader").returncode == 0
    call.communicate(timeout=90)
    shown = instance.rows("show", "1")
    assert (shown["ending"], shown["signal"], shown["signal_name"]) == ("signalled", signal.SIGTERM, "SIGTERM")
    assert shown["signals"] == [signal.SIGTERM]


@pytest.mark.slow
def test_an_approval_for_the_session_is_listed_and_revoked(instance):
    call = instance.call("execute_command", command="sleep", args=["300"])
    assert "for the rest of the session" in instance.run("approve", "1", "--session").stdout
    (grant,) = instance.rows("approvals")
    assert (grant["command"], grant["session"], grant["from_call"]) == (["sleep", "300"], "command line", "1")
    assert "sleep 300" in instance.run("approvals").stdout
    assert instance.run("revoke", grant["id"]).returncode == 0
    assert instance.rows("approvals") == []
    assert instance.run("revoke", grant["id"]).returncode == 1
    instance.until(lambda: [row for row in instance.seen("ps") if row["state"] == "running"])
    instance.run("signal", "1", "9")
    call.communicate(timeout=90)


@pytest.mark.slow
def test_a_denial_for_the_session_is_listed_and_lifted(instance):
    call = instance.call("execute_command", command="sleep", args=["300"])
    (row,) = instance.rows("list")
    with light_client(instance.home) as supervisor:
        by = {"surface": "cockpit", "who": "me"}
        given = {"session_id": row["session_id"], "words": ["npm", "publish"], "reason": "not today", "by": by}
        denial = supervisor.ask("deny_for_session", **given)
    (shown,) = instance.rows("approvals", "--denied")
    assert (shown["id"], shown["words"], shown["reason"]) == (denial, ["npm", "publish"], "not today")
    assert "npm publish …" in instance.run("approvals", "--denied").stdout
    assert instance.rows("approvals") == []
    assert instance.run("revoke", denial).returncode == 0
    assert instance.rows("approvals", "--denied") == []
    assert instance.run("revoke", denial).returncode == 1
    instance.run("deny", row["id"], "--reason", "no")
    call.communicate(timeout=90)


@pytest.mark.slow
def test_history_is_limited_and_searched(instance):
    for word in ("alpha", "beta"):
        call = instance.call("execute_command", command="echo", args=[word])
        instance.run("deny", instance.rows("list")[0]["id"], "--reason", "no")
        call.communicate(timeout=90)
    assert [row["id"] for row in instance.rows("history")] == ["2", "1"]
    assert [row["id"] for row in instance.rows("history", "--limit", "1")] == ["2"]
    assert [row["id"] for row in instance.rows("history", "--text", "alpha")] == ["1"]
    assert [row["id"] for row in instance.rows("history", "--session", "command line")] == ["2", "1"]
    assert instance.rows("history", "--session", "nobody") == []


@pytest.mark.slow
def test_text_of_an_agent_is_shown_and_never_obeyed(instance):
    call = instance.call(
        "run_shell_command", command="echo \x1b[2Jhi\u202e\necho there", description="\x1b]0;owned\x07"
    )
    for command in (("list",), ("show", "1"), ("history",)):
        shown = instance.run(*command).stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert "␛[2Jhi⟨U+202E⟩" in shown
    instance.run("deny", "1", "--reason", "\x1b[31mno")
    assert "\x1b" not in call.communicate(timeout=90)[1]


def test_giving_up_a_call_withdraws_it(instance):
    call = instance.call("execute_command", command="true")
    call.send_signal(signal.SIGINT)
    out, err = call.communicate(timeout=90)
    assert (call.returncode, out) == (130, "") and "Traceback" not in err
    assert instance.rows("show", "1")["ending"] == "withdrawn"


@pytest.mark.slow
def test_a_call_outlives_the_death_of_the_supervisor(instance):
    call = instance.call("execute_command", command="echo", args=["still here"])
    instance.kill_supervisor(signal.SIGKILL)
    instance.until(lambda: [row for row in instance.seen("list") if row["state"] == "waiting"])
    assert instance.run("approve", "1").returncode == 0
    out, _ = call.communicate(timeout=90)
    assert json.loads(out)["stdout"] == "still here\n"


@pytest.mark.slow
def test_a_call_that_failed_does_not_end_with_0_whatever_shape_its_answer_has(instance):
    process = instance.call("ExecCommand", cmd="echo done")
    (row,) = instance.rows("list")
    instance.run("deny", row["id"], "--reason", "not now")
    out, err = process.communicate(timeout=90)
    assert process.returncode == 1
    assert json.loads(out)["error"]["kind"] == "approval_denied"
    assert "not now" in err
    unknown = instance.run("call", "TaskStatus", '{"task_id": "99"}')
    assert (unknown.returncode, json.loads(unknown.stdout)["error"]["kind"]) == (1, "task_not_found")
    missing = instance.run("call", "read_file", '{"path": "no-such-file"}')
    assert (missing.returncode, missing.stderr) == (1, "whisper-tui: Error: File not found: no-such-file\n")


@pytest.mark.slow
def test_a_caller_is_told_when_the_supervisor_is_stopped_and_does_not_bring_it_back(instance):
    call = instance.call("execute_command", command="true")
    instance.run("stop")
    out, err = call.communicate(timeout=90)
    assert (call.returncode, out) == (3, "") and "was stopped before call 1 ended" in err
    assert instance.run("status").returncode == 3
    assert instance.rows("show", "1")["state"] == "waiting"


@pytest.mark.slow
def test_stop_leaves_commands_running_and_the_next_command_takes_them_back(instance):
    call = instance.call("execute_command", command="sleep", args=["300"])
    instance.run("approve", "1")
    (running,) = instance.until(lambda: [row for row in instance.seen("ps") if row["state"] == "running"])
    status = instance.rows("status")
    assert (status["running"], status["home"]) == (1, str(instance.home.state))
    call.kill()
    assert f"pid {status['pid']}" in instance.run("stop").stdout
    gone = instance.run("status")
    assert gone.returncode == 3 and "No supervisor runs" in gone.stderr
    assert os.kill(running["pid"], 0) is None
    (again,) = instance.rows("ps")
    assert (again["state"], again["pid"]) == ("running", running["pid"])
    assert instance.run("stop", "--end-runs").returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(running["pid"], 0)


@pytest.mark.slow
@each_row(
    ("words", "code", "complaint"),
    [
        (("call", "execute_command", "{bad"), 2, "not JSON"),
        (("call", "execute_command", "[1]"), 2, ""),
        (("call", "execute_command", '{"comand": "ls"}'), 2, "comand"),
        (("call", "nothing", "{}"), 2, "no tool 'nothing'"),
        (("show", "99"), 4, "no call 99"),
        (("approve", "99"), 4, "no call 99"),
        (("deny", "x", "--reason", "no"), 4, "no call x"),
        (("logs", "99"), 4, "no call 99"),
        (("signal", "99", "KILL"), 4, "no call 99"),
        (("signal", "1", "EXPLODE"), 2, "no signal 'EXPLODE'"),
        (("history", "--limit", "0"), 2, "--limit"),
        (("frobnicate",), 2, "no subcommand 'frobnicate'"),
        (("approve", "1", "2", "--cwd", "/"), 2, "--cwd is about one call, and 2 are named"),
        (("deny", "1", "2", "--stop-session"), 2, "--stop-session is about one call"),
        ((), 2, "needs a terminal"),
    ],
)
def test_failures_are_one_sentence_and_an_exit_code(instance, words, code, complaint):
    answer = instance.run(*words)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert complaint in answer.stderr and "whisper-tui" in answer.stderr


def test_a_broken_configuration_is_one_sentence(instance):
    instance.home.config.mkdir(exist_ok=True)
    (instance.home.config / "config.toml").write_text("[supervisor]\nworker = 3\n")
    answer = instance.run("list")
    assert answer.returncode == 5
    assert answer.stderr.count("\n") == 1 and "config.toml" in answer.stderr and "'worker'" in answer.stderr


def test_broken_rules_do_not_keep_calls_from_being_asked(instance):
    instance.home.config.mkdir(exist_ok=True)
    (instance.home.config / "config.toml").write_text('[[rules.allow]]\nname = "x"\ntext = "true"\nargv = ["true"]\n')
    call = instance.call("run_shell_command", command="true")
    assert "cannot be read" in instance.rows("show", "1")["verdict"]["reason"]
    instance.run("deny", "1", "--reason", "no")
    call.communicate(timeout=90)


def test_a_reader_that_stops_reading_is_not_an_error(instance):
    process = subprocess.Popen(
        [*PROGRAM, "list", "--home", str(instance.root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(90) == 141
    process.stderr.close()


@pytest.mark.slow
@outside_only
def test_several_calls_are_decided_at_once_and_a_denial_needs_no_reason(instance):
    instance.run("restart")
    calls = [instance.call("run_shell_command", command=f"echo {number}") for number in range(1, 5)]
    answer = instance.run("approve", "1", "99", "2")
    assert answer.returncode == 4
    assert {row["state"] for row in instance.seen("list")} == {"waiting"}
    assert instance.run("approve", "1", "2", "1").returncode == 0
    assert instance.run("deny", "3", "4").stdout.count("Denied ") == 2
    answers = [call.communicate(timeout=90)[0] for call in calls]
    assert [f'"{number}\\n"' in answer for number, answer in enumerate(answers, start=1)] == [True, True, False, False]


@pytest.mark.slow
@outside_only
def test_the_risks_of_a_call_are_listed_with_their_grade(instance):
    instance.run("restart")
    instance.call("run_shell_command", command="rm -rf build; python3 -c 1")
    (row,) = instance.rows("list")
    assert {"destructive": True, "runs-other-code": False}.items() <= {
        risk["id"]: risk["grave"] for risk in row["risks"]
    }.items()
    assert "▲▲ destructive +1" in instance.run("list").stdout
    shown = instance.run("show", "1").stdout
    assert "risk          ▲▲ " in shown and "risk          ▲ " in shown
    assert "waiting for " in shown
    instance.run("deny", "1")
    assert "s ago" in instance.run("show", "1").stdout
    assert "▲▲ destructive +1" in instance.run("history").stdout
