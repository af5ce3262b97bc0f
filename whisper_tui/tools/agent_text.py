"""Text for agents: failures, notes about what a human or the sandbox changed, and output that fits the client."""

import asyncio
import codecs
import json
import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import CommandSpec, FileEdits, Function
from whisper_tui.model.call_rows import broken_limit
from whisper_tui.model.ending import Denied, HandedOver, Lost, TimedOut, Withdrawn
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.verdict import whose_rule
from whisper_tui.present.ending_text import denied_for_session
from whisper_tui.present.quantities import count

Cause = Literal["denied", "refused", "withdrawn", "lost"]


class ToolFailure(WhisperError):
    """The call fails. The message is for the model, and quotes a human's reason verbatim."""

    kind = "tool_failure"

    def __init__(self, message: str, *, cause: Cause = "refused", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause


class UnknownTool(Refused):
    """There is no tool with that name."""

    kind = "unknown_tool"


class DuplicateTool(Refused):
    """A tool with that name is already registered."""

    kind = "duplicate_tool"


_NOTHING = {"edits": "Nothing was changed.", "function": "Nothing was done."}
"""The words for a tool of the agent's own that was not called, by the kind of call."""


def failure_of(ending: Denied | Withdrawn | HandedOver | Lost, kind: str = "") -> ToolFailure:
    """Return the failure that reports an ending without a result to the model.

    `kind`: of the command, if it is a call of a tool of the agent's own.
    """
    nothing = _NOTHING.get(kind, "Nothing ran.")
    match ending:
        case Denied():
            return _denied(ending, nothing)
        case Withdrawn(why=why):
            words = "The call was withdrawn before it ran." if kind not in _NOTHING else "The call was withdrawn."
            return ToolFailure(f"{words} {nothing} {why[:1].upper()}{why[1:]}".rstrip(), cause="withdrawn")
        case HandedOver():
            # The agent's own shell runs it, so this program sees neither its output nor its exit code.
            return ToolFailure("The agent ran the command itself, so its result is not known here.", cause="lost")
        case Lost(why=why):
            message = (
                f"The command may have run, and how it ended cannot be known: {why}. "
                "It is not run again by itself; look at its effects before you repeat it."
            )
            return ToolFailure(message, cause="lost")


def _denied(ending: Denied, nothing: str) -> ToolFailure:
    if ending.for_session:
        reason = f" Reason: {ending.reason}" if ending.reason else ""
        return ToolFailure(f"{denied_for_session(ending)}. {nothing}{reason}", cause="denied")
    if ending.by.surface == "rule":
        message = f"Refused by {whose_rule(ending.by.who)}. {nothing} Reason: {ending.reason}"
        return ToolFailure(message, cause="refused")
    if not ending.reason:
        return ToolFailure(f"Denied by the human, without a reason. {nothing}", cause="denied")
    return ToolFailure(f"Denied by the human. {nothing} Reason: {ending.reason}", cause="denied")


def agent_note(record: CallRecord) -> str | None:
    """Return the note for the agent, ending with what a human has said to it. None: there is nothing to say."""
    parts = (_edit(record), _place(record), _preview(record), limit_note(record), _memory(record), sandbox_note(record))
    return " ".join(part for part in (*parts, *record.heard) if part is not None) or None


def _edit(record: CallRecord) -> str | None:
    if not record.edited:
        return None
    asked, ran = record.call.spec, record.spec
    if isinstance(ran.command, FileEdits):
        return "The human changed the edit before it was made."
    if isinstance(ran.command, Function):
        return f"The human changed the arguments before the tool was called. It was called with: {ran.command.text}."
    sentence = f"The human changed the command before it ran. What ran: {command_line(ran)}"
    if ran.place != asked.place:
        sentence += f" (at {ran.place})" if ran.place else " (on this machine)"
    if ran.cwd != asked.cwd:
        sentence += f" (in {ran.cwd})"
    if ran.timeout_s != asked.timeout_s:
        limit = "no time limit" if ran.timeout_s is None else f"a time limit of {ran.timeout_s:g} seconds"
        sentence += f" (with {limit})"
    if ran.environment != asked.environment:
        added = " ".join(f"{name}={shlex.quote(value)}" for name, value in ran.environment.items())
        sentence += f" (with {added})" if added else " (with no variables added)"
    return sentence + "."


def _place(record: CallRecord) -> str | None:
    """Return where a command ran, if that is not this machine and the agent has not named it."""
    asked = record.call.spec
    if record.edited or not asked.place or record.call.arguments.get("place") == asked.place:
        return None
    return f"It ran at {asked.place}, in {asked.cwd}."


def _who_decided(record: CallRecord) -> str:
    """Return whose word let a command run, as the subject of a sentence."""
    if record.decided_by is None or record.decided_by.surface != "rule":
        return "The human"
    subject = whose_rule(record.decided_by.who)
    return f"{subject[0].upper()}{subject[1:]}"


def _preview(record: CallRecord) -> str | None:
    """Return the note about a run in a view of the files. None: it changed the real files itself."""
    if record.discarded:
        return f"The file changes of this command did not become real: {record.discarded}."
    if record.in_draft:
        return _draft(record)
    if record.applies and record.knows_previews:
        return "It ran in a preview as well, and its file changes are real."
    if record.applies:
        return (
            f"{_who_decided(record)} let this command run in a preview, without network, and exactly the file changes "
            "that it made there were then applied. The output and the exit code are those of the preview."
        )
    return None


def _draft(record: CallRecord) -> str | None:
    """Return the note about a run in the draft of its session. None: the agent knows."""
    if not record.applies:
        return "The human let it out of the draft, with the network; its file changes are in the draft, and not real."
    if record.knows_previews:
        return None
    return (
        "It ran in the draft of this session: your next commands find its file changes, and none of them is real until "
        "the human applies the draft."
    )


def limit_note(record: CallRecord) -> str | None:
    """Return the note about a limit that the agent did not set. None: no such limit ended the command."""
    # The tools' results do not show whose limit it was, so the agent would retry with the same one.
    unasked = record.decided_by is not None and record.decided_by.surface == "rule"
    match record.state:
        case Ended(ending=TimedOut(after_s=after_s)) if unasked and record.spec.timeout_s != after_s:
            return (
                f"It was ended after {after_s:g} seconds, the limit for read-only commands that run without "
                "a human's approval."
            )
        case Ended(ending=TimedOut(after_s=after_s)) if record.spec.timeout_s != record.call.spec.timeout_s:
            return f"The time limit of {after_s:g} seconds was reached, so it was ended."
        case _:
            words = broken_limit(record)
            return f"It was ended, because {words}." if words else None


def _memory(record: CallRecord) -> str | None:
    if record.decided_by is None or record.decided_by.surface != "memory":
        return None
    # A journal of the version before has no verdict that says what was approved.
    reason = record.verdict.reason if record.verdict is not None else "it was approved for the session"
    return f"No human was asked this time: {reason}."


def sandbox_note(record: CallRecord) -> str | None:
    """Return what the sandbox blocked for a failed command, and what the agent can do about it."""
    sandbox, blocked = record.sandbox, record.blocked
    if sandbox is None or blocked is None or not record.failed_in_sandbox:
        return None
    automatic = record.decided_by is not None and record.decided_by.surface in {"rule", "memory"}
    if automatic:
        return (
            f"Nobody was asked about this command, and its sandbox ({sandbox.words()}) refused what it needed: it "
            f"{blocked.words()}. Send the same command again to ask the human."
        )
    return f"The human approved this command in a sandbox ({sandbox.words()}), which refused it: it {blocked.words()}."


def command_line(spec: CommandSpec) -> str:
    """Return the command as a user would type it: the shell's text, or the quoted argv."""
    return spec.command.text


TRIES = 8
"""How often a result is created again with less output until it fits."""

# Escapes and markers lengthen a text by a factor that is only known afterwards.
MARGIN = 0.95


@dataclass(frozen=True)
class OutputBudget:
    """How much text a client shows its model without truncation."""

    size: int
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: lines do not count."""

    def less(self, text: str | None) -> "OutputBudget":
        """Return the remaining budget beside a text, but at least half of it."""
        return (
            self
            if text is None
            else OutputBudget(max(self.size - _size(self, text), self.size // 2), self.in_bytes, self.lines)
        )

    def filled(self, *texts: str) -> float:
        """Return the fraction of the budget that the longest text uses. A text with more than 1 does not fit."""
        return max(self._part(text) for text in texts)

    def _part(self, text: str) -> float:
        lines = 0.0 if self.lines is None else (text.count("\n") + 1) / self.lines
        return max(_size(self, text) / self.size, lines)


Make = Callable[[int | None], Awaitable[Any]]
"""Creates a result with at most that much output, in bytes or characters. None: with all output."""


async def fitted(budget: OutputBudget | None, make: Make, text_of: Callable[[Any], str]) -> Any:
    """Return the result with as much output as fits the budget, both as data and as text."""
    # Some clients show the structured content and some the text, so both must fit (decision 18).
    if budget is None:
        return await make(None)
    limit = budget.size
    for _ in range(TRIES):
        result = await make(limit)
        filled = budget.filled(as_json(result), text_of(result))
        if filled <= 1.0:
            return result
        # At least one less, so that the loop ends even if rounding would keep the limit.
        limit = min(int(limit / filled * MARGIN), limit - 1)
        if limit <= 0:
            break
    return await make(0)


def as_json(result: Any) -> str:
    """Return a result in the format in which clients show structured content."""
    return json.dumps(result, ensure_ascii=False, default=str)


READ_PARTS = "ask for a part of it, for example a range of lines with a command like sed -n"
"""Advice to the model about truncated output."""


def shortened(text: str, budget: OutputBudget, where: str = READ_PARTS) -> str:
    """Return a text without its middle, so that it fits. `where`: a hint about how to get the rest."""
    kept = len(text)
    while (filled := budget.filled(short := _without_middle(text, kept, where))) > 1.0 and kept:
        kept = max(0, min(int(kept / filled * MARGIN), kept - 1))
    return short


def _without_middle(text: str, kept: int, where: str) -> str:
    if kept >= len(text):
        return text
    first, last = kept - kept // 2, kept // 2
    left_out = f"{len(text) - kept:,} characters are left out here; {where}"
    return f"{text[:first]}\n[whisper_tui: {left_out}]\n{text[len(text) - last :]}"


def _size(budget: OutputBudget, text: str) -> int:
    return len(text.encode("utf-8", "replace")) if budget.in_bytes else len(text)


PIECE = 1024 * 1024
"""How many bytes are requested at once."""

_LEADING = 0xC0
_CONTINUATION = 0x80


_MOVES_CURSOR = re.compile(r"\x1b(?!\[[0-9;:]*[mK])")
"""Matches an escape sequence that neither colours nor erases to an end of the line: what it writes over is unknown."""
MOST_FRAMES = 4 * PIECE
"""Bytes of a stream that are read whole so that progress frames leave room for the rest."""


def without_frames(text: str) -> tuple[str, int]:
    """Return a text in which each line that was written over (`\\r`) is as it was left, and the number of states that
    are gone with that."""
    if "\r" not in text:
        return text, 0
    lines, gone = text.split("\n"), 0
    for at, line in enumerate(lines):
        body = line.rstrip("\r")
        states = body.count("\r")
        if states and not _MOVES_CURSOR.search(body):
            lines[at] = body.rpartition("\r")[2] + line[len(body) :]
            gone += states
    return "\n".join(lines), gone


def frames_note(gone: int, where: str) -> str:
    """Return the marker after a text without its progress frames. Empty: none are gone. `where`: how to get them."""
    return _marker(f"{count(gone, 'earlier state')} of overwritten lines are left out; {where}") if gone else ""


async def captured_texts(
    supervision: Supervision, record: CallRecord, limit: int | None, *, frames: bool = True
) -> tuple[str, str]:
    """Return both streams as they were when the leader ended, cut to `limit` bytes. None: no limit.

    Each stream may use half of the limit, and what the other stream does not need. A shortened stream
    keeps its head and its tail. A marker replaces bytes that are omitted here or were dropped by the capture, and
    without `frames` the progress that was written over.
    """
    if not isinstance(record.state, Ended) or record.state.attempt is None:
        return "", ""
    out, err = record.state.output.out, record.state.output.err
    most_err = err if limit is None else max(limit // 2, limit - out)
    most_out = out if limit is None else limit - min(err, most_err)
    read = _captured if frames else _without_frames
    return await asyncio.gather(
        read(supervision, record.id, "out", out, most_out), read(supervision, record.id, "err", err, most_err)
    )


async def _without_frames(supervision: Supervision, call_id: str, stream: Stream, size: int, limit: int) -> str:
    if size > limit and size > MOST_FRAMES:
        text, gone = without_frames(await _captured(supervision, call_id, stream, size, limit))
    else:
        text, gone = without_frames(await StreamText(supervision, call_id, stream).text(0, size))
        if not gone:
            return text if size <= limit else await _captured(supervision, call_id, stream, size, limit)
    where = await where_kept(supervision, call_id, stream)
    return (
        shortened(text, OutputBudget(max(limit, 1), in_bytes=True), where) + frames_note(gone, where) if gone else text
    )


async def _captured(supervision: Supervision, call_id: str, stream: Stream, size: int, limit: int) -> str:
    reader = StreamText(supervision, call_id, stream)
    if size <= limit:
        return await reader.text(0, size)
    half = limit // 2
    head = await reader.text(0, half, ends_midway=True)
    tail = await reader.text(size - half, size, starts_midway=True)
    left_out = f"{size - 2 * half:,} bytes are left out here"
    return head + _marker(f"{left_out}; {await where_kept(supervision, call_id, stream)}") + tail


async def where_kept(supervision: Supervision, call_id: str, stream: Stream) -> str:
    """Return the clause that says where all of a stream is."""
    path = await supervision.output_file(call_id, stream)
    return (
        f"all of it is in {path}" if path else f"`whisper-tui logs {call_id} --stream {stream}` prints the kept output"
    )


def _marker(text: str) -> str:
    return f"\n[whisper_tui: {text}]\n"


class StreamText:
    """Reads ranges of one stream as text."""

    def __init__(self, supervision: Supervision, call_id: str, stream: Stream) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._stream: Stream = stream

    async def text(self, start: int, end: int, *, starts_midway: bool = False, ends_midway: bool = False) -> str:
        """Return the bytes from `start` to `end` as text, without incomplete characters at a cut."""
        parts: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        offset, after_cut = start, starts_midway
        while offset < end:
            chunk = await self._supervision.read_output(self._call_id, self._stream, offset, min(PIECE, end - offset))
            data = chunk.data[: max(end - chunk.start, 0)]
            # Dropped bytes leave a gap in the offsets. The answer begins at the next captured byte.
            if chunk.start > offset or not data:
                reached = min(chunk.start, end) if chunk.start > offset else end
                parts.append(_marker(f"{reached - offset:,} bytes were dropped here when the output was captured"))
                decoder.reset()
                offset, after_cut = reached, True
            if data:
                parts.append(decoder.decode(whole_start(data) if after_cut else data))
                offset, after_cut = offset + len(data), False
        if not ends_midway:
            parts.append(decoder.decode(b"", final=True))
        return "".join(parts)


def whole_start(data: bytes) -> bytes:
    """Return the data without an incomplete character at its start."""
    skipped = 0
    # A UTF-8 character has at most three continuation bytes. More of them are not text and are kept.
    while skipped < min(3, len(data)) and data[skipped] & _LEADING == _CONTINUATION:
        skipped += 1
    return data[skipped:]
