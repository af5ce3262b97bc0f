"""The cockpit as a Textual application: themes, the palette, the collector of garbage; the rest is on its screen."""

import gc
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar
from weakref import WeakKeyDictionary

from rich.console import RenderableType
from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event, InputEvent, Key, MouseMove
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.port import Supervision
from whisper_tui.tui.calling.settings import NEVER, CallingSettings
from whisper_tui.tui.commands import COMMANDS, Command, available
from whisper_tui.tui.commands.keys import written
from whisper_tui.tui.follow import Reconnect
from whisper_tui.tui.grace import NO_GRACE, Grace
from whisper_tui.tui.handing_over import HandingOver, TakeOver
from whisper_tui.tui.keymap import DEFAULT, Keymap, in_force
from whisper_tui.tui.messages import Connected, ConnectionLost, Opened
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.rule_book import RuleBook
from whisper_tui.tui.screens.cockpit import CockpitScreen
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.screens.keyed import KeyedScreen
from whisper_tui.tui.screens.themes import ThemeScreen
from whisper_tui.tui.terminal_driver import TerminalDriver
from whisper_tui.tui.themes import PLACES, counterpart, load_themes
from whisper_tui.tui.widgets.button_bar import EVERYTHING
from whisper_tui.tui.widgets.terminal_pane import TerminalPane

DEFAULT_THEME = "whisper-dark"
_HERE = Path(__file__).parent
_STYLES = [*sorted((_HERE / "widgets").glob("*.tcss")), _HERE / "screens" / "cockpit.tcss"]


class CockpitCommands(Provider):
    """The commands that mean something now, for the palette."""

    def _found(self) -> list[tuple[str, str, str]]:
        screen = self.screen
        if isinstance(screen, CommandScreen):
            meant = [command for command in screen.TABLE if screen.means_something(command.id)]
        elif isinstance(screen, CockpitScreen):
            meant = [command for command in COMMANDS if available(command, screen.shown)]
        else:
            return []
        return [(_title(self._keys.command(command)), command.help, command.id) for command in meant]

    @property
    def _keys(self) -> Keymap:
        return in_force(self.app)

    async def discover(self) -> Hits:
        """All of them."""
        for label, words, command_id in self._found():
            yield DiscoveryHit(label, self._doing(command_id), help=words)

    async def search(self, query: str) -> Hits:
        """Those whose name or help matches."""
        matcher = self.matcher(query)
        for label, words, command_id in self._found():
            if (score := max(matcher.match(label), matcher.match(words) * 0.8)) > 0:
                yield Hit(score, matcher.highlight(label), self._doing(command_id), help=words)

    def _doing(self, command_id: str) -> Callable[[], object]:
        screen = self.screen
        return lambda: screen.run_action(f"command('{command_id}')")


def _title(command: Command) -> str:
    return f"{command.label}  ({command.key_name})" if command.key else command.label


