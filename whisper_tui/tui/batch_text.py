"""Several calls in full, one below the other: exactly what will run, where, and what is risky about it."""

from collections.abc import Mapping
from dataclasses import replace

from whisper_tui.model.state import CallRecord
from whisper_tui.tui.command_text import command_paragraphs, command_title
from whisper_tui.tui.ends import said_with_ends
from whisper_tui.tui.fields import labelled
from whisper_tui.tui.meaning_text import meaning_paragraphs
from whisper_tui.tui.risk_words import risk_role, risk_sign
from whisper_tui.tui.spans import BLANK, Line, Paragraph, Span, said

WITH: Line = (Span(" with ", "label"),)


def batch_paragraphs(records: tuple[CallRecord, ...], sessions: Mapping[str, str]) -> tuple[Paragraph, ...]:
    """The calls in their order; `sessions` are the names of their sessions, by the ids of the calls."""
    found: list[Paragraph] = []
    for number, record in enumerate(records, start=1):
        found += _call(record, number, sessions[record.id])
    return tuple(found)


def _call(record: CallRecord, number: int, session: str) -> tuple[Paragraph, ...]:
    spec = record.call.spec
    risks = record.verdict.risks if record.verdict else ()
    title = (
        Span(f"{number}. Call {record.id}", "strong"),
        *said(f"  {session}", "muted"),
        Span(f"  {command_title(spec.command)}", "muted"),
    )
    decides = (
        *command_paragraphs(spec.command, risks),
        *meaning_paragraphs(spec.command, record.resolved),
        *(
            Paragraph(
                (*said_with_ends(name, "strong"), Span("=", "muted"), *said_with_ends(value, "text")),
                (Span(" with ", "label"),),
            )
            for name, value in sorted(spec.environment.items())
        ),
        labelled("Directory", said(_directory(record)), at_words=False),
    )
    return (
        Paragraph(title, margin=(Span(" ◆ ", "waiting"),)),
        *(
            Paragraph(said(f"{risk.sentence}.", risk_role(risk)), (Span(f" {risk_sign(risk)} ", risk_role(risk)),))
            for risk in risks
        ),
        *(replace(paragraph, decides=True) for paragraph in decides),
        BLANK,
    )


def _directory(record: CallRecord) -> str:
    real = record.resolved.cwd if record.resolved else None
    return real or record.call.spec.cwd
