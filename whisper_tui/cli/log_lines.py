"""Lines of the supervisor's log: whatever an error repeats of a command, no secret of it is written down."""

import logging

from whisper_tui.model.masking import masked
from whisper_tui.model.text import visible


class MaskedLines(logging.Formatter):
    """The time, the level, the place and the message, with its traceback where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One entry of the log, without secrets. Only entries begin at the edge: nothing in one can feign another."""
        return visible(masked(super().format(record)), keep_lines=True).replace("\n", "\n  ")
