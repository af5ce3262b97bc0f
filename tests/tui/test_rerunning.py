"""One key runs again, without a sandbox, what one has blocked; others approve into a sandbox."""

from pathlib import Path

import pytest

from tests.outside import needs_sandbox, outside_only
from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.live import live
from tests.tui.scenes import ROOT, Play
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


def judged_alike(play: Play, *risks: Risk, program: str = "") -> None:
    """What is asked again is judged as before, or with these risks, or finds another program."""
    ask = play.stage.ask

    def again(request: CallRequest, *_: object) -> str:
        known = play.stage.board.calls["1"].resolved or Resolved()
        known = known.model_copy(update={"program": program}) if program else known
        return ask(request, Verdict(kind="ask", reason="it was blocked before", risks=risks), known)

    play.stage.ask = again  # type: ignore[method-assign, assignment]


async def pressed(seat: Cockpit, key: str = "U", call_id: str = "1") -> None:
    await seat.select(call_id)
    seat.play.clock.advance(1)
    await seat.press(key)


async def test_a_blocked_call_is_rerun_without_a_sandbox() -> None:
    play = blocked()
    judged_alike(play)
    async with cockpit(play) as seat:
        await pressed(seat)
        await seat.until(lambda: "2" in play.stage.board.calls and isinstance(seat.record("2").state, Running))
        again = seat.record("2")
        assert again.decision == Approve()
        assert again.decided_by == Decider(surface="cockpit", who="me")
        assert again.spec == seat.record("1").spec
        assert again.call.session_id == seat.record("1").call.session_id
        await seat.until(lambda: seat.selected == "2")
        await seat.sees("runs call 1 again without a sandbox")


async def test_the_approval_of_a_rerun_can_be_undone() -> None:
    play = blocked()
    risky = play.stage.board.calls["1"]
    assert risky.verdict is not None
    play.stage.board.calls["1"] = risky.model_copy(
        update={"verdict": risky.verdict.model_copy(update={"risks": (GRAVE,)})}
    )
    play.stage.events[:] = [
        event.model_copy(update={"verdict": event.verdict.model_copy(update={"risks": (GRAVE,)})})
        if event.kind == "judged"
        else event
        for event in play.stage.events
    ]
    judged_alike(play, GRAVE)
    async with cockpit(play, size=LARGE, undo=UndoSettings("grave", 3.0)) as seat:
        await pressed(seat)
        await seat.sees("Approving call 2 in 3 s")
        await seat.press("u")
        await seat.sees("Call 2 is not approved")
        assert isinstance(seat.record("2").state, Waiting)


@pytest.mark.parametrize("changed", [pytest.param("its meaning", marks=pytest.mark.slow), "its risks"])
async def test_a_rerun_that_differs_from_the_seen_call_waits(changed: str) -> None:
    play = blocked()
    if changed == "its risks":
        judged_alike(play, GRAVE)
    else:
        judged_alike(play, program="/elsewhere/bash")
    async with cockpit(play, size=LARGE) as seat:
        await pressed(seat)
        await seat.sees("waits for you: it")
        assert isinstance(seat.record("2").state, Waiting)
        assert seat.selected == "2"


async def test_a_rerun_with_masked_secrets_waits() -> None:
    play = Play.begin()
    spec = CommandSpec(command=Argv(program="touch", args=("--token=ghp_" + "a1B2" * 9,)), cwd=ROOT)
    request = CallRequest(session_id="s1", tool="execute_command", arguments={}, spec=spec)
    play.stage.ask(request, Verdict(kind="ask", reason="x"), Resolved(cwd=ROOT))
    play.approve("1")
    play.stage.finish("1", Exited(code=1), blocked=Blocked(attempts=(BlockedAttempt(what="network"),)))
    judged_alike(play)
    async with cockpit(play) as seat:
        await pressed(seat)
        await seat.sees("waits for you: its secrets were not on the screen")
        assert isinstance(seat.record("2").state, Waiting)


