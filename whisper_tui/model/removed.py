"""Whether what a run printed is still there: the journal knows how much it was, the files what is left."""

from typing import get_args

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended


async def output_was_removed(supervision: Supervision, record: CallRecord) -> bool:
    """Whether the files of a run that is over hold less than was there when it was answered."""
    if not isinstance(record.state, Ended) or not record.state.settled:
        return False
    for stream in get_args(Stream):
        told: int = getattr(record.state.output, stream)
        if told and (await supervision.read_output(record.id, stream, 0, 0)).size < told:
            return True
    return False
