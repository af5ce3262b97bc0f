"""Recorded runs, printed: their output in its order, and the reports of `history verify`, `refused` and `rules`."""

import asyncio
import codecs
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.standard_streams import STDERR, STDOUT, data_on
from whisper_tui.cli.subcommand import DONE, REFUSED, complain
from whisper_tui.model.api import Supervision
from whisper_tui.model.run import Stream, output_turns
from whisper_tui.model.text import replace_hidden, show_characters, visible
from whisper_tui.present.quantities import count
from whisper_tui.system.state_directory import Directories

_CONTROLS = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]*m)"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences
    r"|\x1b[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)"  # strings: titles, clipboard, pictures
    r"|\x1b[ -/]*[0-~]"  # short escapes
    r"|\r(?!\n)"  # back over what was shown
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_PALETTE = re.compile(r"[345]8;(?:5;\d*|2(?:;\d*){3})")
"""A colour by number, in which no number means anything else."""
_CONCEAL = "8"
_UNFINISHED = re.compile(r"\r\Z|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*+\x1b?|[ -/]*)\Z", re.DOTALL)
_KEPT = frozenset("\n\r\t\x1b")

LONGEST_ESCAPE = 65_536
"""Characters of an unfinished escape that are waited for; a longer one is let go."""


class TerminalText:
    """Filters a stream piece by piece; an escape cut by the end of a piece is finished by the next one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes) -> bytes:
        """Return the part of the next piece that may be shown."""
        text = self._held + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        self._held = unfinished.group() if unfinished else ""
        ready = text[: unfinished.start()] if unfinished else text
        kept = _CONTROLS.sub(_shown, ready)
        return (kept if kept.isascii() else replace_hidden(kept, show_characters, keep=_KEPT, printed=True)).encode()


def _shown(found: "re.Match[str]") -> str:
    """Return the replacement for a control sequence."""
    # A lone carriage return would let later text overwrite earlier text, so it becomes a line end.
    if found.group() == "\r":
        return "\n"
    # Colours stay, except "conceal", which makes text invisible.
    colour = found.group("colour") or ""
    parts = _PALETTE.sub("", colour[2:-1]).split(";")
    return "" if any(part.partition(":")[0].lstrip("0") == _CONCEAL for part in parts) else colour


PIECE = 4 * 1024 * 1024
"""Bytes read at once."""

SPANS = 16_384
"""Rows of the time index read at once."""

POLL_S = 0.1

STREAMS: tuple[Stream, Stream] = ("out", "err")


class Printer:
    """Prints the streams of one call to our own standard output and standard error."""

    def __init__(self, supervision: Supervision, call_id: str) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._at: dict[Stream, int] = {"out": 0, "err": 0}
        self._write: dict[Stream, Callable[[bytes], None]] = {
            "out": stream_writer(STDOUT),
            "err": stream_writer(STDERR),
        }

    async def print_one(self, stream: Stream, *, follow: bool) -> None:
        """One stream, to its end or, with `follow`, until it has one."""
        while True:
            ended = await self._print_rest(stream)
            if ended or not follow:
                return
            await asyncio.sleep(POLL_S)

    async def print_both(self, *, follow: bool) -> None:
        """Both streams, in the order of the time index."""
        row = 0
        while True:
            spans = await self._supervision.read_timeline(self._call_id, row, SPANS)
            row += len(spans)
            for stream, end in output_turns(spans):
                await self._print_until(stream, end)
            if spans:
                continue
            if not follow or await self._nothing_comes():
                break
            await asyncio.sleep(POLL_S)
        for stream in STREAMS:
            await self._print_rest(stream)

    async def _nothing_comes(self) -> bool:
        """True if both streams can no longer grow, and the time index has been read to its end."""
        chunks = [await self._supervision.read_output(self._call_id, stream, 0, 0) for stream in STREAMS]
        return all(chunk.ended for chunk in chunks)

    async def _print_rest(self, stream: Stream) -> bool:
        """Print everything up to now. Return True if no more can come."""
        while True:
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], PIECE)
            self._take(stream, chunk.start, chunk.data)
            if self._at[stream] >= chunk.size or not chunk.data:
                return chunk.ended

    async def _print_until(self, stream: Stream, end: int) -> None:
        while self._at[stream] < end:
            limit = min(PIECE, end - self._at[stream])
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], limit)
            self._take(stream, chunk.start, chunk.data)
            if not chunk.data:
                return

    def _take(self, stream: Stream, start: int, data: bytes) -> None:
        if start > self._at[stream]:
            sys.stderr.write(f"whisper-tui: {start - self._at[stream]:,} bytes of {stream} were dropped here\n")
            sys.stderr.flush()
        if data:
            self._write[stream](data)
        self._at[stream] = max(self._at[stream], start + len(data))


def stream_writer(number: int) -> Callable[[bytes], None]:
    """Return what writes bytes to a standard stream: as they are; to a terminal, without what controls it."""
    file = data_on(number)
    shown = TerminalText().feed if file.isatty() else bytes

    def write(data: bytes) -> None:
        file.write(shown(data))
        file.flush()

    return write


OUTSIDE = (
    "The chain does not cover the search index, the lists of calls and sessions in the journal, the environments of "
    "sessions, and the times at which output arrived"
)
MOST_NAMED = 20
"""Calls with changed output that are named at most."""


def verify(home: Directories, noted: str | None, *, as_json: bool) -> int:
    """Verify the journal's hash chain and the recorded output, and print the result."""
    from whisper_tui.supervisor.journal.counters import check_journal
    from whisper_tui.supervisor.journal.sqlite_file import Head
    from whisper_tui.supervisor.runs.output_files import check_outputs

    path = Path(home.state) / "journal.sqlite"
    verdict = check_journal(path, Head.parse(noted) if noted is not None else None)
    end = verdict.head.text() if verdict.head is not None else None
    outputs = check_outputs(path, str(Path(home.state) / "runs")) if verdict.problem is None else None
    problem = verdict.problem or (_changed(outputs.changed) if outputs is not None else None)
    if as_json:
        row = {"journal": str(path), "events": verdict.events, "end": end, "problem": problem}
        print_json(row | {"outputs": outputs._asdict() if outputs is not None else None})
        return DONE if problem is None else REFUSED
    if verdict.problem is None:
        sys.stdout.write(f"{path} is unchanged: {verdict.events:,} events, each linked to the one before it\n")
    if outputs is not None:
        sys.stdout.write(_compared(outputs.checked, outputs.gone, len(outputs.changed)))
    if problem is not None:
        if verdict.problem is not None:
            sys.stdout.write(f"{count(verdict.events, 'event')} of {path} can be read, and are as they were written\n")
        sys.stderr.write(f"whisper-tui: {path}: {visible(problem)}\n")
        return REFUSED
    if end is not None:
        sys.stdout.write(f"{OUTSIDE}\n")
        sys.stdout.write(f"The chain ends at {end}\n")
        sys.stdout.write(
            "Keep this elsewhere: with it, history verify --head END also finds that events were cut off\n"
        )
    return DONE


