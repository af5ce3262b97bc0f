"""A screen of the cockpit: what a key changes is drawn at once, and commands stand in the footer in their order."""

import time

from textual.binding import ActiveBinding
from textual.screen import Screen

from whisper_tui.tui.commands import COMMANDS, SCREENS

_ORDER = {f"cockpit.{command.id}": at for at, command in enumerate(c for t in (COMMANDS, *SCREENS) for c in t)}


HASTE_S = 0.1
"""For how long after a key all that changes is taken for its effect."""


class KeyedScreen(Screen[None]):
    """The terminal's library has a key wait for a frame or two, and puts remapped commands behind all others."""

    _hasty_until = 0.0

    def hasten(self) -> None:
        """Somebody has pressed a key and looks for its effect."""
        self._hasty_until = time.monotonic() + HASTE_S

    def on_idle(self) -> None:
        """Everything that the key has changed so far is known: draw it, and do not wait for the next frame."""
        if time.monotonic() < self._hasty_until:
            self._on_timer_update()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """What each key does now."""
        found = super().active_bindings
        last = len(_ORDER)
        return dict(sorted(found.items(), key=lambda item: _ORDER.get(item[1].binding.id or "", last)))
