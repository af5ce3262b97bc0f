"""Notifies the person about waiting calls: each call once, rate limited, and not in quiet hours (decision 24)."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from whisper_tui.model.api import Presence, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.errors import NotAllowed, WhisperError
from whisper_tui.model.event import AlarmRaised, Event, PhoneChange, PhoneChanged
from whisper_tui.model.packed_calls import Lines
from whisper_tui.model.run import StallNews
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.notify.delivery import (
    BELL,
    DESKTOP_TIMEOUT_S,
    RESTORE_TITLE,
    SAVE_TITLE,
    desktop_environment,
    desktop_program,
    notification,
    run_program,
    terminal_title,
)
from whisper_tui.notify.desktop_buttons import DesktopButtons
from whisper_tui.notify.notification_text import (
    TITLE,
    alarm_text,
    notification_json,
    stall_text,
    waiting_text,
    waiting_title,
)
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.notify.phone_push import PhonePush
from whisper_tui.present.phone_notices import phone_sentence
from whisper_tui.present.quantities import count


def quiet_until(hours: str, at: float) -> str | None:
    """Return the end of the quiet hours that cover a time, like 07:00, or None.

    `hours` is like 22:00-07:00, local time, or empty; the second time is exclusive. `at` is in seconds
    since the epoch.
    """
    start, _, end = hours.partition("-")
    if not end or start == end:
        return None
    now = time.strftime("%H:%M", time.localtime(at))
    # Hours such as 22:00-07:00 go past midnight.
    within = start <= now < end if start < end else now >= start or now < end
    return end if within else None


class PendingNotifications:
    """The calls to notify about next. A change of one call costs the same however many are waiting."""

    def __init__(self, settings: NotifySettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.do_not_disturb = False
        """True while the person has switched notifications off."""
        self._clock = clock
        self._started_at = clock()
        self._pending: dict[str, float] = {}
        self._notified: dict[str, float] = {}
        self._notified_at = float("-inf")

    def changed(self, call_id: str, record: CallRecord | None) -> None:
        """Note that a call has changed. `record` None: the board has dropped it."""
        if record is not None and isinstance(record.state, Waiting) and not record.is_held_back:
            self.note(call_id, record.state.since, aside=record.aside is not None)
        else:
            self.note(call_id, None)

    def note(self, call_id: str, waits_since: float | None, *, aside: bool = False) -> None:
        """Note since when a call has waited for a decision. None: it does not. `aside`: a human has set it aside."""
        if waits_since is None:
            self._pending.pop(call_id, None)
            self._notified.pop(call_id, None)
        elif aside:
            # A human has seen it, so it is no news once it is brought back, either.
            self._pending.pop(call_id, None)
            self._notified[call_id] = waits_since
        # Calls that waited when the cockpit opened are already on the screen. A requeued call counts as
        # new.
        elif waits_since >= self._started_at and self._notified.get(call_id) != waits_since:
            self._pending[call_id] = waits_since

    @property
    def muted(self) -> str | None:
        """Why notifications are muted, as text. None: they are not."""
        if self.do_not_disturb:
            return "do not disturb"
        until = quiet_until(self.settings.quiet, self._clock())
        return f"quiet until {until}" if until is not None else None

    @property
    def held(self) -> int:
        """The number of waiting calls without a notification yet."""
        return len(self._pending)

    def may_notify(self, *, away: bool) -> bool:
        """True if settings and quiet hours allow a notification now. `away`: nobody is looking at the cockpit."""
        when = self.settings.when
        return (when == "always" or (when == "away" and away)) and self.muted is None

    def due(self, *, away: bool) -> tuple[str, ...]:
        """Return the calls to notify about now, oldest first, and count them as notified. `away`: as above."""
        now = self._clock()
        if not self._pending or not self.may_notify(away=away):
            return ()
        # Calls that arrive within the interval stay pending, and one notification covers all of them.
        if now - self._notified_at < self.settings.at_most_every_s:
            return ()
        found = tuple(self._pending)
        self._notified |= self._pending
        self._pending.clear()
        self._notified_at = now
        return found


STALL_NEWS: tuple[StallNews, ...] = ("needs-input", "stopped")

PRESENCE_EVERY_S = 10.0
"""Seconds between two reports to the supervisor of the same presence; of another one it is told at once."""

FAREWELL_S = 0.5
"""Seconds that the end of a cockpit waits for its last report."""


class Watcher(Protocol):
    """The interface of the screen that a notifier needs."""

    clock: Callable[[], float]
    last_input_at: float
    """When somebody last pressed a key or moved the mouse."""

    @property
    def board(self) -> Board:
        """All calls as they are now."""
        ...

    @property
    def supervision(self) -> Supervision:
        """The API of the supervisor. It is another object after a reconnection."""
        ...

    @property
    def need_input(self) -> Collection[str]:
        """The ids of runs that need input."""
        ...

    @property
    def terminal_has_focus(self) -> bool:
        """True while the cockpit's terminal has the focus."""
        ...

    def tell(self, text: str, *, severity: Literal["information", "warning", "error"] = "information") -> None:
        """Show a message for some seconds."""
        ...

    def refresh_status(self) -> None:
        """Redraw the status line."""
        ...

    def run_worker(self, work: Coroutine[None, None, None], name: str) -> object:
        """Run a coroutine in the background."""
        ...


