"""What the terminal of a run has shown: its output, drawn by an emulator as far as there is time."""

import time
from bisect import bisect_right
from functools import partial

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputChunk, TerminalSize
from whisper_tui.tui.output.emulator import Emulator

LOOKED_BACK = 64 * 1024
"""Bytes before the end that are drawn when a terminal is first looked at."""
BEHIND = 256 * 1024
"""Bytes not yet drawn after which the terminal goes on near the end."""
READ = 16 * 1024
SLICE = 2048
"""Bytes drawn between two looks at the clock."""
BUDGET_S = 0.006
"""How long drawing may take before keys get their turn."""


class TerminalFeed:
    """Reads the output of one run into an emulator."""

    def __init__(self, supervision: Supervision, call_id: str, size: tuple[int, int], *, recorded: bool) -> None:
        """`size`: lines and columns. `recorded`: those that the terminal had at the time are taken instead."""
        self.emulator = Emulator(*size)
        self.recorded = recorded
        self.live = False
        """Whether what comes next is new, so that a question in it waits for its answer."""
        self.stream_size = 0
        self.ended = False
        self._read = partial(supervision.read_output, call_id, "out")
        self._read_sizes = partial(supervision.terminal_sizes, call_id)
        self._sizes: tuple[TerminalSize, ...] = ()
        self._offset: int | None = None
        self._answers = b""

    @property
    def begun(self) -> bool:
        """Whether anything was read."""
        return self._offset is not None

    def resize(self, size: tuple[int, int]) -> None:
        """Have another size, in lines and columns, if the size is not that of the time."""
        if not self.recorded:
            self.emulator.resize(*size)

    def take_answers(self) -> bytes:
        """What the command has asked its terminal since this was called last, answered; never for what is old."""
        answers, self._answers = self._answers, b""
        return answers

    async def advance(self) -> bool:
        """Draw what was written since, as much as there is time for. Whether anything has changed."""
        if self._offset is None:
            self._offset = max(0, (await self._read(0, 0)).size - LOOKED_BACK)
        if self.recorded and not self.ended:
            self._sizes = await self._read_sizes()
        until = time.perf_counter() + BUDGET_S
        changed = False
        while True:
            chunk = await self._read(self._offset, READ)
            changed = changed or (chunk.size, chunk.ended) != (self.stream_size, self.ended)
            self.stream_size, self.ended = chunk.size, chunk.ended
            if chunk.size - chunk.next_offset > BEHIND:
                self._offset, self.live = chunk.size - LOOKED_BACK, False
                continue
            if not chunk.data:
                self.live = True
                return self._fit(chunk.size) or changed
            self._offset = self._draw(chunk, until)
            changed = True
            if time.perf_counter() >= until:
                return True

    def _draw(self, chunk: OutputChunk, until: float) -> int:
        """Draw from a chunk until that time. Returns the offset of the next byte."""
        at = 0
        while at < len(chunk.data) and time.perf_counter() < until:
            self._fit(chunk.start + at)
            step = min(SLICE, self._same_size(chunk.start + at))
            self.emulator.feed(chunk.data[at : at + step])
            at += step
        answers = self.emulator.take_replies()
        if self.live:
            self._answers += answers
        return chunk.start + min(at, len(chunk.data))

    def _fit(self, offset: int) -> bool:
        """Have the size that the terminal had at a byte. Whether it is another one."""
        sizes = self._sizes[: self._sizes_until(offset)]
        before = self.emulator.size
        if sizes:
            self.emulator.resize(sizes[-1].rows, sizes[-1].columns)
        return before != self.emulator.size

    def _same_size(self, offset: int) -> int:
        """How many bytes from there on have the size of the first."""
        later = self._sizes[self._sizes_until(offset) :]
        return later[0].start - offset if later else SLICE

    def _sizes_until(self, offset: int) -> int:
        return bisect_right(self._sizes, offset, key=_start)


def _start(size: TerminalSize) -> int:
    return size.start
