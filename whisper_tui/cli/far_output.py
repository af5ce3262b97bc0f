"""Output of programs on other machines: bounded, and shown as data."""

import codecs
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import MOST_MARKS, hidden_parts, visible

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer that is read whole before it is shown, and of a line of JSON."""
LARGEST_TOGETHER = 256 * 1024 * 1024
"""Bytes of such answers of all machines that are asked at once."""
MOST_SAID = 64 * 1024
"""Bytes of standard error that are kept of such an answer."""
SILENT_S = 300.0
"""Seconds without a byte after which such an answer is given up."""
LAST_WORDS = 2000
"""Bytes of what ssh has said at last that are kept."""
_PIECE = 64 * 1024
_AFTER_END_S = 0.5
"""Seconds for which a pipe is read after ssh has ended: a process that it left behind may hold it open."""
_ENDS_WITHIN_S = 5.0
_JSON_BLANKS = frozenset("\n\r\t")
_ERASED = "\b \b"
"""Sent back by a terminal there for a character that the user has taken back."""

Take = Callable[[bytes], None]


class TooMuch(Exception):
    """A machine has sent more than is read from it, or nothing for too long. Its message is a predicate."""


class NoJson(Exception):
    """A machine has sent text that is no JSON."""


class FarText:
    """A stream of text with its hidden characters made visible, piece by piece.

    Letters, line ends and marks that the end of a piece has cut are as they would be in one piece.
    """

    def __init__(self, *, echoes: bool = False) -> None:
        """`echoes`: it comes from a terminal, whose own line ends and erased characters are obeyed."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._echoes = echoes
        self._held = self._before = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the part of the next piece that may be shown. `last`: no other one follows."""
        text = self._held + self._decoder.decode(data, last)
        self._held = ""
        if not last:
            cut = next((each for each in ("\r", "\b ", "\b") if text.endswith(each)), "")
            text, self._held = text.removesuffix(cut), cut
        if not self._echoes:
            return self._shown(text.replace("\r\n", "\n"))
        return _ERASED.join(self._shown(part) for part in text.replace("\r\n", "\n").split(_ERASED)).replace(
            "\n", "\r\n"
        )

    def _shown(self, text: str) -> str:
        # A mark belongs to a letter before it, which may have been in the last piece.
        before, whole = self._before, self._before + text
        self._before = whole[-MOST_MARKS - 1 :]
        shown = visible(whole, keep_lines=True, printed=True)
        return shown[len(visible(before, keep_lines=True, printed=True)) :]


def json_text(text: str) -> str:
    """Return JSON with its hidden characters as JSON itself escapes them, so that it means the same."""
    kept, at = [], 0
    for start, end in hidden_parts(text, keep=_JSON_BLANKS, printed=True):
        kept += [text[at:start], json.dumps(text[start:end])[1:-1]]
        at = end
    return "".join((*kept, text[at:]))


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raises `NoJson`."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise NoJson from None


class FarJsonLines:
    """A stream of lines of JSON, each checked and then shown. A document of several lines is not one."""

    def __init__(self) -> None:
        self._line = bytearray()

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the lines that are whole. Raises `NoJson` and `TooMuch`."""
        self._line += data
        if len(self._line) > LARGEST_ANSWER:
            raise TooMuch(f"sent a line of more than {LARGEST_ANSWER:,} bytes")
        if not last and b"\n" not in data:
            return ""
        until = len(self._line) if last else self._line.rindex(b"\n") + 1
        whole = bytes(self._line[:until])
        del self._line[:until]
        shown = []
        for line in whole.splitlines(keepends=True):
            text = line.decode(errors="replace")
            if text.strip():
                read_json(text)
            shown.append(json_text(text))
        return "".join(shown)


