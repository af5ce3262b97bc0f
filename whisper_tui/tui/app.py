"""The cockpit as a Textual application: themes, command palette, input, exit. The rest is in CockpitScreen."""

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.console import RenderableType
from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event, InputEvent, Key, MouseMove
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.notify.notify_settings import NO_NOTIFICATIONS, NotifySettings
from whisper_tui.present.ending_text import AnswerReader
from whisper_tui.tui.button_bar import EVERYTHING
from whisper_tui.tui.cockpit.call_panel import NO_GUIDANCE, Guidance
from whisper_tui.tui.cockpit.follower import Reconnect, TakeOver, TakeoverCommands
from whisper_tui.tui.cockpit_context import Connected, EventsLost, Opened, SignDecision
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.command_definition import Command, Keymap, available, in_force, written
from whisper_tui.tui.commands.all_commands import COMMANDS, DEFAULT_KEYMAP
from whisper_tui.tui.commands.undo_approval import NO_UNDO, UndoSettings
from whisper_tui.tui.dialogs.dialog import Dialog
from whisper_tui.tui.keyed_screen import KeyedScreen
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.output.terminal_pane import TerminalPane
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.stylesheet import CockpitStylesheet
from whisper_tui.tui.terminal_driver import DEFAULT_THEME, TerminalDriver, TerminalQuestion
from whisper_tui.tui.theme import PLACES, Themes, ThemeScreen, counterpart, load_themes

_SHEETS = Path(__file__).parent / "styles"
_STYLES = [*sorted((_SHEETS / "widgets").glob("*.tcss")), _SHEETS / "cockpit.tcss"]


class CockpitCommands(Provider):
    """Offers the commands that are available now in the command palette."""

    def _found(self) -> list[tuple[str, str, str, str]]:
        screen = self.screen
        if isinstance(screen, CommandScreen):
            meant = [command for command in screen.TABLE if screen.means_something(command.id)]
        elif isinstance(screen, CockpitScreen):
            meant = [command for command in COMMANDS if available(command, screen.shown)]
        else:
            return []
        return [(_title(self._keys.command(command)), command.help, command.id, command.also) for command in meant]

    @property
    def _keys(self) -> Keymap:
        return in_force(self.app)

    async def discover(self) -> Hits:
        """Yield all available commands."""
        for label, words, command_id, _ in self._found():
            yield DiscoveryHit(label, self._doing(command_id), help=words)

    async def search(self, query: str) -> Hits:
        """Yield the commands whose name or help matches."""
        matcher = self.matcher(query)
        for label, words, command_id, also in self._found():
            if (score := max(matcher.match(label), matcher.match(words) * 0.8, matcher.match(also) * 0.5)) > 0:
                yield Hit(score, matcher.highlight(label), self._doing(command_id), help=words)

    def _doing(self, command_id: str) -> Callable[[], object]:
        screen = self.screen
        return lambda: screen.run_action(f"command('{command_id}')")


def _title(command: Command) -> str:
    return f"{command.label}  ({command.key_name})" if command.key else command.label


