"""The hash chain of the journal: a link for each event covers all events before it (decision 2)."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from whisper_tui.model.errors import InvalidRequest

START = bytes(32)
"""Predecessor of the first link."""


class Head(NamedTuple):
    """The end of a chain. A copy of it, kept elsewhere, proves later that nothing before it was changed or removed."""

    seq: int
    link: bytes

    def text(self) -> str:
        """The head as text, to be kept elsewhere."""
        return f"{self.seq}:{self.link.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Parse the text of a head. Raises `InvalidRequest`."""
        number, _, digits = text.partition(":")
        try:
            head = cls(int(number), bytes.fromhex(digits))
        except ValueError:
            head = cls(0, b"")
        if head.seq < 1 or len(head.link) != len(START):
            raise InvalidRequest(
                f"{text!r} is no end of a journal", hint="Use what whisper-tui history verify has printed"
            )
        return head


class ChainCheck(NamedTuple):
    """Result of a check."""

    head: Head | None
    """The end of the chain. None: there are no events."""
    events: int
    """Number of events that were checked."""
    problem: str | None
    """The first problem, in a sentence. None: the chain is intact."""


def link(previous: bytes, seq: int, body: str) -> bytes:
    """Return the link of an event: SHA-256 over the link before it, its number and its text."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + body.encode("utf-8", "surrogatepass")).digest()


Row = tuple[int, str, bytes | None]
"""Number, text and link of an event."""


def check(rows: Iterable[Row], noted: Head | None = None) -> ChainCheck:
    """Check the chain over all events, oldest first."""
    previous, expected, events = START, 1, 0
    head: Head | None = None
    for seq, body, stored in rows:
        if seq != expected:
            return ChainCheck(head, events, f"{_missing(expected, seq - 1)} taken out of the journal")
        previous = link(previous, seq, body)
        if stored != previous:
            return ChainCheck(head, events, f"event {seq} was changed, or something before it: {_about(body)}")
        events, expected, head = events + 1, seq + 1, Head(seq, previous)
        # A journal that was rewritten as a whole has an intact chain; only a head that was noted elsewhere exposes it.
        if noted is not None and noted.seq == seq and noted.link != previous:
            return ChainCheck(head, events, f"the journal up to event {seq} is another one than was noted")
    if noted is not None and (head is None or head.seq < noted.seq):
        ends = head.seq if head else 0
        return ChainCheck(head, events, f"the journal was noted up to event {noted.seq} and ends at {ends}")
    return ChainCheck(head, events, None)


def _missing(first: int, last: int) -> str:
    return f"event {first} was" if first == last else f"the events {first} to {last} were"


def _about(body: str) -> str:
    return body if len(body) <= 200 else body[:200] + "…"
