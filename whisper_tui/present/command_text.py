"""A command as text: in a row, in full, and expanded into the commands that will run."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from whisper_tui.model.call import (
    Argv,
    CarriedOut,
    Command,
    FileChange,
    FileEdits,
    Function,
    PatchFile,
    ReplaceText,
    Session,
    Shell,
)
from whisper_tui.model.masking import masked_command
from whisper_tui.model.state import CallRecord, Unjudged, Waiting
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import GRAVE, Meaning, Redirect, Resolved, Risk
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Line, Paragraph, Role, Span, labelled, said
from whisper_tui.present.tool_text import ChangedFile, edit_line, is_tree, tool_line, tool_paragraphs
from whisper_tui.present.written_words import as_written

MOST_CHARACTERS, MOST_LINES = 40_000, 1_000
"""Longer text is shown as head and tail, because laying out megabytes would freeze the cockpit."""


class TextPart(NamedTuple):
    """A part of a text and its offset."""

    text: str
    start: int


def shows_only_ends(text: str) -> bool:
    """True if a text is so long that only its head and tail are shown."""
    return len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES


def head_and_tail(text: str) -> tuple[TextPart, TextPart]:
    """Return the visible head and tail of a long text, in whole lines if it has lines."""
    lines = MOST_LINES // 2
    head = "\n".join(text[: MOST_CHARACTERS // 2].split("\n", lines)[:lines])
    tail = text[max(len(head), len(text) - MOST_CHARACTERS // 2) :]
    tail = "\n".join(tail.rsplit("\n", lines)[-lines:])
    return TextPart(head, 0), TextPart(tail, len(text) - len(tail))


def head_and_tail_line(text: str, role: Role) -> Line:
    """Return a value that matters for the decision on one line: completely, or head, gap and tail."""
    if not shows_only_ends(text):
        return said(text, role, whole=True)
    head, tail = head_and_tail(text)
    gap = f" … {tail.start - len(head.text):,} characters not shown … "
    return (*said(head.text, role, whole=True), Span(gap, "risk"), *said(tail.text, role, whole=True))


LONGEST_LISTED = 1024
"""How many characters of a command are masked for its row. A row shows fewer."""


def listed_command(record: CallRecord) -> Command:
    """Return the command of a call for lists: masked, unless it still awaits its decision."""
    command = record.spec.command
    # A call that awaits its decision is shown unmasked, because nobody may approve hidden text (decision 2).
    return command if isinstance(record.state, Unjudged | Waiting) else _masked(_beginning(command))


def _beginning(command: Command) -> Command:
    """Truncate a command to the length of a row."""
    # Masking applies many patterns. With megabytes of text it would delay every redraw of the list.
    if isinstance(command, Shell) and len(command.text) > LONGEST_LISTED:
        return command.model_copy(update={"text": command.text[:LONGEST_LISTED]})
    if isinstance(command, Argv) and len(command.args) > LONGEST_LISTED:
        return command.model_copy(update={"args": command.args[:LONGEST_LISTED]})
    return command


def _masked(command: Command) -> Command:
    # The row of an edit names files; masking megabytes of their content would delay every redraw of the list.
    if isinstance(command, FileEdits):
        return command
    return masked_command(command) if isinstance(command, Function) else _masked_once(command)


@lru_cache(maxsize=4096)
def _masked_once(command: Argv | Shell) -> Command:
    return masked_command(command)


LONGEST_ROW, MOST_WORDS = 512, 64
"""How many characters and words of a command a row shows."""


def command_title(command: Command) -> str:
    """Return the kind of a command and its length."""
    if isinstance(command, Argv):
        return "no shell"
    if isinstance(command, Function):
        kinds = {"web": "a request to the web", "server": "a tool of an MCP server", "subagent": "a sub-agent"}
        return f"{kinds.get(command.about, 'a tool of the agent')}, run by the agent itself"
    if isinstance(command, FileEdits):
        return "an edit of files, made by the agent itself"
    lines = f", {count(command.text.count(chr(10)) + 1, 'line')}" if "\n" in command.text else ""
    login = " -l" if command.login else ""
    return f"{visible(command.shell)}{login}{lines}"


def call_line(record: CallRecord, session: Session | None = None) -> Line:
    """Return the beginning of a call's command for a row of a list, after its place, masked as in `listed_command`."""
    command = listed_command(record)
    if not isinstance(command, FileEdits):
        at = (Span(f"@{record.spec.place} ", "keyword"),) if record.spec.place else ()
        return (*at, *one_line(command))
    # Until it starts, the files were looked at for the request and not for the edited call.
    known = record.resolved.edits if record.resolved is not None and not record.edited else ()
    files = [ChangedFile(file.action, file.path, file.moved_from, file.added, file.removed) for file in known]
    return edit_line(files or changed_files(command), session.root if session is not None else record.spec.cwd)


