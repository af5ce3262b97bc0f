"""Screens whose keys, buttons, footer, palette and help come from tables of commands, and the zoom of panes."""

import time
from collections.abc import Callable, Iterable
from inspect import isawaitable
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Footer
from textual.widgets._footer import FooterKey

from whisper_tui.tui.cockpit_context import CommandRequested
from whisper_tui.tui.command_definition import Command, in_force

HISTORY: tuple[Command, ...] = (
    Command("history-search", "slash", "Search", "Search all calls for words.", "History", in_footer=True),
    Command("history-verdict", "v", "Verdict", "Only calls that were allowed, asked or refused.", "History"),
    Command("history-ending", "x", "Ending", "Only calls that ended with 0, failed, were denied …", "History"),
    Command(
        "history-decider",
        "w",
        "Decided by",
        "Only calls that a human, a rule or a standing approval decided.",
        "History",
    ),
    Command("history-period", "t", "Time", "Only calls of the last hour, day, week, month, or earlier.", "History"),
    Command("history-session", "s", "Session", "Only calls of the selected call's session.", "History"),
    Command("history-machine", "m", "Machine", "Only calls of the selected call's machine.", "History"),
    Command("history-clear", "c", "All", "Remove all filters and list all calls.", "History", in_footer=True),
    Command("history-reload", "n", "Newest", "Search again from the newest call.", "History"),
    Command("history-play", "space", "Play", "Play the recorded output at its original speed, or pause.", "History"),
    Command("history-faster", "plus,equals_sign", "Faster", "Play faster.", "History"),
    Command("history-slower", "minus", "Slower", "Play slower.", "History"),
    Command("history-back", "left_square_bracket", "Back", "Go five seconds back in the output.", "History"),
    Command("history-ahead", "right_square_bracket", "Ahead", "Go five seconds forward in the output.", "History"),
    Command("history-begin", "0", "Beginning", "Go to the beginning of the output.", "History"),
    Command("history-finish", "9", "All output", "Go to the end of the output.", "History"),
    Command(
        "history-layout",
        "o",
        "Output",
        "Show the streams merged, separate, or only one; a terminal as lines.",
        "History",
    ),
    Command(
        "history-zoom",
        "z",
        "Zoom",
        "Enlarge the output, or the focused call, to the right side, then to the whole screen.",
        "History",
    ),
    Command("history-next-hunk", "right_curly_bracket", "Next hunk", "Go to the next hunk of its changes.", "History"),
    Command("history-previous-hunk", "left_curly_bracket", "Previous hunk", "Go to the previous hunk.", "History"),
    Command("history-next-file", "greater_than_sign", "Next file", "Go to the next file of its changes.", "History"),
    Command("history-previous-file", "less_than_sign", "Previous file", "Go to the previous file.", "History"),
    Command(
        "history-take-back",
        "J",
        "Undo changes",
        "Put the files that it changed back; again, redo a command's.",
        "History",
    ),
    Command("history-again", "r", "Run again", "Submit the call again, through the policy.", "History", in_footer=True),
    Command("history-reveal", "M", "Secrets", "Show the secrets of the call for ten seconds, or hide them.", "History"),
    Command("history-why", "Y", "Why", "Show why it was allowed, asked or denied.", "History", in_footer=True),
    Command("history-figures", "i", "Figures", "Show statistics of its session.", "History", in_footer=True),
    Command(
        "history-export",
        "E",
        "Export",
        "Export the call, its session or everything to a file.",
        "History",
        in_footer=True,
    ),
    Command("history-help", "question_mark", "Help", "Show what every key does.", "History"),
    Command("history-leave", "escape,q,H", "Back", "Go back to the cockpit.", "History", in_footer=True),
)

