"""A call as a task: its state, its handle, its summary, and its output, shortened to a budget of characters."""

import codecs
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import Shell
from whisper_tui.model.ending import (
    Denied,
    Ending,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
)
from whisper_tui.model.run import OutputSpan, Stream
from whisper_tui.model.state import Aside, CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.present.ending_text import ending_for_agent
from whisper_tui.tools.agent_text import (
    StreamText,
    command_line,
    frames_note,
    where_kept,
    whole_start,
    without_frames,
)
from whisper_tui.tools.ai_tool import ArgumentError

KIND = "command_task"
EXEC_COMMAND = "ExecCommand"
"""The tool whose calls are tasks."""

TaskState = Literal["queued", "running", "cancelling", "completed", "failed", "cancelled", "interrupted", "lost"]


def task_state(record: CallRecord) -> TaskState:
    """Return the state of a task."""
    match record.state:
        # Agents only see one kind of waiting. Only `summary` says whether it is for a human.
        case Unjudged() | Waiting() | Held() | Queued() | Starting():
            return "queued"
        case Running():
            return "cancelling" if record.stopping else "running"
        case Ended(ending=ending):
            return _final_state(ending, stopped=record.stopping)
        case _ as never:
            assert_never(never)


def _final_state(ending: Ending, *, stopped: bool) -> TaskState:
    match ending:
        case Exited(code=0):
            return "completed"
        case Exited():
            # A program that handles TERM exits with a code of its own, but it was stopped nevertheless.
            return "cancelled" if stopped else "failed"
        case Signalled(by_us=by_us):
            if stopped:
                return "cancelled"
            return "interrupted" if by_us else "failed"
        case TimedOut() | FailedToStart():
            return "failed"
        case HandedOver():
            return "lost"
        case Denied() | Withdrawn():
            return "cancelled"
        case Lost():
            return "lost"
        case _ as never:
            assert_never(never)


def task_handle(record: CallRecord) -> dict[str, Any]:
    """Return the handle of a task for agents."""
    return {"task_id": record.id, "task_kind": KIND, "status": task_state(record)}


def task_command(record: CallRecord) -> dict[str, Any]:
    """Return the command that runs, perhaps edited by a human, with its shell only if the agent named one."""
    # This program fills in the default shell. An agent that named no shell must not see one.
    asked, command = record.call.arguments.get("shell"), record.spec.command
    read_by = command.shell if isinstance(command, Shell) and record.edited else asked
    return {
        "cmd": command_line(record.spec),
        "workdir": record.spec.cwd,
        "shell": read_by,
        "login": isinstance(command, Shell) and command.login,
        "tty": record.spec.tty,
        "accepts_input": record.spec.accepts_input,
    }


def task_summary(record: CallRecord) -> str:
    """Return the state of a task as a sentence."""
    match record.state:
        case Waiting(aside=Aside()):
            return "A human has set it aside: it still waits for approval, and nothing has run yet."
        case Unjudged() | Waiting():
            return "It waits for a human's approval; nothing has run yet."
        case Held() | Queued() | Starting():
            return "It is approved and about to start."
        case Running(process=process):
            doing = "is being ended" if record.stopping else "runs"
            return f"It {doing} as process {process.leader.pid}."
        case Ended(ending=ending):
            return ending_for_agent(ending)
        case _ as never:
            assert_never(never)


def exit_status(record: CallRecord) -> int | None:
    """Return the exit code. None: the task has not ended, or did not exit by itself."""
    match record.state:
        case Ended(ending=Exited(code=code)):
            return code
        case _:
            return None


LONGEST_CHARACTER = 4
"""Bytes of the longest character."""

NAMES: dict[Stream, str] = {"out": "stdout", "err": "stderr"}


@dataclass(frozen=True)
class _Sample:
    """The head of a stream, and its tail if the head is not the whole stream."""

    size: int
    """Bytes of the stream."""
    head: str
    tail: str | None
    """None: the head is the whole stream."""

    @property
    def wanted(self) -> int:
        """Characters needed to show the stream, as far as the sample shows."""
        # One more than was read, so that a truncated stream always wants more than a small budget allows.
        return len(self.head) + (0 if self.tail is None else len(self.tail) + 1)


