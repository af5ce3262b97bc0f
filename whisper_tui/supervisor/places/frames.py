"""The frames between a supervisor and the host process at a place: a JSON header and a payload of bytes, bounded."""

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

_LENGTHS = struct.Struct(">II")
LONGEST_HEADER = 1 << 16
LONGEST_PAYLOAD = 1 << 24
"""Bytes: an order has its arguments and its environment in the payload, a judgement the answers about many files."""
BUFFER = 1 << 20
"""Bytes that are read at once."""
LONG = 1 << 16
"""Bytes that a piece of a file lacks if its reader does not wait for them here."""
GREETING = b"\n\0whisper-tui-place\0"
"""Precedes the first frame from there. What a login prints before it is no frame."""


class BadFrame(Exception):
    """The other end does not send frames."""


class Frame(NamedTuple):
    """One message."""

    header: dict[str, Any]
    payload: bytes


class FrameView(NamedTuple):
    """One message in the buffer of its reader: its payload is void once more is read."""

    header: dict[str, Any]
    payload: memoryview

    def kept(self) -> Frame:
        """Return the message with a payload of its own."""
        return Frame(self.header, bytes(self.payload))


class Begun(NamedTuple):
    """A message in the buffer of its reader, as far as it has come."""

    header: dict[str, Any]
    payload: memoryview
    lacks: int
    """The bytes of its payload that are still to come."""


def beginning(header: dict[str, Any], length: int) -> bytes:
    """Return what precedes a payload of that length. Raises `BadFrame` if the frame is too long."""
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > LONGEST_HEADER or length > LONGEST_PAYLOAD:
        raise BadFrame(f"a frame of {len(text)} and {length} bytes is too long")
    return _LENGTHS.pack(len(text), length) + text


def encoded(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a frame as bytes. Raises `BadFrame` if it is too long."""
    return beginning(header, len(payload)) + payload


class FrameReader:
    """Splits a stream of bytes into frames, in one buffer: a gigabyte of output is not copied again and again."""

    def __init__(self) -> None:
        self._data = bytearray(BUFFER)
        self._start = self._end = 0

    def room(self) -> memoryview:
        """Return where the next bytes belong. The payloads of earlier frames are void then."""
        if self._start == self._end:
            self._start = self._end = 0
        needed = self._needed()
        if self._start and (self._end == len(self._data) or self._start + needed > len(self._data)):
            left = self._data[self._start : self._end]
            self._data[: len(left)] = left
            self._start, self._end = 0, len(left)
        if needed > len(self._data):
            # Not extended in place, since views of it may still be held.
            self._data = self._data[: self._end] + bytes(needed - self._end)
        return memoryview(self._data)[self._end :]

    def frames(self, count: int) -> Iterator[FrameView]:
        """Yield the frames that are complete, after so many bytes were read into `room`. Raises `BadFrame`."""
        self._end += count
        while self._end - self._start >= _LENGTHS.size and self._end - self._start >= (needed := self._needed()):
            header, _ = _LENGTHS.unpack_from(self._data, self._start)
            middle = self._start + _LENGTHS.size + header
            told = _header(bytes(self._data[self._start + _LENGTHS.size : middle]))
            self._start += needed
            yield FrameView(told, memoryview(self._data)[middle : self._start])

    def take_begun(self) -> Begun | None:
        """Take the frame that has begun, if it lacks much and is a piece of a file. Its reader reads the rest itself.

        The payload is void once more is read. Raises `BadFrame`.
        """
        if self._end - self._start < _LENGTHS.size or (lacks := self._needed() - (self._end - self._start)) < LONG:
            return None
        middle = self._start + _LENGTHS.size + int(_LENGTHS.unpack_from(self._data, self._start)[0])
        if self._end < middle:
            return None
        header = _header(bytes(self._data[self._start + _LENGTHS.size : middle]))
        if "at" not in header:
            return None
        begun = Begun(header, memoryview(self._data)[middle : self._end], lacks)
        self._start = self._end
        return begun

    def feed(self, data: bytes) -> Iterator[FrameView]:
        """Take bytes that were read already, fewer than `BUFFER`, and yield the frames that are complete."""
        self.room()[: len(data)] = data
        yield from self.frames(len(data))

    def _needed(self) -> int:
        """Return the length of the next frame, or of its beginning that says it. Raises `BadFrame`."""
        if self._end - self._start < _LENGTHS.size:
            return _LENGTHS.size
        header, payload = _LENGTHS.unpack_from(self._data, self._start)
        if header > LONGEST_HEADER or payload > LONGEST_PAYLOAD:
            raise BadFrame(f"a frame of {header} and {payload} bytes is too long")
        return _LENGTHS.size + int(header) + int(payload)


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("the header of a frame is no JSON") from None
    if not isinstance(header, dict):
        raise BadFrame("the header of a frame is no object")
    return header
