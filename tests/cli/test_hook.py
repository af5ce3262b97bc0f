"""The agents' own shells: a hook asks, a human decides, and exec stands for the command."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM, Instance
from tests.outside import outside_only
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.command import Shell as ShellCommand
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.wire.client import RemoteSupervision

pytestmark = outside_only

HUMAN = Decider(surface="library", who="tester")


class Shell:
    """An agent with a shell of its own, whose hook is ours."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.calls = 0

    def ask(self, command: str, *options: str, client: str = "claude", **changes: Any) -> "subprocess.Popen[bytes]":
        """Begin to ask about a command."""
        self.calls += 1
        content = {
            "session_id": "agent-1",
            "cwd": str(self.instance.workspace),
            "hook_event_name": "BeforeTool" if client == "gemini" else "PreToolUse",
            "tool_name": "run_shell_command" if client == "gemini" else "Bash",
            "tool_input": {"command": command, "description": "As the agent says"},
            "tool_use_id": f"toolu_{self.calls}",
            **changes,
        }
        return self.hook(json.dumps(content).encode(), client, *options)

    def hook(self, text: bytes, client: str, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [*PROGRAM, "hook", client, "--home", str(self.instance.root), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.instance.workspace,
            env={**os.environ, **environment},
        )
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        return process

    def waiting(self) -> str:
        """The id of the one call that waits."""
        return self.instance.until(
            lambda: next((row["id"] for row in self.instance.rows("list") if row["state"] == "waiting"), None)
        )

    def approved(self, command: str) -> list[str]:
        """Ask about a command, have it approved, and return what the agent is given to run."""
        asking = self.ask(command)
        self.approve(self.waiting())
        return rewritten(finished(asking)).split()

    def approve(self, call_id: str, command: str | None = None) -> None:
        asyncio.run(self._decide(call_id, lambda spec: Approve(edited=command and _with(spec, command))))

    def deny(self, call_id: str, reason: str) -> None:
        asyncio.run(self._decide(call_id, lambda _: Deny(reason=reason)))

    async def _decide(self, call_id: str, decision: Callable[[CommandSpec], Decision]) -> None:
        """From this process itself: whatever it starts descends from the agent that it plays, and may not."""
        door = await RemoteSupervision.connect(self.instance.home)
        record = await door.record(call_id)
        await door.decide(call_id, decision(record.spec), HUMAN, record.seen_digest())
        await door.close()

    def row(self, call_id: str) -> Any:
        return self.instance.rows("show", call_id)

    def run(self, words: list[str], **how: Any) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            words, check=False, capture_output=True, timeout=ANSWER_S, **{"cwd": self.instance.workspace, **how}
        )


@pytest.fixture
def shell(instance: Instance) -> Iterator[Shell]:
    yield Shell(instance)


def _with(spec: CommandSpec, text: str) -> CommandSpec:
    return spec.model_copy(update={"command": ShellCommand(text=text)})


def finished(process: "subprocess.Popen[bytes]") -> Any:
    out, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 0, err
    return json.loads(out)


def rewritten(answer: Any) -> str:
    decision = answer["hookSpecificOutput"]
    assert decision["permissionDecision"] == "allow"
    return str(decision["updatedInput"]["command"])


