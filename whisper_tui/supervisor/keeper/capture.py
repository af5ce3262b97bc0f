"""Carrying what a command prints from its pipes or its terminal into files, with the time of its arrival."""

import errno
import os
import select
import time
from typing import Any

from whisper_tui.supervisor.keeper import channels, layout
from whisper_tui.supervisor.keeper.output import StreamFile
from whisper_tui.supervisor.keeper.sizes import Sizes
from whisper_tui.supervisor.keeper.timeline import Timeline

IN_A_ROW = 16
"""Chunks moved from one stream before the others get their turn."""
QUIET_S = 0.02
"""A terminal hands its bytes over a moment after they were written: quiet for so long, it has no more."""


class Source:
    """One stream on its way into its file."""

    def __init__(self, fd: int, number: int, file: StreamFile, *, is_terminal: bool) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.number = number
        self.file = file
        self.is_terminal = is_terminal
        self.open = True
        self.paused = False
        """Nobody has the terminal open now; somebody may open it again."""


class Capture:
    """The streams of one run. `poll` is told which descriptors to watch."""

    def __init__(self, directory: str, spec: dict[str, Any], poll: Any) -> None:
        limit, free = spec["max_bytes"], spec["min_free"]
        self._poll = poll
        self._files = [StreamFile(os.path.join(directory, layout.OUT), limit, free)]
        self._files.append(StreamFile(os.path.join(directory, layout.ERR), limit, free))
        self.timeline = Timeline(os.path.join(directory, layout.INDEX))
        self._sizes = Sizes(os.path.join(directory, layout.SIZES), (channels.ROWS, channels.COLUMNS))
        self._sources: dict[int, Source] = {}

    def add(self, fd: int, number: int, *, is_terminal: bool = False) -> None:
        """Take over a descriptor to read stream `number` (0: out, 1: err) from."""
        self._sources[fd] = Source(fd, number, self._files[number], is_terminal=is_terminal)
        self._poll.register(fd, select.POLLIN)

    @property
    def at_end(self) -> bool:
        """Whether nobody can write any more."""
        return not self._sources

    @property
    def paused(self) -> bool:
        """Whether a terminal is open nowhere at the moment."""
        return any(source.paused for source in self._sources.values())

    def has(self, fd: int) -> bool:
        """Whether a descriptor is one of the streams."""
        return fd in self._sources

    def pump(self, fd: int) -> bool:
        """Move what has arrived on one stream. Returns whether there may be more already."""
        source = self._sources[fd]
        for _ in range(IN_A_ROW):
            try:
                count = source.file.take(fd)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno != errno.EIO or not source.is_terminal:
                    raise
                self._pause(source)
                return False
            if not count:
                self._close(source)
                return False
            self.timeline.note(source.number, count)
        return True

    def resize(self, fd: int, rows: int, columns: int) -> None:
        """Give a terminal another size, and note after how much of its output."""
        source = self._sources.get(fd)
        if source is not None and not source.paused:
            self.pump(fd)
        if fd in self._sources and channels.set_size(fd, rows, columns):
            self._sizes.note(rows, columns, self.totals[0])

    def drain(self, seconds: float) -> None:
        """Move all that was written before this moment, for so many seconds at most."""
        deadline = time.monotonic() + seconds
        self.resume()
        for source in list(self._sources.values()):
            while not source.paused and time.monotonic() < deadline:
                if source.fd not in self._sources or self.pump(source.fd):
                    continue
                if not source.is_terminal or source.paused or not _arrives(source.fd):
                    break

    def resume(self) -> None:
        """Look again whether somebody has opened the terminal."""
        for source in self._sources.values():
            if source.paused:
                source.paused = False
                self._poll.register(source.fd, select.POLLIN)

    def close_sources(self) -> None:
        """Read no more, whoever may still hold the other end."""
        for source in list(self._sources.values()):
            self._close(source)

    def latest(self, number: int) -> bytes:
        """The end of what has arrived of a stream (0: out, 1: err)."""
        return self._files[number].latest

    def retry(self) -> None:
        """Try to write what a full disk has not taken."""
        for file in self._files:
            file.retry()

    def finish(self) -> None:
        """Nothing comes any more: write what could not be written so far."""
        self.retry()
        self._sizes.flush()
        if self.timeline.dirty:
            self.timeline.flush()

    def close(self) -> None:
        """Let go of all descriptors."""
        self.close_sources()
        for file in self._files:
            file.close()
        self.timeline.close()
        self._sizes.close()

    @property
    def totals(self) -> tuple[int, int]:
        """Bytes of the two streams so far."""
        return self._files[0].total, self._files[1].total

    @property
    def dropped(self) -> tuple[int, int]:
        """Bytes of the two streams that are not kept."""
        return self._files[0].total - self._files[0].kept, self._files[1].total - self._files[1].kept

    @property
    def uncounted(self) -> bool:
        """Whether the files do not even show how much there was."""
        return any(file.uncounted for file in self._files)

    def _pause(self, source: Source) -> None:
        source.paused = True
        self._poll.unregister(source.fd)

    def _close(self, source: Source) -> None:
        del self._sources[source.fd]
        if not source.paused:
            self._poll.unregister(source.fd)
        os.close(source.fd)


def _arrives(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(int(QUIET_S * 1000)))
