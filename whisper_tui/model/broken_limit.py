"""Which limit a run was ended for, in words for a person or an agent."""

from whisper_tui.model.ending import Signalled
from whisper_tui.model.state import CallRecord, Ended


def broken_limit(record: CallRecord) -> str | None:
    """None: it was ended for none."""
    limits = record.limits
    match record.state:
        case Ended(ending=Signalled(limit="cpu")):
            return f"its processor time of {limits.cpu_s} s was used up"
        case Ended(ending=Signalled(limit="memory")):
            return f"all of it together was at its limit of {limits.memory_bytes:,} bytes of memory"
        case Ended(ending=Signalled(limit="processes")):
            return f"it had more than {limits.processes} processes"
        case _:
            return None
