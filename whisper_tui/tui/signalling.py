"""Sending signals to what runs, and ending it for good."""

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import SignalTarget
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.tui.commands import is_alive
from whisper_tui.tui.processes.sample import Sample
from whisper_tui.tui.screens.background import BackgroundScreen, BehindWanted
from whisper_tui.tui.screens.confirm import ConfirmKillScreen, HowToKill
from whisper_tui.tui.screens.signals import SignalScreen, SignalWanted
from whisper_tui.tui.widgets.call_list import CallList
from whisper_tui.tui.widgets.usage_line import UsageLine
from whisper_tui.tui.words import count, signal_name, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Signalling:
    """The commands of the group *Run*."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"signal": self.signal, "kill": self.kill, "pause": self.pause, "background": self.background}

    def signal(self) -> None:
        """Choose a signal and send it."""
        record = self._screen.shown
        if record is None:
            return

        def chosen(wanted: SignalWanted | None) -> None:
            if wanted is not None:
                self._send(record.id, wanted.number, wanted.target)

        screen = SignalScreen(record.id, leader_alive=isinstance(record.state, Running))
        self._screen.app.push_screen(screen, chosen)

    def pause(self) -> None:
        """Stop the whole tree without ending it, or let it go on if it is stopped."""
        record = self._screen.shown
        if record is not None:
            paused = is_paused(record, self._screen.query_one(UsageLine).sample)
            self._send(record.id, signal.SIGCONT if paused else signal.SIGSTOP, "tree")

    def background(self) -> None:
        """List what was left running, and go to it or end it."""

        def chosen(wanted: BehindWanted | None) -> None:
            if wanted is None:
                return
            self._screen.query_one(CallList).select(wanted.call_id, by_hand=True)
            self._screen.refresh_call()
            if wanted.kill:
                self.kill()

        self._screen.app.push_screen(BackgroundScreen(self._screen.board, self._screen.clock), chosen)

    def kill(self) -> None:
        """End the whole tree, after asking."""
        record = self._screen.shown
        if record is None:
            return

        def chosen(how: HowToKill | None) -> None:
            if how == "kill":
                self._send(record.id, signal.SIGKILL, "tree")
            elif how == "term":
                self._send(record.id, signal.SIGTERM, "tree")
                self._screen.set_timer(record.spec.grace_s, lambda: self._kill_if_alive(record.id))

        what = ConfirmKillScreen(record.id, _what_dies(record), record.spec.grace_s)
        self._screen.app.push_screen(what, chosen)

    def _kill_if_alive(self, call_id: str) -> None:
        record = self._screen.board.calls.get(call_id)
        if record is not None and is_alive(record):
            self._send(call_id, signal.SIGKILL, "tree")

    def _send(self, call_id: str, number: int, target: SignalTarget) -> None:
        self._screen.run_worker(self._send_now(call_id, number, target), name="signal")

    async def _send_now(self, call_id: str, number: int, target: SignalTarget) -> None:
        screen = self._screen
        try:
            await screen.supervision.signal(call_id, number, target, screen.me)
        except WhisperError as error:
            screen.tell(told(error), severity="warning")
        else:
            screen.tell(f"{signal_name(number)} was sent to call {call_id}.")


def is_paused(record: CallRecord, sample: Sample | None) -> bool:
    """Whether a run stands still: by the last signal that was sent to it from here, else by what its processes do."""
    if signal.SIGSTOP in record.signals or signal.SIGCONT in record.signals:
        return record.paused
    return sample is not None and sample.paused


def _what_dies(record: CallRecord) -> str:
    behind = len(record.living_background)
    if not isinstance(record.state, Running):
        return f"{count(behind, 'process', 'processes')} that it left behind will be ended."
    more = f", with {count(behind, 'process', 'processes')} in the background" if behind else ""
    return f"The command and everything that it started will be ended{more}."
