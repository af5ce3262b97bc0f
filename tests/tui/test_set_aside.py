"""Calls that are set aside: out of the way in the list, decided there as any other, and brought back."""

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import workday
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Finished
from whisper_tui.model.state import Ended, Running
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.commands.undo_approval import UndoSettings

FIRST, SECOND, THIRD = "7", "8", "9"
"""The calls that wait in the scene."""


def places(cockpit: Cockpit) -> tuple[list[str], list[str]]:
    board = cockpit.screen.board
    return list(board.waiting), list(board.aside)


def rows(cockpit: Cockpit) -> list[str]:
    """The lines of the list."""
    calls = cockpit.screen.query_one(CallList)
    lines = ("".join(segment.text for segment in calls.render_line(y)).rstrip() for y in range(calls.size.height))
    return [line for line in lines if line]


def heading(cockpit: Cockpit, words: str) -> int:
    return next(number for number, row in enumerate(rows(cockpit)) if row.strip().startswith(words))


async def aside(cockpit: Cockpit, call_id: str) -> None:
    await cockpit.select(call_id)
    await cockpit.press("z")
    await cockpit.until(lambda: cockpit.record(call_id).aside is not None)


async def test_a_call_goes_to_a_section_of_its_own_below_the_waiting_ones_folded_to_its_heading() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        await cockpit.sees(f"Call {FIRST} set aside. It still waits, below the others.", "◆ 2 waiting", "◈ 1 set aside")
        await cockpit.until(lambda: cockpit.selected == SECOND)
        listed = rows(cockpit)
        at = heading(cockpit, "Set aside")
        assert heading(cockpit, "Waiting for you") < at < heading(cockpit, "Running")
        assert listed[at].split()[-1] == "1" and listed[at + 1].strip().startswith("Running")
        assert places(cockpit) == ([SECOND, THIRD], [FIRST])


async def test_it_unfolds_where_the_cursor_is_and_z_brings_it_back() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        await cockpit.select(THIRD)
        await cockpit.press("down")
        await cockpit.until(lambda: cockpit.selected == FIRST)
        await cockpit.sees("◈ set aside for", "Set aside", "in the cockpit, without an answer")
        assert "◈" in rows(cockpit)[heading(cockpit, "Set aside") + 1]
        await cockpit.press("z")
        await cockpit.sees(f"Call {FIRST} waits for you again.", "◆ 3 waiting")
        await cockpit.until(lambda: places(cockpit) == ([SECOND, THIRD, FIRST], []))
        assert cockpit.selected == FIRST and "Set aside" not in "\n".join(rows(cockpit))


async def test_leaving_the_section_folds_it_again_and_a_click_on_its_heading_unfolds_it() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        await aside(cockpit, SECOND)
        await cockpit.press("down", "down", "down")
        folded = len(rows(cockpit))
        await cockpit.until(lambda: cockpit.selected not in {FIRST, SECOND, THIRD})
        calls = cockpit.screen.query_one(CallList)
        lines = {y: at for y in range(calls.size.height) if (at := calls.on_screen(y)) is not None and at.heading}
        line = next(y for y, at in lines.items() if at.section == "aside")
        await cockpit.pilot.click(CallList, offset=(5, line))
        await cockpit.until(lambda: cockpit.selected == FIRST)
        assert len(rows(cockpit)) == folded + 2 or calls.virtual_size.height > calls.size.height


async def test_it_is_approved_denied_and_edited_there() -> None:
    async with open_cockpit(workday()) as cockpit:
        for call_id in (FIRST, SECOND, THIRD):
            await aside(cockpit, call_id)
        await cockpit.select(SECOND)
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record(SECOND).state, Running))
        await cockpit.select(THIRD)
        await cockpit.press("e")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record(THIRD).state, Running))
        await cockpit.select(FIRST)
        await cockpit.press("d")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
        await cockpit.press("enter", "enter")
        await cockpit.until(lambda: isinstance(cockpit.record(FIRST).state, Ended))
        assert places(cockpit) == ([], [])


async def test_u_takes_back_what_was_set_aside_and_what_was_brought_back() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        await cockpit.press("u")
        await cockpit.until(lambda: places(cockpit)[1] == [])
        await cockpit.until(lambda: cockpit.selected == FIRST)
        await aside(cockpit, FIRST)
        await cockpit.select(FIRST)
        await cockpit.press("z")
        await cockpit.until(lambda: places(cockpit)[1] == [])
        await cockpit.press("u")
        await cockpit.until(lambda: places(cockpit)[1] == [FIRST])
        await cockpit.press("u")
        await cockpit.until(lambda: places(cockpit)[1] == [])
        await cockpit.press("u")
        await cockpit.sees("Nothing was done here that could be undone")


async def test_u_leaves_what_was_decided_or_withdrawn_meanwhile() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        cockpit.scenario.supervisor.happen(
            Finished(at=cockpit.scenario.clock(), call_id=FIRST, ending=Withdrawn(why="it gave up"))
        )
        await cockpit.until(lambda: isinstance(cockpit.record(FIRST).state, Ended))
        await cockpit.until(lambda: "Set aside" not in "\n".join(rows(cockpit)))
        await cockpit.press("u")
        await cockpit.sees("Nothing was done here that could be undone")


async def test_a_pending_approval_ends_when_its_call_is_set_aside() -> None:
    async with open_cockpit(workday(), undo=UndoSettings("every", 3.0)) as cockpit:
        await cockpit.select(SECOND)
        await cockpit.press("a")
        await cockpit.sees("Approving call")
        await aside(cockpit, SECOND)
        cockpit.scenario.clock.advance(60)
        await cockpit.until(lambda: "Approving call" not in cockpit.text())
        assert places(cockpit) == ([FIRST, THIRD], [SECOND])


async def test_marked_calls_are_set_aside_and_brought_back_together() -> None:
    async with open_cockpit(workday()) as cockpit:
        for call_id in (FIRST, THIRD):
            await cockpit.select(call_id)
            await cockpit.press("space")
        await cockpit.press("R")
        await cockpit.sees("z Set aside")
        await cockpit.press("z")
        await cockpit.until(lambda: places(cockpit) == ([SECOND], [FIRST, THIRD]))
        await cockpit.sees("2 calls set aside. They still wait, below the others.")
        await cockpit.press("u")
        await cockpit.until(lambda: places(cockpit) == ([SECOND, FIRST, THIRD], []))


async def test_marking_alike_and_going_to_the_next_one_pass_over_what_is_set_aside() -> None:
    async with open_cockpit(workday()) as cockpit:
        await aside(cockpit, FIRST)
        await cockpit.select(THIRD)
        await cockpit.press("n")
        await cockpit.until(lambda: cockpit.selected == SECOND)
        await cockpit.press("n")
        await cockpit.until(lambda: cockpit.selected == THIRD)


async def test_a_call_that_is_set_aside_elsewhere_leaves_the_cursor_with_the_waiting_ones() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select(FIRST)
        await cockpit.scenario.supervisor.set_aside(FIRST, cockpit.screen.me)
        await cockpit.until(lambda: cockpit.selected == SECOND)
        await cockpit.sees("◈ 1 set aside")
