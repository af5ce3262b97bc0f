"""A run as a terminal recording: asciicast v2 and v3, with the times at which its output came."""

import json
from collections.abc import AsyncIterator
from typing import Literal

from whisper_tui.export.markdown_text import command_text
from whisper_tui.export.playable import Playable
from whisper_tui.export.recorded import Piece, Resized, moments
from whisper_tui.model.call import Session
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.masked import masked_command
from whisper_tui.model.port import Supervision
from whisper_tui.model.removed import output_was_removed
from whisper_tui.model.run import Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible

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
    sizes = await supervision.terminal_sizes(record.id)
    yield _line(_header(record, session, version, sizes[0]))
    last = 0
    async for at, code, data in _played(moments(supervision, record, sizes), terminal=record.spec.tty):
        now = round(at * 1000)
        yield _line([(now - last if version == 3 else now) / 1000, code, data])
        last = now
    if version == 3 and isinstance(record.state, Ended):
        end = max(last, round((record.state.at - record.process.started_at) * 1000))
        yield _line([(end - last) / 1000, "x", str(_status(record.state))])


async def _played(moments: AsyncIterator[Piece | Resized], *, terminal: bool) -> AsyncIterator[tuple[float, str, str]]:
    """Events as a recording has them, in seconds since the start; both streams, as a terminal would have shown them."""
    shown: dict[Stream, Playable] = {name: Playable(terminal=terminal) for name in ("out", "err")}
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
        "command": visible(command_text(masked_command(record.spec.command))),
        "title": f"Call {record.id} of {named}",
    }
    if version == 3:
        return {"version": 3, "term": {"cols": size.columns, "rows": size.rows, "type": TERMINAL}, **about}
    if isinstance(record.state, Ended):
        about["duration"] = round(max(0.0, record.state.at - began), 3)
    return {"version": 2, "width": size.columns, "height": size.rows, **about, "env": {"TERM": TERMINAL}}


def _status(state: Ended) -> int:
    """The exit status as a shell would give it; 1 for an ending that has none."""
    if isinstance(state.ending, Exited):
        return state.ending.code
    return 128 + state.ending.number if isinstance(state.ending, Signalled) else 1


def _line(content: object) -> str:
    return json.dumps(content, ensure_ascii=True) + "\n"
