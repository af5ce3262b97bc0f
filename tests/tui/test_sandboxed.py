"""How a command is confined, and what that kept it from: said where a person looks."""

import re
from pathlib import Path

from tests.outside import needs_sandbox, outside_only
from tests.tui.cockpit import open_cockpit, toast_text
from tests.tui.live import Live, live
from tests.tui.scenes import ME, Scenario
from tests.tui.test_describe import described
from whisper_tui.cli.watch_text import happened
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided
from whisper_tui.model.masking import masked_record
from whisper_tui.model.run import Blocked, BlockedAttempt, Sandbox
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.tools.agent_text import sandbox_note

CACHE = "/home/me/.cache/garden"
WRITES = BlockedAttempt(what="write", subject=CACHE)
NETWORK = BlockedAttempt(what="network")
TOUCH = Rules(allow=(Rule(name="touch", prefix=("touch",)),))
"""Lets a command run without approval that its read-only sandbox will block."""


def confined(scenario: Scenario, scene: str = "build", sandbox: Sandbox | None = None) -> str:
    """A call that runs in a sandbox."""
    call_id = scenario.ask(scene)
    decision = Approve(sandbox=sandbox or Sandbox())
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=decision, by=ME))
    scenario.supervisor.start(call_id)
    return call_id


def blocked(*attempts: BlockedAttempt, more: int = 0) -> Scenario:
    """Call 1 has ended, and its sandbox has kept it from something."""
    scenario = Scenario.begin()
    call_id = confined(scenario)
    scenario.supervisor.write(call_id, f"touch: cannot touch '{CACHE}': Permission denied\n".encode(), "err")
    scenario.supervisor.finish(
        call_id, Exited(code=1), blocked=Blocked(attempts=attempts or (WRITES, NETWORK), more=more)
    )
    return scenario


async def unasked(room: Live, text: str) -> str:
    """Submit a line that a rule lets run; returns its call once it has ended."""
    spec = CommandSpec(command=Shell(text=text), cwd=str(room.workspace))
    request = CallRequest(session_id=room.session_id, tool="run_shell_command", arguments={}, spec=spec)
    call_id = await room.supervisor.submit(request)
    await room.supervisor.outcome(call_id)
    await room.until(lambda: call_id in room.screen.board.calls and room.board(call_id).state.kind == "ended")
    return call_id


def test_a_confined_call_says_how_it_runs() -> None:
    scenario = Scenario.begin()
    sandbox = Sandbox(kind="workspace", network=True, execute=("/opt/node\u202e/bin",))
    assert "Sandbox     writes only in the workspace, with network; may also run programs in /opt/node" in described(
        scenario, confined(scenario, sandbox=sandbox), 200
    )
    assert "\u202e" not in described(scenario, "1")


def test_a_call_without_a_sandbox_shows_none() -> None:
    scenario = Scenario.begin()
    call_id = scenario.ask("build")
    assert "Sandbox" not in described(scenario, call_id)
    scenario.approve(call_id)
    assert "Sandbox" not in described(scenario, call_id)


def test_a_blocked_call_shows_its_blocked_attempts_first() -> None:
    text = described(blocked(more=3), "1")
    assert f"Blocked     tried to write {CACHE}\n             tried to use the network\n             and 3 more" in text
    assert text.startswith(" Blocked")


def test_errors_of_a_failed_command_stand_for_unseen_attempts() -> None:
    scenario = Scenario.begin()
    call_id = confined(scenario)
    scenario.supervisor.finish(call_id, Exited(code=1), blocked=Blocked(messages=("cat: /x: Permission denied",)))
    assert "Blocked     said: cat: /x: Permission denied" in described(scenario, call_id)


def test_a_blocked_path_is_shown_without_escapes() -> None:
    text = described(blocked(BlockedAttempt(what="write", subject="/tmp/a\x1b[2J\u202eb")), "1")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_secret_is_masked_in_blocked_attempts_too() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 22
    record = blocked(BlockedAttempt(what="write", subject=f"/tmp/{secret}")).supervisor.board.calls["1"]
    masked = masked_record(record).blocked
    assert masked is not None
    assert secret not in masked.words()


async def test_a_blocked_call_is_marked_in_the_list_and_in_its_heading() -> None:
    async with open_cockpit(blocked()) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("⊘ blocked, exit 1")
        assert any("⊘ " in line and "blocked, exit 1" in line for line in cockpit.text().splitlines())


async def test_calls_blocked_before_the_start_cause_no_toast() -> None:
    scenario = blocked()
    scenario.clock.advance(60)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("Blocked")
        assert "The sandbox blocked" not in cockpit.text()
        call_id = confined(scenario, "test")
        scenario.supervisor.finish(call_id, Exited(code=1), blocked=Blocked(attempts=(NETWORK,)))
        await cockpit.sees(f"The sandbox blocked call {call_id}: it tried to use the network.")


async def test_most_of_many_blocked_calls_are_only_counted() -> None:
    scenario = Scenario.begin()
    async with open_cockpit(scenario) as cockpit:
        for call_id in [confined(scenario, "test") for _ in range(5)]:
            # Each is another change of the board.
            scenario.supervisor.finish(call_id, Exited(code=1), blocked=Blocked(attempts=(NETWORK,)))
            await cockpit.pilot.pause()
        await cockpit.sees("The sandbox blocked call 1:", "The sandbox blocked call 2:")
        told = re.compile(r"The sandbox blocked (\d) other calls? as well")
        await cockpit.until(lambda: sum(map(int, told.findall(toast_text(cockpit.app)))) == 3)


def test_watch_says_that_it_was_blocked() -> None:
    scenario = blocked()
    said = [happened(event, scenario.supervisor.board) for event in scenario.supervisor.events]
    assert any(
        line.endswith(
            f"Failed with exit code 1. Its sandbox blocked it: it tried to write {CACHE}; tried to use the network."
        )
        for line in said
        if line
    )
    assert any("is approved into a sandbox (read-only, no network)" in line for line in said if line)


@outside_only
@needs_sandbox
async def test_a_real_blocked_command_is_reported_marked_and_described(tmp_path: Path) -> None:
    async with live(tmp_path, rules=TOUCH) as room:
        await unasked(room, "touch made.txt")
        await room.sees("The sandbox blocked call 1", "blocked, exit 1", "Sandbox", "read-only, no network")
        await room.sees(f"tried to write {room.workspace}/made.txt")
        assert not (room.workspace / "made.txt").exists()


def test_an_agent_is_told_in_few_words_what_nobody_was_asked_about_could_not_do() -> None:
    scenario = Scenario.begin()
    call_id = scenario.ask("build")
    by = Decider(surface="rule", who="touch")
    scenario.supervisor.happen(
        Decided(at=scenario.clock(), call_id=call_id, decision=Approve(sandbox=Sandbox()), by=by)
    )
    scenario.supervisor.start(call_id)
    scenario.supervisor.finish(call_id, Exited(code=1), blocked=Blocked(attempts=(WRITES,)))
    note = sandbox_note(scenario.supervisor.board.calls[call_id])
    assert note is not None and f"it tried to write {CACHE}. Send the same command again to ask the human." in note
    # At four characters a token, without the name of the file.
    assert (len(note) - len(CACHE)) / 4 <= 50
