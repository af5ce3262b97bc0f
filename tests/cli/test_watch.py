"""`watch` says what happens in plain lines, and takes answers on a line, for the call that it read out."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.agent_process import AgentProcess
from tests.cli.agent_shell import Shell as AgentShell
from tests.cli.agent_shell import shell
from tests.cli.conftest import PROGRAM, Instance
from tests.outside import outside_only
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.cli.watch_session import WatchAnswers, WatchSession
from whisper_tui.cli.watch_text import asks
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.model.verdict import Risk
from whisper_tui.system.state_directory import Directories

__all__ = ["shell"]


class WatchPlayer:
    """A terminal on which a watch runs."""

    def __init__(self, instance: Instance) -> None:
        self.fd, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, "watch", "--home", str(instance.root)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self.fd, False)
        self.text = ""
        self.said = ""
        """All that has been read so far."""

    def sees(self, words: str) -> None:
        """Wait, bounded, until these words were said since they were last looked for."""
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, f"{words!r} was not said, but:\n{self.text}"
            try:
                read = os.read(self.fd, 65_536).decode()
                self.text, self.said = self.text + read, self.said + read
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                assert words in self.text, self.text
        self.text = self.text.partition(words)[2]

    def says(self, line: str) -> None:
        """Type a line, later than a finger that was meant for the call before."""
        time.sleep(0.7)
        os.write(self.fd, line.encode() + b"\n")


@pytest.fixture
def player(instance: Instance) -> Iterator[WatchPlayer]:
    instance.run("restart")
    made = WatchPlayer(instance)
    yield made
    made.process.kill()
    made.process.wait()
    os.close(made.fd)


@pytest.mark.slow
@outside_only
def test_a_call_is_read_out_approved_and_followed_to_its_end(instance: Instance, player: WatchPlayer) -> None:
    player.sees("Connected. No call yet.")
    call = instance.call("execute_command", command="echo", args=["hello"])
    player.sees("Call 1 of command line asks: echo hello.")
    player.sees("Call 1 waits for you. command line asks, with execute_command:")
    player.sees("  echo hello")
    player.sees("It runs in ")
    player.sees("Call 1> ")
    player.says("approve")
    player.sees("Call 1 is approved.")
    player.sees("Call 1: Ended with exit code 0")
    assert '"hello\\n"' in call.communicate(timeout=90)[0]
    assert "is approved by" not in player.said  # its own decision is reported once
    player.says("output 1")
    player.sees("The end of its output, 6 bytes:\r\n  hello")
    player.says("quit")
    assert player.process.wait(timeout=60) == 0


@pytest.mark.slow
@outside_only
def test_the_reason_of_a_denial_and_an_edited_command_reach_the_agent(instance: Instance, player: WatchPlayer) -> None:
    player.sees("> ")
    first = instance.call("execute_command", command="rm", args=["-r", "x"])
    player.sees("Call 1> ")
    player.says("deny use the other one")
    player.sees("Call 1 is denied.")
    assert "use the other one" in "".join(first.communicate(timeout=90))
    second = instance.call("run_shell_command", command="echo one")
    player.sees("Call 2> ")
    player.says("edit echo two; echo three")
    player.sees("It would run: echo two; echo three")
    player.says("yes")
    player.sees("Call 2 is approved.")
    assert "two\\nthree" in second.communicate(timeout=90)[0]


@pytest.mark.slow
@outside_only
def test_an_answer_to_a_call_that_was_decided_elsewhere_decides_nothing(
    instance: Instance, player: WatchPlayer
) -> None:
    player.sees("> ")
    calls = [instance.call("execute_command", command="echo", args=[word]) for word in ("one", "two")]
    player.sees("Call 1> ")
    instance.run("deny", "1", "--reason", "not that one")
    player.sees("Call 1 was decided elsewhere or has changed. Press Enter for the next.")
    player.says("approve")
    player.sees("Nothing was done: that call is decided already.")
    player.sees("Call 2> ")
    assert instance.rows("show", "2")["state"] == "waiting"
    player.says("approve")
    player.sees("Call 2 is approved.")
    for call in calls:
        call.communicate(timeout=90)


@pytest.mark.slow
@outside_only
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_run_that_needs_input_is_reported_once_and_one_that_is_stopped_as_well(
    instance: Instance, player: WatchPlayer
) -> None:
    player.sees("Connected. No call yet.")
    instance.call("ExecCommand", cmd="read -r line", accepts_input=True)
    player.sees("Call 1> ")
    player.says("a")
    player.sees("needs input, silent since ")
    player.sees("read -r line.")
    pid = next(row["pid"] for row in instance.seen("ps"))
    os.kill(pid, signal.SIGSTOP)
    player.sees("is stopped: ")
    assert "needs input" not in player.text


@pytest.fixture
def little_memory(instance: Instance) -> None:
    """No machine has as much memory as this supervisor wants to leave."""
    (instance.root / "config" / "config.toml").write_text(f"[supervisor]\nmin_memory_bytes = {1 << 60}\n")


@pytest.mark.slow
@outside_only
@pytest.mark.usefixtures("little_memory")
def test_a_queued_call_is_reported_once_with_its_reason(instance: Instance, player: WatchPlayer) -> None:
    player.sees("Connected. No call yet.")
    instance.call("ExecCommand", cmd="sleep 1000")
    player.sees("Call 1> ")
    player.says("a")
    player.sees("is queued: ")
    player.sees("MiB of memory are available, and commands start above")
    instance.run("start", "1")
    player.sees("Call 1 runs as pid ")
    assert player.said.count("is queued") == 1


@pytest.mark.slow
@outside_only
def test_watch_prints_no_control_sequences(instance: Instance, player: WatchPlayer) -> None:
    player.sees("> ")
    instance.call("execute_command", command="echo", args=["\x1b]0;title\x07\u202e"])
    player.sees("asks, with execute_command:")
    player.sees("␛]0;title␇⟨U+202E⟩")
    player.says("show")
    player.sees("Requested")
    assert "\x1b" not in player.text


@pytest.mark.slow
@outside_only
def test_through_a_pipe_watch_only_prints_events(instance: Instance) -> None:
    instance.run("restart")
    watch = instance.start("watch", stdin=subprocess.DEVNULL)
    assert watch.stdout is not None
    assert watch.stdout.readline() == "Connected. No call yet.\n"
    call = instance.call("execute_command", command="true")
    assert "Session s1 opened: command line" in watch.stdout.readline()
    assert watch.stdout.readline().endswith("Call 1 of command line asks: true.\n")
    instance.run("approve", "1")
    call.communicate(timeout=90)
    said = ""
    while "exit code 0" not in said:
        said = watch.stdout.readline()
        assert said and ">" not in said and "waits for you" not in said
    watch.send_signal(signal.SIGINT)
    assert watch.wait(timeout=60) == 130


@pytest.mark.slow
@outside_only
def test_watch_prints_what_is_new_once_although_a_session_comes_back_for_each_of_its_calls(shell: AgentShell) -> None:
    instance = shell.instance
    ask_and_deny(shell, "1", "make before")
    watch = instance.start("watch", stdin=subprocess.DEVNULL)
    assert watch.stdout is not None
    assert watch.stdout.readline() == "Connected. 0 calls waiting, 0 running.\n"
    said = ""
    for call_id, command in (("2", "make one"), ("3", "make two")):
        ask_and_deny(shell, call_id, command)
        while f"Call {call_id}: " not in said:
            line = watch.stdout.readline()
            assert line
            said += line.partition(" ")[2]
    whose = "of workspace (claude-code) asks"
    assert "opened" not in said and said.count("closed") <= 2
    assert [line for line in said.splitlines() if "asks" in line] == [
        f"Call 2 {whose}: make one.",
        f"Call 3 {whose}: make two.",
    ]


def ask_and_deny(shell: AgentShell, call_id: str, command: str) -> None:
    """Have an agent that was just started, and goes on with a session, ask about a command, and deny it."""
    with closing(AgentProcess()) as shell.agent:
        asking = shell.ask(command)
        shell.instance.until(lambda: shell.instance.seen("list"))
        assert shell.instance.run("deny", call_id, "--reason", "not now").returncode == 0
        asking.wait(timeout=90)


@pytest.mark.slow
@outside_only
def test_watch_reconnects_to_another_supervisor(instance: Instance) -> None:
    instance.call("execute_command", command="true")
    watch = instance.start("watch", stdin=subprocess.DEVNULL)
    assert watch.stdout is not None
    # With a call, this line is printed when the events arrive; without one, before the watch subscribes to them.
    assert "Connected. 1 call waiting" in watch.stdout.readline()
    instance.kill_supervisor(signal.SIGKILL)
    assert "Watching for it to come back." in watch.stdout.readline()
    assert "Connected" in watch.stdout.readline()


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def desk_of(scenario: Scenario) -> tuple[WatchAnswers, list[str], Time]:
    said: list[str] = []
    clock = Time()
    desk = WatchAnswers(said.append, ME, clock)
    desk.board, desk.supervision = scenario.supervisor.board, scenario.supervisor
    desk.news()
    return desk, said, clock


async def answer(desk: WatchAnswers, clock: Time, *lines: str) -> None:
    for line in lines:
        clock.now += 1
        await desk.answer(line)


async def test_an_answer_that_comes_with_the_call_before_is_not_taken() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    clock.now += 1
    await desk.answer("approve")
    await desk.answer("approve")
    assert said[-1] == "Nothing was done: call 8 has just been read out. Answer again."
    assert isinstance(scenario.supervisor.board.calls["8"].state, Waiting)


async def test_skipping_the_last_call_starts_over_at_the_first() -> None:
    desk, said, clock = desk_of(workday())
    shown = []
    for _ in range(3):
        shown.append(desk.shown.id)
        await answer(desk, clock, "skip")
    assert shown == ["7", "8", "9"]
    assert "still wait" in said[-1]
    await answer(desk, clock, "")
    assert desk.shown.id == "7"
    await answer(desk, clock, "call 9")
    assert desk.shown.id == "9"


async def test_a_call_that_is_set_aside_is_read_out_again_only_when_it_is_named() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    await answer(desk, clock, "aside")
    assert said[-1].startswith("Call 8") or "Call 7 is set aside." in said
    assert desk.shown.id == "8" and list(scenario.supervisor.board.aside) == ["7"]
    await answer(desk, clock, "list")
    assert "1 call are set aside:" in said or "1 call is set aside:" in said
    await answer(desk, clock, "z", "z")
    assert desk.shown is None
    await answer(desk, clock, "aside")
    assert said[-1] == "Nothing was done: no call that waits is read out."
    await answer(desk, clock, "call 8")
    assert desk.shown.id == "8" and any("Call 8 is set aside and still waits." in line for line in said)
    await answer(desk, clock, "aside")
    assert "Call 8 waits again." in said and list(scenario.supervisor.board.waiting) == ["8"]
    await answer(desk, clock, "call 9", "deny", "deny")
    assert scenario.supervisor.board.calls["9"].decision == Deny(reason="")


async def test_denying_without_a_reason_is_asked_twice() -> None:
    scenario = workday()
    desk, _said, clock = desk_of(scenario)
    await answer(desk, clock, "deny")
    assert isinstance(scenario.supervisor.board.calls["7"].state, Waiting)
    await answer(desk, clock, "deny")
    assert scenario.supervisor.board.calls["7"].decision == Deny(reason="")


async def test_an_edit_can_be_forgotten_and_is_refused_where_it_cannot_be_read() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    await answer(desk, clock, "call 9", "edit git 'tag")
    assert "read" in said[-1] or "quot" in said[-1].lower()
    await answer(desk, clock, "edit git tag v2", "no", "approve")
    assert scenario.supervisor.board.calls["9"].decision == Approve()
    await answer(desk, clock, "call 8", "edit ls -l", "session")
    decision = scenario.supervisor.board.calls["8"].decision
    assert decision.remember == "exact_for_session" and "ls" in str(decision.edited)


async def test_a_call_whose_agent_takes_no_change_is_not_edited() -> None:
    scenario = Scenario.begin()
    session = scenario.supervisor.open("an agent", "/srv", "qwen-code", "0.24.4")
    spec = CommandSpec(command=Shell(text="touch x"), cwd="/srv")
    request = CallRequest(session_id=session.id, tool="run_shell_command", arguments={}, spec=spec, takes_change=False)
    scenario.supervisor.ask(request)
    desk, said, clock = desk_of(scenario)
    await answer(desk, clock, "edit touch y")
    assert said[-1].startswith("It cannot be edited: this agent's program takes no change of a call. Deny it")
    await answer(desk, clock, "approve")
    assert scenario.supervisor.board.calls["1"].decision == Approve()


async def test_a_call_is_approved_into_a_sandbox_and_other_words_are_none() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    await answer(desk, clock, "approve somewhere")
    assert "'somewhere' is no sandbox" in said[-1]
    assert isinstance(scenario.supervisor.board.calls["7"].state, Waiting)
    await answer(desk, clock, "approve read-only")
    assert scenario.supervisor.board.calls["7"].decision == Approve(sandbox=Sandbox())
    assert any("into a sandbox (read-only, no network)" in one for one in said)


async def test_every_other_answer_of_watch_prints_something() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    for line, words in (
        ("help", "approve, or a"),
        ("list", "Call 6 of"),
        ("show", "Call 7."),
        ("show 6", "Call 6."),
        ("show 99", "There is no call 99"),
        ("output 2", "The end of its output"),
        ("call 99", "does not wait"),
        ("nonsense", "There is no answer 'nonsense'"),
        ("signal 6 NOPE", "no signal 'NOPE'"),
    ):
        del said[:]
        await answer(desk, clock, line)
        assert any(words in one for one in said), (line, said)
    await answer(desk, clock, "signal 6 TERM")
    assert isinstance(scenario.supervisor.board.calls["6"].state, Ended)
    await answer(desk, clock, "quit")
    assert desk.left


async def test_the_prompt_comes_once_after_lines_that_come_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = WatchSession(Directories(config=tmp_path, state=tmp_path, runtime=tmp_path), asks=True)
    for number in range(4):
        session._say(f"line {number}")
        session._prompt()
    said = ""
    async with asyncio.timeout(60):
        while "> " not in said:
            await asyncio.sleep(0.05)
            said += capsys.readouterr().out
    assert said == "line 0\nline 1\nline 2\nline 3\n> "


async def test_the_answers_yes_and_y_are_in_the_help_and_approve() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    await answer(desk, clock, "help", "y")
    assert scenario.supervisor.board.calls["7"].decision == Approve()
    assert "or yes, or y: let it run" in "\n".join(said)


async def test_a_severe_risk_is_read_out_as_one() -> None:
    scenario = Scenario.begin()
    record = scenario.supervisor.board.calls[scenario.ask("clean", Risk(id="destructive", sentence="Deletes"))]
    assert "Severe risk: Deletes." in list(asks(record, scenario.supervisor.board, 1))


async def test_a_reason_that_is_the_sentence_of_a_risk_is_read_out_once() -> None:
    scenario = Scenario.begin()
    record = scenario.supervisor.board.calls[scenario.ask("clean", Risk(id="destructive", sentence="Deletes"))]
    assert record.verdict is not None
    for reason, times in (("Deletes", 0), ("It is new", 1)):
        judged = record.model_copy(update={"verdict": record.verdict.model_copy(update={"reason": reason})})
        told = list(asks(judged, scenario.supervisor.board, 1))
        assert "Severe risk: Deletes." in told
        assert told.count(f"Reason: {reason}.") == times


async def test_a_call_that_changed_is_not_approved_as_it_was_read_out() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    changed = scenario.supervisor.board.calls["7"]
    call = changed.call.model_copy(
        update={"spec": changed.spec.model_copy(update={"command": Argv(program="rm", args=("all",))})}
    )
    scenario.supervisor.board.calls["7"] = changed.model_copy(update={"call": call})
    await answer(desk, clock, "approve")
    assert "Nothing was done: call 7 was decided elsewhere or has changed." in said
    assert isinstance(scenario.supervisor.board.calls["7"].state, Waiting)
    await asyncio.sleep(0)


async def test_the_event_of_an_own_decision_may_come_before_its_answer() -> None:
    scenario = workday()
    desk, said, clock = desk_of(scenario)
    decide = scenario.supervisor.decide

    async def decides_and_tells_first(*decision: object) -> None:
        await decide(*decision)
        assert not desk.gone()
        desk.news()

    scenario.supervisor.decide = decides_and_tells_first
    await answer(desk, clock, "approve")
    assert "Call 7 is approved." in said
    assert desk.shown is not None and desk.shown.id == "8" and not desk.between


async def test_the_effects_are_read_out_after_the_risk_and_the_command() -> None:
    scenario = Scenario.begin()
    lines = "; ".join(f"echo {number} > new{number}.txt" for number in range(8))
    spec = CommandSpec(command=Shell(text=f"{lines}; rm -rf src"), cwd=ROOT)
    scenario.supervisor.ask(CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec))
    desk, said, clock = desk_of(scenario)
    before = len(said)
    await desk.read_effects()
    effects = said[before:]
    assert [line.split()[1] for line in effects] == ["deletes", *["writes"] * 5, "3"]
    assert effects[-1] == "And 3 more effects; show reads them all."
    await answer(desk, clock, "show")
    assert said[-1] == "Effect: writes new7.txt (new, +1 -0 lines)."


async def test_effects_of_a_call_that_was_decided_meanwhile_are_not_read_out() -> None:
    scenario = workday()
    desk, said, _ = desk_of(scenario)
    scenario.approve(desk.shown.id)
    before = len(said)
    await desk.read_effects()
    assert said[before:] == []
