"""One key runs again, without a sandbox, what one has blocked; others approve into a sandbox."""

from pathlib import Path

import pytest

from tests.outside import needs_sandbox, outside_only
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.live import live
from tests.tui.scenes import ROOT, Scenario
from tests.tui.test_deciding import three_waiting
from tests.tui.test_sandboxed import TOUCH, blocked, confined, unasked
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.decision import Approve, Decider, ExactScope
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import SessionClosed
from whisper_tui.model.run import Blocked, BlockedAttempt, Sandbox
from whisper_tui.model.state import Running, Waiting
from whisper_tui.model.verdict import Resolved, Risk, Verdict
from whisper_tui.tui.command_definition import available
from whisper_tui.tui.commands.all_commands import BY_ID
from whisper_tui.tui.commands.undo_approval import UndoSettings

LARGE = (200, 60)
"""All of a call is on a terminal of this size at once."""
PROBLEM = "this kernel has no Landlock"
GRAVE = Risk(id="destructive", sentence="Deletes recursively without confirmation (`rm -rf`)", span=(0, 2))


def judged_alike(scenario: Scenario, *risks: Risk, program: str = "") -> None:
    """What is asked again is judged as before, or with these risks, or finds another program."""
    ask = scenario.supervisor.ask

    def again(request: CallRequest, *_: object) -> str:
        known = scenario.supervisor.board.calls["1"].resolved or Resolved()
        known = known.model_copy(update={"program": program}) if program else known
        return ask(request, Verdict(kind="ask", reason="it was blocked before", risks=risks), known)

    scenario.supervisor.ask = again  # type: ignore[method-assign, assignment]


async def pressed(cockpit: Cockpit, key: str = "U", call_id: str = "1") -> None:
    await cockpit.select(call_id)
    await cockpit.can_be_seen()
    cockpit.scenario.clock.advance(30)
    await cockpit.press(key)


async def test_a_blocked_call_is_rerun_without_a_sandbox() -> None:
    scenario = blocked()
    judged_alike(scenario)
    async with open_cockpit(scenario) as cockpit:
        await pressed(cockpit)
        await cockpit.until(
            lambda: "2" in scenario.supervisor.board.calls and isinstance(cockpit.record("2").state, Running)
        )
        again = cockpit.record("2")
        assert again.decision == Approve()
        assert again.decided_by == Decider(surface="cockpit", who="me")
        assert again.spec == cockpit.record("1").spec
        assert again.call.session_id == cockpit.record("1").call.session_id
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.sees("runs call 1 again without a sandbox")


async def test_the_approval_of_a_rerun_can_be_undone() -> None:
    scenario = blocked()
    risky = scenario.supervisor.board.calls["1"]
    assert risky.verdict is not None
    scenario.supervisor.board.calls["1"] = risky.model_copy(
        update={"verdict": risky.verdict.model_copy(update={"risks": (GRAVE,)})}
    )
    scenario.supervisor.events[:] = [
        event.model_copy(update={"verdict": event.verdict.model_copy(update={"risks": (GRAVE,)})})
        if event.kind == "judged"
        else event
        for event in scenario.supervisor.events
    ]
    judged_alike(scenario, GRAVE)
    async with open_cockpit(scenario, size=LARGE, undo=UndoSettings("grave", 3.0)) as cockpit:
        await pressed(cockpit)
        await cockpit.sees("Approving call 2 in 3 s")
        await cockpit.press("u")
        await cockpit.sees("Call 2 is not approved")
        assert isinstance(cockpit.record("2").state, Waiting)


@pytest.mark.parametrize("changed", [pytest.param("its meaning", marks=pytest.mark.slow), "its risks"])
async def test_a_rerun_that_differs_from_the_seen_call_waits(changed: str) -> None:
    scenario = blocked()
    if changed == "its risks":
        judged_alike(scenario, GRAVE)
    else:
        judged_alike(scenario, program="/elsewhere/bash")
    async with open_cockpit(scenario, size=LARGE) as cockpit:
        await pressed(cockpit)
        await cockpit.sees("waits for you: it")
        assert isinstance(cockpit.record("2").state, Waiting)
        assert cockpit.selected == "2"


async def test_a_rerun_with_masked_secrets_waits() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Argv(program="touch", args=("--token=ghp_" + "a1B2" * 9,)), cwd=ROOT)
    request = CallRequest(session_id="s1", tool="execute_command", arguments={}, spec=spec)
    scenario.supervisor.ask(request, Verdict(kind="ask", reason="x"), Resolved(cwd=ROOT))
    scenario.approve("1")
    scenario.supervisor.finish("1", Exited(code=1), blocked=Blocked(attempts=(BlockedAttempt(what="network"),)))
    judged_alike(scenario)
    async with open_cockpit(scenario) as cockpit:
        await pressed(cockpit)
        await cockpit.sees("waits for you: its secrets were not on the screen")
        assert isinstance(cockpit.record("2").state, Waiting)


