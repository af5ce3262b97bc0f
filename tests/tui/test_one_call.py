"""Whatever happens, the list's cursor, the card and the call that a decision would be about are one."""

import asyncio
import random
from collections.abc import Callable
from time import monotonic

import pytest
from textual.geometry import Region

from tests.tui.cockpit import Cockpit, _is_idle, open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied, Withdrawn
from whisper_tui.model.event import BackgroundSeen, Decided, Finished, SessionClosed, SetAside
from whisper_tui.model.verdict import NO_RULE_MATCHES, Resolved, Risk, Verdict
from whisper_tui.tui.cockpit.call_list import CallList, FilterBar
from whisper_tui.tui.cockpit.call_panel import CallPanel
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.commands.undo_approval import UndoSettings
from whisper_tui.tui.dialogs.dialog import Dialog

MORE = ("filter", "click", "click", "click", "scroll", "scroll", "dialog", "wait")
STEPS = 40
SEEDS = (1, 2, 3)
WORDS = ("echo fern", "rm -rf moss", "git push", "curl garden", "sed -i ivy", "make")
GRAVE = Risk(id="destructive", sentence="Deletes recursively")
HERE = (
    *("up", "down", "next-waiting", "next-running", "next-background", "next-failed", "next-severe", "top", "bottom"),
    *("group", "mark", "mark-alike", "set-aside", "undo", "details", "clear-filter", "approve", "approve", "due"),
)


def wrong_cursors(calls: CallList) -> dict[int, str | None]:
    """Return the lines that are drawn with the cursor and are not of the selected call, or the other way round."""
    ground, wrong = calls._selected_style().bgcolor, {}
    for y, strip in enumerate(calls.render_lines(Region(0, 0, *calls.size))):
        found = calls.on_screen(y)
        call_id = calls.roster.id_at(found.place) if found is not None and found.place is not None else None
        has_cursor = any(style is not None and style.bgcolor == ground for _, style, _ in strip)
        if has_cursor != (call_id is not None and call_id == calls.selected):
            wrong[y] = call_id
    return wrong


