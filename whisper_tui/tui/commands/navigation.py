"""Commands for moving around, filtering, opening other screens, and leaving."""

from collections.abc import Callable

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.verdict import is_grave
from whisper_tui.present.ending_text import went_well
from whisper_tui.tui.cockpit.call_list import CallList, FilterBar
from whisper_tui.tui.cockpit.call_panel import CallPanel
from whisper_tui.tui.cockpit.call_roster import GROUPINGS
from whisper_tui.tui.cockpit.grouped_rows import Section
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, Place, available, why_not
from whisper_tui.tui.lines import Scrolled
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_pane import OutputPane
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.output.terminal_pane import TerminalPane
from whisper_tui.tui.paragraphs_view import ParagraphsView

CONVERSATION: tuple[Command, ...] = (
    Command("talk", "P", "Conversation", "Read the messages of the agent, and send it instructions.", "Decide"),
)

MOVE: tuple[Command, ...] = (
    Command("up", "up,k", "Up", "Go to the call above; in a focused pane, one line up.", "Move"),
    Command("down", "down,j", "Down", "Go to the call below; in a focused pane, one line down.", "Move"),
    Command("next-waiting", "n", "Next waiting", "Go to the next waiting call.", "Move", in_footer=True),
    Command("next-running", "2", "Next running", "Go to the next running call.", "Move"),
    Command("next-background", "3", "Next in background", "Go to the next call with background processes.", "Move"),
    Command("next-failed", "4", "Next failed", "Go to the next call that failed.", "Move"),
    Command("next-severe", "5", "Next severe", "Go to the next waiting call with a severe risk.", "Move"),
    Command("focus-next", "tab", "Next pane", "Focus the next pane.", "Move", only=()),
    Command("focus-previous", "shift+tab", "Previous pane", "Focus the previous pane.", "Move", only=()),
    Command("scroll-up", "shift+up", "Call up", "Scroll the call in full one line up.", "Move", only=("call",)),
    Command("scroll-down", "shift+down", "Call down", "Scroll the call in full one line down.", "Move", only=("call",)),
    Command("page-call-up", "ctrl+u", "Call page up", "Scroll the call in full one page up.", "Move", only=("call",)),
    Command(
        "page-call-down", "ctrl+d", "Call page down", "Scroll the call in full one page down.", "Move", only=("call",)
    ),
    Command("top", "g", "Top", "Go to the beginning of the focused pane.", "Move", only=("queue", "call", "output")),
    Command("bottom", "G", "End", "Go to the end of the focused pane.", "Move", only=("queue", "call", "output")),
)

VIEW: tuple[Command, ...] = (
    Command(
        "follow", "f", "Follow", "Follow the end of the output, or stop following.", "View", "ran", only=("output",)
    ),
    Command(
        "layout",
        "o",
        "Output",
        "Show the streams merged, separate, or only one; a terminal as lines.",
        "View",
        "ran",
        only=("output",),
    ),
    Command(
        "zoom",
        "plus",
        "Zoom",
        "Enlarge the output, or the focused call, to the right side, then to the whole screen; then restore it.",
        "View",
        "call",
        only=("call", "output"),
    ),
    Command(
        "zoom-out",
        "underscore",
        "Zoom out",
        "Go back one step of Zoom; Esc ends it.",
        "View",
        "call",
        only=("call", "output"),
    ),
    Command(
        "group",
        "ctrl+g",
        "Sort",
        "Sort the waiting calls by arrival, risk, session or similarity.",
        "View",
        only=("queue",),
        also="group order",
    ),
    Command(
        "details",
        "m",
        "Details",
        "Show everything about the call: its program, environment, timeout, session and last calls; or hide it again.",
        "View",
        "call",
    ),
    Command("jump-to-risk", "apostrophe", "To the risk", "Scroll to the next risky part of the call.", "View", "call"),
    Command("reveal", "M", "Secrets", "Reveal the secrets of the call for ten seconds, or hide them.", "View", "call"),
    Command(
        "filter",
        "slash",
        "Filter",
        "List only the calls that contain some words.",
        "View",
        in_footer=True,
        only=("queue",),
    ),
    Command(
        "clear-filter",
        "escape",
        "All calls",
        "End a search or a zoom; otherwise clear the filter and focus the list.",
        "View",
        only=("queue",),
    ),
)

SCREENS: tuple[Command, ...] = (
    Command("history", "H", "History", "Search all past calls, and replay their output.", "Cockpit", in_footer=True),
    Command(
        "rules",
        "L",
        "Rules",
        "See, test and change rules and standing approvals.",
        "Cockpit",
    ),
    Command(
        "why",
        "Y",
        "Why",
        "Show why the call was allowed, asked or denied: by which rule, approval or denial.",
        "Cockpit",
        "call",
        only=("call",),
    ),
    Command(
        "export",
        "E",
        "Export",
        "Export the call, its session or everything to a file.",
        "Cockpit",
        "call",
        only=("call",),
    ),
    Command(
        "settings",
        "comma",
        "Settings",
        "See and change the settings of the configuration file.",
        "Cockpit",
        also="vi vim keymap keys configure preferences options",
    ),
    Command("theme", "t", "Theme", "Switch between the dark and the light theme.", "Cockpit"),
    Command("choose-theme", "ctrl+t", "Themes", "Choose a theme from a list, with preview.", "Cockpit"),
)