async def test_a_rerun_with_unseen_parts_needs_a_second_key() -> None:
    scenario = blocked()
    judged_alike(scenario)
    async with open_cockpit(scenario, size=(80, 16)) as cockpit:
        await pressed(cockpit)
        await cockpit.sees("not on the screen yet")
        assert len(scenario.supervisor.board.calls) == 1
        await cockpit.press("U")
        await cockpit.until(
            lambda: "2" in scenario.supervisor.board.calls and isinstance(cockpit.record("2").state, Running)
        )


async def test_a_call_of_a_closed_session_is_not_run_again() -> None:
    scenario = blocked()
    scenario.supervisor.happen(SessionClosed(at=scenario.clock(), session_id="s1", why="it left"))
    async with open_cockpit(scenario) as cockpit:
        await pressed(cockpit)
        await cockpit.sees("Its session is closed")
        assert len(scenario.supervisor.board.calls) == 1


def test_only_calls_that_failed_in_a_sandbox_can_be_rerun_without_one() -> None:
    scenario = Scenario.begin()
    for code, kept in ((1, None), (0, Blocked(attempts=(BlockedAttempt(what="network"),)))):
        call_id = confined(scenario)
        scenario.supervisor.finish(call_id, Exited(code=code), blocked=kept)
        assert not available(BY_ID["rerun-unconfined"], scenario.supervisor.board.calls[call_id])
    assert available(BY_ID["rerun-unconfined"], blocked().supervisor.board.calls["1"])


@pytest.mark.parametrize(
    ("times", "sandbox"),
    [
        pytest.param(2, Sandbox(kind="workspace"), marks=pytest.mark.slow),
        pytest.param(3, Sandbox(kind="workspace", network=True), marks=pytest.mark.slow),
        (4, Sandbox()),
    ],
)
async def test_a_call_is_approved_into_the_chosen_sandbox_which_is_named(times: int, sandbox: Sandbox) -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        for _ in range(times):
            await pressed(cockpit, "h")
        await cockpit.sees(f"a in a sandbox: {sandbox.words()}")
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.record("1").decision == Approve(sandbox=sandbox)
        await cockpit.sees(f"Call 1 is approved in a sandbox ({sandbox.words()})")


@pytest.mark.slow
async def test_the_palette_approves_into_a_sandbox() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        for _ in range(4):
            await cockpit.choose("In which way  (h)")
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.record("1").sandbox == Sandbox()


async def test_without_sandbox_support_nothing_is_approved_into_one() -> None:
    scenario = three_waiting()
    scenario.supervisor.sandbox_problem = PROBLEM
    async with open_cockpit(scenario) as cockpit:
        await pressed(cockpit, "h")
        await pressed(cockpit, "h")
        await cockpit.sees(f"No sandbox is available: {PROBLEM}. Nothing was decided.")
        await cockpit.press("A")
        await cockpit.sees("Approve call 1, and more")
        await cockpit.press("ctrl+t")
        await cockpit.sees(PROBLEM)
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_nothing_is_chosen_for_a_call_that_was_just_selected() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("h", "h", "a")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.press("h", "a")
        await cockpit.sees("Press again for this call")
        assert isinstance(cockpit.record("2").state, Waiting)


async def test_the_dialog_chooses_a_sandbox_for_standing_approvals() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("A")
        await cockpit.sees("Sandbox none: runs with your permissions")
        await cockpit.press("ctrl+t")
        await cockpit.sees("Sandbox read-only, no network")
        await cockpit.press("ctrl+t")
        await cockpit.sees("Sandbox writes only in the workspace, no network")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        sandbox = Sandbox(kind="workspace")
        assert cockpit.record("1").decision == Approve(remember=ExactScope(), sandbox=sandbox)
        (grant,) = cockpit.scenario.supervisor.board.grants.values()
        assert grant.sandbox == sandbox


@pytest.mark.slow
@outside_only
@needs_sandbox
async def test_a_real_command_that_was_blocked_runs_with_one_key(tmp_path: Path) -> None:
    async with live(tmp_path, LARGE, TOUCH) as room:
        await unasked(room, "touch made.txt")
        await room.sees("blocked, exit 1", "U Run unconfined")
        await room.press("U")
        await room.until(lambda: "2" in room.screen.board.calls and room.board("2").state.kind == "ended")
        assert (room.workspace / "made.txt").exists()
        assert room.board("2").sandbox is None
        assert room.board("2").blocked is None


@outside_only
@needs_sandbox
async def test_a_real_command_that_is_approved_read_only_cannot_write(tmp_path: Path) -> None:
    async with live(tmp_path) as room:
        spec = CommandSpec(command=Argv(program="touch", args=("made.txt",)), cwd=str(room.workspace))
        request = CallRequest(session_id=room.session_id, tool="execute_command", arguments={}, spec=spec)
        await room.supervisor.submit(request)
        await room.until(lambda: room.screen.shown is not None and room.screen.shown.state.kind == "waiting")
        for key in "hhhha":
            await room.press(key)
        await room.until(lambda: room.board("1").state.kind == "ended")
        await room.sees("blocked, exit 1")
        assert not (room.workspace / "made.txt").exists()