RULES: tuple[Command, ...] = (
    Command("rules-test", "slash", "Test", "Test how a command would be decided.", "Rules", in_footer=True),
    Command("rules-add", "a", "Add", "Add a rule of your own.", "Rules", in_footer=True),
    Command("rules-change", "e", "Edit", "Change the rule in a form.", "Rules", in_footer=True),
    Command("rules-switch", "space", "Disable", "Disable the rule, or enable it again.", "Rules", in_footer=True),
    Command("rules-revoke", "x,delete", "Revoke", "Revoke an approval, or remove a rule.", "Rules", in_footer=True),
    Command("rules-trust", "t", "Trust", "Trust the rules of a project, or withdraw trust.", "Rules", in_footer=True),
    Command("rules-starter", "s", "Starter set", "Offer rules for the project's tests, builds and checks.", "Rules"),
    Command("rules-readers", "b", "Built-in list", "List commands that only read, with a switch each.", "Rules"),
    Command("rules-why", "w", "Why", "Show which rule decided about the selected call.", "Rules", in_footer=True),
    Command("rules-edit", "E", "File", "Open the rules file in your editor.", "Rules", in_footer=True),
    Command("rules-reload", "n", "Reload", "Read rules and approvals again.", "Rules", in_footer=True),
    Command("rules-help", "question_mark", "Help", "Show all keys.", "Rules"),
    Command("rules-leave", "escape,q,L", "Back", "Go back to the cockpit.", "Rules", in_footer=True),
)

SETTINGS: tuple[Command, ...] = (
    Command("settings-change", "e", "Change", "Change the setting; Enter does so too.", "Settings", in_footer=True),
    Command("settings-reset", "x,delete", "Default", "Remove the setting from the file.", "Settings", in_footer=True),
    Command("settings-reload", "n", "Reload", "Read the configuration file again.", "Settings", in_footer=True),
    Command("settings-help", "question_mark", "Help", "Show all keys.", "Settings"),
    Command("settings-leave", "escape,q,comma", "Back", "Go back to the cockpit.", "Settings", in_footer=True),
)

URGENT_S = 0.1
"""Seconds after a key for which changes are drawn without waiting for the next frame."""


class KeyedScreen(Screen[None]):
    """A screen that draws the effect of a key at once, and lists commands in the order of their table."""

    _hasty_until = 0.0

    def redraw_now(self) -> None:
        """Draw changes at once for a moment, because a key was pressed."""
        self._hasty_until = time.monotonic() + URGENT_S

    def on_idle(self) -> None:
        """Draw what the key has changed so far."""
        if time.monotonic() < self._hasty_until:
            # Textual would draw at its next frame, one or two frames after the key. This is its private method; a
            # test guards its existence (decision 26).
            self._on_timer_update()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The bindings that are active now, in the order of the table of commands."""
        found = super().active_bindings
        # Textual puts remapped bindings behind all others, so a changed key would move its command in the footer.
        order = in_force(self.app).order
        return dict(sorted(found.items(), key=lambda item: order.get(item[1].binding.id or "", len(order))))


class CommandScreen(KeyedScreen):
    """A screen over the cockpit with a table of commands of its own."""

    TABLE: ClassVar[tuple[Command, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.does: dict[str, Callable[[], object]] = {}
        """The function of each command of the table, by its id."""

    def means_something(self, command_id: str) -> bool:
        """True if a command is available now."""
        return command_id in self.does

    def why_not(self, command: Command) -> str:
        """Return the reason for which a command of the table is not available now; empty if it is."""
        return "" if self.means_something(command.id) else f"{command.label} is not possible now."

    async def action_command(self, command_id: str) -> None:
        """Carry out a command from a key, a button or the palette."""
        if not self.means_something(command_id):
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False for commands that are not available: the footer omits them, and their keys do nothing."""
        if action != "command" or not self.is_mounted:
            return True
        return self.means_something(str(parameters[0]))

    async def on_command_requested(self, message: CommandRequested) -> None:
        """Carry out the command of a button."""
        await self.action_command(message.command_id)


LEVELS = 3
"""As usual, the whole right side, the whole screen."""
Pane = Literal["call", "output"]


class HidesOutput(Protocol):
    """A pane of output that another pane can hide."""

    away: bool
    """True while another pane has its room."""
    has_output: bool
    """True if the call has run."""
    display: bool


