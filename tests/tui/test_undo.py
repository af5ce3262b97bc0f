"""Approvals that are held back: undone in time, sent when it is over, and never sent by a cockpit that is gone."""

import pytest

from tests.tui.cockpit import open_cockpit, toast_text
from tests.tui.scenes import ME, Scenario, workday
from tests.tui.test_follow import GONE, back_to
from tests.tui.test_rules_screen import Book
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Decided
from whisper_tui.model.shown_rules import SAVED_WITH, RuleDraft
from whisper_tui.model.state import Ended, Queued, Running, Waiting
from whisper_tui.tui.commands.undo_approval import WITHDRAWN_REASON, UndoSettings

GRAVE = UndoSettings("grave", 3.0)
RISKY, PLAIN = "7", "8"


@pytest.mark.slow
async def test_the_approval_of_a_severe_risk_is_sent_when_its_undo_window_ends() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees(f"Approving call {RISKY} in 3 s")
        await cockpit.until(lambda: cockpit.selected == PLAIN)
        assert isinstance(cockpit.record(RISKY).state, Waiting)
        cockpit.scenario.clock.advance(2)
        await cockpit.sees(f"Approving call {RISKY} in 1 s")
        assert isinstance(cockpit.record(RISKY).state, Waiting)
        cockpit.scenario.clock.advance(30)
        await cockpit.until(lambda: isinstance(cockpit.record(RISKY).state, Running))
        await cockpit.until(lambda: "Approving call" not in cockpit.text())


async def test_u_undoes_an_approval_before_it_is_sent() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("F", "a")
        await cockpit.sees("Approving call")
        await cockpit.press("u")
        await cockpit.sees(f"Call {RISKY} is not approved")
        await cockpit.until(lambda: cockpit.selected == RISKY)
        cockpit.scenario.clock.advance(60)
        await cockpit.until(lambda: "Approving call" not in cockpit.text())
        assert isinstance(cockpit.record(RISKY).state, Waiting)
        assert not cockpit.scenario.supervisor.board.grants


async def test_a_click_undoes_an_approval() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("u Undo")
        await cockpit.click("#now-undo")
        await cockpit.sees(f"Call {RISKY} is not approved")


async def test_the_palette_undoes_an_approval() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        await cockpit.choose("Undo  (u)")
        await cockpit.sees(f"Call {RISKY} is not approved")


async def test_other_approvals_are_sent_at_once_unless_configured() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(PLAIN)
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record(PLAIN).state, Running))
    async with open_cockpit(workday(), undo=UndoSettings("every", 1.0)) as cockpit:
        await cockpit.select(PLAIN)
        await cockpit.press("a")
        await cockpit.sees(f"Approving call {PLAIN} in 1 s")


@pytest.mark.parametrize(
    ("keys", "call", "seconds"),
    [
        ("a", PLAIN, 1.5),
        pytest.param("a", RISKY, 3.0, marks=pytest.mark.slow),
        pytest.param("Fa", PLAIN, 5.0, marks=pytest.mark.slow),
        ("Fa", RISKY, 5.0),
    ],
)
async def test_a_standing_approval_can_be_undone_longest_and_an_ordinary_one_shortest(
    keys: str, call: str, seconds: float
) -> None:
    async with open_cockpit(workday(), undo=UndoSettings()) as cockpit:
        await cockpit.select(call)
        await cockpit.press(*keys)
        await cockpit.sees("Approving call")
        cockpit.scenario.clock.advance(seconds - 0.1)
        await cockpit.sees(f"Approving call {call} in 1 s")
        assert isinstance(cockpit.record(call).state, Waiting)
        cockpit.scenario.clock.advance(0.2)
        await cockpit.until(lambda: isinstance(cockpit.record(call).state, Running))


async def test_letters_as_fast_as_typed_text_approve_nothing() -> None:
    async with open_cockpit(workday(), undo=UndoSettings()) as cockpit:
        await cockpit.select(PLAIN)
        for typed in ("la", "aF", "lsa"):
            await cockpit.type_fast(typed)
            await cockpit.sees("Nothing was decided: the keys came as fast as typed text.")
            cockpit.scenario.clock.advance(60)
            await cockpit.until(lambda: "Approving call" not in cockpit.text())
            assert isinstance(cockpit.record(PLAIN).state, Waiting)
        await cockpit.press("a")
        await cockpit.sees("Approving call")


