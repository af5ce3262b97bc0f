"""Which line of the list shows what: arithmetic over sections, whatever their length."""

from dataclasses import dataclass

from whisper_tui.tui.grouped import Group
from whisper_tui.tui.roster import Roster
from whisper_tui.tui.sections import SECTIONS, Place, Section


@dataclass(frozen=True)
class Block:
    """A section as lines: its heading, its rows, an empty line."""

    section: Section
    start: int
    """The line of the heading."""
    count: int
    row_lines: int
    """Lines of each row."""
    groups: int
    """Headings of groups among the rows."""

    @property
    def end(self) -> int:
        """The line after its last one."""
        return self.start + 2 + max(1, self.count * self.row_lines + self.groups)


@dataclass(frozen=True)
class ListLine:
    """What stands in one line."""

    section: Section
    place: Place | None = None
    """The row of a call. None: a heading, or the words that a section is empty."""
    part: int = 0
    """Which line of the row."""
    heading: bool = False
    group: Group | None = None
    """The group of which this is the heading."""


class ListLayout:
    """The lines of a roster as it is now. Sections without rows are left out, save the waiting one."""

    def __init__(self, roster: Roster, waiting_lines: int = 2) -> None:
        """`waiting_lines`: lines of a row that waits."""
        self.blocks: list[Block] = []
        self._groups = roster.groups
        self._waiting_lines = waiting_lines
        line = 0
        for section in SECTIONS:
            count = roster.count(section)
            if count or section == "waiting":
                groups = self._groups.groups if self._groups is not None and section == "waiting" else 0
                block = Block(section, line, count, self.row_lines(section), groups)
                self.blocks.append(block)
                line = block.end
        self.height = max(0, line - 1)
        """Lines of everything."""

    def row_lines(self, section: Section) -> int:
        """Lines of a row of a section."""
        return self._waiting_lines if section == "waiting" else 1

    def line_of(self, place: Place) -> int:
        """The first line of a row."""
        for block in self.blocks:
            if block.section == place.section:
                headings = self._groups.headings_through(place.row) if block.groups and self._groups else 0
                return block.start + 1 + place.row * block.row_lines + headings
        return 0

    def headings_above(self, place: Place) -> int:
        """How many headings stand directly above a row."""
        section = 1 if place.row == 0 else 0
        if self._groups is None or place.section != "waiting":
            return section
        first = place.row == 0 or self._groups.group_at(place.row) is not self._groups.group_at(place.row - 1)
        return section + (1 if first else 0)

    def at(self, line: int) -> ListLine | None:
        """What a line shows. None: nothing."""
        for block in self.blocks:
            if not block.start <= line < block.end:
                continue
            if line == block.start:
                return ListLine(block.section, heading=True)
            if block.groups and line < block.end - 1:
                return self._grouped(block, line - block.start - 1)
            row, part = divmod(line - block.start - 1, block.row_lines)
            if row < block.count:
                return ListLine(block.section, Place(block.section, row), part)
            return ListLine(block.section) if block.count == 0 and line == block.start + 1 else None
        return None

    def _grouped(self, block: Block, line: int) -> ListLine | None:
        if self._groups is None or not len(self._groups):
            return None
        group, row, part = self._groups.at_line(line, block.row_lines)
        if row is None:
            return ListLine(block.section, group=group)
        return ListLine(block.section, Place(block.section, row), part) if row < block.count else None