def reason(answer: Any) -> str:
    decision = answer["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"
    return str(decision["permissionDecisionReason"])


def test_an_approved_command_runs_where_and_how_the_agent_wanted_it(shell: Shell) -> None:
    words = shell.approved("pwd; printf 'a\\0\\377b'; echo wrong >&2; exit 7")
    ran = shell.run(words)
    assert ran.stdout == f"{shell.instance.workspace}\n".encode() + b"a\0\xffb"
    assert (ran.stderr, ran.returncode) == (b"wrong\n", 7)
    row = shell.row("1")
    assert (row["state"], row["exit_code"], row["client"]) == ("ended", 7, "claude-code")


def test_an_edited_command_runs_instead_and_the_model_is_told(shell: Shell) -> None:
    asking = shell.ask("echo asked")
    shell.approve(shell.waiting(), "echo edited")
    answer = finished(asking)
    assert shell.run(rewritten(answer).split()).stdout == b"edited\n"
    assert "What ran: echo edited" in answer["hookSpecificOutput"]["additionalContext"]


def test_a_denied_command_never_runs_and_the_reason_is_told_word_for_word(shell: Shell) -> None:
    asking = shell.ask("touch ran")
    shell.deny(shell.waiting(), "use make test instead")
    assert "use make test instead" in reason(finished(asking))
    assert not (shell.instance.workspace / "ran").exists()


def test_at_its_deadline_the_hook_says_no_and_the_same_command_goes_on_waiting(shell: Shell) -> None:
    told = reason(finished(shell.ask("echo late", "--deadline", "1")))
    assert "Not approved yet" in told and "ticket 1" in told
    assert (shell.row("1")["state"], shell.row("1")["agent_gave_up"]) == ("waiting", "the hook's time was over")
    asking = shell.ask("echo late")
    shell.instance.until(lambda: shell.row("1")["agent_gave_up"] is None)
    shell.approve("1")
    assert shell.run(rewritten(finished(asking)).split()).stdout == b"late\n"
    assert len(shell.instance.rows("history")) == 1


def test_a_command_that_was_approved_meanwhile_runs_when_the_agent_asks_again(shell: Shell) -> None:
    finished(shell.ask("echo late", "--deadline", "1"))
    shell.approve("1")
    assert shell.row("1")["state"] == "held"
    assert shell.run(rewritten(finished(shell.ask("echo late"))).split()).stdout == b"late\n"


def test_a_hook_that_the_agent_ends_leaves_its_command_waiting_and_marked(shell: Shell) -> None:
    asking = shell.ask("echo later")
    call_id = shell.waiting()
    asking.kill()
    asking.communicate()
    shell.instance.until(lambda: shell.row(call_id)["agent_gave_up"])
    assert shell.row(call_id)["state"] == "waiting"


def test_a_hook_waits_over_the_death_of_the_supervisor(shell: Shell) -> None:
    asking = shell.ask("echo survived")
    call_id = shell.waiting()
    shell.instance.kill_supervisor(signal.SIGKILL)
    shell.instance.until(lambda: shell.row(call_id)["state"] == "waiting")
    shell.approve(call_id)
    assert shell.run(rewritten(finished(asking)).split()).stdout == b"survived\n"
    assert len(shell.instance.rows("history")) == 1


def test_two_hooks_of_one_call_are_one_call(shell: Shell) -> None:
    first, second = shell.ask("echo once", tool_use_id="toolu"), shell.ask("echo once", tool_use_id="toolu")
    shell.approve(shell.waiting())
    assert rewritten(finished(first)) == rewritten(finished(second))
    assert len(shell.instance.rows("history")) == 1


def test_a_canary_is_denied_with_nobody_asked(shell: Shell) -> None:
    assert "the gate is live" in reason(finished(shell.ask("touch whisper-tui-canary-0123456789")))
    assert shell.instance.rows("history") == []


def test_another_tool_passes_without_a_word(shell: Shell) -> None:
    asking = shell.ask("x", tool_name="Write")
    assert asking.communicate(timeout=ANSWER_S) == (b"", b"")
    assert asking.returncode == 0


@pytest.mark.parametrize("text", [b"", b"no json", b'{"tool_name": "Bash"}', b"\xff\xfe"])
def test_an_input_that_is_not_understood_is_a_refusal(shell: Shell, text: bytes) -> None:
    process = shell.hook(text, "claude")
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert err.startswith(b"whisper_tui: ") and b"Traceback" not in err


def test_a_supervisor_that_cannot_be_had_is_a_refusal(shell: Shell) -> None:
    (shell.instance.root / "config" / "config.toml").write_text("= broken")
    process = shell.ask("echo no")
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert b"the command was not run" in err and b"Traceback" not in err


def test_wrong_words_are_a_refusal_too(shell: Shell) -> None:
    process = shell.hook(b"{}", "nobody")
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 2 and b"invalid choice" in err


def test_gemini_is_told_behind_the_result_what_its_own_words_about_a_change_mean(shell: Shell) -> None:
    asking = shell.ask("echo asked", client="gemini")
    shell.approve(shell.waiting(), "echo edited")
    command = finished(asking)["hookSpecificOutput"]["tool_input"]["command"]
    after = shell.ask(command, client="gemini", hook_event_name="AfterTool")
    assert "What ran: echo edited" in finished(after)["hookSpecificOutput"]["additionalContext"]


def test_the_shell_of_gemini_may_substitute_though_our_tool_of_that_name_may_not(shell: Shell) -> None:
    asking = shell.ask("echo $(echo inner)", client="gemini")
    shell.approve(shell.waiting())
    command = finished(asking)["hookSpecificOutput"]["tool_input"]["command"]
    assert shell.run(command.split()).stdout == b"inner\n"


def test_an_agent_that_runs_what_is_approved_itself_is_given_the_command(shell: Shell) -> None:
    asking = shell.ask("echo mine", "--agent-runs")
    shell.approve(shell.waiting())
    assert rewritten(finished(asking)) == "echo mine"
    assert shell.row("1")["ending"] == "handed_over"


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
        ran = shell.run(rewritten(json.loads(stranger.stdout.readline())).split())
        assert ran.returncode == 126 and b"another session" in ran.stderr
        assert not (workspace / "ran").exists()
    finally:
        stranger.communicate()


def test_a_hook_that_names_another_agent_than_its_own_is_refused(shell: Shell) -> None:
    with subprocess.Popen(["sleep", "300"]) as stranger:
        content = {"session_id": "agent-2", "cwd": "/", "tool_name": "Bash", "tool_input": {"command": "true"}}
        asking = shell.hook(json.dumps(content).encode(), "claude", CLAUDE_PID=str(stranger.pid))
        _, told = asking.communicate(timeout=ANSWER_S)
        stranger.kill()
    assert asking.returncode != 0 and b"does not come from there" in told


def test_a_guessed_ticket_runs_nothing(shell: Shell) -> None:
    words = shell.approved("touch ran")
    ticket = next(word for word in words if "-" in word and word[0].isdigit())
    words[words.index(ticket)] = ticket[:-1] + ("0" if ticket[-1] != "0" else "1")
    assert shell.run(words).returncode == 126
    assert not (shell.instance.workspace / "ran").exists()


def test_a_command_does_not_run_in_another_directory_than_was_approved(shell: Shell, tmp_path: Path) -> None:
    words = shell.approved("touch ran")
    ran = shell.run(words, cwd=tmp_path)
    assert ran.returncode == 126 and b"was approved for" in ran.stderr
    assert not list(tmp_path.glob("**/ran"))


def test_standard_input_reaches_the_command(shell: Shell) -> None:
    data = bytes(range(256)) * 2000
    assert shell.run(shell.approved("cat"), input=data).stdout == data


def test_standard_input_goes_on_over_the_death_of_the_supervisor(shell: Shell) -> None:
    data = os.urandom(3_000_000)
    words = shell.approved("head -c 100 > begun; until test -e go; do sleep 0.1; done; cat > rest; exit 9")
    process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=shell.instance.workspace)
    writing = threading.Thread(target=process.communicate, args=(data,), daemon=True)
    writing.start()
    shell.instance.until((shell.instance.workspace / "begun").exists)
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    writing.join(ANSWER_S)
    assert process.returncode == 9
    assert b"".join((shell.instance.workspace / name).read_bytes() for name in ("begun", "rest")) == data


