"""A screen whose commands stand in the footer in the order of their table, whatever keys they have."""

from textual.binding import ActiveBinding
from textual.screen import Screen

from whisper_tui.tui.commands import COMMANDS, SCREENS

_ORDER = {f"cockpit.{command.id}": at for at, command in enumerate(c for t in (COMMANDS, *SCREENS) for c in t)}


class KeyedScreen(Screen[None]):
    """The terminal's library puts commands with another key behind all others."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """What each key does now."""
        found = super().active_bindings
        last = len(_ORDER)
        return dict(sorted(found.items(), key=lambda item: _ORDER.get(item[1].binding.id or "", last)))
