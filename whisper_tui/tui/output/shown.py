"""What a pane needs of a place in output: the rows on the screen, and the ways to move."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.rows import CHUNK, Row

DRAWN = 2 * CHUNK
"""Bytes of a row that are drawn, the last ones: of a progress bar, what it shows now."""


class Shown(NamedTuple):
    """A row on the screen."""

    stream: Stream
    row: Row
    data: bytes
    """What is drawn of it."""
    grows: bool
    """Whether more of it may come."""


Measure = Callable[[Shown], int]
"""How many lines of the screen a row takes, at least one."""


def one_line(_: Shown) -> int:
    """Rows that are not wrapped."""
    return 1


class View(Protocol):
    """What a pane needs of a place in output. Moves stop following on the way up and begin it again at the end."""

    height: int
    measure: Measure
    following: bool
    """Whether the end is kept on the screen as output grows."""
    skip: int
    """Lines of the first row that are above the screen."""

    @property
    def size(self) -> int:
        """Bytes there are so far."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing more can come."""
        ...

    @property
    def complete(self) -> bool:
        """Whether nothing can change any more."""
        ...

    @property
    def dropped_before_top(self) -> bool:
        """Whether bytes directly before the screen were not kept."""
        ...

    @property
    def extent(self) -> tuple[int, int]:
        """How many bytes come before the screen, and how many before its end."""
        ...

    @property
    def place(self) -> dict[Stream, int]:
        """How much of each stream comes before the screen."""
        ...

    def shown(self) -> list[Shown]:
        """The rows on the screen."""
        ...

    def before(self, stream: Stream) -> bytes:
        """Some of what a stream wrote before the screen: it may have switched a colour on."""
        ...

    async def poll(self) -> bool:
        """Look for growth. Whether anything may have to be drawn again."""
        ...

    async def resize(self, height: int) -> None:
        """Show another number of lines, or lines that are measured anew."""
        ...

    async def scroll(self, count: int) -> None:
        """Move down by so many lines, or up."""
        ...

    async def to_start(self) -> None:
        """Show the beginning."""
        ...

    async def to_end(self) -> None:
        """Show the end, and follow it."""
        ...

    async def hold(self) -> None:
        """Stay where it is while output grows."""
        ...

    async def to_fraction(self, fraction: float) -> None:
        """Show the row at that part of the output, from 0 to 1."""
        ...

    async def to_offset(self, stream: Stream, offset: int) -> Shown | None:
        """Hold still with the row that holds this byte at the top. Returns that row."""
        ...
