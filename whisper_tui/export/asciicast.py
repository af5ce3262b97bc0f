"""A run as a terminal recording: asciicast v2 and v3, with the times at which its output came."""

import json
from collections.abc import AsyncIterator
from typing import Literal

from whisper_tui.export.markdown_text import command_text
from whisper_tui.export.playable import Playable
from whisper_tui.export.recorded import pieces
from whisper_tui.model.call import Session
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.masked import masked_command
from whisper_tui.model.port import Supervision
from whisper_tui.model.removed import output_was_removed
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible

COLUMNS, ROWS = 80, 24
"""The size of the terminal that is recorded: how a person resized it is not kept."""
TERMINAL = "xterm-256color"

Version = Literal[2, 3]


async def asciicast(
    supervision: Supervision, record: CallRecord, session: Session | None, version: Version
) -> AsyncIterator[str]:
    """The lines of a recording. Raises `InvalidRequest` for a call that never ran, `Refused` if its output is gone."""
    if record.process is None:
        raise InvalidRequest(f"call {record.id} never ran, so there is nothing to play", hint="Export it as jsonl")
    if await output_was_removed(supervision, record):
        hint = "What is known of it otherwise can be exported as jsonl or markdown"
        raise Refused(
            f"the output of call {record.id} was removed from the disk, so there is nothing to play", hint=hint
        )
    yield _line(_header(record, session, version))
    last = 0
    async for at, text in _played(supervision, record):
        now = round(at * 1000)
        yield _line([(now - last if version == 3 else now) / 1000, "o", text])
        last = now
    if version == 3 and isinstance(record.state, Ended):
        end = max(last, round((record.state.at - record.process.started_at) * 1000))
        yield _line([(end - last) / 1000, "x", str(_status(record.state))])


async def _played(supervision: Supervision, record: CallRecord) -> AsyncIterator[tuple[float, str]]:
    """Text and when it came, in seconds since the start; both streams, as a terminal would have shown them."""
    shown: dict[Stream, Playable] = {name: Playable(terminal=record.spec.tty) for name in ("out", "err")}
    at = 0.0
    async for piece in pieces(supervision, record):
        at = piece.after_s
        if piece.dropped:
            yield at, f"\r\n[{piece.dropped:,} bytes were not kept]\r\n"
        if text := shown[piece.stream].feed(piece.data):
            yield at, text
    for stream in shown.values():
        if text := stream.feed(b"", last=True):
            yield at, text


def _header(record: CallRecord, session: Session | None, version: Version) -> dict[str, object]:
    began = record.process.started_at if record.process else record.call.submitted_at
    named = visible(session.name) if session is not None else record.call.session_id
    about: dict[str, object] = {
        "timestamp": int(began),
        "command": visible(command_text(masked_command(record.spec.command))),
        "title": f"Call {record.id} of {named}",
    }
    if version == 3:
        return {"version": 3, "term": {"cols": COLUMNS, "rows": ROWS, "type": TERMINAL}, **about}
    if isinstance(record.state, Ended):
        about["duration"] = round(max(0.0, record.state.at - began), 3)
    return {"version": 2, "width": COLUMNS, "height": ROWS, **about, "env": {"TERM": TERMINAL}}


def _status(state: Ended) -> int:
    """The exit status as a shell would give it; 1 for an ending that has none."""
    if isinstance(state.ending, Exited):
        return state.ending.code
    return 128 + state.ending.number if isinstance(state.ending, Signalled) else 1


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=True) + "\n"
