"""What keeps a part of the supervisor from working: into the log once, and to whoever asks for as long as it lasts."""

import logging

from whisper_tui.model.errors import WhisperError

_log = logging.getLogger(__name__)


class Trouble:
    """Why something does not work now, and what to do about it."""

    def __init__(self) -> None:
        self.words: str | None = None
        """None: it works."""
        self._noted = False

    def note(self, error: WhisperError) -> None:
        """It does not work."""
        if self.words is None:
            _log.error("%s", error.sentence())
        self.words = error.sentence()
        self._noted = True

    def over(self) -> None:
        """It works."""
        if self.words is not None:
            _log.info("this is over: %s", self.words)
        self.words = None
        self._noted = False

    def over_unless_noted(self) -> None:
        """It works, if nothing was noted since this was asked last."""
        if not self._noted:
            self.over()
        self._noted = False