class Allowance:
    """The bytes that the answers of several machines may take together."""

    def __init__(self, most: int = LARGEST_TOGETHER) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Raises `TooMuch` if there is not so much left."""
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise TooMuch(f"sent more than is left of {LARGEST_TOGETHER:,} bytes for all machines")


class FarAnswer(NamedTuple):
    """The end of a program on another machine."""

    code: int
    out: bytes
    said: str
    """The beginning of its standard error."""


def answer_of(command: Sequence[str], allowance: Allowance) -> FarAnswer:
    """Run a command line without input, and return its output whole. Raises `TooMuch` and `Unavailable`."""
    out, said = bytearray(), bytearray()

    def take_out(data: bytes) -> None:
        allowance.take(len(data))
        out.extend(data)
        if len(out) > LARGEST_ANSWER:
            raise TooMuch(f"sent an answer of more than {LARGEST_ANSWER:,} bytes")

    heard = 0

    def take_said(data: bytes) -> None:
        nonlocal heard
        heard += len(data)
        said.extend(data[: MOST_SAID - len(said)])
        if heard > LARGEST_ANSWER:
            raise TooMuch(f"sent messages of more than {LARGEST_ANSWER:,} bytes")

    code = carry(command, take_out, take_said, stdin=subprocess.DEVNULL, silent_s=SILENT_S)
    return FarAnswer(code, bytes(out), said.decode(errors="replace"))


def carry(
    command: Sequence[str],
    out: Take,
    said: Take,
    *,
    stdin: int | None = None,
    silent_s: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a command line, hand over what it writes while it runs, and return its exit code.

    Whatever the takers raise ends it. Raises `TooMuch` after a silence of `silent_s`, and `Unavailable`.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, env=environment)
    except OSError as error:
        raise no_ssh(error) from None
    try:
        _hand_over(process, {process.stdout: out, process.stderr: said}, silent_s)
        return process.wait()
    finally:
        end(process)


def _hand_over(
    process: "subprocess.Popen[bytes]", takers: Mapping[IO[bytes] | None, Take], silent_s: float | None
) -> None:
    heard = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for stream, take in takers.items():
            assert stream is not None  # noqa: S101  both are pipes
            selector.register(stream.fileno(), selectors.EVENT_READ, take)
        while selector.get_map():
            ready = selector.select(_AFTER_END_S)
            if not ready and process.poll() is not None:
                return
            if ready:
                heard = time.monotonic()
            elif silent_s is not None and time.monotonic() - heard > silent_s:
                raise TooMuch(f"was silent for {silent_s:g} seconds")
            for key, _ in ready:
                data = os.read(key.fd, _PIECE)
                if not data:
                    selector.unregister(key.fd)
                key.data(data)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a program that leads to another machine, if it has not ended, and close the pipes to it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


class LastWords:
    """Reads a stream to its end in a thread, and keeps its last words."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="last words", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while data := os.read(self._stream.fileno(), _PIECE):
                self._kept = (self._kept + data)[-LAST_WORDS:]

    def line(self) -> str:
        """Return the last line, after the stream has ended, on one line and visible. Empty: there is none."""
        self._thread.join(_AFTER_END_S)
        lines = [line for line in self._kept.decode(errors="replace").splitlines() if line.strip()]
        return visible(lines[-1].strip().rstrip(".")) if lines else ""


def no_ssh(error: OSError) -> Unavailable:
    """Return the error of an ssh that does not start."""
    return Unavailable(f"ssh cannot be started: {error.strerror or error}", hint="Install OpenSSH")


class Shows:
    """A taker of bytes that writes them to a stream of ours, as one of the filters above shows them."""

    def __init__(self, file: Any, text: FarText | FarJsonLines) -> None:
        self._file, self._text = file, text

    def __call__(self, data: bytes) -> None:
        """Write a piece. No bytes: the stream has ended."""
        self._file.write(self._text.feed(data, last=not data))
        self._file.flush()


def shown_here(*, echoes: bool) -> tuple[Shows, Shows]:
    """Return the takers of a program's text for our own standard output and standard error."""
    return Shows(sys.stdout, FarText(echoes=echoes)), Shows(sys.stderr, FarText())
