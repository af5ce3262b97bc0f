"""What will really run, as far as is known: each command of a call with its words expanded."""

import shlex
from collections.abc import Iterator

from whisper_tui.model.command import Command
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.tui.spans import BLANK, Line, Paragraph, Span, said
from whisper_tui.tui.words import count

UNKNOWN_WORD = "only known when it runs"


def meaning_paragraphs(command: Command, resolved: Resolved | None) -> tuple[Paragraph, ...]:
    """The commands that a call comes to. None where they say no more than the call itself."""
    if resolved is None or _is_plain(command, resolved):
        return ()
    title = Span(f"  {count(len(resolved.commands), 'command')}, as far as is known", "muted")
    found = [BLANK, Paragraph((Span("Really runs", "label"), title), margin=(Span(" "),))]
    for meaning in resolved.commands:
        found += _meaning(meaning)
    for name, value in sorted(resolved.variables.items()):
        line = (*said(name, "strong"), Span("=", "muted"), *(said(value) or (Span("empty", "risk"),)))
        found.append(Paragraph(line, margin=(Span(" │ ", "frame"), Span("with ", "muted")), at_words=False))
    return tuple(found)


def _is_plain(command: Command, resolved: Resolved) -> bool:
    if not resolved.commands:
        return True
    only = resolved.commands[0]
    says_more = only.through or only.expanded or only.background or only.unknown
    return len(resolved.commands) == 1 and only.words == command.words() and not says_more


def _meaning(meaning: Meaning) -> Iterator[Paragraph]:
    words: list[Span] = []
    for word in meaning.words:
        words += (Span(f"⟨{UNKNOWN_WORD}⟩", "risk"),) if word is None else said(shlex.quote(word), "word")
        words.append(Span(" "))
    if meaning.background:
        words.append(Span(" in the background", "behind"))
    margin: Line = (Span(" │ ", "frame"),)
    yield Paragraph(tuple(words), margin, (Span(" ┆ ", "frame"),), at_words=False)
    notes = [*_program(meaning), *meaning.expanded]
    if notes or meaning.unknown:
        unknown = (
            (Span(f"{' · ' if notes else ''}", "muted"), *said(meaning.unknown, "risk")) if meaning.unknown else ()
        )
        yield Paragraph((*said(" · ".join(notes), "muted"), *unknown), (*margin, Span("  ")), at_words=False)


def _program(meaning: Meaning) -> Iterator[str]:
    first = meaning.words[0] if meaning.words else None
    if meaning.program is not None and meaning.program != first:
        yield meaning.program
    if meaning.through:
        yield f"through {', '.join(meaning.through)}"
