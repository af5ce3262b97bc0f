"""A cockpit over a supervisor in memory, with short words for what tests do with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from time import monotonic
from typing import Any
from unittest.mock import patch

from textual._compositor import Compositor, LayoutUpdate
from textual.app import ScreenStackError
from textual.events import Key
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.strip import Strip
from textual.widgets._toast import Toast

from tests.in_memory.world import InMemoryRules
from tests.tui.scenes import Scenario
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit.status_bars import DecisionBar
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.dialogs.dialog import Dialog
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_pane import OutputPane

TURNS = 10
"""Turns of the loop in which what is ready runs, before a pilot looks at the widgets."""
PATIENCE = 3000
"""Looks at a condition before a test gives up; there are 20 ms between them."""

_wait_for_screen = Pilot._wait_for_screen


async def _wait_patiently(pilot: Pilot[None], timeout: float = 30.0) -> bool:
    """Ask the widgets again: one that is removed while it is asked never says that it has handled its messages."""
    for _ in range(10):
        with suppress(WaitForScreenTimeout):
            return await _wait_for_screen(pilot, timeout / 5)
    return await _wait_for_screen(pilot, timeout)


patch.object(Pilot, "_wait_for_screen", _wait_patiently).start()


def toast_text(app: CockpitApp) -> str:
    """Return the text of all toasts, without their line breaks."""
    return "\n".join(str(toast.render()) for toast in app.screen.query(Toast) if toast.region)


class Cockpit:
    """A running cockpit, and the keys that a test presses in it."""

    def __init__(self, app: CockpitApp, pilot: Pilot[None], scenario: Scenario) -> None:
        self.app = app
        self.pilot = pilot
        self.scenario = scenario

    @property
    def screen(self) -> CockpitScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, CockpitScreen)
        return screen

    @property
    def selected(self) -> str | None:
        return self.screen.query_one(CallList).selected

    @property
    def shown(self) -> CallRecord:
        record = self.screen.shown
        assert record is not None
        return record

    def record(self, call_id: str) -> CallRecord:
        return self.scenario.supervisor.board.calls[call_id]

    def strips(self) -> list[Strip]:
        """The lines of the terminal, with what a dialog lies over."""
        update = self.app.screen._compositor.render_update(full=True, screen_stack=self.app._background_screens)
        assert isinstance(update, LayoutUpdate)
        return [Strip.join(pieces) for pieces in update.strips]

    def text(self) -> str:
        """What is on the terminal, line by line."""
        return "\n".join("".join(segment.text for segment in strip) for strip in self.strips())

    def pane(self, stream: str) -> OutputPane:
        return self.screen.query_one(f"#{stream}", OutputPane)

    @property
    def panes(self) -> list[OutputPane]:
        return self.screen.query_one(OutputArea).visible_panes

    async def press(self, *keys: str) -> None:
        """Press keys as a person does, one after the other; `type_fast` is for typed text."""
        for key in keys:
            await self.can_be_seen()
            self.screen.decisions.typing.forget()
            await self.pilot.press(key)

    async def can_be_seen(self) -> None:
        """Wait until what is on the screen has been there for so long that keys are meant for it."""
        guard = self.screen.decisions.guard
        await self.until(lambda: guard.open_from < monotonic())
        dialog = self.app.screen
        await self.until(lambda: not isinstance(dialog, Dialog) or dialog.drawn_at < monotonic())

    async def type_fast(self, letters: str) -> None:
        """Type letters as fast as a person types text."""
        await self.can_be_seen()
        for letter in letters:
            self.app.post_message(Key(letter, letter))
        await self.pilot.pause()

    async def click(self, selector: str, offset: tuple[int, int] = (0, 0)) -> None:
        """Click something that has its place, which a line above may move, and is not deaf from the click before."""
        target = self.app.screen.query_one(selector)
        bars = self.app.screen.query(DecisionBar)
        await self.until(lambda: target.region and all(bool(bar.region) == bar.display for bar in bars))
        await self.until(lambda: not target.has_class("-active"))
        await self.until(lambda: not self.screen.card.facts.asking)
        place = None
        while place != target.region:
            place = target.region
            await self.pilot.pause(0.02)
        await self.can_be_seen()
        # The pilot gives a click to the screen, past the application, which notes when it came.
        self.screen.decisions.guard.came_at = monotonic()
        await self.pilot.click(selector, offset=offset)

    async def choose(self, label: str) -> None:
        """Choose a command in the palette, by its label and its key."""
        await self.press("ctrl+p", *label.partition("  (")[0])
        await self.sees(label)
        await self.press("enter")

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait for a condition, bounded."""
        if condition():
            return
        for _ in range(PATIENCE):
            await asyncio.sleep(0.02)
            if condition() or self.app._exception is not None:
                await self.pilot.pause(0)  # a pause asks each widget, which is too much for each look
                if condition():
                    return
        raise AssertionError(f"the condition was not met; on the screen:\n{self.text()}")

    async def sees(self, *words: str) -> None:
        """Wait until all of these words are on the terminal."""

        def are_there() -> bool:
            shown = f"{self.text()}\n{toast_text(self.app)}"  # drawn once for all words
            return all(word in shown for word in words)

        await self.until(are_there)

    async def select(self, call_id: str) -> None:
        self.screen.query_one(CallList).select(call_id, by_hand=True)
        await self.until(lambda: self.screen.shown is not None and self.screen.shown.id == call_id)

    async def still(self) -> None:
        """Wait until nothing changes on the terminal any more: what is laid out may say later what is not visible."""
        before: list[Strip] = []

        def is_still() -> bool:
            nonlocal before
            last, before = before, self.strips()
            return last == before

        await self.until(is_still)

    async def settled(self) -> None:
        """Wait until the cockpit shows what the supervisor holds, and the panes show their output."""
        board = self.scenario.supervisor.board
        await self.until(lambda: self.screen.board.seq == board.seq)
        await self.until(lambda: len(self.screen.board.calls) >= len(board.calls))
        await self.until(lambda: self.screen.shown is not None or not board.calls)
        await self.pilot.pause()
        for stream in ("out", "err"):
            pane = self.pane(stream)
            view = pane.view
            if view is not None and pane.display:
                size = len(getattr(self.scenario.supervisor.written.get(self.shown.id), stream, b""))
                await self.until(lambda view=view, size=size: view.size == size)
        card = self.screen.card
        await self.until(lambda: not (card.facts.asking or card.edits.asking or card.previews.asking))
        await self.pilot.pause()


