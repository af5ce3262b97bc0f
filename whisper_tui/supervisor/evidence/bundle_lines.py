"""The lines of an evidence file, one JSON object each, and their one spelling (decision 41).

A file is an opening, the events that are shown or left out, recorded output, and an end with a digest of all before it.
Every line has exactly one spelling, so that each byte of a file is one that this program has written or would refuse.
"""

import json
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from whisper_tui.model.call import CallId
from whisper_tui.model.value import Count, Value

VERSION = 1
MOST_LEFT_OUT = 500
"""Events in one line of those that are left out."""
LARGEST_OUTPUT = 16 * 1024 * 1024
"""Bytes of a stream of recorded output that is put into a file whole. A longer one is left out."""
LONGEST_LINE = 96 * 1024 * 1024
"""Bytes of one line: the largest edit that a call can make, with each of its characters escaped twice."""
LARGEST_FILE = 2 * 1024 * 1024 * 1024
"""Bytes of a file that is read."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Salt = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Subject = Annotated[str, Field(max_length=200)]
Number = Annotated[int, Field(ge=1, le=2**53 - 1)]


class Opening(Value):
    """The first line: what the file is about, and the part of the chain that it follows."""

    line: Literal["whisper_tui evidence"] = "whisper_tui evidence"
    version: Literal[1] = 1
    program: Annotated[str, Field(max_length=100)]
    """The version of whisper_tui that has written it."""
    written_at: Count
    """Seconds since the epoch, by the clock of that machine."""
    calls: tuple[CallId, ...]
    sessions: Annotated[tuple[Subject, ...], Field()]
    """Sessions all of whose calls are in it."""
    first: Count
    """The first event of the chain that follows. 0: there is none."""
    before: Digest
    """The link before it."""
    last: Count
    end: Digest
    """The link of the last one."""


class UnlinkedEvent(Value):
    """An event of an earlier format, which no chain without all later events proves."""

    line: Literal["unlinked"] = "unlinked"
    seq: Number
    body: str


class ShownEvent(Value):
    """An event as the journal has it, and the salt of its commitment."""

    line: Literal["event"] = "event"
    seq: Number
    salt: Salt
    body: str


class MaskedEvent(Value):
    """An event that holds a secret: its commitment, and a text without the secret, which that does not prove."""

    line: Literal["masked"] = "masked"
    seq: Number
    about: Subject
    commitment: Digest
    body: str


class LeftOutEvents(Value):
    """Events about something else: what each is about, and its commitment."""

    line: Literal["left out"] = "left out"
    first: Number
    events: Annotated[tuple[tuple[Subject, Digest], ...], Field(min_length=1, max_length=MOST_LEFT_OUT)]


class RecordedStream(Value):
    """A file of the recorded output of a run."""

    line: Literal["output"] = "output"
    call: CallId
    attempt: Number
    name: Annotated[str, Field(pattern=r"^[a-z.]{1,20}$")]
    data: str
    """Base64."""


class Closing(Value):
    """The last line: a digest of all bytes before it."""

    line: Literal["end"] = "end"
    sha256: Digest


BundleLine = Opening | UnlinkedEvent | ShownEvent | MaskedEvent | LeftOutEvents | RecordedStream | Closing
_LINE: TypeAdapter[BundleLine] = TypeAdapter(Annotated[BundleLine, Field(discriminator="line")])


def spelled(line: BundleLine) -> bytes:
    """Return the one spelling of a line: names in order, no blanks, ASCII without control characters (decision 21)."""
    text = json.dumps(line.model_dump(mode="json"), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode("ascii") + b"\n"


def parsed(data: bytes) -> BundleLine:
    """Return a line. Raises `ValueError` unless it is spelled as `spelled` does."""
    try:
        line = _LINE.validate_python(json.loads(data.decode("ascii")), strict=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if spelled(line) != data:
        raise ValueError("it is not spelled as this program spells it")
    return line
