"""The agents' own shells: `exec` stands for the command that was approved."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.agent_shell import Shell, finished, rewritten, shell
from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only


@pytest.mark.slow
def test_an_approved_command_runs_where_and_how_the_agent_wanted_it(shell: Shell) -> None:
    words = shell.approved("pwd; printf 'a\\0\\377b'; echo wrong >&2; exit 7")
    ran = shell.run(words)
    assert ran.stdout == f"{shell.instance.workspace}\n".encode() + b"a\0\xffb"
    assert (ran.stderr, ran.returncode) == (b"wrong\n", 7)
    row = shell.row("1")
    assert (row["state"], row["exit_code"], row["client"]) == ("ended", 7, "claude-code")


@pytest.mark.slow
def test_a_limit_that_ended_a_command_is_reported_with_its_signal(shell: Shell) -> None:
    (shell.instance.root / "config" / "config.toml").write_text("[limits]\nprocesses = 4\n")
    ran = shell.run(shell.approved("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait"))
    assert b"the command was ended, because it exceeded the limit of 4 processes" in ran.stderr
    assert ran.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}


@pytest.mark.slow
def test_a_ticket_runs_once(shell: Shell) -> None:
    words = shell.approved("echo ran >> ran")
    assert shell.run(words).returncode == 0
    again = shell.run(words)
    assert again.returncode == 126 and b"used before" in again.stderr
    assert (shell.instance.workspace / "ran").read_text() == "ran\n"


ANOTHER_AGENT = """
import subprocess, sys
asked = subprocess.run(sys.argv[1:], input=sys.stdin.buffer.readline(), capture_output=True, check=True)
print(asked.stdout.decode().replace(chr(10), " "), flush=True)
sys.stdin.read()
"""
"""Starts its own hook, tells the answer, and stays."""


@pytest.mark.slow
def test_a_ticket_of_another_session_runs_nothing(shell: Shell) -> None:
    workspace, home = shell.instance.workspace, str(shell.instance.root)
    tool = {"tool_name": "Bash", "tool_input": {"command": "touch ran"}}
    content = {"session_id": "agent-2", "cwd": str(workspace), **tool}
    stranger = subprocess.Popen(
        [sys.executable, "-c", ANOTHER_AGENT, *PROGRAM, "hook", "claude", "--home", home],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=workspace,
        env={name: value for name, value in os.environ.items() if name != "CLAUDE_PID"},
    )
    assert stranger.stdin is not None and stranger.stdout is not None
    try:
        stranger.stdin.write(json.dumps(content).encode() + b"\n")
        stranger.stdin.flush()
        shell.approve(shell.waiting())
        ran = shell.run(shlex.split(rewritten(json.loads(stranger.stdout.readline()))))
        assert ran.returncode == 126 and b"another session" in ran.stderr
        assert not (workspace / "ran").exists()
    finally:
        stranger.communicate()


@pytest.mark.slow
def test_a_command_does_not_run_in_another_directory_than_was_approved(shell: Shell, tmp_path: Path) -> None:
    words = shell.approved("touch ran")
    ran = shell.run(words, cwd=tmp_path)
    assert ran.returncode == 126 and b"was approved for" in ran.stderr
    assert not list(tmp_path.glob("**/ran"))


@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude", "gemini"])
def test_a_command_that_a_human_sent_to_another_directory_runs_there(shell: Shell, tmp_path: Path, client: str) -> None:
    asking = shell.ask("pwd", client=client)
    shell.approve(shell.waiting(), cwd=str(tmp_path))
    said = finished(asking)["hookSpecificOutput"]
    ran = shell.run(shlex.split((said.get("updatedInput") or said["tool_input"])["command"]))
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{tmp_path}\n".encode(), b"", 0)
    assert client == "gemini" or f"(in {tmp_path})" in said["additionalContext"]


@pytest.mark.slow
def test_standard_input_survives_the_death_of_the_supervisor(shell: Shell) -> None:
    data = os.urandom(3_000_000)
    words = shell.approved("head -c 100 > begun; until test -e go; do sleep 0.1; done; cat > rest; exit 9")
    process = shell.start(words, stdin=subprocess.PIPE)
    writing = threading.Thread(target=process.communicate, args=(data,), daemon=True)
    writing.start()
    shell.instance.until((shell.instance.workspace / "begun").exists)
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    writing.join(ANSWER_S)
    assert process.returncode == 9
    assert b"".join((shell.instance.workspace / name).read_bytes() for name in ("begun", "rest")) == data


@pytest.mark.slow
def test_what_a_client_types_without_a_hook_waits_for_the_human(shell: Shell) -> None:
    process = shell.start(shell.approved("cat > typed", "codex"), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(b"denied\n")
    process.stdin.flush()
    denied = shell.waiting()
    assert f"waits for a human's decision (call {denied})" in process.stderr.readline().decode()
    row = shell.row(denied)
    assert (row["tool"], row["session_id"]) == ("write_stdin", shell.row("1")["session_id"])
    shell.deny(denied, "not this")
    assert "nothing was typed: " in (told := process.stderr.readline().decode()) and "not this" in told
    process.stdin.write(b"approved\n")
    process.stdin.close()
    shell.approve(shell.waiting())
    assert process.wait(ANSWER_S) == 0
    assert (shell.instance.workspace / "typed").read_text() == "approved\n"


@pytest.mark.slow
def test_a_signal_reaches_a_command_while_input_waits_which_is_then_withdrawn(shell: Shell) -> None:
    process = shell.start(
        shell.approved("trap 'echo ended > ended; exit 3' INT; sleep 600 & wait", "codex"), stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    asked = shell.waiting()
    process.send_signal(signal.SIGINT)
    shell.instance.until(lambda: shell.row(asked)["state"] == "ended")
    assert (shell.instance.workspace / "ended").exists()
    process.stdin.close()
    process.wait(ANSWER_S)


@pytest.mark.slow
def test_the_end_of_the_input_reaches_the_next_supervisor_too(shell: Shell) -> None:
    words = shell.approved("until test -e go; do sleep 0.1; done; cat")
    process = shell.start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"all of it")
    process.stdin.close()
    shell.instance.until(lambda: shell.row("1")["state"] == "running")
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    assert process.stdout.read() == b"all of it"
    assert process.wait(ANSWER_S) == 0


@pytest.mark.slow
def test_without_standard_input_the_command_has_none(shell: Shell) -> None:
    words = shell.approved("test -p /dev/stdin && echo a pipe || echo none")
    assert shell.run(words, stdin=subprocess.DEVNULL).stdout == b"none\n"


@pytest.mark.slow
def test_output_that_could_be_taken_for_a_refusal_comes_whole_and_once(shell: Shell) -> None:
    ran = shell.run(shell.approved("head -c 3000000 /dev/zero | tr '\\0' '{'; echo; head -c 1000001 /dev/zero >&2"))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"{" * 3_000_000 + b"\n", bytes(1_000_001))


@pytest.mark.slow
def test_exec_dies_of_the_same_signal_as_the_command(shell: Shell) -> None:
    assert shell.run(shell.approved("kill -KILL $$")).returncode == -signal.SIGKILL


@pytest.mark.slow
def test_exec_exits_with_the_code_of_the_signal_because_opencode_hangs_on_signals(shell: Shell) -> None:
    asking = shell.ask("kill -KILL $$", client="opencode", tool_name="bash")
    shell.approve(shell.waiting())
    assert shell.run(shlex.split(finished(asking)["command"])).returncode == 137


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.few(1)
def test_a_signal_to_it_is_a_signal_to_the_command(shell: Shell, number: int) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    words = shell.approved(f"trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.1; done")
    process = shell.start(words, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=ANSWER_S)
    assert (out, process.returncode) == (b"caught\n", 5)


def test_when_the_agent_kills_it_the_command_is_ended_too(shell: Shell) -> None:
    words = shell.approved("echo ready; exec sleep 1000")
    process = shell.start(words, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.kill()
    process.communicate()
    row = shell.instance.until(lambda: (row := shell.row("1"))["state"] == "ended" and row)
    assert row["signal"] in {signal.SIGTERM, signal.SIGKILL}


@pytest.mark.slow
def test_background_processes_do_not_delay_exec(shell: Shell) -> None:
    ran = shell.run(shell.approved("sleep 1000 & echo $!"))
    assert ran.returncode == 0
    assert int(ran.stdout) in [process["pid"] for process in shell.row("1")["background"]]


@pytest.mark.slow
def test_exec_survives_the_death_of_the_supervisor_and_loses_no_byte(shell: Shell) -> None:
    words = shell.approved("echo before; until test -e go; do sleep 0.1; done; seq 1 20000; exit 9")
    process = shell.start(words, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"before\n"
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    out, _ = process.communicate(timeout=ANSWER_S)
    assert out == b"".join(b"%d\n" % number for number in range(1, 20001))
    assert process.returncode == 9


@pytest.mark.slow
def test_a_command_that_waits_for_memory_says_so_and_a_human_starts_it_anyway(shell: Shell) -> None:
    """No machine has so much memory."""
    (shell.instance.root / "config" / "config.toml").write_text(f"[supervisor]\nmin_memory_bytes = {1 << 60}\n")
    waiting = shell.start(shell.approved("touch begun; echo done"), stdout=-1, stderr=-1)
    assert waiting.stderr is not None
    told = waiting.stderr.readline()
    assert re.fullmatch(
        rb"whisper_tui: queued, and not running yet: [0-9,]+ MiB of memory are available, and commands start above "
        rb"1,099,511,627,776 MiB\n",
        told,
    )
    row = shell.row("1")
    assert row["state"] == "queued" and "MiB of memory are available" in row["reason"]
    assert "(whisper-tui start 1 starts it anyway)" in shell.instance.run("list").stderr
    assert "MiB of memory are available" in shell.instance.run("show", "1").stdout
    assert not (shell.instance.workspace / "begun").exists()
    # The agent, and what it starts, must not lift the limit.
    refused = shell.run([*PROGRAM, "start", "1", "--home", str(shell.instance.root)])
    assert refused.returncode != 0 and shell.row("1")["state"] == "queued"
    assert shell.instance.run("start", "1").stdout == "Started call 1\n"
    assert waiting.communicate(timeout=ANSWER_S) == (b"done\n", b"whisper_tui: it runs now\n")
    assert "not queued" in shell.instance.run("start", "1").stderr


@pytest.mark.slow
def test_a_signal_of_the_agent_is_shown_as_the_agents(shell: Shell) -> None:
    process = shell.start(shell.approved("echo ready; sleep 1000"), stdout=-1)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.terminate()
    process.communicate(timeout=ANSWER_S)
    assert shell.row("1")["reason"] == "sent by its agent"
    assert "sent by its agent" in shell.instance.run("show", "1").stdout


@pytest.mark.slow
def test_once_its_agent_has_ended_it_does_not_wait_for_a_supervisor_that_was_stopped(shell: Shell) -> None:
    words = shell.approved("touch begun; until test -e over; do sleep 0.1; done")
    script = f"{shlex.join(words)} 2> said; echo $? > code"
    agent = shell.start(["bash", "-c", 'bash -c "$1" & wait; exit', "agent", script])
    workspace = shell.instance.workspace
    shell.instance.until((workspace / "begun").exists)
    shell.instance.kill_supervisor(signal.SIGTERM)
    shell.instance.until(lambda: b"was stopped; this waits" in (workspace / "said").read_bytes())
    agent.kill()
    agent.communicate(timeout=ANSWER_S)
    shell.instance.until(lambda: (workspace / "code").exists() and (workspace / "code").read_text() == "126\n")
    assert b"the agent has ended" in (workspace / "said").read_bytes()
    (workspace / "over").touch()
