"""A command as it is shown: an argv in words that can be told apart, a shell text in its own lines."""

import json
import shlex
from collections.abc import Iterable, Iterator

from whisper_tui.model.command import Argv, Command, Function
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Risk
from whisper_tui.tui.ends import Part, ends, is_endless
from whisper_tui.tui.spans import Line, Paragraph, Role, Span, said
from whisper_tui.tui.words import count

LONGEST_ROW, MOST_WORDS = 512, 64
"""Characters and words of a command in a row."""


def command_title(command: Command) -> str:
    """What kind of command it is, and how much of it there is to read."""
    if isinstance(command, Argv):
        return f"{count(len(command.words()), 'word')}, no shell reads them"
    if isinstance(command, Function):
        return "a tool of the agent's own, which it carries out itself"
    if isinstance(command, Function):
        return f"a tool of the agent's side, with {count(len(command.arguments), 'argument')}"
    length = len(command.text)
    lines = f"{count(command.text.count(chr(10)) + 1, 'line')}, " if "\n" in command.text else ""
    login = " -l" if command.login else ""
    return f"{lines}{count(length, 'character')}, read by {visible(command.shell)}{login}"


def one_line(command: Command) -> Line:
    """The beginning of a command, for a row of a list."""
    text = shlex.join(command.words()[:MOST_WORDS]) if isinstance(command, Argv) else command.text
    cut = len(text) > LONGEST_ROW or (isinstance(command, Argv) and len(command.words()) > MOST_WORDS)
    return (*said(text[:LONGEST_ROW]), *((Span(" …"),) if cut else ()))


def command_paragraphs(command: Command, risks: tuple[Risk, ...]) -> tuple[Paragraph, ...]:
    """The whole command. Rows that only continue a line have another margin than rows that begin one."""
    marked = sorted(risk.span for risk in risks if risk.span)
    text = whole_text(command)
    title = (_block(said(command.tool, "strong")),) if isinstance(command, Function) else ()
    if is_endless(text):
        return (*title, *_ends(text, marked))
    if isinstance(command, Argv):
        return _argv(command, marked)
    if isinstance(command, Function):
        return (*title, *_lines(Part(text, 0), 1, 0, []))
    return _lines(Part(text, 0), 1, len(str(text.count("\n") + 1)) if "\n" in text else 0, marked)


def whole_text(command: Command) -> str:
    """A command as it is shown: an argv as a shell would have to be given it, arguments as JSON, a text as it is."""
    if isinstance(command, Argv):
        return shlex.join(command.words())
    if isinstance(command, Function):
        return json.dumps(command.arguments, ensure_ascii=False, indent=2)
    return command.text


def _ends(text: str, marked: list[tuple[int, int]]) -> Iterator[Paragraph]:
    """Both ends of a text that nobody reads, and how much lies between."""
    head, tail = ends(text)
    number = text.count("\n", 0, tail.start) + 1
    digits = len(str(text.count("\n") + 1))
    yield from _lines(head, 1, digits, marked)
    between = count(tail.start - len(head.text), "character")
    yield _block((Span(f"… {between} are not shown here; whisper-tui show prints all of it …", "risk"),))
    yield from _lines(tail, number, digits, marked)


def _lines(part: Part, number: int, digits: int, marked: list[tuple[int, int]]) -> tuple[Paragraph, ...]:
    """Each line in a paragraph of its own, behind its number where there are `digits` for it."""
    found, at = [], part.start
    for line in part.text.split("\n"):
        found.append(_block(_marked(line, at, marked, "command"), f" {number:>{digits}} " if digits else " "))
        at += len(line) + 1
        number += 1
    return tuple(found)


def _block(spans: Line, label: str = " ") -> Paragraph:
    margin = (Span(label, "muted"), Span("│ ", "frame"))
    hanging = (Span(" " * len(label)), Span("┆ ", "frame"))
    return Paragraph(spans, margin, hanging, card=True, at_words=False)


def _argv(command: Argv, marked: list[tuple[int, int]]) -> tuple[Paragraph, ...]:
    """Words as a shell would have to quote them, each on its own ground; a line feed inside a word ends the row."""
    rows: list[list[Span]] = [[]]
    at = 0
    for word in command.words():
        quoted = shlex.quote(word)
        pieces = quoted.split("\n")
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            rows[-1] += _marked(piece if last else piece + "\n", at, marked, "word")
            at += len(piece) + 1
            if not last:
                rows.append([])
        rows[-1].append(Span(" "))
    return tuple(_block(tuple(row)) for row in rows)


def _marked(text: str, start: int, marked: Iterable[tuple[int, int]], role: Role) -> Line:
    """The text with the parts that a risk is about in the role of a risk; offsets count from `start`."""
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
    """Text whose tabs are blanks, as a terminal shows them."""
    return said(text if role == "word" else text.replace("\t", "    "), role, whole=True)
