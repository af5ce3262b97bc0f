"""Calls whoever sits before this cockpit, in every way that is set, and counts what came while nobody was called."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from whisper_tui.tui.calling.blocked import BlockedNotices
from whisper_tui.tui.calling.news import TITLE, as_json, in_words, input_in_words, waiting_title
from whisper_tui.tui.calling.programs import DESKTOP_TIMEOUT_S, desktop_program, run_program
from whisper_tui.tui.calling.refused import RefusedNotices
from whisper_tui.tui.calling.settings import CallingSettings
from whisper_tui.tui.calling.signs import BELL, RESTORE_TITLE, SAVE_TITLE, notification, terminal_title
from whisper_tui.tui.calling.summons import Summons
from whisper_tui.tui.words import count

if TYPE_CHECKING:
    from whisper_tui.model.state import CallRecord
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Caller:
    """The command about not being disturbed, and the ways to call. `write` puts text on the real terminal."""

    def __init__(self, screen: "CockpitScreen", settings: CallingSettings, write: Callable[[str], object]) -> None:
        self._screen = screen
        self._settings = settings
        self._write = write
        self._summons = Summons(settings, screen.clock)
        self._refused = RefusedNotices(screen)
        self._blocked = BlockedNotices(screen)
        self._touched_at = screen.clock()
        self._titled: tuple[int, int] | None = None
        self._failed: dict[str, str] = {}

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"do-not-disturb": self.toggle}

    def begin(self) -> None:
        """Look every second whether somebody has to be called."""
        if self._settings.title:
            self._write(SAVE_TITLE)
        self._screen.set_interval(1.0, self.look)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._settings.title:
            self._write(RESTORE_TITLE)

    def touched(self) -> None:
        """Somebody has pressed a key or moved the mouse."""
        self._touched_at = self._screen.clock()

    def changed(self, call_ids: Iterable[str]) -> None:
        """These calls are other ones now."""
        call_ids = tuple(call_ids)
        self._blocked.changed(call_ids)
        calls = self._screen.board.calls
        for call_id in call_ids:
            self._summons.changed(call_id, calls.get(call_id))
        if self._refused.look() and self._settings.bell and self._settings.when != "never":
            self._write(BELL)
        self.look()

    @property
    def hushed(self) -> str:
        """What the status line says while nobody is called. Empty: somebody may be."""
        hush = self._summons.hush
        if hush is None:
            return ""
        return f"☾ {hush} · {self._summons.kept:,} came" if self._summons.kept else f"☾ {hush}"

    def toggle(self) -> None:
        """Be disturbed no more, or again."""
        self._summons.do_not_disturb = not self._summons.do_not_disturb
        kept = count(self._summons.kept, "call came meanwhile", "calls came meanwhile")
        on = self._summons.do_not_disturb
        self._screen.tell("Nobody is called; everything goes on waiting." if on else f"You are called again; {kept}.")
        self.look()
        self._screen.refresh_status()

    def look(self) -> None:
        """Call if there is a reason to, and keep the title in step."""
        numbers = len(self._screen.board.waiting), len(self._screen.run_watch.need_input)
        if self._settings.title and numbers != self._titled:
            self._titled = numbers
            self._write(terminal_title(waiting_title(*numbers)))
        calls = self._screen.board.calls
        records = [calls[call_id] for call_id in self._summons.due(away=self._away()) if call_id in calls]
        if records:
            self._call(in_words(records, self._screen.board), as_json(records, self._screen.board))

    def need_input(self, records: "list[CallRecord]") -> None:
        """Call for runs that have begun to wait for somebody to type, where calls that wait are called for."""
        if records and self._summons.may_call(away=self._away()):
            words = input_in_words(records, self._screen.board)
            self._call(words, as_json(records, self._screen.board, "needs-input"))
        self.look()

    def _away(self) -> bool:
        idle = self._screen.clock() - self._touched_at
        return not self._screen.app.app_focus or idle >= self._settings.away_after_s

    def _call(self, words: str, content: bytes) -> None:
        settings = self._settings
        if settings.bell:
            self._write(BELL)
        if settings.notify != "off":
            self._write(notification(settings.notify, TITLE, words, tmux="TMUX" in os.environ))
        if settings.desktop:
            self._screen.run_worker(self._desktop(words), name="call-desktop")
        if settings.command:
            self._screen.run_worker(self._command(content), name="call-command")

    async def _desktop(self, words: str) -> None:
        argv = desktop_program(TITLE, words)
        problem = "there is neither notify-send nor osascript here"
        if argv is not None:
            problem = await run_program(argv, b"", DESKTOP_TIMEOUT_S) or ""
        self._told("Desktop notifications do not work", problem)

    async def _command(self, news: bytes) -> None:
        problem = await run_program(self._settings.command, news, self._settings.command_timeout_s)
        self._told(f"The program {self._settings.command[0]} that calls you has failed", problem or "")

    def _told(self, what: str, problem: str) -> None:
        """Say a failure once, until it works again."""
        if not problem:
            self._failed.pop(what, None)
        elif self._failed.get(what) != problem:
            self._failed[what] = problem
            self._screen.tell(f"{what}: {problem}.", severity="warning")
