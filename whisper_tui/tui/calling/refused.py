"""Tells whoever sits before the cockpit that somebody who may not decide has tried to, and that rules changed."""

from typing import TYPE_CHECKING

from whisper_tui.model.rule_entries import untrusted
from whisper_tui.tui.refused_words import refused_sentence, rules_sentence
from whisper_tui.tui.words import clock_time, count

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

SHOWN_AT_ONCE = 3
"""So many are told one by one; of a flood the rest is counted."""
REMEMBERED_S = 86_400.0
"""How long ago an attempt may be that a cockpit tells when it is opened."""


class RefusedNotices:
    """Knows which attempts were told."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen
        self._opened_at = screen.clock()
        self._told = 0
        self._rules_told = 0

    def look(self) -> bool:
        """Tell what is new. Returns whether anything happened while this cockpit was open."""
        self._look_at_rules()
        fresh = [attempt for attempt in self._screen.board.refused if attempt.seq > self._told]
        if not fresh:
            return False
        self._told = fresh[-1].seq
        earlier = [at.at for at in fresh if self._opened_at - REMEMBERED_S < at.at < self._opened_at]
        if earlier:
            told = count(len(earlier), "attempt to decide was", "attempts to decide were")
            self._warn(f"{told} refused earlier, the last at {clock_time(earlier[-1])}: whisper-tui history refused")
        now = [attempt for attempt in fresh if attempt.at >= self._opened_at]
        for attempt in now[-SHOWN_AT_ONCE:]:
            self._warn(refused_sentence(attempt))
        if len(now) > SHOWN_AT_ONCE:
            self._warn(f"{count(len(now) - SHOWN_AT_ONCE, 'other attempt')} refused: whisper-tui history refused")
        return bool(now)

    def _look_at_rules(self) -> None:
        """Tell what became of the files of rules while this was open, and which allow and do not hold."""
        fresh = sorted(
            (each for each in self._screen.board.rules.values() if each.seq > self._rules_told),
            key=lambda each: each.seq,
        )
        for changed in fresh:
            self._rules_told = changed.seq
            sentence = rules_sentence(changed)
            if sentence is not None and (changed.at >= self._opened_at or untrusted(changed)):
                self._screen.tell(sentence, severity="warning" if changed.by is None else "information")

    def _warn(self, text: str) -> None:
        self._screen.tell(text, severity="error")
