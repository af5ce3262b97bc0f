"""Terminal recordings of runs: asciicast v2 and v3, with the times at which the output arrived."""

import codecs
import json
import re
from collections import deque
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.call import Session
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.masking import masked_command
from whisper_tui.model.run import OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible

_LEFT_OUT = re.compile(
    r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c)"  # strings: titles, links, clipboard, device control
    r"|[\x90\x98\x9d-\x9f].*?(?:\x07|\x1b\\|\x9c)"  # the same, in one character
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[cntqx]"  # queries, window operations, keyboard LEDs
    r"|(?:\x1b\[|\x9b)\?[0-9;]*u"  # keyboard protocol
    # Modes that report the mouse, the focus, pasted text and the size.
    r"|(?:\x1b\[|\x9b)\?(?:[0-9]+;)*(?:9|100[0-7]|1015|1016|2004|2031|2048)(?:;[0-9]+)*[hl]"
    r"|(?:\x1b\[|\x9b)\?[0-9;]*\$p|(?:\x1b\[|\x9b)[>=][0-?]*[ -/]*[@-~]"  # queries of modes, private sequences
    r"|\x1bZ|\x05|\x07",  # device attributes, answerback, bell
    re.DOTALL,
)
_UNFINISHED = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:(?!\x07|\x1b\\|\x9c).)*$"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*$|\x1b[ -/]*$",
    re.DOTALL,
)
LONGEST_ESCAPE = 65_536
"""The longest unfinished escape sequence in characters. A longer one is passed on."""


class PlayableFilter:
    """Filters one stream for playback, piece by piece. Characters and escape sequences may be split between pieces."""

    def __init__(self, *, terminal: bool) -> None:
        """`terminal`: true if the command wrote to a terminal, which has already translated line feeds."""
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the next piece without sequences that would affect the terminal of the playback."""
        text = self._held + self._decoder.decode(data, final=last)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        self._held = unfinished.group() if unfinished and not last else ""
        ready = _LEFT_OUT.sub("", text[: unfinished.start()] if unfinished else text)
        return ready if self._terminal else ready.replace("\r\n", "\n").replace("\n", "\r\n")


SPANS = 4096
"""How many rows of the time index are read at once."""
PIECE = 256 * 1024
"""How many bytes of a stream are read at once, and the longest piece."""


class OutputPiece(NamedTuple):
    """A piece of output that arrived at one time."""

    after_s: float
    """Seconds since the command started."""
    stream: Stream
    data: bytes
    dropped: int = 0
    """Bytes directly before these that were dropped."""


class Resized(NamedTuple):
    """A change of the terminal's size."""

    after_s: float
    """Seconds since the command started."""
    rows: int
    columns: int


class _StreamReader:
    """A buffered reader of one stream."""

    def __init__(self, supervision: Supervision, call_id: str, stream: Stream) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._stream = stream
        self._data = b""
        self._start = 0
        self.at = 0
        """Offset of the next byte."""

    async def until(self, end: int, after_s: float) -> AsyncIterator[OutputPiece]:
        """Yield the kept bytes up to an offset."""
        while self.at < end:
            if not self._start <= self.at < self._start + len(self._data):
                chunk = await self._supervision.read_output(self._call_id, self._stream, self.at, PIECE)
                if not chunk.data:
                    return
                self._data, self._start = chunk.data, chunk.start
            dropped = max(0, self._start - self.at)
            self.at = max(self.at, self._start)
            data = self._data[self.at - self._start : max(0, end - self._start)]
            self.at += len(data)
            yield OutputPiece(after_s, self._stream, data, dropped)


class _TerminalStream:
    """The output of a run, with each change of its terminal's size at its offset."""

    def __init__(self, out: _StreamReader, sizes: tuple[TerminalSize, ...], began: float) -> None:
        self._out = out
        self._sizes = deque(sizes[1:])
        self._began = began
        self._last_s = 0.0

    async def until(self, reader: _StreamReader, end: int, after_s: float) -> AsyncIterator[OutputPiece | Resized]:
        """Yield the bytes of a stream up to an offset. They arrived at that time."""
        while reader is self._out and self._sizes and self._sizes[0].start < end:
            async for before in reader.until(self._sizes[0].start, after_s):
                yield before
            yield self._resized()
        async for piece in reader.until(end, max(after_s, self._last_s)):
            yield piece

    def rest(self) -> list[Resized]:
        """Return the sizes after all output."""
        return [self._resized() for _ in range(len(self._sizes))]

    def _resized(self) -> Resized:
        size = self._sizes.popleft()
        self._last_s = max(self._last_s, size.at - self._began)
        return Resized(self._last_s, size.rows, size.columns)