def changed_files(edits: FileEdits) -> list[ChangedFile]:
    """Return the files that an edit names, each once, as far as the request itself says what becomes of them."""
    found: dict[str, ChangedFile] = {}
    for change in edits.changes:
        moved = change.move_to if isinstance(change, PatchFile) else None
        path = moved or change.path
        before = found.pop(change.path, None)
        origin = (before.moved_from if before else "") or (change.path if moved else "")
        found[path] = ChangedFile("moves" if origin else _action(change), path, origin)
    return list(found.values())


def _action(change: FileChange) -> str:
    if isinstance(change, ReplaceText) and not change.old:
        return "creates"
    return "deletes" if change.kind == "delete" else "changes"


def one_line(command: Command) -> Line:
    """Return the beginning of a command for a row of a list."""
    if isinstance(command, FileEdits):
        return edit_line(changed_files(command), "")
    if isinstance(command, Function):
        return tool_line(command.tool, command.about, command.targets, command.arguments)
    text = shlex.join(command.words()[:MOST_WORDS]) if isinstance(command, Argv) else command.text
    cut = len(text) > LONGEST_ROW or (isinstance(command, Argv) and len(command.words()) > MOST_WORDS)
    return (*said(text[:LONGEST_ROW]), *((Span(" …"),) if cut else ()))


def command_paragraphs(command: Command, risks: tuple[Risk, ...]) -> tuple[Paragraph, ...]:
    """Return the whole command. A row that continues a line has another margin than one that begins it."""
    marked = sorted(risk.span for risk in risks if risk.span)
    text = whole_text(command)
    title = (_block(said(command.tool, "strong")),) if isinstance(command, CarriedOut) else ()
    if shows_only_ends(text):
        return (*title, *_ends(text, marked))
    if isinstance(command, Function) and is_tree(command.arguments):
        return (*title, *tool_paragraphs(command.about, command.targets, command.arguments))
    if isinstance(command, Argv):
        return _argv(command, marked)
    if isinstance(command, CarriedOut):
        return (*title, *_lines(TextPart(text, 0), 1, 0, []))
    return _lines(TextPart(text, 0), 1, len(str(text.count("\n") + 1)) if "\n" in text else 0, marked)


def whole_text(command: Command) -> str:
    """Return a command as shown: an argv quoted for a shell, a tool's arguments as JSON, shell text unchanged."""
    if isinstance(command, Argv):
        return shlex.join(command.words())
    if isinstance(command, Function):
        return json.dumps(command.arguments, ensure_ascii=False, indent=2)
    if isinstance(command, FileEdits):
        return changes_text(command)
    return command.text


def changes_text(edits: FileEdits) -> str:
    """Return the changes of an edit as JSON, without the fields that are as usual."""
    changes = [change.model_dump(exclude_defaults=True, exclude={"kind"}) for change in edits.changes]
    named = [{"change": change.kind, **fields} for change, fields in zip(edits.changes, changes, strict=True)]
    return json.dumps(named, ensure_ascii=False, indent=2)


def _ends(text: str, marked: list[tuple[int, int]]) -> Iterator[Paragraph]:
    """Yield head and tail of a very long text, and the size of the gap."""
    head, tail = head_and_tail(text)
    number = text.count("\n", 0, tail.start) + 1
    digits = len(str(text.count("\n") + 1))
    yield from _lines(head, 1, digits, marked)
    between = count(tail.start - len(head.text), "character")
    yield _block((Span(f"… {between} not shown; `whisper-tui show` prints the whole command …", "risk"),))
    yield from _lines(tail, number, digits, marked)


