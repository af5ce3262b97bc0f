"""Export documents: a selection of calls in one of the formats, and the file that it is written to."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from whisper_tui.export.asciicast import asciicast
from whisper_tui.export.markdown import call_report, session_report
from whisper_tui.export.session_story import oldest_first
from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.call import Session
from whisper_tui.model.call_rows import call_details
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.masked_calls import masked_record
from whisper_tui.model.state import CallRecord


async def json_line(supervision: Supervision, record: CallRecord, session: Session | None) -> str:
    """Return one call as a line of JSON, without the secrets in its command."""
    # ASCII only, and DEL is escaped too, because `cat` of an export must not affect the terminal (decision 21).
    removed = await output_was_removed(supervision, record)
    row = {**call_details(masked_record(record), session), "output_removed": removed}
    return json.dumps(row, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


ExportFormat = Literal["jsonl", "asciicast", "asciicast3", "markdown"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
ENDINGS: dict[ExportFormat, str] = {"jsonl": ".jsonl", "asciicast": ".cast", "asciicast3": ".cast", "markdown": ".md"}
"""The usual file extension of each format."""


class ExportSelection(NamedTuple):
    """The calls to export: the given calls, else all calls of the given sessions, else all calls."""

    calls: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()


async def document(
    supervision: Supervision, wanted: ExportSelection, form: ExportFormat, known: Mapping[str, Session]
) -> AsyncIterator[str]:
    """Yield the text of an export, piece by piece. `known`: sessions by their id, for their names.

    Raises `InvalidRequest` for calls that do not fit the format, and `UnknownCall`.
    """
    match form:
        case "jsonl":
            source = _json_lines(supervision, wanted, known)
        case "markdown":
            source = _reports(supervision, wanted, known)
        case _:
            if len(wanted.calls) != 1:
                raise InvalidRequest("a recording contains exactly one call", hint="Name exactly one call")
            record = await supervision.record(wanted.calls[0])
            version: Literal[2, 3] = 3 if form == "asciicast3" else 2
            source = asciicast(supervision, record, known.get(record.call.session_id), version)
    async for text in source:
        yield text


async def _json_lines(
    supervision: Supervision, wanted: ExportSelection, known: Mapping[str, Session]
) -> AsyncIterator[str]:
    for call_id in wanted.calls:
        record = await supervision.record(call_id)
        yield await json_line(supervision, record, known.get(record.call.session_id))
    if wanted.calls:
        return
    session_ids: list[str | None] = [session.id for session in wanted.sessions]
    for session_id in session_ids or [None]:
        async for record in oldest_first(supervision, session_id):
            yield await json_line(supervision, record, known.get(record.call.session_id))


async def _reports(
    supervision: Supervision, wanted: ExportSelection, known: Mapping[str, Session]
) -> AsyncIterator[str]:
    if not wanted.calls and not wanted.sessions:
        raise InvalidRequest("a report is about a session or about calls", hint="Name one with --session, or calls")
    if wanted.calls:
        yield "# Calls\n"
    for call_id in wanted.calls:
        record = await supervision.record(call_id)
        yield await call_report(supervision, record, known.get(record.call.session_id))
    if not wanted.calls:
        for session in wanted.sessions:
            async for text in session_report(supervision, session):
                yield text


async def save(texts: AsyncIterator[str], path: Path) -> int:
    """Write a document to a file that only its owner can read. An existing file is replaced atomically.

    A device or a pipe is written to directly. Return the number of bytes. Raises `Refused` if that fails.
    """
    if path.exists() and not path.is_file():
        return await _write_into(texts, path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
        try:
            with file:
                async for text in texts:
                    file.write(text)
                size = file.tell()
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Name another file") from error
    return size


async def _write_into(texts: AsyncIterator[str], path: Path) -> int:
    """Write a document to a device or a pipe."""
    # Replacing /dev/stdout or a FIFO by a file would break it for all other programs.
    written = 0
    try:
        with path.open("w", encoding="utf-8") as sink:
            async for text in texts:
                sink.write(text)
                written += len(text.encode())
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Name another file") from error
    return written