class Notifier:
    """Do-not-disturb, and notifications by a cockpit's terminal. `write` writes directly to the terminal."""

    def __init__(self, screen: "Watcher", settings: NotifySettings, write: Callable[[str], object]) -> None:
        self._screen = screen
        self._settings = settings
        self._write = write
        self._notifications = PendingNotifications(settings, screen.clock)
        self._titled: tuple[int, int] | None = None
        self._id = f"{os.getpid()}-{secrets.token_hex(4)}"
        """The name under which this cockpit reports: several may be open in one process."""
        self._may_report = True
        self._reporting = False
        self._reported: tuple[Presence, Supervision] | None = None
        """The last report, and to whom: after a reconnection it is another supervisor, perhaps."""
        self._reported_at = float("-inf")

    def commands(self) -> dict[str, Callable[[], object]]:
        """The handlers of commands, by command id."""
        return {"do-not-disturb": self.toggle}

    def begin(self) -> None:
        """Report the presence of the person, and keep the title of the terminal."""
        if self._settings.title:
            self._write(SAVE_TITLE)
        self.report_presence()

    def tick(self) -> None:
        """Look every second: quiet hours end, and the person leaves the keyboard, without a change of any call."""
        self.look()
        if (
            self._presence(),
            self._screen.supervision,
        ) != self._reported or time.monotonic() - self._reported_at >= PRESENCE_EVERY_S:
            self.report_presence()

    async def end(self) -> None:
        """Restore the title of the terminal, and report that nobody is here any more."""
        if self._settings.title:
            self._write(RESTORE_TITLE)
        if self._reported is not None and self._may_report:
            gone = self._reported[0].model_copy(update={"present": False, "muted": False})
            # Without this, the supervisor takes the person for present until the last report has expired.
            with suppress(WhisperError, TimeoutError):
                async with asyncio.timeout(FAREWELL_S):
                    await self._screen.supervision.report_presence(gone)

    def changed(self, lines: Lines, *, alarm: bool = False) -> None:
        """Note that these calls have changed. `alarm`: ring the bell at once."""
        self.note(lines)
        if alarm and self._settings.bell and self._settings.when != "never":
            self._write(BELL)
        self.look()

    def note(self, lines: Lines) -> None:
        """Note that these calls have changed, and notify later."""
        for call_id, line in lines.items():
            since = line.waits_since if line is not None else None
            self._notifications.note(call_id, since, aside=call_id in self._screen.board.aside)

    @property
    def muted_text(self) -> str:
        """Return the text of the status line while notifications are muted. Empty: they are not."""
        muted = self._notifications.muted
        if muted is None:
            return ""
        return f"☾ {muted} · {self._notifications.held:,} new" if self._notifications.held else f"☾ {muted}"

    def toggle(self) -> None:
        """Switch do-not-disturb on or off."""
        self._notifications.do_not_disturb = not self._notifications.do_not_disturb
        held = count(self._notifications.held, "call came in meanwhile", "calls came in meanwhile")
        on = self._notifications.do_not_disturb
        self._screen.tell(
            "Notifications are off; calls keep waiting." if on else f"Notifications are on again; {held}."
        )
        self.look()
        self.report_presence()
        self._screen.refresh_status()

    def look(self) -> None:
        """Notify if anything is due, and update the title of the terminal."""
        numbers = len(self._screen.board.waiting), len(self._screen.need_input)
        if self._settings.title and numbers != self._titled:
            self._titled = numbers
            self._write(terminal_title(waiting_title(*numbers)))
        calls = self._screen.board.calls
        records = [calls[call_id] for call_id in self._notifications.due(away=self._away()) if call_id in calls]
        if records:
            self._notify(waiting_text(records, self._screen.board))

    def stalled(self, records: list[CallRecord], news: StallNews) -> None:
        """Notify about stalled runs, under the same rules as for waiting calls."""
        if records and self._notifications.may_notify(away=self._away()):
            self._notify(stall_text(records, self._screen.board, news))
        self.look()

    def alarmed(self, records: list[CallRecord]) -> None:
        """Notify about alarms, whoever is there: what they are about has happened already."""
        if records and self._settings.when != "never" and self._notifications.muted is None:
            self._notify(alarm_text(records, self._screen.board))

    def _away(self) -> bool:
        idle = self._screen.clock() - self._screen.last_input_at
        return not self._screen.terminal_has_focus or idle >= self._settings.away_after_s

    def _notify(self, words: str) -> None:
        # The supervisor notifies through the desktop and the user's program, whether or not a cockpit is open,
        # and only once even if several are open.
        if self._settings.bell:
            self._write(BELL)
        if self._settings.notify != "off":
            self._write(notification(self._settings.notify, TITLE, words, tmux="TMUX" in os.environ))

    def report_presence(self) -> None:
        """Report to the supervisor whether somebody is here, unless a report is in progress."""
        if self._may_report and not self._reporting:
            self._reporting = True
            self._screen.run_worker(self._report(), name="presence")

    def _presence(self) -> Presence:
        muted = self._notifications.do_not_disturb
        return Presence(cockpit=self._id, present=not self._away(), muted=muted)

    async def _report(self) -> None:
        presence, supervision = self._presence(), self._screen.supervision
        try:
            await supervision.report_presence(presence)
            self._reported, self._reported_at = (presence, supervision), time.monotonic()
        except NotAllowed:
            # A cockpit in the terminal of an agent. It does not retry, because every refusal is recorded.
            self._may_report = False
        except WhisperError:
            pass  # A lost connection has its own status bar.
        finally:
            self._reporting = False