GENERAL: tuple[Command, ...] = (
    Command("do-not-disturb", "B", "Do not disturb", "Turn notifications off or on.", "Cockpit"),
    Command(
        "help",
        "question_mark",
        "Help",
        "Show the keys that work here and all others, search them, and run a command.",
        "Cockpit",
        in_footer=True,
    ),
    Command("quit", "q", "Quit", "Quit the cockpit; commands keep running.", "Cockpit", in_footer=True),
)


def conversations(board: Board) -> list[str]:
    """Return the ids of the sessions whose agent reads messages, or has written some."""
    return [id_ for id_, session in board.sessions.items() if session.hears or id_ in board.said]


class ConversationCommands:
    """Carries out the command that opens the conversation of a session."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"talk": self.talk}

    def talk(self) -> None:
        """Open the conversation of the selected call's session, else the newest conversation."""
        session_id = self._session_id()
        if session_id is None:
            self._cockpit.tell("No agent reads messages here. One started with `whisper-tui agent` does.")
            return
        from whisper_tui.tui.dialogs.conversation_dialog import ConversationScreen

        self._cockpit.screen.app.push_screen(ConversationScreen(self._cockpit, session_id))

    def _session_id(self) -> str | None:
        board, record = self._cockpit.board, self._cockpit.shown
        talks = conversations(board)
        if record is not None and record.call.session_id in talks:
            return record.call.session_id
        return talks[-1] if talks else None


class ScreenCommands:
    """Carries out the commands that open screens over the cockpit."""

    def __init__(self, cockpit: CockpitContext, pens: Callable[[], Pens]) -> None:
        """`pens` returns the colours of output now."""
        self._cockpit = cockpit
        self._pens = pens

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"history": self.history, "rules": self.rules, "why": self.why, "export": self.export}

    def history(self) -> None:
        """Open the history, in a cockpit over several machines that of all of them."""
        from whisper_tui.tui.screens.history_screen import HistoryScreen

        screen = self._cockpit.screen
        screen.app.push_screen(HistoryScreen(self._cockpit, self._pens(), screen.query_one(CallList).hosts))

    def rules(self) -> None:
        """Open the screen of rules and standing approvals."""
        from whisper_tui.tui.screens.rules_screen import RulesScreen

        screen = self._cockpit.screen
        hints = screen.query_one(CallPanel).guidance.hints
        screen.app.push_screen(RulesScreen(self._cockpit, screen.query_one(CallList).hosts, hints))

    def why(self) -> None:
        """Show why the selected call was allowed, asked or denied."""
        from whisper_tui.tui.screens.rule_dialogs import WhyScreen

        if self._cockpit.shown is not None:
            self._cockpit.screen.app.push_screen(WhyScreen(self._cockpit, self._cockpit.shown))

    def export(self) -> None:
        """Write the selected call, its session or everything to a file."""
        from whisper_tui.tui.dialogs.file_dialogs import ask_for_export

        if self._cockpit.shown is not None:
            ask_for_export(self._cockpit, self._cockpit.shown)


def _failed(record: CallRecord) -> bool:
    return isinstance(record.state, Ended) and not went_well(record.state.ending)


def _is_severe(record: CallRecord) -> bool:
    return record.verdict is not None and any(map(is_grave, record.verdict.risks))


