"""Toasts of the cockpit: first hints, calls that their sandbox blocked, refused attempts and changed rules."""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Literal, get_args
from urllib.parse import quote

from textual.widget import Widget

from whisper_tui.model.event import untrusted_entries
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.present.phone_notices import phone_sentence, yes_sentence
from whisper_tui.present.quantities import clock_time, count
from whisper_tui.present.security_text import alarm_sentence, blocked_sentence, refused_sentence, rules_sentence
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Keymap, in_force

Hint = Literal["undo", "terminal", "always-allow"]
HINTS: tuple[Hint, ...] = get_args(Hint)
SHOWN_S = 12.0


def hint_text(hint: Hint, keys: Keymap) -> str:
    """Return the text of a hint with the keys in force; empty if its key was taken away."""
    undo, terminal, always = (keys.by_id(id_).key_name for id_ in ("undo", "terminal", "approval-reach"))
    match hint:
        case "undo":
            return f"{undo} undoes what was done here last: an approval, also after its countdown." if undo else ""
        case "terminal":
            return f"{terminal} types into the terminal of this command; Ctrl+] comes back." if terminal else ""
        case "always-allow":
            what = f"{always} {always} chooses to save the rule that the card offers, when you approve this call"
            return f"{what}; {undo} takes that back." if always else ""


class FirstHints:
    """Shows each hint the first time that it is about what is on the screen."""

    def __init__(self, known: Collection[str] = HINTS, remember: Callable[[str], object] | None = None) -> None:
        """`known` were shown before; `remember` keeps a hint among them."""
        self._known = set(known)
        self._keeps = remember is not None
        self._remember = remember or (lambda _hint: None)
        self._next_at = 0.0

    def has(self, hint: Hint) -> bool:
        """True if a hint was not shown yet."""
        return hint not in self._known

    def first(self, name: str) -> bool:
        """True the first time that something is offered once; never where that cannot be remembered."""
        word = quote(name, safe="/:")
        if word in self._known or not self._keeps:
            return False
        self._known.add(word)
        self._remember(word)
        return True

    def about(self, widget: Widget, record: CallRecord, *, offers_rule: bool) -> None:
        """Show a hint about the selected call, if there is one that was not shown."""
        if offers_rule:
            self.show(widget, "always-allow")
        if record.spec.tty and isinstance(record.state, Running):
            self.show(widget, "terminal")

    def show(self, widget: Widget, hint: Hint) -> None:
        """Show a hint as a toast, unless it was shown before or another one is on the screen."""
        if not self.has(hint) or time.monotonic() < self._next_at:
            return
        if not (text := hint_text(hint, in_force(widget.app))):
            return
        self._known.add(hint)
        self._next_at = time.monotonic() + SHOWN_S
        self._remember(hint)
        widget.notify(text, title="Hint", timeout=SHOWN_S, markup=False)


BLOCKED_SHOWN = 2
"""Blocked calls that get a toast each; of further ones only the number is shown, and the list marks them."""
BLOCKED_FORGOTTEN_S = 10.0
"""Seconds after which a further call gets a toast again: that long, a toast is shown."""
GATHERED_S = 0.25
"""Seconds for which further calls are counted before their number is shown."""


class BlockedNotices:
    """Reports each call that was blocked while the cockpit is open, once."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit
        self._opened_at = cockpit.clock()
        self._reported: set[str] = set()
        self._shown_at: list[float] = []
        self._others = 0

    def changed(self, call_ids: Iterable[str]) -> None:
        """Report those of these calls that were blocked since the cockpit was opened."""
        calls = self._cockpit.board.calls
        for call_id in call_ids:
            record = calls.get(call_id)
            if record is None:
                # The board has forgotten the call, so its id cannot come again.
                self._reported.discard(call_id)
            elif isinstance(record.state, Ended) and record.blocked is not None and call_id not in self._reported:
                self._reported.add(call_id)
                # A new connection sends the ended calls of the past as well.
                if record.state.at >= self._opened_at:
                    self._report(record)

    def _report(self, record: CallRecord) -> None:
        now = self._cockpit.clock()
        self._shown_at = [at for at in self._shown_at if now - at < BLOCKED_FORGOTTEN_S]
        if len(self._shown_at) < BLOCKED_SHOWN:
            self._shown_at.append(now)
            self._cockpit.tell(blocked_sentence(record), severity="warning")
            return
        self._others += 1
        if self._others == 1:
            self._cockpit.screen.set_timer(GATHERED_S, self._tell_others)

    def _tell_others(self) -> None:
        others, self._others = self._others, 0
        self._cockpit.tell(f"The sandbox blocked {count(others, 'other call')} as well.", severity="warning")


class AlarmNotices:
    """Reports each alarm of a call once: those before the cockpit was opened together."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit
        self._opened_at = cockpit.clock()
        self._reported: dict[str, int] = {}

    def changed(self, call_ids: Iterable[str]) -> list[CallRecord]:
        """Report the new alarms of these calls. Returns those with an alarm since the cockpit was opened."""
        fresh = [record for call_id in call_ids if (record := self._with_news(call_id)) is not None]
        now = [record for record in fresh if record.alarms[-1].at >= self._opened_at]
        earlier = [each for each in fresh if self._opened_at - REPORTED_AGE_S < each.alarms[-1].at < self._opened_at]
        if earlier:
            told = count(len(earlier), "alarm was", "alarms were")
            self._warn(f"{told} raised earlier, the last about call {earlier[-1].id}")
        for record in now[-ALARMS_SHOWN:]:
            self._warn(alarm_sentence(record))
        if len(now) > ALARMS_SHOWN:
            self._warn(f"{count(len(now) - ALARMS_SHOWN, 'other alarm')}: its calls are marked !")
        return now

    def _with_news(self, call_id: str) -> CallRecord | None:
        """Return a call whose newest alarm was not reported. None: there is none, or it no longer holds."""
        record = self._cockpit.board.calls.get(call_id)
        if record is None:
            self._reported.pop(call_id, None)
            return None
        if len(record.alarms) <= self._reported.get(call_id, 0):
            return None
        self._reported[call_id] = len(record.alarms)
        return record if record.alarm is not None else None

    def _warn(self, text: str) -> None:
        self._cockpit.tell(text, severity="error")