class KeyPassed(Message):
    """A key has passed all widgets that it went to, and its command was carried out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


STUCK_S = 0.5
"""Seconds after which a key is waited for no more: its widget may have been removed."""


class KeysInTurn:
    """Lets a key begin once the one before it has acted, so that it goes to the widget that has the focus by then.

    Several keys may come in one read of the terminal, and Textual sends each to the widget that has the focus at that
    moment: what was typed for a field that the first of them opens would go elsewhere, or overtake what did.
    """

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._waiting: deque[Key] = deque()
        self._screen: Screen[Any] | None = None
        """The screen on top when the key under way began."""
        self._number = 0
        self._under_way = False
        self._due: Key | None = None
        """The next key, which is on its way to the application again."""
        self._watched = False

    def begins(self, key: Key) -> bool:
        """True if a key may act now; otherwise it comes again once it may."""
        if key is self._due:
            self._due = None
        elif self._under_way:
            self._waiting.append(key)
            if not self._watched:
                self._watch()
            return False
        self._under_way, self._screen = True, self._app.screen
        self._number += 1
        return True

    def is_under_way_to(self, target: Widget, *, is_text: bool) -> None:
        """Send a message after the key, which takes the same way. `is_text`: the widget keeps the key as text."""
        if is_text:
            self.passed(self._number)
            return
        message = KeyPassed(self._number)
        # Textual ends the way of a message at its sender.
        if not target.post_message(message.set_sender(target)):
            self.passed(self._number)

    def passed(self, number: int) -> None:
        """Let the next key begin if it was waiting for this one; on a new screen, once that has its focus."""
        if number != self._number or not self._under_way or self._due is not None:
            return
        if not self._app.screen_stack:
            return
        screen = self._app.screen
        if screen is not self._screen:
            self._screen = screen
            screen.call_after_refresh(self.passed, number)
            return
        # Keys that have come to the application meanwhile must not overtake the next one.
        self._under_way = bool(self._waiting)
        if self._waiting:
            self._due = self._waiting.popleft()
            self._app.post_message(self._due)

    def _watch(self) -> None:
        """Look in a while whether a key is stuck, for as long as others wait for it."""
        self._watched, number = True, self._number

        def look() -> None:
            self._watched = False
            self.passed(number)
            if self._waiting:
                self._watch()

        self._app.set_timer(STUCK_S, look)


class CockpitApp(App[None]):
    """The cockpit of one supervisor. Raises `BadConfiguration` if no theme can be used."""

    TITLE = "whisper_tui"
    CSS_PATH = _STYLES  # type: ignore[assignment]
    COMMANDS: ClassVar = {CockpitCommands}
    question: TerminalQuestion | None = None
    """The question that the terminal was asked before the start; its driver reads what came with the answers."""
    answer_of: AnswerReader | None = None
    """Makes the answers to ended calls again. None: they are not shown."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,ctrl+c", "quit", "Quit", show=False, priority=True),
        # Without priority: where text is typed, this key undoes what was typed.
        Binding("ctrl+z", "suspend_process", "Stop", show=False),
        Binding("f1", "help_here", "Help", show=False),
        Binding("ctrl+p", "command_palette", "More", show=False, priority=True, tooltip=EVERYTHING),
    ]

    def __init__(
        self,
        supervision: Supervision,
        *,
        user: str = "",
        theme: str | None = None,
        clock: Callable[[], float] = time.time,
        reconnect: Reconnect | None = None,
        keys: Keymap = DEFAULT_KEYMAP,
        notifications: NotifySettings = NO_NOTIFICATIONS,
        undo: UndoSettings = NO_UNDO,
        take_over: TakeOver | None = None,
        themes_folder: Path | None = None,
        indexed: bool = False,
        guidance: Guidance = NO_GUIDANCE,
        signer: SignDecision | None = None,
        farewell: str = "Detached. Commands keep running; whisper-tui opens the cockpit again.",
    ) -> None:
        """`themes_folder`: the user's own themes. `indexed`: in 256 colours. `signer`: signs decisions.

        `farewell` is printed after quitting.
        """
        super().__init__()
        self.stylesheet = CockpitStylesheet(variables=self.get_css_variables())
        self.farewell, self._indexed = farewell, indexed
        self._configure(keys, _usable_themes(themes_folder), theme or DEFAULT_THEME)
        self._keys = KeysInTurn(self)
        self._there = False
        self._leaves: Callable[[], None] | None = None
        """The exit to carry out as soon as the screen is mounted."""
        self._cockpit = CockpitScreen(
            supervision,
            user=user,
            clock=clock,
            reconnect=reconnect,
            pens=self._pens(),
            notifications=notifications,
            undo=undo,
            write=self._write_to_terminal,
            when_written=self.when_written,
            guidance=guidance,
            signer=signer,
        )
        self._handing_over = TakeoverCommands(self._cockpit, take_over)
        self._cockpit.does |= self._handing_over.commands()

    def _configure(self, keys: Keymap, themes: Themes, theme: str) -> None:
        """Use keys and themes, and collect their problems, which are shown later."""
        self.keymap = keys
        """The keys in force."""
        self.set_keymap(keys.bindings())
        self._themes = themes.good
        self._problems = [*keys.problems, *themes.problems]
        self._given_themes: set[str] = set()
        """The names of the themes that Textual knows."""
        if theme not in self._themes:
            self._problems.append(f"There is no theme {theme!r}; there are {', '.join(self._themes)}.")
            theme = next(iter(self._themes))
        self._give_theme(theme)
        self.theme = theme

    def _give_theme(self, name: str) -> None:
        """Give a theme to Textual, in colours that the terminal can show."""
        # Not all of them at the start: to find colours in the palette takes some milliseconds for each theme.
        if name in self._given_themes:
            return
        self._given_themes.add(name)
        if self._indexed:
            self._themes[name] = self._themes[name].indexed()
        self.register_theme(self._themes[name].theme)

    def update_styles(self, node: DOMNode, animate: bool = True) -> None:
        """Update the styles of a node and of what is in it; a node without a parent is styled when it gets one."""
        # A button changes its classes several times while it is made, and there are forty of them.
        if node.parent is not None or node is self:
            super().update_styles(node, animate)

    def get_driver_class(self) -> type[Driver]:
        """Return our driver in place of Textual's for a terminal, and Textual's own for a browser."""
        usual = super().get_driver_class()
        return TerminalDriver if usual is LinuxDriver else usual

    def get_default_screen(self) -> Screen[None]:
        """Return the cockpit, with the style of its width, so that it need not be styled again when it is laid out."""
        self._cockpit.style_for(self.size.width)
        return self._cockpit

    def on_mount(self) -> None:
        """Report problems of themes and keys, and tune the interpreter for short pauses."""
        for problem in self._problems:
            self._cockpit.tell(problem, severity="warning")
        self._handing_over.connected()
        if not self.is_headless:
            tune_interpreter()

    @on(Opened)
    def _opened(self) -> None:
        self._there = True
        if self._leaves is not None:
            self._leaves()

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Exit; while the screen is being mounted, as soon as that is done."""
        leave = partial(super().exit, result, return_code, message)
        if self._there:
            leave()
        else:
            self._leaves = leave

    @on(Connected)
    def _connected_again(self) -> None:
        self._handing_over.connected()

    @on(EventsLost)
    def _connection_lost(self, message: EventsLost) -> None:
        self._handing_over.lost(message.error)

    def get_key_display(self, binding: Binding) -> str:
        """Return the first key of a binding for the footer, written as in buttons and help."""
        return written(binding.key.split(",")[0])

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return none of Textual's: the palette lists the table of commands (decision 23)."""
        return ()

    def action_other_theme(self) -> None:
        """Switch to the dark counterpart of a light theme, or the light one of a dark theme."""
        self.use_theme(counterpart(self.theme, self._themes))

    def action_choose_theme(self) -> None:
        """Open the list of themes, with a preview of the highlighted one."""
        before = self.theme

        def chosen(name: str | None) -> None:
            self.use_theme(name or before)
            if name is not None:
                self._cockpit.tell(f'Theme {name}; theme = "{name}" in [cockpit] keeps it.')

        self.push_screen(ThemeScreen(self._themes, before, self.use_theme), chosen)

    def action_help_here(self) -> None:
        """Show the help of the screen on top."""
        if isinstance(self.screen, Dialog):
            from whisper_tui.tui.dialogs.help_dialog import dialog_help

            dialog_help(self.screen)
        elif isinstance(self.screen, CockpitScreen | CommandScreen):
            self.screen.does[next(id_ for id_ in self.screen.does if id_.endswith("help"))]()

    def action_open_settings(self) -> None:
        """Open the screen of settings."""
        from whisper_tui.tui.screens.settings_screen import SettingsScreen

        self.push_screen(SettingsScreen(self._cockpit, tuple(self._themes), self.use_theme))

    def use_theme(self, name: str) -> None:
        """Switch to a theme."""
        if name != self.theme:
            self._give_theme(name)
            self.theme = name
            self._cockpit.recolour(self._pens())

    async def on_event(self, event: Event) -> None:
        """Note the time of input, and have keys act one after the other."""
        if isinstance(event, InputEvent) and not self.screen_stack:
            return
        if isinstance(event, Key) and not event.is_forwarded and not self._keys.begins(event):
            return
        if isinstance(event, InputEvent):
            self._cockpit.last_input_at = self._cockpit.clock()
            # A key without a use for the widgets comes back here to be carried out: it is still the time of this key.
            self._cockpit.decisions.guard.came_at = event.time
            if isinstance(self.screen, KeyedScreen) and not isinstance(event, MouseMove):
                self.screen.redraw_now()
        if isinstance(event, Key) and not event.is_forwarded and self._is_command_letter(event):
            self._cockpit.decisions.typed(event.time)
        if isinstance(event, Key) and not event.is_forwarded:
            target = self.focused or self.screen
            is_text = event.is_printable and (
                isinstance(target, Input) or (isinstance(target, TerminalPane) and target.typing)
            )
            if not self._is_for_unseen_dialog(event):
                await super().on_event(event)
            self._keys.is_under_way_to(target, is_text=is_text)
        else:
            await super().on_event(event)

    @on(KeyPassed)
    def _key_passed(self, message: KeyPassed) -> None:
        self._keys.passed(message.number)

    def _is_command_letter(self, key: Key) -> bool:
        """True for a letter that goes to the cockpit itself, and not into a field or a command's terminal."""
        return key.is_printable and self.screen is self._cockpit and not isinstance(self.focused, Input | TerminalPane)

    def _is_for_unseen_dialog(self, key: Key) -> bool:
        """Refuse a key that would choose in a dialog that was not on the terminal when it came."""
        dialog = self.screen
        if not isinstance(dialog, Dialog) or key.time >= dialog.drawn_at or not dialog.chooses(key.key):
            return False
        self._cockpit.tell("Nothing was decided: the key came before the dialog was on the screen. Press it again.")
        return True

    def when_written(self, then: Callable[[], object]) -> None:
        """Call a function once all that was drawn so far is on the terminal; it may be called by another thread."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.when_written(then)
        else:
            then()

    def _write_to_terminal(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False while the person types into the terminal of a command: it gets every key."""
        if isinstance(self.focused, TerminalPane) and self.focused.typing:
            return False
        return super().check_action(action, parameters)

    async def action_quit(self) -> None:
        """Quit like the command `quit`, which reports dropped approvals."""
        self._cockpit.does["quit"]()

    def _pens(self) -> Pens:
        return Pens(self._themes[self.theme].terminal)


def _usable_themes(folder: Path | None) -> Themes:
    themes = load_themes((folder, *PLACES) if folder is not None else PLACES)
    if not themes.good:
        raise BadConfiguration("No theme can be used", hint=" ".join(themes.problems) or "Install whisper-tui again")
    return themes


def tune_interpreter() -> None:
    """Shorten pauses that a person would feel under a flood of output."""
    # Objects of the modules live for ever, so the collector need not look at them again. To collect first would take
    # as long as to draw the first frame, for some hundred objects.
    gc.freeze()
    gc.enable()
    # A frame leaves about two thousand objects, 1 to 2 ms of collection. Collected later, that is 100 ms at once.
    gc.set_threshold(2_000, 10, 100)
    # The threads that read keys and write to the terminal have little to do; they must not wait for drawing.
    sys.setswitchinterval(0.0005)
