"""The chain of the journal: each fact is linked to all before it, so that a later change of any of them shows."""

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.errors import InvalidRequest, Unavailable

START = bytes(32)
"""What the first link follows."""


class Head(NamedTuple):
    """The end of a chain: who has noted it can tell later whether anything up to there was changed or taken away."""

    seq: int
    link: bytes

    def text(self) -> str:
        """In a form to note down."""
        return f"{self.seq}:{self.link.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """A head that was noted. Raises `InvalidRequest`."""
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


class Verdict(NamedTuple):
    """What became of a check."""

    head: Head | None
    """The end of what is there. None: there are no facts."""
    events: int
    """How many facts were looked at."""
    problem: str | None
    """What is wrong, in a sentence, with the first fact that is. None: nothing."""


def link(previous: bytes, seq: int, body: str) -> bytes:
    """The link of a fact: SHA-256 over the link before it, its number and its text."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + body.encode("utf-8", "surrogatepass")).digest()


Row = tuple[int, str, bytes | None]
"""Number, text and link of a fact."""


def check(rows: Iterable[Row], noted: Head | None = None) -> Verdict:
    """Follow the chain over all facts, oldest first."""
    previous, expected, events = START, 1, 0
    head: Head | None = None
    for seq, body, stored in rows:
        if seq != expected:
            return Verdict(head, events, f"{_missing(expected, seq - 1)} taken out of the journal")
        previous = link(previous, seq, body)
        if stored != previous:
            return Verdict(head, events, f"event {seq} was changed, or something before it: {_about(body)}")
        events, expected, head = events + 1, seq + 1, Head(seq, previous)
        if noted is not None and noted.seq == seq and noted.link != previous:
            return Verdict(head, events, f"the journal up to event {seq} is another one than was noted")
    if noted is not None and (head is None or head.seq < noted.seq):
        ends = head.seq if head else 0
        return Verdict(head, events, f"the journal was noted up to event {noted.seq} and ends at {ends}")
    return Verdict(head, events, None)


def check_file(path: Path, noted: Head | None = None) -> Verdict:
    """Check the journal in a file, which nothing is written to. Raises `Unavailable`."""
    if not path.exists():
        raise Unavailable(f"there is no journal {path}", hint="Choose another --home")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)
        try:
            return check(db.execute("SELECT seq, body, link FROM events ORDER BY seq"), noted)
        finally:
            db.close()
    except sqlite3.Error as error:
        raise Unavailable(f"the journal {path} cannot be read: {error}") from error


def _missing(first: int, last: int) -> str:
    return f"event {first} was" if first == last else f"the events {first} to {last} were"


def _about(body: str) -> str:
    return body if len(body) <= 200 else body[:200] + "…"