def _compared(checked: int, gone: int, changed: int) -> str:
    said = f"The recorded output of {checked - changed:,} of {count(checked, 'run')} is unchanged"
    return said + (f"; that of {count(gone, 'other')} is no longer kept\n" if gone else "\n")


def _changed(call_ids: tuple[str, ...]) -> str | None:
    if not call_ids:
        return None
    named, left = ", ".join(call_ids[:MOST_NAMED]), len(call_ids) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    return f"the recorded output of call{'s' if len(call_ids) > 1 else ''} {named}{more} was changed after the run"


KINDS = {"refused": "attempt_refused", "rules": "rules_changed"}
NOTHING = {
    "refused": "There were no refused attempts to decide",
    "rules": "The files of rules are as they were when whisper_tui began to look at them",
}

# The events themselves are read, not the tables beside them, because only events are in the hash chain.
_NEWEST = "SELECT body FROM events WHERE instr(body, ?) ORDER BY seq DESC"


def notices(home: Directories, about: Literal["refused", "rules"], limit: int, *, as_json: bool) -> int:
    """Print the newest of these events, newest first. Needs no supervisor and starts none."""
    from whisper_tui.model.event import EVENT, AttemptRefused, RulesChanged
    from whisper_tui.present.security_text import refused_sentence, rules_sentence

    told, unread = [], 0
    for body in _bodies(Path(home.state) / "journal.sqlite", KINDS[about]):
        try:
            event = EVENT.validate_json(body)
        except ValueError:  # Damaged: `verify` names it.
            unread += 1
            continue
        if isinstance(event, AttemptRefused):
            sentence: str | None = refused_sentence(event)
        else:
            sentence = rules_sentence(event) if isinstance(event, RulesChanged) else None
        if sentence is not None:
            told.append((event, sentence))
        if len(told) >= limit:
            break
    if unread:
        complain(f"{count(unread, 'event')} cannot be read: the journal is damaged. See whisper-tui history verify")
    if as_json:
        print_json([event.model_dump(mode="json") for event, _ in told])
        return DONE
    for event, sentence in told:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
        sys.stdout.write(f"{at}  {sentence}\n")
    if not told:
        sys.stdout.write(f"{NOTHING[about]}\n")
    return DONE


def _bodies(path: Path, kind: str) -> list[str]:
    from whisper_tui.supervisor.journal.sqlite_file import read_rows

    return [body for (body,) in read_rows(path, _NEWEST, f'"kind":"{kind}"')]