async def test_a_rerun_with_unseen_parts_needs_a_second_key() -> None:
    play = blocked()
    judged_alike(play)
    async with cockpit(play, size=(80, 24)) as seat:
        await pressed(seat)
        await seat.sees("not on the screen yet")
        assert len(play.stage.board.calls) == 1
        await seat.press("U")
        await seat.until(lambda: "2" in play.stage.board.calls and isinstance(seat.record("2").state, Running))


async def test_a_call_of_a_closed_session_is_not_run_again() -> None:
    play = blocked()
    play.stage.happen(SessionClosed(at=play.clock(), session_id="s1", why="it left"))
    async with cockpit(play) as seat:
        await pressed(seat)
        await seat.sees("Its session is closed")
        assert len(play.stage.board.calls) == 1


def test_only_calls_that_failed_in_a_sandbox_can_be_rerun_without_one() -> None:
    play = Play.begin()
    for code, kept in ((1, None), (0, Blocked(attempts=(BlockedAttempt(what="network"),)))):
        call_id = confined(play)
        play.stage.finish(call_id, Exited(code=code), blocked=kept)
        assert not available(BY_ID["rerun-unconfined"], play.stage.board.calls[call_id])
    assert available(BY_ID["rerun-unconfined"], blocked().stage.board.calls["1"])


@pytest.mark.parametrize(
    ("key", "sandbox"),
    [
        ("O", Sandbox()),
        pytest.param("C", Sandbox(kind="workspace"), marks=pytest.mark.slow),
        pytest.param("I", Sandbox(kind="workspace", network=True), marks=pytest.mark.slow),
    ],
)
async def test_a_key_approves_into_a_sandbox_and_says_which(key: str, sandbox: Sandbox) -> None:
    async with cockpit(three_waiting()) as seat:
        await pressed(seat, key)
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.record("1").decision == Approve(sandbox=sandbox)
        await seat.sees(f"Call 1 is approved in a sandbox ({sandbox.words()})")


@pytest.mark.slow
async def test_the_palette_approves_into_a_sandbox() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.choose("Read-only  (O)")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.record("1").sandbox == Sandbox()


async def test_without_sandbox_support_nothing_is_approved_into_one() -> None:
    play = three_waiting()
    play.stage.sandbox_problem = PROBLEM
    async with cockpit(play) as seat:
        await pressed(seat, "C")
        await seat.sees(f"No sandbox is available: {PROBLEM}. Nothing was decided.")
        await seat.press("A")
        await seat.sees("Approve call 1, and more")
        await seat.press("ctrl+t")
        await seat.sees(PROBLEM)
        assert isinstance(seat.record("1").state, Waiting)


async def test_a_call_that_was_just_selected_is_not_approved_into_a_sandbox() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("C")
        await seat.until(lambda: seat.selected == "2")
        await seat.press("C")
        await seat.sees("Press again for this call")
        assert isinstance(seat.record("2").state, Waiting)


async def test_the_dialog_chooses_a_sandbox_for_standing_approvals() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("A")
        await seat.sees("Sandbox none: runs with your permissions")
        await seat.press("ctrl+t")
        await seat.sees("Sandbox read-only, no network")
        await seat.press("ctrl+t")
        await seat.sees("Sandbox writes only in the workspace, no network")
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        sandbox = Sandbox(kind="workspace")
        assert seat.record("1").decision == Approve(remember=ExactScope(), sandbox=sandbox)
        (grant,) = seat.play.stage.board.grants.values()
        assert grant.sandbox == sandbox


@pytest.mark.slow
@outside_only
@needs_sandbox
async def test_a_real_command_that_was_blocked_runs_with_one_key(tmp_path: Path) -> None:
    async with live(tmp_path, LARGE, TOUCH) as room:
        await unasked(room, "touch made.txt")
        await room.sees("blocked, exit 1", "U Run unconfined")
        await room.pilot.pause(0.4)
        await room.pilot.press("U")
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
        await room.pilot.pause(0.4)
        await room.pilot.press("O")
        await room.until(lambda: room.board("1").state.kind == "ended")
        await room.sees("blocked, exit 1")
        assert not (room.workspace / "made.txt").exists()
