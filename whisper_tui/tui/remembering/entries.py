"""The rows of the screen about rules and memory, and what each of them says in full."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath

from whisper_tui.model.call import Session
from whisper_tui.model.command import Shell
from whisper_tui.model.decision import ExactScope, Grant, PrefixScope, RuleScope, Scope
from whisper_tui.model.masked import masked_grant
from whisper_tui.model.text import beginning
from whisper_tui.tui.command_text import command_paragraphs, one_line
from whisper_tui.tui.history.times import day_time
from whisper_tui.tui.meaning_text import meaning_paragraphs
from whisper_tui.tui.risk_words import risk_role, risk_sign
from whisper_tui.tui.rule_book import Effect, Judgement, ProjectRules, RuleList, ShownRule
from whisper_tui.tui.sandbox_text import sandbox_line
from whisper_tui.tui.spans import BLANK, Line, Paragraph, Role, Span, said
from whisper_tui.tui.words import LONGEST_NAME, LONGEST_SAID, age, count, decider, limit

LABEL = 13
"""Columns of the labels."""
SIGNS: dict[Effect, Span] = {"deny": Span("✘", "bad"), "ask": Span("◆", "waiting"), "allow": Span("✔", "good")}
TITLES: dict[Effect, str] = {
    "deny": "Rules that deny",
    "ask": "Rules that always ask",
    "allow": "Rules that allow",
}


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    title: str
    number: int
    note: str = ""
    role: Role = "muted"
    """Of the note."""


Entry = Heading | Grant | ShownRule


@dataclass
class Hits:
    """How often rules decided, as far as the history was read."""

    looked_at: int
    by_rule: Counter[str]


def entries(grants: tuple[Grant, ...], rules: RuleList) -> list[Entry]:
    """Everything that decides without a human; a section that holds nothing says so by its number."""
    found: list[Entry] = [Heading("Remembered approvals", len(grants)), *grants]
    for effect, title in TITLES.items():
        of_effect = [rule for rule in rules.rules if rule.effect == effect]
        found += [Heading(title, len(of_effect)), *of_effect]
    for project in rules.projects:
        found += [_project_heading(project), *project.rules]
    return found


def _project_heading(project: ProjectRules) -> Heading:
    title = f"Rules of the project {PurePath(project.root).name}"
    if project.broken is not None:
        return Heading(title, 0, "cannot be read: all is asked", "bad")
    if project.trusted:
        return Heading(title, len(project.rules), "trusted", "good")
    return Heading(title, len(project.rules), "not trusted", "risk")


def row(entry: Entry, hits: Hits) -> Line:
    """An entry in one line, of any width."""
    match entry:
        case Heading(title=title, number=number):
            note = (Span(f"  {entry.note}", entry.role),) if entry.note else ()
            return (*said(title, "running" if number else "muted"), Span(f"  {number}", "muted"), *note)
        case ShownRule():
            often = f"  {_times(hits.by_rule[entry.name])}" if hits.by_rule[entry.name] else ""
            sign = SIGNS[entry.effect] if entry.holds else Span("○", "muted")
            idle = "" if entry.holds else "  does not hold"
            return (sign, Span(" "), *said(entry.subject[:LONGEST_NAME]), Span(f"{often}{idle}", "muted"))
        case Grant():
            return (
                Span("↻", "good"),
                Span(" "),
                *said(_subject(entry)[:LONGEST_NAME]),
                Span(f"  {_times(entry.uses)}", "muted"),
            )


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number) or f"{number:,} times"


def _subject(grant: Grant) -> str:
    grant = masked_grant(grant)
    if isinstance(grant.scope, PrefixScope):
        return f"{' '.join(grant.scope.words)} …"
    return "".join(span.text for span in one_line(grant.spec.command))


def grant_paragraphs(grant: Grant, session: Session | None, now: float) -> tuple[Paragraph, ...]:
    """A remembered approval in full, without the secrets in it."""
    grant = masked_grant(grant)
    name = session.name if session is not None else grant.session_id
    given = f"{day_time(grant.granted_at)}, {age(now - grant.granted_at)} ago, with call {grant.from_call}"
    return (
        Paragraph((Span(f"Remembered approval {grant.id}", "strong"),), margin=(Span(" "),)),
        BLANK,
        _field("Covers", said(scope_sentence(grant.scope))),
        *(
            (_field("While", said(f"{', '.join(grant.files)} {'is' if len(grant.files) == 1 else 'are'} the same")),)
            if grant.files
            else ()
        ),
        *((_field("Words", said(" ".join(grant.scope.words))),) if isinstance(grant.scope, PrefixScope) else ()),
        Paragraph((Span("Approved was", "label"),), margin=(Span(" "),)),
        *command_paragraphs(grant.spec.command, ()),
        BLANK,
        _field("Directory", said(grant.spec.cwd)),
        _field("Session", said(name, "strong")),
        _field("Given", said(f"{given}, {decider(grant.by)}")),
        _field("Holds", (Span(_until(grant.until, now, "as long as the session")),)),
        *((_field("Sandbox", sandbox_line(grant.sandbox)),) if grant.sandbox is not None else ()),
        _field("Used", (Span(f"{count(grant.uses, 'time')}{_of_uses(grant.scope)}", "strong"),)),
    )


def scope_sentence(scope: Scope) -> str:
    """How far an approval reaches."""
    match scope:
        case PrefixScope(directory=directory):
            where = f", in {beginning(directory, LONGEST_SAID)} and below" if directory is not None else ""
            return f"every command of the session that begins with these words{where}"
        case RuleScope():
            return "a rule: it stands in the file of rules"
        case _:
            return "exactly this command in this directory, for its session"


def _of_uses(scope: Scope) -> str:
    most = scope.uses if isinstance(scope, ExactScope | PrefixScope) else None
    return f" of {most:,}" if most is not None else ""


def _until(until: float | None, now: float, without: str) -> str:
    if until is None:
        return without
    return f"for {limit(max(0, round(until - now)))} more, until {time.strftime('%H:%M', time.localtime(until))}"


def rule_paragraphs(rule: ShownRule, hits: Hits, file: str, now: float) -> tuple[Paragraph, ...]:
    """A rule in full."""
    often = hits.by_rule[rule.name]
    whose = "file" if rule.entry else "project"
    does = f"This rule {_does(rule.effect)}" if rule.holds else f"This rule would allow, but its {whose} is not trusted"
    sign = SIGNS[rule.effect] if rule.holds else Span("○", "muted")
    return (
        Paragraph((sign, Span(f" {does}", "strong")), margin=(Span(" "),)),
        BLANK,
        _field("Commands", said(rule.subject, "strong")),
        _field("Name", said(rule.name)),
        _field("Where", said(rule.where)),
        *((_field("Because", said(rule.because)),) if rule.because else ()),
        *((_field("Sandbox", said(rule.sandbox)),) if rule.sandbox else ()),
        _field(
            "Holds", (Span(_until(rule.until, now, "until it is removed") if rule.holds else "once it is trusted"),)
        ),
        _field("Decided", (Span(f"{often:,} of the last {count(hits.looked_at, 'call')}", "strong"),)),
        BLANK,
        Paragraph(said(f"It stands in {file}.", "muted"), margin=(Span(" "),)),
    )


def _does(effect: Effect) -> str:
    return {"deny": "denies", "ask": "asks, whatever else would allow it", "allow": "allows"}[effect]


def judgement_paragraphs(text: str, directory: str, found: Judgement) -> tuple[Paragraph, ...]:
    """What would be said to a command, and why."""
    verdict, command = found.verdict, Shell(text=text)
    words: dict[str, tuple[str, Role]] = {
        "allow": ("✔ It would run without being asked.", "good"),
        "ask": ("◆ You would be asked.", "waiting"),
        "refuse": ("✘ It would be denied.", "bad"),
    }
    risks = [
        Paragraph(said(f"{risk.sentence}.", risk_role(risk)), (Span(f" {risk_sign(risk):<2} ", risk_role(risk)),))
        for risk in verdict.risks
    ]
    return (
        Paragraph((Span(*words[verdict.kind]),), margin=(Span(" "),)),
        BLANK,
        _field("Because", said(verdict.reason)),
        *((_field("Rule", said(verdict.rule)),) if verdict.rule else ()),
        *((_field("Sandbox", sandbox_line(verdict.sandbox)),) if verdict.sandbox is not None else ()),
        *risks,
        BLANK,
        *command_paragraphs(command, verdict.risks),
        *meaning_paragraphs(command, found.resolved),
        BLANK,
        Paragraph(
            said(f"As if a session in {directory} had asked; what you approved in it counts besides.", "muted"),
            (Span(" "),),
        ),
    )


def _field(label: str, value: Line) -> Paragraph:
    return Paragraph(value, margin=(Span(f" {label:<{LABEL - 1}}", "label"),))