def test_the_end_of_the_input_is_told_to_the_next_supervisor_too(shell: Shell) -> None:
    words = shell.approved("until test -e go; do sleep 0.1; done; cat")
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=shell.instance.workspace)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"all of it")
    process.stdin.close()
    shell.instance.until(lambda: shell.row("1")["state"] == "running")
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    assert process.stdout.read() == b"all of it"
    assert process.wait(ANSWER_S) == 0


def test_without_standard_input_the_command_has_none(shell: Shell) -> None:
    words = shell.approved("test -p /dev/stdin && echo a pipe || echo none")
    assert shell.run(words, stdin=subprocess.DEVNULL).stdout == b"none\n"


def test_a_megabyte_on_both_streams_comes_whole(shell: Shell) -> None:
    ran = shell.run(shell.approved("head -c 1000000 /dev/zero; head -c 1000001 /dev/zero >&2"))
    assert (len(ran.stdout), len(ran.stderr)) == (1_000_000, 1_000_001)


def test_it_dies_of_the_signal_that_the_command_died_of(shell: Shell) -> None:
    assert shell.run(shell.approved("kill -KILL $$")).returncode == -signal.SIGKILL


def test_for_opencode_it_ends_with_the_code_of_the_signal_because_that_hangs_on_signals(shell: Shell) -> None:
    asking = shell.ask("kill -KILL $$", client="opencode", tool_name="bash")
    shell.approve(shell.waiting())
    assert shell.run(finished(asking)["command"].split()).returncode == 137


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_it_is_a_signal_to_the_command(shell: Shell, number: int) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    words = shell.approved(f"trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.1; done")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=shell.instance.workspace)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=ANSWER_S)
    assert (out, process.returncode) == (b"caught\n", 5)


def test_when_the_agent_kills_it_the_command_is_ended_too(shell: Shell) -> None:
    words = shell.approved("echo ready; exec sleep 1000")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=shell.instance.workspace)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.kill()
    process.communicate()
    row = shell.instance.until(lambda: (row := shell.row("1"))["state"] == "ended" and row)
    assert row["signal"] in {signal.SIGTERM, signal.SIGKILL}


def test_what_a_command_leaves_behind_does_not_hold_it_back(shell: Shell) -> None:
    ran = shell.run(shell.approved("sleep 1000 & echo $!"))
    assert ran.returncode == 0
    assert int(ran.stdout) in [process["pid"] for process in shell.row("1")["background"]]


def test_it_goes_on_over_the_death_of_the_supervisor_and_loses_no_byte(shell: Shell) -> None:
    words = shell.approved("echo before; until test -e go; do sleep 0.1; done; seq 1 20000; exit 9")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=shell.instance.workspace)
    assert process.stdout is not None and process.stdout.readline() == b"before\n"
    shell.instance.kill_supervisor(signal.SIGKILL)
    (shell.instance.workspace / "go").touch()
    out, _ = process.communicate(timeout=ANSWER_S)
    assert out == b"".join(b"%d\n" % number for number in range(1, 20001))
    assert process.returncode == 9
