"""The output of one run, as it is read: each stream, and when each byte came."""

from functools import partial

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.times import TimeIndex

STREAMS: tuple[Stream, Stream] = ("out", "err")


class RunOutput:
    """Reads the output of a call through whoever supervises it."""

    def __init__(self, supervision: Supervision, call_id: str) -> None:
        self.call_id = call_id
        self.reads: dict[Stream, ReadOutput] = {
            stream: partial(supervision.read_output, call_id, stream) for stream in STREAMS
        }
        self._timeline = partial(supervision.read_timeline, call_id)

    def times(self) -> TimeIndex:
        """The time index, to be read from its beginning."""
        return TimeIndex(self._timeline)
