"""What a tool works with: the way to the supervisor, the session it belongs to, and its limits."""

from dataclasses import dataclass

from whisper_tui.model.call import Session
from whisper_tui.model.port import Supervision

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes of each stream that an answer holds at most."""


@dataclass(frozen=True)
class ToolContext:
    """Shared by the tools of one session."""

    supervision: Supervision
    session: Session
    output_limit: int = OUTPUT_LIMIT
    """Bytes of each stream in an answer; of a longer one the first and the last half."""
