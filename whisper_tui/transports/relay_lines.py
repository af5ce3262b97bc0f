"""Lines out of a stream of bytes. Standard library only."""

from collections.abc import Callable, Iterator


def lines_of(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Lines without their ends; an unfinished last one and empty ones are left out."""
    held = bytearray()
    while data := read():
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            line, searched = bytes(held[:end]), 0
            del held[: end + 1]
            if line.strip():
                yield line
