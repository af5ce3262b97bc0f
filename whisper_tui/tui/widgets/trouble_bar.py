"""A line over everything while something keeps the supervisor from working."""

from collections.abc import Callable
from contextlib import suppress

from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.text import visible

LOOK_EVERY_S = 1.0


class TroubleBar(Static):
    """Says what it is and what can be done, for as long as it lasts.

    It asks, instead of following events: what breaks may be the journal, which has to take an event first.
    """

    def __init__(self, supervision: Callable[[], Supervision]) -> None:
        """`supervision`: the connection that there is now."""
        super().__init__()
        self._supervision = supervision
        self._looking = False

    def on_mount(self) -> None:
        """Look at once, and ever again."""
        self.display = False
        self._look()
        self.set_interval(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self.run_worker(self._ask())

    async def _ask(self) -> None:
        problem = None
        try:
            # Where there is no connection, another line tells of it.
            with suppress(WhisperError):
                problem = (await self._supervision().status()).problem
        finally:
            self._looking = False
        self.display = problem is not None
        if problem is not None:
            self.update(Content(f"✘ The supervisor cannot work as it should: {visible(problem)}"))