class People(Protocol):
    """The presence of people at the cockpits of a supervisor."""

    @property
    def somebody(self) -> bool:
        """True if somebody is at any cockpit."""
        ...

    @property
    def muted(self) -> bool:
        """True if the person at any cockpit has switched notifications off."""
        ...


class BackgroundNotifier:
    """Notifies through the desktop, the user's program and phones: in the supervisor, and so without a cockpit, too."""

    def __init__(
        self,
        settings: NotifySettings,
        board: Board,
        people: People,
        report: Callable[[str], object],
        clock: Callable[[], float] = time.time,
        *,
        buttons: DesktopButtons | None = None,
        push: PhonePush | None = None,
    ) -> None:
        """`report` gets a description of a problem, or an empty text once notifications work again."""
        self._buttons = buttons
        self._push = push
        self._settings = settings
        self._board = board
        self._people = people
        self._report = report
        self._notifications = PendingNotifications(settings, clock)
        self._stalled: dict[str, StallNews] = {}
        """Runs that have stalled since the last check."""
        self._alarmed: dict[str, None] = {}
        """Calls with alarms that nobody was notified about, oldest first."""
        self._phones: dict[tuple[str, PhoneChange, bool], PhoneChanged] = {}
        """Changes of phones of which nobody was notified; of several alike, of one phone, the newest."""
        self._failed: dict[str, str] = {}
        self._deliveries: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Check every second whether a notification is due."""
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop, and end the programs that are still running."""
        tasks = [task for task in (self._task, *self._deliveries) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._buttons is not None:
            await self._buttons.close()

    def on_event(self, event: Event) -> None:
        """Note that a call has changed."""
        if isinstance(event, AlarmRaised):
            self._alarmed[event.call_id] = None
        if isinstance(event, PhoneChanged):
            # A key that signs in all night is one notification in the morning.
            self._phones[event.device_id, event.change, event.signed_in] = event
        if call_id := getattr(event, "call_id", None):
            self._notifications.changed(call_id, self._board.calls.get(call_id))
            if self._buttons is not None:
                self._buttons.changed(call_id)

    def stalled(self, news: Mapping[str, StallNews]) -> None:
        """Note that runs, by their calls, have stalled."""
        self._stalled.update(news)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.look()

    def look(self) -> None:
        """Notify if anything is due."""
        self._notifications.do_not_disturb = self._people.muted
        away, calls = not self._people.somebody, self._board.calls
        due = [calls[call_id] for call_id in self._notifications.due(away=away) if call_id in calls]
        if due:
            self._notify(waiting_text(due, self._board), notification_json(due, self._board), due)
        self._look_at_alarms()
        self._look_at_phones()
        # As in a cockpit, a run that stalled while somebody was there is not reported later.
        found, self._stalled = self._stalled, {}
        for news in STALL_NEWS:
            stalled = [calls[call_id] for call_id in found if found[call_id] == news and call_id in self._board.running]
            if stalled and self._notifications.may_notify(away=away):
                self._notify(stall_text(stalled, self._board, news), notification_json(stalled, self._board, news))

    def _look_at_alarms(self) -> None:
        # Muted, they stay until notifications are on again. Whether somebody is at a cockpit makes no difference.
        if self._alarmed and self._settings.when != "never" and self._notifications.muted is None:
            calls = [record for call_id in self._alarmed if (record := self._board.calls.get(call_id)) is not None]
            self._alarmed.clear()
            if calls:
                self._notify(alarm_text(calls, self._board), notification_json(calls, self._board, "alarm"))

    def _look_at_phones(self) -> None:
        # Like alarms: whoever pairs a phone in somebody else's place may sit at a cockpit.
        if self._phones and self._settings.when != "never" and self._notifications.muted is None:
            for changed in self._phones.values():
                self._notify(phone_sentence(changed), notification_json((), self._board, "phone"))
            self._phones.clear()

    def _notify(self, words: str, content: bytes, waiting: Sequence[CallRecord] = ()) -> None:
        # In separate tasks, because a program or a service may be slow and must not delay the next notification.
        ways = [self._deliver(words, content, waiting)]
        if self._push is not None and waiting:
            ways.append(self._wake_phones(self._push))
        for way in ways:
            task = asyncio.create_task(way)
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)

    async def _wake_phones(self, push: PhonePush) -> None:
        # Of waiting calls alone: of all else the page of a phone shows nothing.
        self._note("Pushes to phones do not arrive", await push.ping())

    async def _deliver(self, words: str, content: bytes, waiting: Sequence[CallRecord]) -> None:
        settings = self._settings
        if self._buttons is not None and waiting:
            self._note("Notifications with buttons do not work", await self._buttons.show(waiting))
        if settings.desktop:
            problem: str | None = "neither notify-send nor osascript is installed"
            if (argv := desktop_program(TITLE, words)) is not None:
                problem = await run_program(argv, b"", DESKTOP_TIMEOUT_S, desktop_environment(os.environ))
            self._note("Desktop notifications do not work", problem)
        if settings.command:
            problem = await run_program(settings.command, content, settings.command_timeout_s)
            self._note(f"The notification program {settings.command[0]} failed", problem)

    def _note(self, what: str, problem: str | None) -> None:
        """Report a failure only once until the channel works again, because every notification would repeat it."""
        if problem == self._failed.get(what):
            return
        if problem:
            self._failed[what] = problem
        else:
            del self._failed[what]
        self._report("; ".join(f"{name}: {why}" for name, why in self._failed.items()))
