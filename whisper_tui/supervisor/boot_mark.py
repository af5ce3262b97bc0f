"""Which boot of the machine the last command was started in: what was left unfinished then is over since."""

from contextlib import suppress
from pathlib import Path

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.processes import boot_id


class BootMark:
    """A file beside the attempts that holds the id of a boot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.now = ""
        """This boot."""
        self.before = ""
        """The boot in which the last command was started. Empty: nothing was ever started."""

    def read(self) -> None:
        """Find out both."""
        self.now = boot_id()
        with suppress(OSError):
            self.before = self._path.read_text().strip()

    def note(self) -> None:
        """Before the first start, so that what is attached until then is judged by the boot in which it was started."""
        if self.before != self.now:
            layout.write_whole(str(self._path), self.now.encode(), durable=True)
            self.before = self.now