class PaneZoom:
    """Gives the room of a screen to one of its panes. The screen has a list, the selected call and its output."""

    def __init__(
        self,
        screen: Screen[Any],
        call: tuple[str, ...],
        output: str,
        around: tuple[str, ...],
        keep_call: Callable[[], bool] = lambda: False,
    ) -> None:
        """All are CSS selectors: `around` is what a whole screen hides, first of all the list.

        `keep_call` returns True while the call may not be hidden.
        """
        self._screen = screen
        self._call, self._output, self._around = call, output, around
        self._keep_call = keep_call
        self.level = 0
        self._chosen: Pane = "output"

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"zoom": lambda: self.step(1), "zoom-out": lambda: self.step(-1)}

    def step(self, by: int) -> None:
        """Go to the next level, after the last one back to the usual arrangement; or to the one before."""
        if self.level == 0:
            self._chosen = "call" if any(widget.has_focus_within for widget in self._calls) else "output"
        self._go_to((self.level + by) % LEVELS)

    def back(self) -> bool:
        """Return to the usual arrangement. Return False if nothing was zoomed."""
        if self.level == 0:
            return False
        self._go_to(0)
        return True

    def _go_to(self, level: int) -> None:
        before, self.level = self.level, level
        self.apply()
        # The list is hidden on a whole screen, so the arrow keys scroll the pane instead.
        panes = self._calls if self.pane == "call" else [self._screen.query_one(self._output)]
        if level == LEVELS - 1:
            focusable = (child for pane in panes for child in (pane, *pane.query("*")) if child.focusable)
            if not any(pane.has_focus_within for pane in panes):
                self._screen.set_focus(next(focusable, None))
        elif before == LEVELS - 1:
            self._screen.set_focus(self._screen.query_one(str(self._screen.AUTO_FOCUS)))

    @property
    def pane(self) -> Pane | None:
        """The pane that has the room of the others, if any."""
        if self.level == 0:
            return None
        has_output = self._output_pane.has_output
        return "output" if self._chosen == "output" and has_output and not self._keep_call() else "call"

    def apply(self) -> None:
        """Hide what the zoomed pane covers, for the call that is selected now."""
        pane, output = self.pane, self._output_pane
        for widget in self._calls:
            widget.display = pane != "output"
        output.away = pane == "call"
        output.display = output.has_output and not output.away
        for selector in self._around:
            self._screen.query_one(selector).set_class(self.level == LEVELS - 1, "-zoomed-away")

    @property
    def _calls(self) -> list[Widget]:
        return [self._screen.query_one(selector) for selector in self._call]

    @property
    def _output_pane(self) -> HidesOutput:
        found: Any = self._screen.query_one(self._output)
        return found  # type: ignore[no-any-return]


AROUND_LABEL = 2
"""Columns of a button besides its label."""
MORE = 3
"""Columns of the last button."""
EVERYTHING = "All commands that are available now."
"""The tooltip of the palette."""