async def recorded_output(
    supervision: Supervision, record: CallRecord, sizes: tuple[TerminalSize, ...]
) -> AsyncIterator[OutputPiece | Resized]:
    """Yield all output of a run, and the later sizes of its terminal.

    Output that is not in the time index is last, with the time of the last row.
    """
    if record.process is None:
        return
    began = record.process.started_at
    readers: dict[Stream, _StreamReader] = {
        name: _StreamReader(supervision, record.id, name) for name in ("out", "err")
    }
    terminal = _TerminalStream(readers["out"], sizes, began)
    after_s, row = 0.0, 0
    while spans := await supervision.read_timeline(record.id, row, SPANS):
        row += len(spans)
        for span in spans:
            after_s = max(after_s, span.at - began)
            async for moment in terminal.until(readers[span.stream], _end(span), after_s):
                yield moment
    for stream, reader in readers.items():
        size = (await supervision.read_output(record.id, stream, 0, 0)).size
        async for moment in terminal.until(reader, size, after_s):
            yield moment
    for resized in terminal.rest():
        yield resized


def _end(span: OutputSpan) -> int:
    return span.start + span.length


TERMINAL = "xterm-256color"

Version = Literal[2, 3]


async def asciicast(
    supervision: Supervision, record: CallRecord, session: Session | None, version: Version
) -> AsyncIterator[str]:
    """Yield the lines of a recording. Raises `InvalidRequest` if the call never ran, `Refused` without its output."""
    if record.process is None:
        raise InvalidRequest(f"call {record.id} never ran, so there is nothing to record", hint="Export it as jsonl")
    if await output_was_removed(supervision, record):
        hint = "Export its other data as jsonl or markdown"
        raise Refused(
            f"the output of call {record.id} was removed from the disk, so there is nothing to record", hint=hint
        )
    sizes = await supervision.terminal_sizes(record.id)
    yield _line(_header(record, session, version, sizes[0]))
    last = 0
    async for at, code, data in _played(recorded_output(supervision, record, sizes), terminal=record.spec.tty):
        now = round(at * 1000)
        yield _line([(now - last if version == 3 else now) / 1000, code, data])
        last = now
    if version == 3 and isinstance(record.state, Ended):
        end = max(last, round((record.state.at - record.process.started_at) * 1000))
        yield _line([(end - last) / 1000, "x", str(_status(record.state))])


async def _played(
    moments: AsyncIterator[OutputPiece | Resized], *, terminal: bool
) -> AsyncIterator[tuple[float, str, str]]:
    """Yield the events of a recording: seconds since the start, code, and data of both streams."""
    shown: dict[Stream, PlayableFilter] = {name: PlayableFilter(terminal=terminal) for name in ("out", "err")}
    at = 0.0
    async for moment in moments:
        at = max(at, moment.after_s)
        if isinstance(moment, Resized):
            yield at, "r", f"{moment.columns}x{moment.rows}"
            continue
        if moment.dropped:
            yield at, "o", f"\r\n[{moment.dropped:,} bytes were not kept]\r\n"
        if text := shown[moment.stream].feed(moment.data):
            yield at, "o", text
    for stream in shown.values():
        if text := stream.feed(b"", last=True):
            yield at, "o", text


def _header(record: CallRecord, session: Session | None, version: Version, size: TerminalSize) -> dict[str, object]:
    began = record.process.started_at if record.process else record.call.submitted_at
    named = visible(session.name) if session is not None else record.call.session_id
    about: dict[str, object] = {
        "timestamp": int(began),
        "command": visible(masked_command(record.spec.command).text),
        "title": f"Call {record.id} of {named}",
    }
    if version == 3:
        return {"version": 3, "term": {"cols": size.columns, "rows": size.rows, "type": TERMINAL}, **about}
    if isinstance(record.state, Ended):
        about["duration"] = round(max(0.0, record.state.at - began), 3)
    return {"version": 2, "width": size.columns, "height": size.rows, **about, "env": {"TERM": TERMINAL}}


def _status(state: Ended) -> int:
    """Return the exit status as a shell does, or 1 for an ending without one."""
    if isinstance(state.ending, Exited):
        return state.ending.code
    return 128 + state.ending.number if isinstance(state.ending, Signalled) else 1


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=True) + "\n"
