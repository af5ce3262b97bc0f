"""Tells whoever sits before the cockpit that a sandbox has kept a command from something."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from whisper_tui.model.state import Ended
from whisper_tui.tui.sandbox_text import blocked_sentence
from whisper_tui.tui.words import count

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

SHOWN_AT_ONCE = 2
"""So many are told one by one; the rest is counted, and marked in the list."""


class BlockedNotices:
    """Knows which calls were told."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen
        self._opened_at = screen.clock()
        self._told: set[str] = set()

    def changed(self, call_ids: Iterable[str]) -> None:
        """Tell which of these calls were blocked since the cockpit was opened."""
        calls = self._screen.board.calls
        fresh = []
        for call_id in call_ids:
            record = calls.get(call_id)
            if record is None:
                self._told.discard(call_id)
            elif isinstance(record.state, Ended) and record.blocked is not None and call_id not in self._told:
                self._told.add(call_id)
                if record.state.at >= self._opened_at:
                    fresh.append(record)
        for record in fresh[-SHOWN_AT_ONCE:]:
            self._screen.tell(blocked_sentence(record), severity="warning")
        if (others := len(fresh) - SHOWN_AT_ONCE) > 0:
            self._screen.tell(f"The sandbox blocked {count(others, 'other call')} as well.", severity="warning")