class RandomDay:
    """Agents, other people and the person at the cockpit, who do something by chance."""

    def __init__(self, cockpit: Cockpit, chance: random.Random) -> None:
        self.cockpit = cockpit
        self.chance = chance
        self.supervisor = cockpit.scenario.supervisor
        self.board = self.supervisor.board
        self.calls = cockpit.screen.query_one(CallList)
        self.done: list[str] = []

    async def step(self) -> None:
        """Do one thing, or several before the cockpit hears of any."""
        for _ in range(self.chance.choice((0, 0, 0, 1, 2, 6))):
            do: Callable[[], object] = self.chance.choice(
                (self._ask, self._ask, self._decide, self._end, self._aside, self._leave_session)
            )
            self.done.append(do.__name__)
            do()
        if self.chance.random() < 0.2:
            await self.settle()
        await self._act()

    def _ask(self) -> None:
        text = f"{self.chance.choice(WORDS)} {self.chance.randrange(100)}"
        spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
        session = self.chance.choice(list(self.board.sessions))
        request = CallRequest(session_id=session, tool="run_shell_command", arguments={}, spec=spec)
        risks = (GRAVE,) if "rm" in text else ()
        verdict = Verdict(kind="ask", reason=NO_RULE_MATCHES, risks=risks, prefixes=(tuple(text.split()[:1]),))
        self.supervisor.ask(request, verdict, Resolved(program="/usr/bin/env", cwd=ROOT))

    def _one(self, ids: object) -> str | None:
        found = list(ids)  # type: ignore[call-overload]
        return self.chance.choice(found) if found else None

    def _decide(self) -> None:
        """Somebody else decides, at times about another command."""
        call_id = self._one((*self.board.waiting, *self.board.aside))
        if call_id is None:
            return
        at, what = self.supervisor.clock(), self.chance.choice(("yes", "edited", "no", "withdrawn"))
        if what == "withdrawn":
            self.supervisor.happen(Finished(at=at, call_id=call_id, ending=Withdrawn(why="its agent went on")))
        elif what == "no":
            ending = Denied(by=ME, reason="no")
            self.supervisor.happen(
                Decided(at=at, call_id=call_id, decision=Deny(reason="no"), by=ME),
                Finished(at=at, call_id=call_id, ending=ending),
            )
        else:
            edited = CommandSpec(command=Shell(text="true"), cwd=ROOT) if what == "edited" else None
            self.supervisor.happen(Decided(at=at, call_id=call_id, decision=Approve(edited=edited), by=ME))
            self.supervisor.start(call_id)

    def _end(self) -> None:
        call_id = self._one((*self.board.running, *self.board.unsettled))
        if call_id is None:
            return
        if call_id in self.board.unsettled:
            self.supervisor.happen(BackgroundSeen(at=self.supervisor.clock(), call_id=call_id, processes=()))
            self.supervisor.settle(call_id)
            return
        if self.chance.random() < 0.3:
            self.supervisor.leave_behind(call_id, "sleep 9")
        self.supervisor.finish(call_id)

    def _aside(self) -> None:
        call_id = self._one((*self.board.waiting, *self.board.aside))
        if call_id is not None:
            back = call_id in self.board.aside
            self.supervisor.happen(SetAside(at=self.supervisor.clock(), call_id=call_id, back=back, by=ME))

    def _leave_session(self) -> None:
        """An agent leaves, and what it waited for is withdrawn; another comes."""
        if self.chance.random() < 0.8:
            return
        session = self.chance.choice(list(self.board.sessions))
        at = self.supervisor.clock()
        for call_id in self.board.waiting_in(session):
            self.supervisor.happen(Finished(at=at, call_id=call_id, ending=Withdrawn(why="its agent left")))
        self.supervisor.happen(SessionClosed(at=at, session_id=session, why="left"))
        self.supervisor.open(f"agent {len(self.board.sessions)}", ROOT)

    async def _act(self) -> None:
        """The person presses a key, types a filter, clicks a row, or opens and leaves a dialog."""
        screen = self.cockpit.screen
        what = self.chance.choice(
            (*HERE, *HERE, "filter", "click", "click", "click", "scroll", "scroll", "dialog", "wait")
        )
        self.done.append(what)
        self.supervisor.clock.advance(1)  # type: ignore[attr-defined]
        if what == "filter":
            screen.query_one(FilterBar).value = self.chance.choice(("", "e", "echo", "rm", "fern", "true", "nowhere"))
        elif what == "click":
            found = self.calls.on_screen(self.chance.randrange(20))
            if found is not None and found.place is not None:
                self.calls.select(self.calls.roster.id_at(found.place), by_hand=True)
        elif what == "scroll":
            self.calls.scroll_to(y=self.chance.randrange(30), animate=False, immediate=True)
        elif what == "dialog":
            await self._dialog()
        elif what == "approve":
            await self._approve()
        elif what == "due":
            self.supervisor.clock.advance(5)  # type: ignore[attr-defined]
            screen.decisions.undoing._tick()
        elif what != "wait":
            self._is_free()
            await screen.action_command(what)

    def _is_free(self) -> None:
        """What is on the screen has been there for long enough."""
        guard = self.cockpit.screen.decisions.guard
        guard.came_at = max(monotonic(), guard.open_from + 1)

    async def _approve(self) -> None:
        await self.settle()
        self._is_free()
        decisions, selected = self.cockpit.screen.decisions, self.calls.selected
        decisions.last_approved = None
        await self.cockpit.screen.action_command("approve")
        assert decisions.last_approved in {None, selected}

    async def _dialog(self) -> None:
        """A dialog about the selected call; meanwhile others decide."""
        app = self.cockpit.app
        self._is_free()
        await self.cockpit.screen.action_command("deny")
        for _ in range(3):
            self.chance.choice((self._ask, self._decide, self._end))()
            await self.settle()
        if isinstance(app.screen, Dialog):
            app.screen.dismiss(None)

    async def settle(self) -> None:
        """Wait until the cockpit has heard of everything and has nothing left to do."""
        screen = self.cockpit.screen
        for _ in range(10_000):
            for _ in range(3):
                await asyncio.sleep(0)
            followed = screen.board.seq == self.board.seq and not screen.roster.searching
            if followed and all(map(_is_idle, (self.cockpit.app, screen, self.calls, *screen.query(CallPanel)))):
                return
        raise AssertionError("the cockpit does not come to rest")

    def check(self) -> None:
        """Fail unless cursor, card and decisions are about one call, which is listed."""
        calls, panel = self.calls, self.cockpit.screen.query_one(CallPanel)
        selected, last = calls.selected, self.done[-8:]
        assert (panel.record.id if panel.record is not None else None) == selected, last
        if selected is None:
            assert calls.roster.first() is None, last
        else:
            assert calls.roster.place_of(selected) is not None, (selected, last)
        assert self.cockpit.screen.decisions.guard._record is panel.record, last
        assert panel.record is (self.cockpit.screen.board.calls[selected] if selected is not None else None), last
        wrong = wrong_cursors(calls)
        assert not wrong, (wrong, selected, last)


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_cursor_the_card_and_the_decision_are_about_one_call(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What happens every second would come at another step on every machine, and hide what it draws anew.
    monkeypatch.setattr(CockpitScreen, "_tick", lambda _screen: None)
    monkeypatch.setattr("whisper_tui.tui.commands.undo_approval.TICK_S", 3600.0)
    scenario = Scenario.begin()
    async with open_cockpit(scenario, size=(120, 18), undo=UndoSettings("every", 2.0)) as cockpit:
        day = RandomDay(cockpit, random.Random(seed))
        for _ in range(STEPS):
            await day.step()
            await day.settle()
            day.check()


async def test_a_call_that_stays_on_top_keeps_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CockpitScreen, "_tick", lambda _screen: None)
    scenario = workday()
    for _ in range(30):
        scenario.deny(scenario.ask("build"), "no")
    async with open_cockpit(scenario, size=(120, 18)) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        await cockpit.press("home")
        calls.scroll_to(y=40, animate=False, immediate=True)
        assert wrong_cursors(calls) == {}
        found = calls.on_screen(12)
        assert calls.on_screen(1).place == calls.roster.place_of(calls.selected) and found.place.section == "ended"
        calls.select(calls.roster.id_at(found.place), by_hand=True)
        assert wrong_cursors(calls) == {}


async def test_a_call_that_is_gone_to_is_listed_although_a_filter_hid_it() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("8")
        await cockpit.press("z")
        await cockpit.until(lambda: "8" in cockpit.screen.board.aside)
        await cockpit.press("slash", *"git tag", "enter", "u")
        await cockpit.until(lambda: "8" in cockpit.screen.board.waiting)
        await cockpit.settled()
        assert cockpit.selected == cockpit.shown.id == "8"
        assert cockpit.screen.roster.place_of("8") is not None
        assert not cockpit.screen.query_one(FilterBar).display


async def test_a_call_that_runs_as_edited_and_that_a_filter_hides_now_leaves_the_card() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("slash", *"rm -rf", "enter")
        selected = "7"
        await cockpit.select(selected)
        assert cockpit.screen.roster.count("waiting") == 1
        spec = cockpit.record(selected).spec.model_copy(update={"command": Shell(text="true")})
        cockpit.scenario.approve(selected, spec)
        await cockpit.settled()
        await cockpit.until(lambda: cockpit.screen.shown is None or cockpit.shown.id != selected)
        assert cockpit.selected != selected