async def previews(supervision: Supervision, record: CallRecord, budget: int) -> dict[str, Any]:
    """Return `stdout_preview`, `stderr_preview`, `truncated`, and artifacts if a stream was shortened.

    Both streams share the budget. Each may use what the other does not need.
    """
    samples = {stream: await _sample(supervision, record, stream, budget) for stream in NAMES}
    shares = _shares({stream: sample.wanted for stream, sample in samples.items()}, budget)
    result: dict[str, Any] = {}
    artifacts: list[dict[str, Any]] = []
    indices: dict[str, int] = {}
    truncated = False
    for stream, sample in samples.items():
        name = NAMES[stream]
        cut = sample.tail is not None or len(sample.head) > shares[stream]
        path = await supervision.output_file(record.id, stream) if cut else None
        where = f"the whole stream is in {path}" if path else f"`whisper-tui logs {record.id}` prints the kept output"
        text = cut_text(sample.head, sample.tail, shares[stream], sample.size, where) if cut else sample.head
        result[f"{name}_preview"] = text or None
        truncated = truncated or cut
        if path is not None:
            indices[f"{name}_artifact"] = len(artifacts)
            artifacts.append({"path": path, "stream": name, "bytes": sample.size})
    result["truncated"] = truncated
    return {**result, **({"artifacts": artifacts} if artifacts else {}), **indices}


def cut_text(head: str, tail: str | None, budget: int, size: int, where: str) -> str:
    """Return head and tail of a text within a budget of characters, with a marker between them. `size` in bytes."""
    first, last = budget // 2, budget - budget // 2
    end = head if tail is None else tail
    marker = f"[whisper_tui: output cut here, {size:,} bytes in all; {where}]"
    return "\n".join(part for part in (head[:first], marker, end[len(end) - min(last, len(end)) :]) if part)


