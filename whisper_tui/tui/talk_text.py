"""A conversation as paragraphs."""

from collections.abc import Iterable

from whisper_tui.model.event import SessionSaid
from whisper_tui.tui.spans import BLANK, Line, Paragraph, Span, said
from whisper_tui.tui.words import clock_time

MODEL: Line = (Span(" │ ", "frame"),)
HUMAN: Line = (Span(" ┃ ", "waiting"),)


def talk_paragraphs(conversation: Iterable[SessionSaid]) -> tuple[Paragraph, ...]:
    """Who said what and when, oldest first."""
    found: list[Paragraph] = []
    for event in conversation:
        by_model = event.by.surface == "agent"
        who = said(event.by.who or "the model", "strong") if by_model else said(event.by.who or "the task", "waiting")
        when = Span(f"  {clock_time(event.at)}", "muted")
        found.append(Paragraph((*who, when), margin=(Span(" "),)))
        margin = MODEL if by_model else HUMAN
        found += [Paragraph(said(line), margin, margin) for line in event.text.split("\n")]
        found.append(BLANK)
    return tuple(found)