class NavigationCommands:
    """Carries out the commands that move, filter, group, change the view, and quit."""

    def __init__(
        self,
        cockpit: CockpitContext,
        commands: tuple[Command, ...],
        farewell: Callable[[], str],
        unzoom: Callable[[], bool],
    ) -> None:
        """`commands` are listed by the help; `farewell` returns the first of the last words on the terminal.

        `unzoom` ends a zoom, and returns False if there was none.
        """
        self._unzoom = unzoom
        self._cockpit = cockpit
        self._commands = commands
        self._farewell = farewell

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "up": lambda: self.step(-1),
            "down": lambda: self.step(1),
            "next-waiting": self.next_waiting,
            "next-running": lambda: self.jump("running", "is running", lambda _: True),
            "next-background": lambda: self.jump("behind", "has background processes", lambda _: True),
            "next-failed": lambda: self.jump("ended", "has failed", _failed),
            "next-severe": lambda: self.jump("waiting", "with a severe risk is waiting", _is_severe),
            "focus-next": self._cockpit.screen.focus_next,
            "focus-previous": self._cockpit.screen.focus_previous,
            "scroll-up": lambda: self._text.scroll_relative(y=-1, animate=False),
            "scroll-down": lambda: self._text.scroll_relative(y=1, animate=False),
            "top": lambda: self.go_to("start"),
            "bottom": lambda: self.go_to("end"),
            "follow": lambda: self._cockpit.screen.query_one(OutputArea).toggle_follow(),
            "layout": lambda: self._cockpit.screen.query_one(OutputArea).choose_next(),
            "page-call-up": lambda: self._panel.page(-1),
            "page-call-down": lambda: self._panel.page(1),
            "details": self.toggle_details,
            "jump-to-risk": self.jump_to_risk,
            "group": self.group,
            "filter": lambda: self._cockpit.screen.query_one(FilterBar).open(),
            "clear-filter": self.clear_filter,
            "theme": lambda: self._cockpit.screen.app.run_action("other_theme"),
            "settings": lambda: self._cockpit.screen.app.run_action("open_settings"),
            "choose-theme": lambda: self._cockpit.screen.app.run_action("choose_theme"),
            "help": self.help,
            "quit": self.leave,
        }

    @property
    def _calls(self) -> CallList:
        return self._cockpit.screen.query_one(CallList)

    @property
    def _text(self) -> ParagraphsView:
        return self._cockpit.screen.query_one("#call-detail", ParagraphsView)

    @property
    def _panel(self) -> CallPanel:
        return self._cockpit.screen.query_one(CallPanel)

    def group(self) -> None:
        """Switch to the next grouping of the waiting calls."""
        roster = self._calls.roster
        grouping = GROUPINGS[(GROUPINGS.index(roster.grouping) + 1) % len(GROUPINGS)]
        roster.group(grouping)
        self._calls.regroup()

    async def step(self, by: int) -> None:
        """Move up or down in the focused pane, else in the list."""
        focused = self._cockpit.screen.focused
        # The arrow keys are commands of the screen, so that `[keys]` can change them: they are passed on from here.
        if isinstance(focused, Scrolled):
            await focused.action_rows(by)
        elif isinstance(focused, ParagraphsView):
            focused.scroll_relative(y=by, animate=False)
        else:
            self._calls.step(by)
            # Drawn here and not on the message CallSelected, which would arrive one frame later.
            self._cockpit.refresh_call()

    def next_waiting(self) -> None:
        """Select the waiting call below the selected one; after the last comes the first."""
        roster = self._calls.roster
        place = roster.place_of(self._calls.selected) if self._calls.selected else None
        waits = roster.count("waiting")
        if not waits:
            self._cockpit.tell("No call is waiting.")
            return
        row = (place.row + 1) % waits if place is not None and place.section == "waiting" else 0
        self._calls.select(roster.flat(row), by_hand=True)
        self._cockpit.refresh_call()

    def jump(self, section: Section, verb: str, wanted: Callable[[CallRecord], bool]) -> None:
        """Select the next call of a section that is wanted; `verb` completes the toast if there is none."""
        roster = self._calls.roster
        found = roster.next_in(section, self._calls.selected, wanted)
        if found is None:
            self._cockpit.tell(f"No call {verb}.")
            return
        self._calls.select(found, by_hand=True)
        self._cockpit.refresh_call()

    def toggle_details(self) -> None:
        """Show everything about the calls, or only what a decision needs."""
        self._panel.details = not self._panel.details
        self._cockpit.refresh_call()
        if self._panel.details:
            self._text.show_further()

    def jump_to_risk(self) -> None:
        """Scroll to the next risky part of the command, or to the next of its risks."""
        if not self._text.jump_to(("marked", "risk", "bad")):
            self._cockpit.tell("No part of this command is marked as risky.")

    async def go_to(self, end: str) -> None:
        """Go to the beginning or the end of the focused pane, else of the list."""
        focused = self._cockpit.screen.focused
        if isinstance(focused, OutputPane):
            await focused.move(end)
        elif isinstance(focused, ParagraphsView):
            focused.scroll_to(y=0 if end == "start" else focused.max_scroll_y, animate=False)
        else:
            self._calls.action_end_of(-1 if end == "start" else 1)

    def clear_filter(self) -> None:
        """End the search in the output or the zoom, if there is one, else clear the filter."""
        if (area := self._cockpit.screen.query_one(OutputArea)).searching:
            area.find(None)
            return
        if self._unzoom():
            return
        self._cockpit.screen.query_one(FilterBar).clear_filter()
        self._calls.focus()

    def help(self) -> None:
        """Open the help, which begins with the keys of the focused pane."""
        from whisper_tui.tui.dialogs.help_dialog import screen_help

        screen, focused = self._cockpit.screen, self._cockpit.screen.focused
        place: Place = "queue"
        if isinstance(focused, TerminalPane):
            place = "terminal"
        elif isinstance(focused, Scrolled):
            place = "output"
        elif isinstance(focused, ParagraphsView):
            place = "call"

        def reason(command: Command) -> str:
            record = self._cockpit.shown
            return "" if available(command, record) else why_not(command, record)

        screen_help(screen, place, self._commands, reason)

    def leave(self) -> None:
        """Quit. Commands keep running; approvals still in their undo window are dropped."""
        app = self._cockpit.screen.app
        app.exit(message=self._farewell() + getattr(app, "farewell", ""))
