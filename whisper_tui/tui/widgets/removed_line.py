"""Says that what a run printed is no longer on the disk: empty panes would say that it printed nothing."""

from contextlib import suppress

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.removed import output_was_removed
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.spans import Span
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.words import REMOVED


class RemovedLine(LineView):
    """Not displayed where all is there."""

    def of(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Look whether the output of this call is still there. None: there is no call."""
        self.display = False
        self.workers.cancel_group(self, "look")
        if record is not None:
            self.run_worker(self._look(supervision, record), group="look")

    async def _look(self, supervision: Supervision, record: CallRecord) -> None:
        with suppress(WhisperError):
            self.display = await output_was_removed(supervision, record)
            self.show((Span(f" {REMOVED}", "risk"),))
