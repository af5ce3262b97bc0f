"""The three standard streams where some of them are closed, full or read by nobody."""

import fcntl
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = 0, 1, 2


class OutputLost(OSError):
    """What was written to standard output did not arrive."""

    def sentence(self) -> str:
        """What is said about it."""
        if is_closed(STDOUT):
            return "standard output is closed, so what should be printed is lost"
        return f"standard output cannot be written: {self.strerror}; what should be printed is lost"


class _Printed(io.FileIO):
    """A stream that says that it was this one that failed."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


class _Said(io.FileIO):
    """Messages beside the result: where nobody can have them, they are not what the program fails of."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(bytes(data))


def hold_places() -> None:
    """Have all three descriptors in use, else the next file or socket becomes one of them, and is written to.

    Reading and writing fail as they do on what is closed; only messages just vanish.
    """
    for number, mode in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # The lowest number that is free.


def is_closed(number: int) -> bool:
    """Whether a standard stream was closed, or cannot be used in its direction."""
    refused = os.O_WRONLY if number == STDIN else os.O_RDONLY
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == refused


def prepare() -> None:
    """Have Python's own streams for all three, with letters that cannot be written shown as escapes."""
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(STDIN, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    if sys.stdout is sys.__stdout__:  # Else somebody catches it, as tests do.
        sys.stdout = sys.__stdout__ = _text(_Printed(STDOUT, "w", closefd=False), sys.stdout)  # type: ignore[misc]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _text(_Said(STDERR, "w", closefd=False), sys.stderr)  # type: ignore[misc]


def _text(raw: io.FileIO, usual: object) -> io.TextIOWrapper:
    encoding = getattr(usual, "encoding", None) or "utf-8"
    lines = raw.fileno() == STDERR or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=lines)


def data_on(number: int) -> io.BufferedWriter:
    """A stream for data, which fails where it cannot be written."""
    return io.BufferedWriter(_Printed(number, "w", closefd=False))


def let_go(number: int = STDOUT) -> None:
    """Keep the interpreter from writing once more, when it ends, what could not be written."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
