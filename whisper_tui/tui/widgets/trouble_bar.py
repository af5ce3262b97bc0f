"""A line over everything while something keeps the supervisor from working, or an agent goes past it."""

from collections.abc import Callable
from contextlib import suppress

from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision, SupervisorStatus
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
        said = None
        try:
            # Where there is no connection, another line tells of it.
            with suppress(WhisperError):
                said = _said(await self._supervision().status())
        finally:
            self._looking = False
        self.display = said is not None
        if said is not None:
            self.update(Content(said))


def _said(status: SupervisorStatus) -> str | None:
    """What there is to say. None: all is well."""
    if status.problem is not None:
        return f"✘ The supervisor cannot work as it should: {visible(status.problem)}"
    if not status.unguarded:
        return None
    first, *others = status.unguarded
    return f"✘ {visible(first)}" + (f" (and {len(others)} more: whisper-tui status)" if others else "")