ALARMS_SHOWN = 3
"""Alarms that get a toast each; of further ones only the number is shown."""
ATTEMPTS_SHOWN = 3
"""Attempts that get a toast each; of further ones only the number is shown."""
REPORTED_AGE_S = 86_400.0
"""The oldest refused attempts that a cockpit reports when it opens."""


class RefusedNotices:
    """Reports each refused attempt to decide, and each change of rules, once."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit
        self._opened_at = cockpit.clock()
        self._reported = 0
        self._rules_told = 0

    def look(self) -> bool:
        """Report what is new. Returns True if an attempt was refused while this cockpit was open."""
        self._look_at_rules()
        fresh = [attempt for attempt in self._cockpit.board.refused if attempt.seq > self._reported]
        if not fresh:
            return False
        self._reported = fresh[-1].seq
        earlier = [at.at for at in fresh if self._opened_at - REPORTED_AGE_S < at.at < self._opened_at]
        if earlier:
            told = count(len(earlier), "attempt to decide was", "attempts to decide were")
            self._warn(f"{told} refused earlier, the last at {clock_time(earlier[-1])}: whisper-tui history refused")
        now = [attempt for attempt in fresh if attempt.at >= self._opened_at]
        for attempt in now[-ATTEMPTS_SHOWN:]:
            self._warn(refused_sentence(attempt))
        if len(now) > ATTEMPTS_SHOWN:
            self._warn(f"{count(len(now) - ATTEMPTS_SHOWN, 'other attempt')} refused: whisper-tui history refused")
        return bool(now)

    def _look_at_rules(self) -> None:
        """Report changes of rule files while the cockpit is open, and allow rules that are not trusted."""
        fresh = sorted(
            (each for each in self._cockpit.board.rules.values() if each.seq > self._rules_told),
            key=lambda each: each.seq,
        )
        for changed in fresh:
            self._rules_told = changed.seq
            sentence = rules_sentence(changed)
            if sentence is not None and (changed.at >= self._opened_at or untrusted_entries(changed)):
                self._cockpit.tell(sentence, severity="warning" if changed.by is None else "information")

    def _warn(self, text: str) -> None:
        self._cockpit.tell(text, severity="error")


class PhoneNotices:
    """Reports each yes of a phone as soon as it can be withdrawn, and what happens to phones."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit
        self._opened_at = cockpit.clock()
        self._reported = 0
        self._promised: dict[str, float] = {}

    def look(self) -> None:
        """Report what is new."""
        board, now = self._cockpit.board, self._cockpit.clock()
        fresh = sorted((each for each in board.phones.values() if each.seq > self._reported), key=lambda each: each.seq)
        for changed in fresh:
            self._reported = changed.seq
            # A phone that has to be confirmed again is news to everybody who opens a cockpit.
            if changed.at >= self._opened_at or changed.change == "doubted":
                self._cockpit.tell(phone_sentence(changed), severity="warning")
        promised = {
            record.id: record.pending_yes.until
            for call_id in board.promised
            if (record := board.calls.get(call_id)) is not None and record.pending_yes is not None
        }
        key = in_force(self._cockpit.screen.app).by_id("undo").key_name
        for call_id, until in promised.items():
            if self._promised.get(call_id) != until:
                self._cockpit.tell(yes_sentence(board.calls[call_id], now, key), severity="warning")
        self._promised = promised
