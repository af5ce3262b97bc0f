"""What will really run, as far as is known: each command of a call with its words expanded."""

import shlex
from collections.abc import Iterator

from whisper_tui.model.command import Command
from whisper_tui.model.verdict import Meaning, Redirect, Resolved
from whisper_tui.tui.risk_words import GRAVE
from whisper_tui.tui.spans import BLANK, Line, Paragraph, Span, said
from whisper_tui.tui.words import count

UNKNOWN_WORD = "only known when it runs"
FEW = 5
"""Commands that are read at one glance. They keep their order; of more, the risky ones come first."""
OPENS = {"read": "reads", "write": "writes", "net": "connects to"}


def meaning_paragraphs(command: Command, resolved: Resolved | None) -> tuple[Paragraph, ...]:
    """The commands that a call comes to. None where they say no more than the call itself."""
    if resolved is None or _is_plain(command, resolved):
        return ()
    found = [BLANK, Paragraph((Span("Really runs", "label"), *_title(resolved)), margin=(Span(" "),))]
    for meaning in _ordered(resolved.commands):
        found += _meaning(meaning)
    margin = (Span(" │ ", "frame"),)
    if resolved.more:
        found.append(Paragraph((Span(f"+{resolved.more:,} more, none of them with a known risk", "muted"),), margin))
    if resolved.unread is not None:
        found.append(Paragraph((Span("Not all of it was read: ", "risk"), *said(resolved.unread, "risk")), margin))
    for name, value in sorted(resolved.variables.items()):
        line = (*said(name, "strong"), Span("=", "muted"), *(said(value) or (Span("empty", "risk"),)))
        found.append(Paragraph(line, margin=(*margin, Span("with ", "muted")), at_words=False))
    return tuple(found)


def _is_plain(command: Command, resolved: Resolved) -> bool:
    if not resolved.commands:
        return resolved.unread is None
    only = resolved.commands[0]
    says_more = (
        *(only.through, only.expanded, only.background, only.unknown, only.assignments, only.redirects, only.missing),
        *(resolved.more, resolved.unread),
    )
    return len(resolved.commands) == 1 and only.words == command.words() and not any(says_more)


def _title(resolved: Resolved) -> Line:
    """How many commands there are in all; a wrapper and the command behind it count as one."""
    number = sum(1 for meaning in resolved.commands if _counts(meaning)) + resolved.more
    if not resolved.commands:
        return ()
    least = "at least " if resolved.unread is not None else ""
    first = ", risky ones first" if _ordered(resolved.commands) != resolved.commands else ""
    return (Span(f"  {least}{count(number, 'command')}, as far as is known{first}", "muted"),)


def _counts(meaning: Meaning) -> bool:
    return not meaning.wraps and not (not meaning.words and meaning.redirects)


def _ordered(meanings: tuple[Meaning, ...]) -> tuple[Meaning, ...]:
    """In the order in which they stand there, or, where these are many, the riskiest first."""
    return meanings if len(meanings) <= FEW else tuple(sorted(meanings, key=_rank))


def _rank(meaning: Meaning) -> int:
    if not GRAVE.isdisjoint(meaning.risks):
        return 0
    if meaning.risks:
        return 1
    return 2 if any(each.access in {"write", "net"} for each in meaning.redirects) else 3


def _meaning(meaning: Meaning) -> Iterator[Paragraph]:
    words: list[Span] = []
    for name, value in meaning.assignments.items():
        words += (*said(name, "strong"), Span("="), *_word(value), Span(" "))
    for word in meaning.words:
        words += (*_word(word), Span(" "))
    for redirect in meaning.redirects:
        joined = "" if redirect.operator.endswith("&") else " "
        words += (Span(f"{redirect.operator}{joined}", "strong"), *_word(redirect.target), Span(" "))
    if not words:
        words.append(Span("nothing: none of its words is left", "muted"))
    if meaning.background:
        words.append(Span(" in the background", "behind"))
    margin: Line = (Span(" │ ", "frame"), *_sign(meaning))
    yield Paragraph(tuple(words), margin, (Span(" ┆ ", "frame"),), at_words=False)
    notes = _joined(_notes(meaning))
    if notes:
        yield Paragraph(notes, (Span(" │ ", "frame"), Span("  ")), at_words=False)


def _sign(meaning: Meaning) -> Line:
    if not GRAVE.isdisjoint(meaning.risks):
        return (Span("▲▲ ", "bad"),)
    return (Span("▲ ", "risk"),) if meaning.risks else ()


def _word(word: str | None) -> Line:
    return (Span(f"⟨{UNKNOWN_WORD}⟩", "risk"),) if word is None else said(shlex.quote(word), "word")


def _notes(meaning: Meaning) -> Iterator[Line]:
    first = meaning.words[0] if meaning.words else None
    if meaning.missing and first is not None:
        yield (*said(first, "bad"), Span(" was not found", "bad"))
    elif meaning.program is not None and meaning.program != first:
        yield said(meaning.program, "muted")
    if meaning.through:
        yield said(f"through {', '.join(meaning.through)}", "muted")
    yield from (_opened(each) for each in meaning.redirects if each.access in OPENS)
    yield from (said(note, "muted") for note in meaning.expanded)
    if meaning.unknown:
        yield said(meaning.unknown, "risk")


def _opened(redirect: Redirect) -> Line:
    """What a redirection does to a file, in words."""
    verb = "appends to" if redirect.operator.endswith(">>") else OPENS[redirect.access]
    target = (Span("a file that is only known when it runs"),) if redirect.target is None else said(redirect.target)
    return (Span(f"{verb} ", "strong" if redirect.access != "read" else "muted"), *target)


def _joined(notes: Iterator[Line]) -> Line:
    found: list[Span] = []
    for note in notes:
        found += (*((Span(" · ", "muted"),) if found else ()), *note)
    return tuple(found)
