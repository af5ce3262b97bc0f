"""The pieces in which a run and the program that stands for it talk: a letter, a length, and so many bytes.

Standard library only, and little of it, for the program starts once per command.
"""

STDOUT, STDERR, END, INPUT, NOTE = b"o", b"e", b"x", b"p", b"n"
"""From the run: its output; once, as JSON, how it ended; when it takes input, the path of its FIFO or nothing; and
sentences for whoever waits, which are no output."""

STDIN, EOF, SIGNAL = b"i", b"z", b"s"
"""To the run: its input, the end of that, and the number of a signal."""

HEAD = 5
"""Bytes of the letter and the length."""

LARGEST = 1 << 20
"""Bytes of one piece at most."""


def frame(kind: bytes, data: bytes = b"") -> bytes:
    """One piece."""
    return kind + len(data).to_bytes(4, "big") + data


class Frames:
    """Takes bytes as they come and gives back whole pieces."""

    def __init__(self, *, refusable: bool = False) -> None:
        """`refusable`: whether a line of JSON may come in place of a piece, which is then the last that comes."""
        self._held = bytearray()
        self._refusable = refusable

    @property
    def refusal(self) -> bytes:
        """The line in place of a piece, as far as it has come; nothing while pieces come."""
        return bytes(self._held) if self._refusable and self._held.startswith(b"{") else b""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The pieces that are whole now. Raises `ValueError` for one that is too long."""
        self._held += data
        found = []
        while len(self._held) >= HEAD and not self.refusal:
            length = int.from_bytes(self._held[1:HEAD], "big")
            if length > LARGEST:
                raise ValueError(f"a piece of {length:,} bytes is longer than {LARGEST:,}")
            if len(self._held) < HEAD + length:
                break
            found.append((bytes(self._held[:1]), bytes(self._held[HEAD : HEAD + length])))
            del self._held[: HEAD + length]
        return found
