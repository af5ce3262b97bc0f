"""The cockpit as a Textual application: themes, the palette, the collector of garbage; the rest is on its screen."""

import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.port import Supervision
from whisper_tui.tui.commands import COMMANDS, available
from whisper_tui.tui.follow import Reconnect
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.rule_book import RuleBook
from whisper_tui.tui.screens.cockpit import CockpitScreen
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.themes import load_themes

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
        return [(f"{command.label}  ({command.key_name})", command.help, command.id) for command in meant]

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


class CockpitApp(App[None]):
    """Looks at one supervisor. Raises `BadConfiguration` if no theme can be used."""

    TITLE = "whisper_tui"
    CSS_PATH = _STYLES  # type: ignore[assignment]
    COMMANDS: ClassVar = {CockpitCommands}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c", "quit", "Quit", show=False, priority=True)]

    def __init__(
        self,
        supervision: Supervision,
        *,
        user: str = "",
        theme: str | None = None,
        clock: Callable[[], float] = time.time,
        reconnect: Reconnect | None = None,
        rule_book: RuleBook | None = None,
        farewell: str = "The supervisor and every command go on. Run whisper-tui to look again.",
    ) -> None:
        """`farewell`: what is said on the terminal when the human leaves."""
        super().__init__()
        self.farewell = farewell
        themes = load_themes()
        if not themes.good:
            raise BadConfiguration(
                "No theme can be used", hint=" ".join(themes.problems) or "Install whisper-tui again"
            )
        self._themes = themes.good
        self._theme_problems = list(themes.problems)
        for found in themes.good.values():
            self.register_theme(found.theme)
        theme = theme or DEFAULT_THEME
        if theme not in themes.good:
            self._theme_problems.append(f"There is no theme {theme!r}; there are {', '.join(themes.good)}.")
            theme = next(iter(themes.good))
        self.theme = theme
        self._cockpit = CockpitScreen(
            supervision, user=user, clock=clock, reconnect=reconnect, pens=self._pens(), rule_book=rule_book
        )

    def get_default_screen(self) -> Screen[None]:
        """The one screen."""
        return self._cockpit

    def on_mount(self) -> None:
        """Say what is wrong with themes, and keep the collector out of the way of drawing."""
        for problem in self._theme_problems:
            self._cockpit.tell(problem, severity="warning")
        if not self.is_headless:
            tune_collector()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's: everything is in the table of commands."""
        return ()

    def action_next_theme(self) -> None:
        """The next theme that there is."""
        names = list(self._themes)
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._cockpit.recolour(self._pens())

    async def action_quit(self) -> None:
        """Leave as the command does."""
        self._cockpit.does["quit"]()

    def _pens(self) -> Pens:
        return Pens(self._themes[self.theme].terminal)


def tune_collector() -> None:
    """Pauses of the collector are what a person feels under a flood of output; most objects here live for ever."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