class ButtonBar(Horizontal):
    """As many buttons as fit, from the left. They take no focus, because the keyboard has keys for them."""

    def __init__(self, ids: Iterable[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ids = tuple(ids)

    def compose(self) -> ComposeResult:
        """Yield all buttons, and the one of the palette."""
        with Horizontal(classes="bar-buttons"):
            for command in map(in_force(self.app).by_id, self._ids):
                button = Button(
                    label(command),
                    id=f"do-{command.id}",
                    classes=f"-{command.group.lower()}",
                    compact=True,
                )
                # A click must not take the focus from the list, or the next key would go to the button.
                button.can_focus = False
                button.tooltip = command.help
                yield button
        more = Button(Content("⋯"), classes="bar-more", compact=True)
        more.can_focus = False
        more.tooltip = EVERYTHING
        yield more

    @property
    def buttons(self) -> list[Button]:
        """The buttons of commands, from the left."""
        return list(self.query(".bar-buttons Button").results(Button))

    def on_resize(self) -> None:
        """Show as many buttons as fit now, and once more when everything around the bar has its place."""
        self.fit()
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Hide the buttons that would be cut off."""
        room = self.content_size.width - MORE
        for button in self.buttons:
            if not button.has_class("-meaningless"):
                room -= Content.from_text(button.label).cell_length + AROUND_LABEL
                button.set_class(room < 0, "-no-room")
                room -= 1

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.has_class("bar-more"):
            self.app.action_command_palette()
        else:
            self.post_message(CommandRequested((event.button.id or "").removeprefix("do-")))


def label(command: Command) -> Content:
    """Return the label of a button: the key in bold, and the name of the command."""
    key = f"{command.key_name} " if command.key else ""
    return Content.assemble((key, "bold"), command.label)


class _Content(NamedTuple):
    """The label and the action of a key in the footer."""

    key: str
    display: str
    description: str
    action: str
    disabled: bool
    tooltip: str

    @property
    def columns(self) -> int:
        """The columns that it takes, with one on each side."""
        return cell_len(self.display) + cell_len(self.description) + 3


class _Key(FooterKey):
    compact = reactive(False)

    def __init__(self, content: _Content) -> None:
        super().__init__(*content)
        self._content = content

    def become(self, content: _Content) -> None:
        """Show another key, or the same one."""
        self.display = True
        if content == self._content:
            return
        self._content = content
        self.key, self.key_display, self.description, self.action, self._disabled, tooltip = content
        self.tooltip = tooltip or None
        self.set_class(content.disabled, "-disabled")
        self.refresh(layout=True)


class KeyFooter(Footer):
    """A footer for a program that runs all day.

    Textual's makes all its keys anew whenever other keys may hold, that is several times with every call that is
    selected, and matching the styles of new widgets costs more than anything else that a selection does. It also held
    every key that it had ever shown, because keys are bound to its property `compact`. And it cut off a key in its
    middle, with all behind it, where not all fit.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[_Key] = []
        self._palette: FooterKey | None = None

    def compose(self) -> ComposeResult:
        """Yield nothing: the keys come with the first news about bindings."""
        return iter(())

    def on_mount(self) -> None:
        """Show the keys, also if the first news about bindings came before."""
        self.call_after_refresh(self._show_keys)

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Show the keys that hold now."""
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._show_keys)

    def on_resize(self) -> None:
        """Show as many keys as fit now."""
        self.call_after_refresh(self._show_keys)

    async def _show_keys(self) -> None:
        # A program can be ended while it starts: then the footer is never mounted, or already gone.
        if not (self.is_mounted and self.is_attached):
            return
        contents, palette = self._wanted()
        for key, content in zip(self._keys, contents, strict=False):
            key.become(content)
        for key in self._keys[len(contents) :]:
            key.display = False
        new = [_Key(content) for content in contents[len(self._keys) :]]
        self._keys += new
        if new:
            await self.mount_all(new, before=self._palette)
        if self._palette is not None:
            self._palette.display = palette is not None
        elif palette is not None and self.is_attached:
            self._palette = FooterKey(*palette, classes="-command-palette")
            await self.mount(self._palette)

    def _wanted(self) -> tuple[list[_Content], _Content | None]:
        """Return the keys from the left, one for each action, and the key of the command palette."""
        active = self.screen.active_bindings
        shown: dict[str, _Content] = {}
        for _, binding, enabled, tooltip in active.values():
            if binding.show:
                shown.setdefault(binding.action, self._content(binding, enabled, tooltip))
        found = active.get(self.app.COMMAND_PALETTE_BINDING)
        if found is None:
            return _fitting(list(shown.values()), self.size.width), None
        binding = found.binding
        palette = self._content(binding, found.enabled, binding.tooltip or binding.description)
        return _fitting(list(shown.values()), self.size.width - palette.columns), palette

    def _content(self, binding: Binding, enabled: bool, tooltip: str) -> _Content:
        display = self.app.get_key_display(binding)
        return _Content(binding.key, display, binding.description, binding.action, not enabled, tooltip)


def _fitting(contents: list[_Content], columns: int) -> list[_Content]:
    """Return the keys that fit, whole: those from the left, and the last one, which leaves the screen."""
    while len(contents) > 1 and sum(each.columns for each in contents) - 1 > columns:
        contents = [*contents[:-2], contents[-1]]
    return contents