async def test_u_revokes_the_standing_approval_that_was_given_last() -> None:
    async with open_cockpit(workday(), undo=UndoSettings("none")) as cockpit:
        await cockpit.press("u")
        await cockpit.sees("Nothing was done here that could be undone; L lists approvals and rules.")
        await cockpit.select(PLAIN)
        await cockpit.press("F", "a")
        await cockpit.until(lambda: "is approved" in toast_text(cockpit.app))
        await cockpit.press("u")
        await cockpit.sees(f"Revoked the standing approval of call {PLAIN}")
        await cockpit.until(
            lambda: all(grant.revoked_at for grant in cockpit.scenario.supervisor.board.grants.values())
        )
        await cockpit.press("u")
        await cockpit.sees(f"Call {PLAIN} has started: x ends it")


async def test_u_removes_the_rule_that_was_saved_with_the_last_approval_and_no_other() -> None:
    async with open_cockpit(workday(), undo=UndoSettings("none")) as cockpit:
        supervisor = cockpit.scenario.supervisor
        supervisor.rule_book = book = Book()
        await cockpit.select(RISKY)
        await cockpit.press("F", "a")
        await cockpit.until(lambda: "is approved" in toast_text(cockpit.app))
        for grant in supervisor.board.grants.values():
            await supervisor.revoke(grant.id, ME)
        rules = {}
        for saved_with in (PLAIN, RISKY):
            definition = {"name": f"rm{saved_with}", "prefix": ["rm"], "justification": f"{SAVED_WITH}{saved_with}"}
            rules[saved_with] = RuleDraft(effect="allow", definition=definition)
            book.replace(None, rules[saved_with])
        await cockpit.press("u")
        await cockpit.sees(f"Removed the rule that was saved with call {RISKY}: rm")
        left = [rule.definition.get("name") for rule in book.now.rules]
        assert f"rm{PLAIN}" in left and f"rm{RISKY}" not in left


async def test_u_undoes_what_was_done_last_of_any_kind_the_newest_first() -> None:
    async with open_cockpit(workday(), undo=UndoSettings("none")) as cockpit:
        await cockpit.select(PLAIN)
        await cockpit.press("F", "a")
        await cockpit.until(lambda: "is approved" in toast_text(cockpit.app))
        await cockpit.select(RISKY)
        await cockpit.press("z")
        await cockpit.until(lambda: cockpit.record(RISKY).aside is not None)
        await cockpit.sees("set aside")
        await cockpit.press("u")
        await cockpit.until(lambda: cockpit.record(RISKY).aside is None)
        assert not any(grant.revoked_at for grant in cockpit.scenario.supervisor.board.grants.values())
        await cockpit.press("u")
        await cockpit.sees(f"Revoked the standing approval of call {PLAIN}")


async def test_approving_twice_does_not_end_the_undo_window() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("u undoes it")
        assert isinstance(cockpit.record(RISKY).state, Waiting)


async def test_a_changed_view_of_a_call_undoes_its_approval() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        await cockpit.select(RISKY)
        await cockpit.press("d")
        await cockpit.sees(f"Deny call {RISKY}")
        cockpit.scenario.clock.advance(60)
        await cockpit.press("escape")
        await cockpit.until(lambda: "Approving call" not in cockpit.text())
        assert isinstance(cockpit.record(RISKY).state, Waiting)


async def test_a_cockpit_that_is_closed_in_the_countdown_has_decided_nothing() -> None:
    scenario = workday()
    async with open_cockpit(scenario, undo=GRAVE) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        await cockpit.press("q")
        await cockpit.until(lambda: cockpit.app._exit_renderables)
        assert "1 approval not sent" in str(cockpit.app._exit_renderables)
    scenario.clock.advance(60)
    assert isinstance(scenario.supervisor.board.calls[RISKY].state, Waiting)


async def test_a_lost_connection_drops_what_was_not_sent_and_says_so() -> None:
    later = workday()
    async with open_cockpit(workday(), undo=GRAVE, reconnect=back_to(later)) as cockpit:
        await cockpit.select(RISKY)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        cockpit.scenario.supervisor.break_down(GONE)
        await cockpit.sees("1 approval not sent: the connection was lost. Nothing was decided.")
        cockpit.scenario.clock.advance(60)
        await cockpit.sees("● connected")
        assert isinstance(later.supervisor.board.calls[RISKY].state, Waiting)


async def test_a_call_that_has_not_started_can_be_withdrawn() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call, decision=Approve(), by=cockpit.screen.me))
        await cockpit.until(lambda: isinstance(cockpit.shown.state, Queued))
        await cockpit.press("u")
        await cockpit.sees("Call 1 will not run")
        state = cockpit.record(call).state
        assert isinstance(state, Ended) and state.ending == Withdrawn(why=WITHDRAWN_REASON)


@pytest.mark.slow
async def test_u_says_that_there_is_nothing_to_undo() -> None:
    async with open_cockpit(workday(), undo=GRAVE) as cockpit:
        await cockpit.press("u")
        await cockpit.sees("Nothing was done here that could be undone")
