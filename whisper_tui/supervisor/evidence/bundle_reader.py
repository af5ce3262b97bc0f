"""An evidence file, read line by line with everything in it that contradicts itself (decision 41).

A file may come from anybody. Nothing in it is believed that does not follow from its own bytes.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.call import CALL_ID
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.event import EVENT, CallEvent, Event, SessionSaid, Submitted
from whisper_tui.model.evidence import Backing
from whisper_tui.model.strict_json import read_strict_json
from whisper_tui.supervisor.evidence.bundle_lines import (
    LARGEST_FILE,
    LONGEST_LINE,
    BundleLine,
    Closing,
    LeftOutEvents,
    MaskedEvent,
    Opening,
    RecordedStream,
    ShownEvent,
    UnlinkedEvent,
    parsed,
)
from whisper_tui.supervisor.journal.counters import subject_of
from whisper_tui.supervisor.journal.sqlite_file import Head, commitment, link_over
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.output_files import OUTPUT_FILES, heading_of

_BEGINNING = 4_096


class PlacedEvent(NamedTuple):
    """An event of a file, and what stands behind it."""

    event: Event
    backing: Backing


class BundleProblem(Exception):
    """A contradiction after which nothing more can be read: a clause."""


@dataclass
class Bundle:
    """All that a file holds."""

    opening: Opening
    events: list[PlacedEvent] = field(default_factory=list)
    left_out: int = 0
    subjects: set[str] = field(default_factory=set)
    """The subjects of the events that are left out."""
    outputs: dict[RunKey, str] = field(default_factory=dict)
    """The digest of the recorded output of runs."""
    noted_link: bytes | None = None
    """The link that the chain has at the number of the noted end. None: it does not have that number."""


def read_bundle(path: Path, noted: Head | None) -> Bundle:
    """Read a file. `noted`: an end that was kept elsewhere. Raises `InvalidRequest` for another kind of file.

    Raises `BundleProblem` for one that cannot be read to its end, and `OSError`.
    """
    with path.open("rb") as file:
        if not file.read(_BEGINNING).startswith(b'{"before":"'):
            raise InvalidRequest(f"{path} is no evidence file", hint="whisper-tui evidence ID… -o FILE writes one")
        file.seek(0)
        return _Reader(noted).read(_lines(file))


def _lines(file: Any) -> Iterator[bytes]:
    size = 0
    while data := file.readline(LONGEST_LINE + 1):
        size += len(data)
        if len(data) > LONGEST_LINE or size > LARGEST_FILE:
            raise BundleProblem("it is longer than any that whisper_tui writes")
        yield data


class _Reader:
    def __init__(self, noted: Head | None) -> None:
        self._noted = noted
        self._digest = hashlib.sha256()
        self._bundle: Bundle
        self._next = 0
        """The number of the next event of the chain."""
        self._link = b""
        self._stage = 0
        """Lines come in this order: 0 unlinked events, 1 the chain, 2 output, 3 nothing more."""
        self._last_unlinked = 0
        self._output: tuple[RunKey, int, Any] | None = None

    def read(self, lines: Iterator[bytes]) -> Bundle:
        for number, data in enumerate(lines, 1):
            if self._stage == 3:
                raise BundleProblem("something follows its end")
            try:
                line = parsed(data)
            except ValueError:
                raise BundleProblem(f"line {number} is not one that whisper_tui has written") from None
            self._take(number, line)
            self._digest.update(data)
        if self._stage != 3:
            raise BundleProblem("it was cut off: its end is missing")
        return self._bundle

    def _take(self, number: int, line: BundleLine) -> None:
        if isinstance(line, Opening) != (number == 1):
            raise BundleProblem(f"line {number} stands at a wrong place")
        match line:
            case Opening():
                self._open(line)
            case UnlinkedEvent():
                self._unlinked(line)
            case ShownEvent() | MaskedEvent() | LeftOutEvents():
                self._follow(line)
            case RecordedStream():
                self._add_output(line)
            case Closing():
                self._close(line)

    def _open(self, line: Opening) -> None:
        if (line.first == 0) != (line.last == 0) or line.first > line.last:
            raise BundleProblem("its first line names no part of a chain")
        self._bundle = Bundle(line)
        # The link before the first event is only said to be one: an end that was noted there proves nothing after it.
        self._next, self._link = line.first, bytes.fromhex(line.before)

    def _unlinked(self, line: UnlinkedEvent) -> None:
        before = self._bundle.opening.first
        if self._stage > 0 or line.seq <= self._last_unlinked or (before and line.seq >= before):
            raise BundleProblem(f"event {line.seq} stands at a wrong place")
        self._last_unlinked = line.seq
        self._bundle.events.append(PlacedEvent(_event(line.seq, line.body), "nothing"))

    def _follow(self, line: ShownEvent | MaskedEvent | LeftOutEvents) -> None:
        seq = line.first if isinstance(line, LeftOutEvents) else line.seq
        opening = self._bundle.opening
        if self._stage > 1 or not opening.first or seq != self._next:
            raise BundleProblem(f"event {seq} stands at a wrong place: one is missing before it, or is there twice")
        self._stage = 1
        match line:
            case ShownEvent():
                event = _event(line.seq, line.body)
                body = line.body.encode("utf-8", "surrogatepass")
                self._add(subject_of(event), commitment(bytes.fromhex(line.salt), body))
                self._bundle.events.append(PlacedEvent(event, "chain"))
            case MaskedEvent():
                event = _event(line.seq, line.body)
                if subject_of(event) != line.about:
                    raise BundleProblem(f"event {line.seq} is shown as one about something else")
                self._add(line.about, bytes.fromhex(line.commitment))
                self._bundle.events.append(PlacedEvent(event, "masked"))
            case LeftOutEvents():
                for about, committed in line.events:
                    self._add(about, bytes.fromhex(committed))
                    self._bundle.subjects.add(about)
                self._bundle.left_out += len(line.events)

    def _add(self, about: str, committed: bytes) -> None:
        if self._next > self._bundle.opening.last:
            raise BundleProblem("its chain goes on after the end that its first line names")
        self._link = link_over(self._link, self._next, about, committed)
        if self._noted is not None and self._next == self._noted.seq:
            self._bundle.noted_link = self._link
        self._next += 1

    def _add_output(self, line: RecordedStream) -> None:
        self._stage = max(self._stage, 2)
        try:
            data = base64.b64decode(line.data, validate=True)
        except (binascii.Error, ValueError):
            raise BundleProblem(f"the output of call {line.call} is no base64") from None
        if base64.b64encode(data).decode() != line.data or line.name not in OUTPUT_FILES:
            raise BundleProblem(f"the output of call {line.call} is not as whisper_tui writes it")
        key, place = RunKey(line.call, line.attempt), OUTPUT_FILES.index(line.name)
        if self._output is None or self._output[0] != key:
            if key in self._bundle.outputs:
                raise BundleProblem(f"the output of call {line.call} is there twice")
            self._output = key, -1, hashlib.sha256()
        _, last, digest = self._output
        if place <= last:
            raise BundleProblem(f"the output of call {line.call} is there twice")
        digest.update(heading_of(line.name, len(data)))
        digest.update(data)
        self._output = key, place, digest
        self._bundle.outputs[key] = digest.hexdigest()

    def _close(self, line: Closing) -> None:
        self._stage = 3
        opening = self._bundle.opening
        if line.sha256 != self._digest.hexdigest():
            raise BundleProblem("it was changed: its digest is another one than its last line says")
        if opening.first and (self._next != opening.last + 1 or self._link.hex() != opening.end):
            raise BundleProblem("an event in it was changed: its chain ends at another link than its first line says")


def _event(seq: int, body: str) -> Event:
    """Return an event from its text, which no two readers can read differently."""
    try:
        read_strict_json(body)
        event: Event = EVENT.validate_json(body)
    except ValueError:
        raise BundleProblem(f"event {seq} cannot be read, or is of a newer version of whisper_tui") from None
    if event.seq != seq or isinstance(event, SessionSaid):
        raise BundleProblem(f"event {seq} says that it is another one")
    named = event.call.id if isinstance(event, Submitted) else event.call_id if isinstance(event, CallEvent) else "1"
    if not CALL_ID.match(named):
        raise BundleProblem(f"event {seq} is about a call that has no number")
    return event