class CockpitApp(App[None]):
    """Looks at one supervisor. Raises `BadConfiguration` if no theme can be used."""

    TITLE = "whisper_tui"
    CSS_PATH = _STYLES  # type: ignore[assignment]
    COMMANDS: ClassVar = {CockpitCommands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,ctrl+c", "quit", "Quit", show=False, priority=True),
        # Without priority: where text is typed, this key takes back what was typed.
        Binding("ctrl+z", "suspend_process", "Stop", show=False),
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
        rule_book: RuleBook | None = None,
        keys: Keymap = DEFAULT,
        calling: CallingSettings = NEVER,
        grace: Grace = NO_GRACE,
        take_over: TakeOver | None = None,
        themes_folder: Path | None = None,
        farewell: str = "The supervisor and every command go on. Run whisper-tui to look again.",
    ) -> None:
        """`themes_folder`: themes of the user's own; `farewell`: what is said on the terminal when the human leaves."""
        super().__init__()
        self.farewell = farewell
        self.keymap = keys
        """The keys in force."""
        self.set_keymap(keys.bindings())
        themes = load_themes((themes_folder, *PLACES) if themes_folder is not None else PLACES)
        if not themes.good:
            raise BadConfiguration(
                "No theme can be used", hint=" ".join(themes.problems) or "Install whisper-tui again"
            )
        self._themes = themes.good
        self._aims: WeakKeyDictionary[Key, Widget | None] = WeakKeyDictionary()
        self._there = False
        self._leaves: Callable[[], None] | None = None
        """What is left to do for an end that came too early."""
        self._problems = [*keys.problems, *themes.problems]
        for found in themes.good.values():
            self.register_theme(found.theme)
        theme = theme or DEFAULT_THEME
        if theme not in themes.good:
            self._problems.append(f"There is no theme {theme!r}; there are {', '.join(themes.good)}.")
            theme = next(iter(themes.good))
        self.theme = theme
        self._cockpit = CockpitScreen(
            supervision,
            user=user,
            clock=clock,
            reconnect=reconnect,
            pens=self._pens(),
            rule_book=rule_book,
            calling=calling,
            grace=grace,
            write=self._write_to_terminal,
        )
        self._handing_over = HandingOver(self._cockpit, take_over)
        self._cockpit.does |= self._handing_over.commands()

    def get_driver_class(self) -> type[Driver]:
        """What drives the terminal: ours in place of Textual's, and Textual's own for a browser."""
        usual = super().get_driver_class()
        return TerminalDriver if usual is LinuxDriver else usual

    def get_default_screen(self) -> Screen[None]:
        """The one screen."""
        return self._cockpit

    def on_mount(self) -> None:
        """Say what is wrong with themes and keys, and keep the interpreter out of the way of keys."""
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
        """Leave; while the screen is being built, as soon as it is there to be taken down."""
        leave = partial(super().exit, result, return_code, message)
        if self._there:
            leave()
        else:
            self._leaves = leave

    @on(Connected)
    def _connected_again(self) -> None:
        self._handing_over.connected()

    @on(ConnectionLost)
    def _connection_lost(self, message: ConnectionLost) -> None:
        self._handing_over.lost(message.error)

    def get_key_display(self, binding: Binding) -> str:
        """A key in the footer, written as it is everywhere else; the first of several."""
        return written(binding.key.split(",")[0])

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's: everything is in the table of commands."""
        return ()

    def action_other_theme(self) -> None:
        """The dark one of a light theme, the light one of a dark theme."""
        self.use_theme(counterpart(self.theme, self._themes))

    def action_choose_theme(self) -> None:
        """A list of themes; each is shown while it is looked at."""
        before = self.theme

        def chosen(name: str | None) -> None:
            self.use_theme(name or before)
            if name is not None:
                self._cockpit.tell(f'This is {name}; theme = "{name}" in [cockpit] keeps it.')

        self.push_screen(ThemeScreen(self._themes, before, self.use_theme), chosen)

    def use_theme(self, name: str) -> None:
        """Draw everything in the colours of a theme."""
        if name != self.theme:
            self.theme = name
            self._cockpit.recolour(self._pens())

    async def on_event(self, event: Event) -> None:
        """Whoever presses a key or moves the mouse is there."""
        if isinstance(event, InputEvent):
            self._cockpit.caller.touched()
            if isinstance(self.screen, KeyedScreen) and not isinstance(event, MouseMove):
                self.screen.hasten()
        if isinstance(event, Key) and self._is_for_another(event):
            return
        await super().on_event(event)

    def _is_for_another(self, key: Key) -> bool:
        """Pass on a key that went to what had the focus before: it was meant for what the key before it has opened."""
        if not key.is_forwarded:
            self._aims[key] = self.focused
            return False
        focused = self.focused
        types = isinstance(focused, Input) or (isinstance(focused, TerminalPane) and focused.typing)
        if focused is None or not types or self._aims.get(key, focused) is focused:
            return False
        return focused.post_message(Key(key.key, key.character))

    def _write_to_terminal(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a person types into the terminal of a command, no key is the cockpit's."""
        if isinstance(self.focused, TerminalPane) and self.focused.typing:
            return False
        return super().check_action(action, parameters)

    async def action_quit(self) -> None:
        """Leave as the command does."""
        self._cockpit.does["quit"]()

    def _pens(self) -> Pens:
        return Pens(self._themes[self.theme].terminal)


def tune_interpreter() -> None:
    """What a person would feel under a flood of output: pauses of the collector, and threads that wait for each other.

    Most objects here live for ever and are passed over. Of the others a frame leaves about two thousand, a millisecond
    or two of work: left for later, they would be a tenth of a second of it at once. The threads that read keys and
    write to the terminal have little to do, and do it before drawing goes on.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 100)
    sys.setswitchinterval(0.0005)