def _lines(part: TextPart, number: int, digits: int, marked: list[tuple[int, int]]) -> tuple[Paragraph, ...]:
    """Return one paragraph per line, numbered in `digits` columns unless that is 0."""
    found, at = [], part.start
    for line in part.text.split("\n"):
        found.append(_block(marked_text(line, at, marked, "command"), f" {number:>{digits}} " if digits else " "))
        at += len(line) + 1
        number += 1
    return tuple(found)


def _block(spans: Line, label: str = " ") -> Paragraph:
    margin = (Span(label, "muted"), Span("│ ", "frame"))
    hanging = (Span(" " * len(label)), Span("┆ ", "frame"))
    return Paragraph(spans, margin, hanging, card=True, at_words=False)


def _argv(command: Argv, marked: list[tuple[int, int]]) -> tuple[Paragraph, ...]:
    """Return words quoted for a shell, each on its own background. A line feed inside a word ends the row."""
    rows: list[list[Span]] = [[]]
    at = 0
    for word in command.words():
        quoted = shlex.quote(word)
        pieces = quoted.split("\n")
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            rows[-1] += marked_text(piece if last else piece + "\n", at, marked, "word")
            at += len(piece) + 1
            if not last:
                rows.append([])
        rows[-1].append(Span(" "))
    return tuple(_block(tuple(row)) for row in rows)


def marked_text(text: str, start: int, marked: Iterable[tuple[int, int]], role: Role) -> Line:
    """Return the text with the parts of risks marked. Offsets count from `start`."""
    spans: list[Span] = []
    at = 0
    for span_start, span_end in marked:
        low, high = max(at, span_start - start), min(len(text), span_end - start)
        if low >= high:
            continue
        spans += _said(text[at:low], role)
        spans += _said(text[low:high], "marked")
        at = high
    return (*spans, *_said(text[at:], role))


def _said(text: str, role: Role) -> Line:
    """Return shell text with tabs as spaces, as a terminal shows them."""
    # In an argv a tab is part of an argument and must stay visible.
    return said(text if role == "word" else text.replace("\t", "    "), role, whole=True)


UNKNOWN_WORD = "runtime value"
FEW = 5
"""Up to so many commands keep their order. Among more, the risky ones come first."""
OPENS = {"read": "reads", "write": "writes", "net": "connects to"}


SYSTEM_PROGRAMS = ("/usr/", "/bin/", "/sbin/")
"""Programs in these directories need no line with their path; all others get one."""


def meaning_paragraphs(command: Command, resolved: Resolved | None) -> tuple[Paragraph, ...]:
    """Return the commands that a call expands to, without those that stand in it with the same words.

    Empty: they add nothing to the call itself.
    """
    if resolved is None:
        return ()
    written = as_written(command, resolved.commands)
    programs = _programs([each for each, same in zip(resolved.commands, written, strict=True) if same])
    order = [at for at in _order(resolved.commands) if not written[at]]
    if not (order or resolved.more or resolved.unread or resolved.variables):
        return programs
    left_out = sum(_counts(each) for each, same in zip(resolved.commands, written, strict=True) if same)
    title = _title(resolved, left_out, in_order=order == sorted(order))
    found = [*programs, BLANK, Paragraph((Span("Expands to", "label"), *title), margin=(Span(" "),))]
    for at in order:
        found += _meaning(resolved.commands[at], resolved.variables)
    margin = (Span(" │ ", "frame"),)
    if resolved.more:
        found.append(Paragraph((Span(f"+{resolved.more:,} more, none with a known risk", "muted"),), margin))
    if resolved.unread is not None:
        found.append(Paragraph((Span("Not fully inspected: ", "risk"), *said(resolved.unread, "risk")), margin))
    for name, value in sorted(resolved.variables.items()):
        line = (*said(name, "strong"), Span("=", "muted"), *(said(value) or (Span("empty", "risk"),)))
        found.append(Paragraph(line, margin=(*margin, Span("with ", "muted")), at_words=False))
    return tuple(found)


def _programs(meanings: Iterable[Meaning]) -> tuple[Paragraph, ...]:
    """Return a row for each program of these commands that is missing or not one of the system."""
    found: dict[str, Line] = {}
    for each in meanings:
        first = (each.words[0] if each.words else None) or ""
        if each.missing and first:
            found[first] = (*said(first, "bad"), Span(" was not found", "bad"))
        elif each.program is not None and "/" not in first and not each.program.startswith(SYSTEM_PROGRAMS):
            found[first] = (*said(first, "strong"), Span(" is ", "muted"), *said(each.program))
    return tuple(labelled("" if row else "Program", line, at_words=False) for row, line in enumerate(found.values()))


