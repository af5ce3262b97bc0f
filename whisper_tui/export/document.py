"""Export documents: a selection of calls in one of the formats, the file that it is written to, and the reports."""

import json
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from whisper_tui.export import ExportFormat
from whisper_tui.export.asciicast import asciicast
from whisper_tui.export.session_story import Statistics, difference, oldest_first, outcome, title_of
from whisper_tui.export.terminal_screen import LastScreen, TooSlow, last_screen
from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.call import CarriedOut, CommandSpec, FileEdits, Session, Shell
from whisper_tui.model.call_rows import call_details, call_row
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.masking import masked_record
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible
from whisper_tui.present.command_text import whole_text
from whisper_tui.present.preview_text import changed_text, outcome_text, undo_text

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]",
    re.DOTALL,
)


def in_code(text: str) -> str:
    """Return text as inline code, so that it cannot become a link, a tag, a mention or markup."""
    # A code span ends at as many backticks as it began with, so it begins with one more than the text has.
    shown = visible(text) or " "
    mark = "`" * (_longest_run(shown) + 1)
    edge = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{mark}{edge}{shown}{edge}{mark}"


def block(text: str, language: str = "text") -> str:
    """Return text as a fenced code block that the text cannot end."""
    shown = visible(text, keep_lines=True)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}\n"