def _shares(wanted: dict[Stream, int], budget: int) -> dict[Stream, int]:
    """Return the characters for each stream: half of the budget, and what the other stream does not need."""
    half = {"out": budget - budget // 2, "err": budget // 2}
    spare_out = max(0, half["out"] - wanted["out"])
    spare_err = max(0, half["err"] - wanted["err"])
    return {"out": half["out"] + spare_err, "err": half["err"] + spare_out}


async def _sample(supervision: Supervision, record: CallRecord, stream: Stream, budget: int) -> _Sample:
    """Read enough of a stream to fill the budget from both ends."""
    if not isinstance(record.state, Ended) or record.state.attempt is None:
        return _Sample(0, "", None)
    size = getattr(record.state.output, stream)
    # The budget is in characters and files are in bytes. So many bytes always contain enough characters.
    reach, stored = LONGEST_CHARACTER * budget, StreamText(supervision, record.id, stream)
    if size <= 2 * reach:
        text, gone = without_frames(await stored.text(0, size))
        note = frames_note(gone, await where_kept(supervision, record.id, stream)) if gone else ""
        return _Sample(size, text + note, None)
    head, _ = without_frames(await stored.text(0, reach, ends_midway=True))
    tail, _ = without_frames(await stored.text(size - reach, size, starts_midway=True))
    return _Sample(size, head, tail)


ROWS = 4096
"""How many rows of the time index are requested at once."""
PIECE = 1024 * 1024
"""How many bytes are requested at once."""
PATIENCE_S = 1.0
"""Seconds to wait for the rest of an incomplete character. After that its bytes are shown unchanged."""


@dataclass(frozen=True)
class OutputSlice:
    """Output since an offset."""

    text: str
    next_offset: int
    """Offset of the next read, so that nothing is read twice."""
    cut: bool
    """True if the middle is omitted."""


@dataclass(frozen=True)
class _Span:
    """A row of the time index with its offset in order of arrival."""

    place: int
    row: OutputSpan

    @property
    def end(self) -> int:
        return self.place + self.row.length


class TaskOutputReader:
    """Reads the output of a run in order of arrival."""

    def __init__(self, supervision: Supervision, record: CallRecord, *, now: float) -> None:
        self._supervision = supervision
        self._record = record
        self._now = now

    async def since(self, offset: int, budget: int) -> OutputSlice:
        """Return at most `budget` characters of output from `offset`. Raises `ArgumentError` if it is too large."""
        spans = await self._spans()
        total = spans[-1].end if spans else 0
        if offset > total:
            raise ArgumentError(f"The argument 'offset' must be at most {total}, the bytes printed so far")
        reach = LONGEST_CHARACTER * budget
        if total - offset <= 2 * reach:
            text, end = await self._text(spans, offset, total, midway=False)
            text, gone = without_frames(text)
            text += frames_note(gone, self._where)
            if len(text) <= budget:
                return OutputSlice(text, end, cut=False)
            return OutputSlice(self._cut(text, None, budget, end - offset), end, cut=True)
        head, _ = await self._text(spans, offset, offset + reach, midway=False)
        tail, end = await self._text(spans, total - reach, total, midway=True)
        head, tail = without_frames(head)[0], without_frames(tail)[0]
        return OutputSlice(self._cut(head, tail, budget, end - offset), end, cut=True)

    @property
    def _where(self) -> str:
        return f"`whisper-tui logs {self._record.id}` prints the kept output"

    def _cut(self, head: str, tail: str | None, budget: int, size: int) -> str:
        return cut_text(head, tail, budget, size, self._where)

    async def _spans(self) -> list[_Span]:
        """Return all rows of the time index. Without an index: all of stdout and then all of stderr."""
        rows: list[OutputSpan] = []
        while batch := await self._supervision.read_timeline(self._record.id, len(rows), ROWS):
            rows += batch
        if not rows:
            rows = [row for stream in ("out", "err") if (row := await self._whole(stream)).length]
        spans, place = [], 0
        for row in rows:
            spans.append(_Span(place, row))
            place += row.length
        return spans

    async def _whole(self, stream: Stream) -> OutputSpan:
        size = (await self._supervision.read_output(self._record.id, stream, 0, 0)).size
        return OutputSpan(at=0.0, stream=stream, start=0, length=size)

    async def _text(self, spans: list[_Span], start: int, end: int, *, midway: bool) -> tuple[str, int]:
        """Return the text of a range and its actual end, which is before an incomplete character."""
        # Decoded again up to the incomplete character, so that later output of the other stream is not repeated.
        text, divided = await self._decode(spans, start, end, midway)
        return (text, end) if divided is None else ((await self._decode(spans, start, divided, midway))[0], divided)

    async def _decode(self, spans: list[_Span], start: int, end: int, midway: bool) -> tuple[str, int | None]:
        # One decoder per stream, because one stream's output may arrive inside a character of the other.
        decoders = {stream: codecs.getincrementaldecoder("utf-8")(errors="replace") for stream in ("out", "err")}
        begun: dict[str, int | None] = {"out": None, "err": None}
        parts, fresh = [], set[Stream]()
        for span in spans:
            low, high = max(start, span.place), min(end, span.end)
            if low >= high:
                continue
            stream = span.row.stream
            data = await self._bytes(span, low, high)
            if stream not in fresh:
                fresh.add(stream)
                data = whole_start(data) if midway else data
            parts.append(decoders[stream].decode(data))
            pending = len(decoders[stream].getstate()[0])
            if not pending:
                begun[stream] = None
            elif begun[stream] is None or pending <= len(data):
                # An incomplete character at the end of an ended run or an old row stays incomplete.
                expected = self._record.is_open and self._now - span.row.at < PATIENCE_S
                begun[stream] = high - pending if expected else None
        divided = min((place for place in begun.values() if place is not None), default=None)
        if divided is None:
            parts += [decoder.decode(b"", final=True) for decoder in decoders.values()]
        return "".join(parts), divided

    async def _bytes(self, span: _Span, low: int, high: int) -> bytes:
        """Return the bytes of one row between two offsets, with a marker for dropped bytes."""
        start = span.row.start + low - span.place
        end = start + high - low
        parts: list[bytes] = []
        while start < end:
            wanted = min(PIECE, end - start)
            chunk = await self._supervision.read_output(self._record.id, span.row.stream, start, wanted)
            data = chunk.data[: max(end - chunk.start, 0)]
            if chunk.start > start or not data:
                start = min(chunk.start, end) if chunk.start > start else end
                parts.append(b"\n[whisper_tui: bytes were dropped here when they were captured]\n")
            parts.append(data)
            start += len(data)
        return b"".join(parts)