def _longer(notify: Callable[..., None]) -> Callable[..., None]:
    """Have toasts stay longer: a busy machine may not look at the screen for seconds."""

    def longer(message: str, *, timeout: float = CockpitApp.NOTIFICATION_TIMEOUT, **how: Any) -> None:
        notify(message, timeout=10 * timeout, **how)

    return longer


def _is_idle(pump: MessagePump) -> bool:
    """Return whether a widget has handled all its messages and waits for the next one."""
    queue = pump._message_queue
    return queue.empty() and bool(queue.ready_event._waiters)


class IdlePilot(Pilot[None]):
    """Asks the widgets whether they have handled their messages only while one of them has any.

    Textual's own pilot sends a message to each widget of a screen, at each key and each pause.
    """

    async def _wait_for_screen(self, timeout: float = 30.0) -> bool:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        with suppress(ScreenStackError):  # the cockpit has ended
            widgets = self.app.screen.walk_children(with_self=True)
            if all(map(_is_idle, [self.app, *widgets])):
                return True
        return await super()._wait_for_screen(timeout)


@contextmanager
def frames_left_out() -> Iterator[None]:
    """Draw the whole screen when a test looks at it, and no frames in between: they took a fifth of the time."""
    render_update = Compositor.render_update

    def render(compositor: Compositor, full: bool = False, **how: Any) -> Any:
        if full:
            return render_update(compositor, full, **how)
        compositor._dirty_regions.clear()
        return None

    with patch.object(Compositor, "render_update", render):
        yield


@asynccontextmanager
async def open_cockpit(
    scenario: Scenario,
    size: tuple[int, int] = (120, 40),
    rule_book: InMemoryRules | None = None,
    *,
    frames: bool = False,
    **options: Any,
) -> AsyncIterator[Cockpit]:
    """A cockpit that has settled. It draws `frames` as on a terminal, or else when a test looks."""
    scenario.supervisor.rule_book = rule_book
    app = CockpitApp(scenario.supervisor, user="me", clock=scenario.clock, **options)
    app.notify = _longer(app.notify)  # type: ignore[method-assign]
    with nullcontext() if frames else frames_left_out():
        async with app.run_test(size=size, notifications=True) as pilot:
            pilot.__class__ = IdlePilot
            found = Cockpit(app, pilot, scenario)
            await found.settled()
            yield found
