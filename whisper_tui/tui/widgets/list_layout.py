"""Which line of the list shows what: arithmetic over sections, whatever their length."""

from dataclasses import dataclass

from whisper_tui.tui.roster import SECTIONS, Place, Roster, Section

ROW_LINES: dict[Section, int] = {"waiting": 2, "queued": 1, "running": 1, "behind": 1, "ended": 1}


@dataclass(frozen=True)
class Block:
    """A section as lines: its heading, its rows, an empty line."""

    section: Section
    start: int
    """The line of the heading."""
    count: int

    @property
    def end(self) -> int:
        """The line after its last one."""
        return self.start + 2 + max(1, self.count * ROW_LINES[self.section])


@dataclass(frozen=True)
class ListLine:
    """What stands in one line."""

    section: Section
    place: Place | None = None
    """The row of a call. None: a heading, or the words that a section is empty."""
    part: int = 0
    """Which line of the row."""
    heading: bool = False


class ListLayout:
    """The lines of a roster as it is now. Sections without rows are left out, save the waiting one."""

    def __init__(self, roster: Roster) -> None:
        self.blocks: list[Block] = []
        line = 0
        for section in SECTIONS:
            count = roster.count(section)
            if count or section == "waiting":
                block = Block(section, line, count)
                self.blocks.append(block)
                line = block.end
        self.height = max(0, line - 1)
        """Lines of everything."""

    def line_of(self, place: Place) -> int:
        """The first line of a row."""
        for block in self.blocks:
            if block.section == place.section:
                return block.start + 1 + place.row * ROW_LINES[block.section]
        return 0

    def at(self, line: int) -> ListLine | None:
        """What a line shows. None: nothing."""
        for block in self.blocks:
            if not block.start <= line < block.end:
                continue
            if line == block.start:
                return ListLine(block.section, heading=True)
            row, part = divmod(line - block.start - 1, ROW_LINES[block.section])
            if row < block.count:
                return ListLine(block.section, Place(block.section, row), part)
            return ListLine(block.section) if block.count == 0 and line == block.start + 1 else None
        return None
