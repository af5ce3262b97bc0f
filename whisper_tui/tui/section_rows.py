"""Tickets in the rows of their sections, and those that wait in each of their groupings at once."""

from collections.abc import Mapping

from whisper_tui.tui.grouped import GroupedTickets
from whisper_tui.tui.listed import Listed
from whisper_tui.tui.ordered import OrderedTickets
from whisper_tui.tui.sections import SECTIONS, Grouping, Section


class SectionRows:
    """All groupings are kept in step, so that choosing another one costs nothing, however many calls wait."""

    def __init__(self, listed: Mapping[int, Listed]) -> None:
        """`listed` tells about every ticket that comes here, until it has gone."""
        self._listed = listed
        self._rows = {section: OrderedTickets() for section in SECTIONS}
        self._grouped: dict[Grouping, GroupedTickets] = {
            "session": GroupedTickets(lambda ticket: listed[ticket].session_id),
            "likeness": GroupedTickets(lambda ticket: listed[ticket].likeness),
        }

    def add(self, ticket: int) -> None:
        """Put a ticket into its section."""
        section = self._listed[ticket].section
        self._rows[section].add(ticket)
        if section == "waiting":
            for grouped in self._grouped.values():
                grouped.add(ticket)

    def discard(self, ticket: int) -> None:
        """Take a ticket out of its section; nothing happens if it is not there."""
        section = self._listed[ticket].section
        self._rows[section].discard(ticket)
        if section == "waiting":
            for grouped in self._grouped.values():
                grouped.discard(ticket)

    def of(self, section: Section, grouping: Grouping = "arrival") -> OrderedTickets | GroupedTickets:
        """The rows of a section; those that wait as they are put together."""
        if section == "waiting" and grouping in self._grouped:
            return self._grouped[grouping]
        return self._rows[section]

    def groups(self, grouping: Grouping) -> GroupedTickets | None:
        """The calls that wait, in their groups. None: they are not grouped."""
        return self._grouped.get(grouping)

    def snapshot(self) -> dict[Section, OrderedTickets]:
        """What is in each section now."""
        return {section: rows.copy() for section, rows in self._rows.items()}