def plain_output(data: bytes) -> str:
    """Return output without colours, with only the final state of overwritten lines such as progress bars."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


SHOWN_LINES = 20
"""How many lines at the end of each stream are in a report."""
SHOWN_BYTES = 4096
_STREAMS: tuple[tuple[Stream, str], ...] = (("out", "Output"), ("err", "Errors"))


async def session_report(supervision: Supervision, session: Session) -> AsyncIterator[str]:
    """Yield the report of a session, piece by piece. Times are in UTC."""
    # Two passes over the pages, because the statistics are at the top and a long session does not fit into memory.
    statistics = Statistics()
    async for record in oldest_first(supervision, session.id):
        statistics.add(record)
    yield f"# Session {in_code(session.name)}\n\n"
    yield "".join(f"* {line}\n" for line in (*_about(session), *figures(statistics)))
    yield "\n## Calls\n"
    async for record in oldest_first(supervision, session.id):
        yield await call_report(supervision, record, session)


async def call_report(supervision: Supervision, record: CallRecord, session: Session | None) -> str:
    """Return the report of one call, with a heading. Secrets are masked in its command, but not in its output."""
    record = masked_record(record)
    parts = [f"\n### Call {record.id}: {_outcome(record, session)}\n\n"]
    if record.call.description:
        parts.append(f"The agent says: {in_code(record.call.description)}\n\n")
    if record.edited:
        did = "Ran" if record.function is None else "Done"
        parts += ["Asked:\n\n", _command(record.call.spec), f"\n{did}, as a human edited it:\n\n"]
    elif isinstance(record.function, CarriedOut):
        parts.append(f"{in_code(title_of(record, session))}\n")
    # The differences of an edit that was made say all that its changes do.
    if not (isinstance(record.function, FileEdits) and _was_made(record)):
        parts += ["\n" if record.function and not record.edited else "", _command(record.spec)]
    elif record.edited:
        parts.append(f"{in_code(title_of(record, session))}\n")
    parts.append("\n" + "".join(f"* {line}\n" for line in _facts(record)))
    parts.append(await _edited_files(supervision, record))
    if await output_was_removed(supervision, record):
        parts.append("\nIts output was removed from the disk, or a part of it.\n")
    elif record.process is not None:
        parts.append(await _printed(supervision, record))
    return "".join(parts)


async def _edited_files(supervision: Supervision, record: CallRecord) -> str:
    """Return the files of an edit that was made, with digests and differences. Empty: it is another kind of call."""
    if record.resolved is None or not record.resolved.edits or not _was_made(record):
        return ""
    parts = []
    every = await supervision.file_versions(record.id)
    moved_away = {versions.file.moved_from for versions in every}
    for versions in every:
        file = versions.file
        if file.action == "deletes" and file.real in moved_away:
            continue
        moved = f" from {in_code(file.moved_from)}" if file.moved_from else ""
        counts = f"+{file.added:,} −{file.removed:,}"
        digests = " → ".join(in_code(digest) if digest else "no file" for digest in (file.before, file.after))
        parts.append(f"\n{file.action.capitalize()} {in_code(file.real)}{moved}: {counts}, SHA-256 {digests}\n\n")
        parts.append(block("\n".join(difference(versions)), "diff"))
    return "".join(parts)


def _was_made(record: CallRecord) -> bool:
    """True if the agent was let go on with what it carries out itself."""
    return isinstance(record.state, Ended) and isinstance(record.state.ending, HandedOver)


def figures(statistics: Statistics) -> tuple[str, ...]:
    """Return the statistics as sentences."""
    found = [
        f"{statistics.calls:,} calls; a human was asked about {statistics.asked:,}: {statistics.approved:,} approved"
        f" ({statistics.edited:,} of them edited), {statistics.denied:,} denied, {statistics.waiting:,} still waiting",
        f"Rules let {statistics.allowed_by_rule:,} run and refused {statistics.refused_by_rule:,};"
        f" standing approvals let {statistics.allowed_by_memory:,} run",
    ]
    if statistics.median_wait_s is not None and statistics.saved_s is not None:
        found += [
            f"Median time from a call's arrival to the human's decision: {statistics.median_wait_s:.1f} s",
            f"Time saved by standing approvals: {statistics.saved_s:.0f} s"
            f" ({statistics.allowed_by_memory:,} calls, each the median time to decide)",
        ]
    return tuple(found)


def _about(session: Session) -> list[str]:
    client = f"{session.client.name} {session.client.version}".strip() if session.client else "unknown agent"
    closed = f", closed {_time(session.closed_at)}" if session.closed_at is not None else ""
    return [
        f"{in_code(session.id)}, {in_code(client)}, in {in_code(session.root)}",
        f"Opened {_time(session.opened_at)}{closed}",
    ]


def _outcome(record: CallRecord, session: Session | None) -> str:
    row = call_row(record, session)
    match row["ending"]:
        case None:
            return str(row["state"])
        case "exited":
            return f"exit code {row['exit_code']}"
        case "signalled":
            return f"ended by {row['signal_name']}"
        case "handed_over":
            return outcome(record)
        case kind:
            return str(kind).replace("_", " ")


def _command(spec: CommandSpec) -> str:
    """Return a command, the arguments of a tool, or the changes of an edit as they were asked for."""
    if isinstance(spec.command, CarriedOut):
        return block(whole_text(spec.command), "json")
    return block(spec.command.text, "sh" if isinstance(spec.command, Shell) else "text")


def _facts(record: CallRecord) -> list[str]:
    at = f" at {in_code(record.spec.place)}" if record.spec.place else ""
    where = f"in {in_code(record.spec.cwd)}{at}"
    found = [f"Asked {_time(record.call.submitted_at)} with {in_code(record.call.tool)}, {where}"]
    if record.verdict is not None:
        found.append(f"Judged: {record.verdict.kind}, because {in_code(record.verdict.reason)}")
        found += [f"Risk: {in_code(risk.sentence)}" for risk in record.verdict.risks]
    if record.decision is not None and record.decided_by is not None and record.decided_at is not None:
        word = "Approved" if isinstance(record.decision, Approve) else "Denied"
        by = f"{record.decided_by.surface} {record.decided_by.who}".strip()
        found.append(f"{word} {_time(record.decided_at)} by {in_code(by)}")
    if (alarm := record.alarm) is not None:
        found.append(f"ALARM: {alarm.words()}")
        found.append(f"Approved was {in_code(alarm.approved)}")
        found += [f"What ran, by the agent's program: {in_code(alarm.ran)}"] if alarm.ran else []
    if record.agent_gave_up is not None:
        found.append(f"Its agent no longer waits for it: {in_code(record.agent_gave_up)}")
    found += _changes(record)
    if record.reverted_by is not None:
        found.append(f"Undone by {in_code(f'{record.reverted_by.surface} {record.reverted_by.who}'.strip())}")
    if record.sandbox is not None:
        found.append(f"Sandbox: {record.sandbox.words()}")
    if record.blocked is not None:
        found.append(f"Blocked by its sandbox: it {in_code(record.blocked.words())}")
    if isinstance(record.state, Ended):
        if (reason := call_row(record, None)["reason"]) and not (record.function and _was_made(record)):
            found.append(f"Because: {in_code(reason)}")
        if record.state.usage is not None:
            used = record.state.usage
            memory = f", {used.max_rss_kib:,} KiB" if used.max_rss_kib else ""
            found.append(f"Took {used.wall_s:.2f} s, {used.user_s + used.system_s:.2f} s of CPU{memory}")
    return found


def _changes(record: CallRecord) -> Iterator[str]:
    """Yield the facts about the preview of a call, and about what was done with its changes since."""
    preview = record.preview
    if preview is not None and preview.report is not None:
        by = in_code(f"{preview.by.surface} {preview.by.who}".strip())
        yield f"Previewed {_time(preview.started_at)} by {by}: {in_code(outcome_text(preview.report))}"
    if record.discarded:
        yield f"Its changes did not become real: {in_code(record.discarded)}"
    elif record.applies:
        yield "Applied from its preview: it did not run again"
    if isinstance(record.state, Ended) and record.state.changed is not None:
        yield f"Changed: {in_code(changed_text(record.state.changed, record.spec.cwd))}"
    if record.not_kept_because:
        yield f"Its changes were not kept: {in_code(record.not_kept_because)}"
    for undo in (*record.earlier_undos, *filter(None, (record.undo,))):
        yield f"Its changes: {in_code(undo_text(undo, _time(undo.at)))}"


async def _printed(supervision: Supervision, record: CallRecord) -> str:
    """Return the output of a run: the ends of its streams, or the last screen of a full-screen program."""
    if record.spec.tty:
        try:
            screen = await last_screen(supervision, record.id)
        except TooSlow:
            return (
                "\nIts output draws on the screen of a terminal, and drawing it took too long."
                " An export as `asciicast` plays it.\n"
            )
        if screen is not None:
            return await _screens(supervision, record, screen)
    return "".join([await _output(supervision, record, stream, title) for stream, title in _STREAMS])


async def _screens(supervision: Supervision, record: CallRecord, screen: LastScreen) -> str:
    written = (await supervision.read_output(record.id, "out", 0, 0)).size
    size = f"{screen.columns}x{screen.rows}"
    if screen.replayed < written:
        size += f", drawn from the end of {written:,} bytes"
    parts = []
    if screen.program is not None:
        parts.append(f"\nThe last screen of its full-screen program, {size}:\n\n{block(screen.program)}")
    if screen.text.strip():
        parts.append(f"\nOutput, as the last screen of its terminal, {size}:\n\n{block(screen.text)}")
    return "".join(parts) or f"\nThe last screen of its terminal, {size}, is empty.\n"


async def _output(supervision: Supervision, record: CallRecord, stream: Stream, title: str) -> str:
    chunk = await supervision.read_output(record.id, stream, -SHOWN_BYTES, SHOWN_BYTES)
    lines = plain_output(chunk.data).rstrip("\n").split("\n")
    shown = lines[-SHOWN_LINES:]
    if not any(shown):
        return ""
    whole = chunk.start == 0 and len(lines) == len(shown)
    size = "" if whole else f", the end of {chunk.size:,} bytes"
    return f"\n{title}{size}:\n\n{block(chr(10).join(shown))}"


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


async def json_line(supervision: Supervision, record: CallRecord, session: Session | None) -> str:
    """Return one call as a line of JSON, without the secrets in its command."""
    # ASCII only, and DEL is escaped too, because `cat` of an export must not affect the terminal (decision 21).
    removed = await output_was_removed(supervision, record)
    row = {**call_details(masked_record(record), session), "output_removed": removed}
    return json.dumps(row, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


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