def _title(resolved: Resolved, left_out: int, *, in_order: bool) -> Line:
    """Return the number of commands. A wrapper and its command count as one."""
    number = sum(1 for meaning in resolved.commands if _counts(meaning)) + resolved.more
    if not resolved.commands:
        return ()
    least = "at least " if resolved.unread is not None else ""
    first = "" if in_order else ", risky ones first"
    others = f"; {left_out:,} as written" if left_out else ""
    return (Span(f"  {least}{count(number, 'command')}{first}{others}", "muted"),)


def _counts(meaning: Meaning) -> bool:
    return not meaning.wraps and not (not meaning.words and meaning.redirects)


def _order(meanings: tuple[Meaning, ...]) -> list[int]:
    """Return the places of the commands in their order or, if there are many, of the riskiest first."""
    places = range(len(meanings))
    return list(places) if len(meanings) <= FEW else sorted(places, key=lambda at: _rank(meanings[at]))


def _rank(meaning: Meaning) -> int:
    if not GRAVE.isdisjoint(meaning.risks):
        return 0
    if meaning.risks:
        return 1
    return 2 if any(each.access in {"write", "net"} for each in meaning.redirects) else 3


def _meaning(meaning: Meaning, variables: Mapping[str, str]) -> Iterator[Paragraph]:
    words: list[Span] = []
    for name, value in meaning.assignments.items():
        words += (*said(name, "strong"), Span("="), *_word(value), Span(" "))
    for word in meaning.words:
        words += (*_word(word), Span(" "))
    for redirect in meaning.redirects:
        joined = "" if redirect.operator.endswith("&") else " "
        words += (Span(f"{redirect.operator}{joined}", "strong"), *_word(redirect.target), Span(" "))
    if not words:
        words.append(Span("nothing: no word is left after expansion", "muted"))
    if meaning.background:
        words.append(Span(" in the background", "behind"))
    margin: Line = (Span(" │ ", "frame"), *_sign(meaning))
    yield Paragraph(tuple(words), margin, (Span(" ┆ ", "frame"),), at_words=False)
    notes = _joined(_notes(meaning, variables))
    if notes:
        yield Paragraph(notes, (Span(" │ ", "frame"), Span("  ")), at_words=False)


def _sign(meaning: Meaning) -> Line:
    if not GRAVE.isdisjoint(meaning.risks):
        return (Span("▲▲ ", "bad"),)
    return (Span("▲ ", "risk"),) if meaning.risks else ()


def _word(word: str | None) -> Line:
    return (Span(f"⟨{UNKNOWN_WORD}⟩", "risk"),) if word is None else said(shlex.quote(word), "word")


def _notes(meaning: Meaning, variables: Mapping[str, str]) -> Iterator[Line]:
    first = meaning.words[0] if meaning.words else None
    if meaning.missing and first is not None:
        yield (*said(first, "bad"), Span(" was not found", "bad"))
    elif meaning.program is not None and meaning.program != first:
        yield said(meaning.program, "muted")
    if meaning.through:
        yield said(f"through {', '.join(meaning.through)}", "muted")
    yield from (_opened(each) for each in meaning.redirects if each.access in OPENS)
    # The values of variables have rows of their own.
    own = tuple(f"${name}: " for name in variables)
    yield from (said(note, "muted") for note in meaning.expanded if not note.startswith(own))
    if meaning.unknown:
        yield said(meaning.unknown, "risk")


def _opened(redirect: Redirect) -> Line:
    """Describe a redirection: reads, writes or appends to a file."""
    verb = "appends to" if redirect.operator.endswith(">>") else OPENS[redirect.access]
    target = (Span("a file whose name is in a variable"),) if redirect.target is None else said(redirect.target)
    return (Span(f"{verb} ", "strong" if redirect.access != "read" else "muted"), *target)


def _joined(notes: Iterator[Line]) -> Line:
    found: list[Span] = []
    for note in notes:
        found += (*((Span(" · ", "muted"),) if found else ()), *note)
    return tuple(found)
