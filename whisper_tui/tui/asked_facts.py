"""Facts that the supervisor is asked for while the call that they are about is on the screen."""

from collections.abc import Callable
from contextlib import suppress

from textual.css.query import NoMatches

from whisper_tui.tui.cockpit_context import CockpitContext


class AskedFacts:
    """Asks for facts about the call on the screen, and draws it again once they are known."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        """`changed` draws the call again."""
        self._cockpit = cockpit
        self._changed = changed
        self._asked_at = float("-inf")
        self.asking = False
        """True until the supervisor has answered, and its answer is laid out."""

    def _answered(self) -> None:
        self.asking = False
        self._asked_at = self._cockpit.clock()

    def _draw(self) -> None:
        # Widgets go one after the other when the cockpit closes, and this may still be on its way then.
        with suppress(NoMatches):
            self._changed()
