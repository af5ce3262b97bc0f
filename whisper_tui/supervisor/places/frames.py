"""The frames between a supervisor and the host process at a place: a JSON header and a payload of bytes, bounded."""

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

_LENGTHS = struct.Struct(">II")
LONGEST_HEADER = 1 << 16
LONGEST_PAYLOAD = 1 << 24
"""Bytes: an order has its arguments and its environment in the payload, a judgement the answers about many files."""
GREETING = b"\n\0whisper-tui-place\0"
"""Precedes the first frame from there. What a login prints before it is no frame."""


class BadFrame(Exception):
    """The other end does not send frames."""


class Frame(NamedTuple):
    """One message."""

    header: dict[str, Any]
    payload: bytes


def encoded(header: dict[str, Any], payload: bytes | bytearray | memoryview = b"") -> bytes:
    """Return a frame as bytes. Raises `BadFrame` if it is too long."""
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > LONGEST_HEADER or len(payload) > LONGEST_PAYLOAD:
        raise BadFrame(f"a frame of {len(text)} and {len(payload)} bytes is too long")
    return b"".join((_LENGTHS.pack(len(text), len(payload)), text, payload))


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[Frame]:
        """Take bytes, and yield the frames that are complete. Raises `BadFrame`."""
        self._data += data
        start = 0
        try:
            while len(self._data) - start >= _LENGTHS.size:
                header, payload = _LENGTHS.unpack_from(self._data, start)
                if header > LONGEST_HEADER or payload > LONGEST_PAYLOAD:
                    raise BadFrame(f"a frame of {header} and {payload} bytes is too long")
                middle = start + _LENGTHS.size + header
                if len(self._data) < middle + payload:
                    break
                with memoryview(self._data) as view:
                    found = bytes(view[start + _LENGTHS.size : middle]), bytes(view[middle : middle + payload])
                start = middle + payload
                yield Frame(_header(found[0]), found[1])
        finally:
            del self._data[:start]


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("the header of a frame is no JSON") from None
    if not isinstance(header, dict):
        raise BadFrame("the header of a frame is no object")
    return header
