"""Moving around, filtering, following output, changing the theme, leaving."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.tui.screens.help import HelpScreen
from whisper_tui.tui.sections import GROUPINGS
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.widgets.call_panel import CallPanel
from whisper_tui.tui.widgets.filter_bar import FilterBar
from whisper_tui.tui.widgets.output_area import OutputArea
from whisper_tui.tui.widgets.output_pane import OutputPane
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.widgets.scrolled import Scrolled

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Viewing:
    """The commands of the groups *Move*, *View* and *Cockpit*."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {
            "up": lambda: self.step(-1),
            "down": lambda: self.step(1),
            "next-waiting": self.next_waiting,
            "focus-next": self._screen.focus_next,
            "focus-previous": self._screen.focus_previous,
            "scroll-up": lambda: self._text.scroll_relative(y=-1, animate=False),
            "scroll-down": lambda: self._text.scroll_relative(y=1, animate=False),
            "top": lambda: self.go_to("start"),
            "bottom": lambda: self.go_to("end"),
            "follow": lambda: self._screen.query_one(OutputArea).toggle_follow(),
            "layout": lambda: self._screen.query_one(OutputArea).choose_next(),
            "page-call-up": lambda: self._panel.page(-1),
            "page-call-down": lambda: self._panel.page(1),
            "group": self.group,
            "filter": lambda: self._screen.query_one(FilterBar).open(),
            "clear-filter": self.clear_filter,
            "theme": lambda: self._screen.app.run_action("other_theme"),
            "choose-theme": lambda: self._screen.app.run_action("choose_theme"),
            "help": lambda: self._screen.app.push_screen(HelpScreen()),
            "quit": self.leave,
        }

    @property
    def _calls(self) -> CallList:
        return self._screen.query_one(CallList)

    @property
    def _text(self) -> ParagraphsView:
        return self._screen.query_one("#call-detail", ParagraphsView)

    @property
    def _panel(self) -> CallPanel:
        return self._screen.query_one(CallPanel)

    def group(self) -> None:
        """Put the calls that wait together in the next way there is."""
        roster = self._screen.roster
        grouping = GROUPINGS[(GROUPINGS.index(roster.grouping) + 1) % len(GROUPINGS)]
        roster.group(grouping)
        self._calls.regroup()

    async def step(self, by: int) -> None:
        """Go up or down in the pane that has the focus, else the list.

        The call is shown in the same frame: waiting for a message would cost another.
        """
        focused = self._screen.focused
        if isinstance(focused, Scrolled):
            await focused.action_rows(by)
        elif isinstance(focused, ParagraphsView):
            focused.scroll_relative(y=by, animate=False)
        else:
            self._calls.step(by)
            self._screen.refresh_call()

    def next_waiting(self) -> None:
        """The waiting call below the selected one, from the last on to the first."""
        roster = self._screen.roster
        place = roster.place_of(self._calls.selected) if self._calls.selected else None
        waits = roster.count("waiting")
        if not waits:
            self._screen.tell("Nothing waits for you.")
            return
        row = (place.row + 1) % waits if place is not None and place.section == "waiting" else 0
        self._calls.select(roster.flat(row), by_hand=True)
        self._screen.refresh_call()

    async def go_to(self, end: str) -> None:
        """The beginning or the end of whatever has the focus."""
        focused = self._screen.focused
        if isinstance(focused, OutputPane):
            await focused.move(end)
        elif isinstance(focused, ParagraphsView):
            focused.scroll_to(y=0 if end == "start" else focused.max_scroll_y, animate=False)
        else:
            self._calls.action_end_of(-1 if end == "start" else 1)

    def clear_filter(self) -> None:
        """End the search in the output, if there is one; else list everything again."""
        if (area := self._screen.query_one(OutputArea)).searching:
            area.find(None)
            return
        self._screen.query_one(FilterBar).clear_filter()
        self._calls.focus()

    def leave(self) -> None:
        """Nothing stops because nobody looks; what was approved and is not sent never is."""
        app = self._screen.app
        app.exit(message=self._screen.deciding.undoing.farewell + getattr(app, "farewell", ""))
