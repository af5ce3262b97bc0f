"""The two choices of an approval: for how long it holds, and in which way the call runs."""

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.preview_scenes import begin_preview, end_preview, previewed, tidying
from tests.tui.scenes import Scenario
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.event import Judged
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import Waiting
from whisper_tui.model.verdict import Resolved, Verdict

WIDE = (180, 50)


def two_waiting() -> Scenario:
    scenario = Scenario.begin()
    for scene in ("build", "test"):
        scenario.ask(scene)
        scenario.clock.advance(10)
    return scenario


async def press(cockpit: Cockpit, *keys: str) -> None:
    for key in keys:
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(10)
        await cockpit.press(key)


async def test_the_buttons_show_what_is_chosen_and_a_line_what_follows_of_it() -> None:
    async with open_cockpit(two_waiting(), size=WIDE) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("F [once] session always", "h [normally] held back sandboxed")
        await press(cockpit, "F", "h", "h")
        await cockpit.sees("F once [session] always", "h normally held back [sandboxed]")
        await cockpit.sees(
            "a the same call in the same directory is not asked about again in this session; in a sandbox"
        )
        assert isinstance(cockpit.record("1").state, Waiting)
        await press(cockpit, "a")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        sandbox = Sandbox(kind="workspace")
        assert cockpit.record("1").decision == Approve(remember="exact_for_session", sandbox=sandbox)


async def test_a_narrow_screen_shows_the_chosen_options_alone() -> None:
    async with open_cockpit(two_waiting(), size=(80, 24)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("a Approve   F once   h normally   d Deny   e Edit")
        await press(cockpit, "F", "h")
        await cockpit.sees("F session   h held back")


async def test_another_call_is_approved_as_usual_and_so_is_the_same_one_later() -> None:
    async with open_cockpit(two_waiting(), size=WIDE) as cockpit:
        await cockpit.select("1")
        await press(cockpit, "F", "h")
        await cockpit.select("2")
        await cockpit.sees("F [once] session", "h [normally] held back")
        await cockpit.select("1")
        await cockpit.sees("F [once] session", "h [normally] held back")
        await press(cockpit, "a")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve()


@pytest.mark.slow
async def test_a_call_that_changes_is_approved_as_usual() -> None:
    scenario = Scenario.begin()
    call_id = scenario.ask("build")
    async with open_cockpit(scenario, size=WIDE) as cockpit:
        await cockpit.select(call_id)
        await press(cockpit, "F")
        await cockpit.sees("F once [session]")
        verdict = Verdict(kind="ask", reason="another reason")
        scenario.supervisor.happen(Judged(at=scenario.clock(), call_id=call_id, verdict=verdict, resolved=Resolved()))
        await cockpit.sees("F [once] session")


async def test_what_is_edited_runs_in_the_way_that_was_chosen() -> None:
    async with open_cockpit(two_waiting(), size=WIDE) as cockpit:
        await cockpit.select("1")
        await press(cockpit, "h", "h", "e")
        await cockpit.sees("Ctrl+S")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        decision = cockpit.record("1").decision
        assert isinstance(decision, Approve) and decision.sandbox == Sandbox(kind="workspace")


async def test_the_end_of_a_preview_makes_a_apply_it_and_a_key_from_before_decides_nothing() -> None:
    scenario, call_id = tidying()
    begin_preview(scenario, call_id)
    async with open_cockpit(scenario, size=(140, 70)) as cockpit:
        await cockpit.select(call_id)
        await cockpit.sees("a Approve")
        await cockpit.can_be_seen()
        scenario.clock.advance(10)
        end_preview(scenario, call_id)
        await cockpit.sees("a Apply changes")
        await cockpit.press("a")
        await cockpit.sees("Nothing was decided")
        assert isinstance(scenario.supervisor.known(call_id).state, Waiting)


async def test_a_way_that_was_chosen_before_a_preview_ended_is_not_kept() -> None:
    async with open_cockpit(previewed(), size=(140, 70)) as cockpit:
        await cockpit.sees("h as previewed")
        await press(cockpit, "h", "h")
        await cockpit.sees("h held back")
        for _ in range(4):
            await press(cockpit, "h")
        await cockpit.sees("h as previewed")


async def test_a_tool_of_the_agent_has_no_other_way() -> None:
    scenario = Scenario.begin()
    session = scenario.supervisor.open("an agent", "/")
    spec = CommandSpec(command=Shell(text="true"), cwd="/", place="gpu1")
    scenario.supervisor.ask(CallRequest(session_id=session.id, tool="execute_command", arguments={}, spec=spec))
    async with open_cockpit(scenario, size=WIDE) as cockpit:
        await cockpit.sees("F [once] session always")
        assert "h [normally]" not in cockpit.text()
