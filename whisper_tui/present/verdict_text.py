"""The verdict on a call as text: its grade, the finding that matters most, and the others, each of which stands once.

A finding that an effect tells beside its file, host or script has no line of its own (decision 42).
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from whisper_tui.model.call import Command, Shell
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import NO_RULE_MATCHES, Risk, Verdict, is_grave
from whisper_tui.present.column_words import REMARKS, UNREAD, risk_sign, weight
from whisper_tui.present.quantities import count
from whisper_tui.present.security_text import not_inspected_sentences
from whisper_tui.present.spans import Line, Paragraph, Role, Span, said

NOT_FLAGGED = "not flagged"
BEGINNING, END = 160, 80
"""Characters of a long sentence that are shown: the names in it stand in the command, and others are to be seen too."""
_OBJECT = re.compile(r"`[^`]*`")


class Finding(NamedTuple):
    """One thing that a person should notice about a call, and that stands once on its card."""

    id: str
    sentence: str
    """Without its full stop."""
    grave: bool = False
    span: tuple[int, int] | None = None
    """The characters of the command that it is about."""

    @classmethod
    def of(cls, risk: Risk) -> "Finding":
        """Return a risk that the policy has found."""
        return cls(risk.id, risk.sentence, is_grave(risk), risk.span)

    @property
    def sign(self) -> Span:
        """The sign before it."""
        if self.id in REMARKS:
            return Span(risk_sign(self.id, grave=False), "muted")
        return Span(risk_sign(self.id, grave=self.grave), "bad" if self.grave else "risk")


def findings(record: CallRecord) -> tuple[Finding, ...]:
    """Return all that a person should notice about a call, what matters most first."""
    risks = record.verdict.risks if record.verdict else ()
    found = [*map(Finding.of, risks)]
    found += [Finding(UNREAD, sentence) for sentence in not_inspected_sentences(record)]
    return tuple(sorted(found, key=lambda each: weight(each.id, grave=each.grave)))


class VerdictRows(NamedTuple):
    """The findings about a call as rows: one line that says the worst, the other severe ones, and the rest."""

    first: tuple[Paragraph, ...] = ()
    severe: tuple[Paragraph, ...] = ()
    others: tuple[Paragraph, ...] = ()


def verdict_rows(record: CallRecord, told: Collection[str] = (), key: str = "", *, nothing_there: bool) -> VerdictRows:
    """Return the rows of the verdict on a call.

    `told`: the sentences of findings that stand in the effects; `key` goes to the next one. `nothing_there`: what the
    call deletes does not exist, which lowers the grade of a deletion.
    """
    command = record.call.spec.command
    found = findings(record)
    if not found:
        return VerdictRows(_not_flagged(record))
    absent = {each for each in found if nothing_there and deletes(each)}
    severe = any(each.grave and each not in absent for each in found)
    worst = found[0]
    line = _sentence(worst, command)
    if worst in absent:
        line = (*line, Span("  Nothing is there now.", "muted"))
    if len(found) > 1:
        # Not to be broken between the two.
        leads = (Span(f"{key}\u00a0", "strong"),) if key else ()
        line = (*line, Span("  "), *leads, Span(f"+{len(found) - 1}", "muted"))
    badge: tuple[str, Role] = (" ▲▲ severe ", "severe") if severe else (" ▲ careful ", "careful")
    rest = [each for each in found[1:] if each.grave or each.sentence not in told]
    return VerdictRows(
        (_line(*badge, line),),
        tuple(_row(each, command) for each in rest if each.grave),
        tuple(_row(each, command) for each in rest if not each.grave),
    )


def is_the_verdict(record: CallRecord) -> bool:
    """True if the line of the verdict says why the call is asked about, as far as there is more to say than that."""
    verdict = record.verdict
    if verdict is None or verdict.kind != "ask":
        return False
    return verdict.reason == NO_RULE_MATCHES or repeats_a_risk(verdict) or bool(_not_flagged(record))


def repeats_a_risk(verdict: Verdict) -> bool:
    """True if the reason is the sentence of a risk."""
    return any(risk.sentence == verdict.reason for risk in verdict.risks)


def _not_flagged(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return why a call without a finding waits, on one line."""
    verdict = record.verdict
    if verdict is None or verdict.kind != "ask" or not isinstance(record.state, Waiting) or findings(record):
        return ()
    rule = f" (rule {verdict.rule})" if verdict.rule else ""
    return (_line(f" {NOT_FLAGGED} ", "not-flagged", said(f"{verdict.reason}{rule}")),)


def with_objects(text: str, role: Role = "text") -> Line:
    """Return a sentence in which what it is about, in backticks, stands out."""
    return tuple(_objects(text, role))


def _objects(text: str, role: Role) -> Iterator[Span]:
    at = 0
    for match in _OBJECT.finditer(text):
        yield from said(text[at : match.start()], role)
        yield from said(match[0], "strong")
        at = match.end()
    yield from said(text[at:], role)


def _line(badge: str, role: Role, line: Line) -> Paragraph:
    return Paragraph(line, (Span(" "), Span(badge, role), Span(" ")), decides=True)


def _row(finding: Finding, command: Command) -> Paragraph:
    sign = finding.sign
    return Paragraph(_sentence(finding, command), (Span(" "), sign, Span(" ")), decides=True)


def _sentence(finding: Finding, command: Command) -> Line:
    role: Role = "muted" if finding.id in REMARKS else "text"
    return (*with_objects(f"{_shortened(finding.sentence)}.", role), *_line_of(finding, command))


def _shortened(sentence: str) -> str:
    """Return a sentence with the names in it cut if they are so long that it would push others off the screen."""
    text = visible(sentence)
    left_out = len(text) - BEGINNING - END
    return f"{text[:BEGINNING]} … {count(left_out, 'character')} … {text[-END:]}" if left_out > END else sentence


def shortened_findings(record: CallRecord) -> Iterator[str]:
    """Yield the sentences of which a card shows only the beginning and the end."""
    return (each.sentence for each in findings(record) if _shortened(each.sentence) != each.sentence)


def _line_of(finding: Finding, command: Command) -> Line:
    """Return the line number of a finding in a long text. Empty: the text is not long."""
    if finding.span is None or not isinstance(command, Shell) or "\n" not in command.text:
        return ()
    return (Span(f"  line {command.text.count(chr(10), 0, finding.span[0]) + 1:,}", "muted"),)


def deletes(finding: Finding) -> bool:
    """True if a finding is about a deletion."""
    return finding.id in {"destructive", "deletes-files"} and finding.sentence.startswith("Deletes ")
