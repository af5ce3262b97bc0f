"""The steps of a chain of commands as lines: the text itself, broken at its connectors, with marks at the right."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from whisper_tui.model.call import Shell
from whisper_tui.model.effects import StepEffect, StepMark
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Risk
from whisper_tui.present.command_text import marked_text
from whisper_tui.present.spans import Line, Paragraph, Role, Span
from whisper_tui.present.written_words import TextToken, tokens

LONGEST_CHAIN = 2_000
"""Characters of a text that is looked at."""
_OPENS = frozenset({"&&", "||", "|", "|&"})
"""Connectors that begin a line; the others end one."""
_CLOSES = frozenset({";", "&"})
_NO_STEPS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select"}
    | {"function", "coproc", "time", "{", "}", "[[", "]]", "!"}
)
"""First words behind which a text has another shape than a chain."""
_NESTS = re.compile(r"""`|\$['"]|\$\{(?!\w+\})""")
"""Quotes of other rules, and values that may hold quotes: only a shell can tell where a command ends."""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_WIDE = 100
"""Columns of a card whose marks have room for all of them."""
_ROLES: dict[StepMark, Role] = {
    "deletes": "risk", "writes": "text", "network": "name", "runs code": "number", "unknown": "muted", "reads": "muted",
}  # fmt: skip
_MATTERS: tuple[StepMark, ...] = ("deletes", "runs code", "network", "writes", "unknown", "reads")
"""The marks that are shown first where there is no room for all."""


def step_paragraphs(record: CallRecord, effects: Sequence[StepEffect], columns: int) -> tuple[Paragraph, ...]:
    """Return the command of a call as one line a step. Empty: it is no chain, or it is not certain where a step ends.

    The marks stand in a column of their own, which no text of the command reaches.
    """
    command = record.spec.command
    unread = record.resolved is not None and record.resolved.unread is not None
    if not isinstance(command, Shell) or record.edited or unread:
        return ()
    steps = steps_of(command.text)
    if len(steps) < 2:
        return ()
    marks = _marks(steps, effects)
    risks = record.verdict.risks if record.verdict is not None else ()
    width = 32 if columns >= _WIDE else 25
    indent = max(len(connector) for _, _, connector in steps)
    return tuple(
        _line(command.text, step, risks, _shown(mark, width), indent + 1 if indent else 0)
        for step, mark in zip(steps, marks, strict=True)
    )


Step = tuple[int, int, str]
"""Where a line begins and ends, and the connector with which it begins. Empty: it begins with a command."""


@lru_cache(maxsize=64)
def steps_of(text: str) -> tuple[Step, ...]:
    """Return the lines of a chain, which together are its text. Empty: it is not certain where a command ends."""
    if len(text) > LONGEST_CHAIN or not text.isprintable() or _NESTS.search(text):
        return ()
    if not text.isascii() and any(unicodedata.bidirectional(each) in _RIGHT_TO_LEFT for each in text):
        return ()
    try:
        begins = list(_begins(list(tokens(text))))
    except ValueError:
        return ()
    ends = [at for at, _ in begins[1:]] + [len(text)]
    return tuple((at, end, connector) for (at, connector), end in zip(begins, ends, strict=True))


def _begins(found: Sequence[TextToken]) -> Iterator[tuple[int, str]]:
    """Yield where each line begins. Raises `ValueError` if that is not certain."""
    yield 0, ""
    groups, words, ended = 0, 0, False
    """The open parentheses, the words of this command, and True if a connector has ended the line before."""
    for kind, part, at in _with_whole_connectors(found):
        if ended:
            yield at, ""
            ended = False
        if kind == "connector" and not groups:
            if not words or part not in _OPENS | _CLOSES:
                raise ValueError(part)
            if part in _OPENS:
                yield at, part
            words, ended = 0, part in _CLOSES
        elif kind == "connector":
            continue
        elif _is_uncertain(kind, part, is_first=not words and not groups):
            raise ValueError(part)
        else:
            words += 1
            groups += (kind == "group") - (part == ")")
            if groups < 0:
                raise ValueError(part)
    if groups or not (words or ended):
        raise ValueError("incomplete")


def _with_whole_connectors(found: Sequence[TextToken]) -> Iterator[TextToken]:
    """Yield tokens, the signs of a connector as one."""
    run = TextToken("connector", "", 0)
    for token in found:
        is_sign = token.kind == "break" and token.text not in "<>)"
        if run.text and not (is_sign and token.at == run.at + len(run.text)):
            yield run
            run = run._replace(text="")
        if is_sign:
            run = run._replace(text=run.text + token.text, at=token.at if not run.text else run.at)
        else:
            yield token
    if run.text:
        yield run


def _is_uncertain(kind: str, part: str, *, is_first: bool) -> bool:
    if kind == "group":
        # Behind a word it begins a function or an array.
        return part == "(" and not is_first
    # A substitution in quotes may have quotes itself.
    in_quotes = kind == "word" and "$(" in part
    return kind == "comment" or in_quotes or part.startswith("<<") or (is_first and part in _NO_STEPS)


def _marks(steps: Sequence[Step], effects: Sequence[StepEffect]) -> list[tuple[StepMark, ...]]:
    """Return the marks of each line; none at all if they are not about exactly these lines."""
    same = len(effects) == len(steps) and all(
        start <= each.start < each.end <= end for (start, end, _), each in zip(steps, effects, strict=True)
    )
    return [each.marks for each in effects] if same else [()] * len(steps)


def _shown(marks: Sequence[StepMark], width: int) -> Line:
    """Return marks in exactly so many columns, the most serious ones if there is no room for all."""
    kept = list(marks)
    while len(_joined(kept, len(marks) - len(kept))) > width:
        kept.remove(max(kept, key=_MATTERS.index))
    more = len(marks) - len(kept)
    spans = [each for mark in kept for each in (Span(" "), Span(mark, _ROLES[mark]))]
    spans += [Span(f" +{more}", "muted")] if more else []
    used = sum(len(span.text) for span in spans)
    return (Span(" │", "frame"), *spans, Span(" " * (width + 2 - used)))


def _joined(marks: Sequence[StepMark], more: int) -> str:
    return " ".join((*marks, *([f"+{more}"] if more else [])))


def _line(text: str, step: Step, risks: Sequence[Risk], marks: Line, indent: int) -> Paragraph:
    start, end, connector = step
    behind = start + len(connector)
    marked = sorted(risk.span for risk in risks if risk.span)
    first = (Span(connector, "muted"),) if connector else ()
    spans = (*first, *marked_text(text[behind:end], behind, marked, "command"))
    # A line that begins with a command stands below the commands, and not below the connectors.
    before = (Span(" "), Span("│ ", "frame"), Span(" " * (0 if connector else indent)))
    return Paragraph(spans, before, (Span(" "), Span("┆ ", "frame")), card=True, at_words=False, right=marks)
