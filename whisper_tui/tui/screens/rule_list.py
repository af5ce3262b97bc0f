"""Rules and standing approvals as rows of a list."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from whisper_tui.model.call import FileEdits, Session, Shell
from whisper_tui.model.decision import Grant, PrefixScope, SessionDenial, masked_denial
from whisper_tui.model.masking import masked_grant, masked_record
from whisper_tui.model.shown_rules import Judgement, ProjectRules, RuleEffect, RuleList, ShownRule
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.verdict import (
    BUILT_IN_PREFIX,
    EDITS_RULE,
    HELD_BACK_RULE,
    PROJECT_PREFIX,
    READ_ONLY_RULE,
    SUBAGENT_RULE,
    Verdict,
    whose_rule,
)
from whisper_tui.present.call_text import place_paragraphs
from whisper_tui.present.command_text import call_line, command_paragraphs, meaning_paragraphs, one_line
from whisper_tui.present.quantities import age, count, date_and_time
from whisper_tui.present.security_text import sandbox_line
from whisper_tui.present.session_text import LONGEST_NAME, session_line
from whisper_tui.present.spans import BLANK, Line, Paragraph, Role, Span, labelled, said
from whisper_tui.present.verdict_text import Finding
from whisper_tui.present.words import decided_by_text, of_uses, scope_reach, until_text
from whisper_tui.tui.dialogs.readers_dialog import ListedCommand

Words = tuple[str, ...]

_VERDICTS: dict[str, tuple[str, Role]] = {
    "allow": ("✔ Allowed", "good"),
    "ask": ("◆ Asked", "waiting"),
    "refuse": ("✘ Refused", "bad"),
}


def why_paragraphs(
    record: CallRecord, rules: RuleList, grants: Sequence[Grant], denials: Sequence[SessionDenial]
) -> tuple[Paragraph, ...]:
    """Return why the policy said what it said about a call, and who decided, with secrets masked."""
    masked, verdict = masked_record(record), record.verdict
    if verdict is None or masked.verdict is None:
        return (Paragraph(said(f"Call {record.id} has not been judged yet."), (Span(" "),)),)
    words, role = _VERDICTS[verdict.kind]
    undecided = "by nobody before it ended" if isinstance(record.state, Ended) else "not yet"
    decided = decided_by_text(record.decided_by) if record.decided_by is not None else undecided
    return (
        Paragraph((Span(f"{words}: call {record.id}", role),), margin=(Span(" "),)),
        BLANK,
        *(
            (Paragraph(call_line(masked), margin=(Span(" "),)),)
            if isinstance(masked.spec.command, FileEdits)
            else command_paragraphs(masked.spec.command, ())
        ),
        BLANK,
        labelled("Because", said(masked.verdict.reason)),
        labelled("Decided", said(decided)),
        *((labelled("Sandbox", sandbox_line(record.sandbox)),) if record.sandbox is not None else ()),
        *_rules(record, masked, rules),
        *_memory(verdict, grants, denials),
    )


def _rules(record: CallRecord, masked: CallRecord, rules: RuleList) -> Iterator[Paragraph]:
    """Each rule that decided, with its source and the commands that it matched."""
    if record.verdict is None or not record.verdict.rule:
        return
    known = {rule.name: rule for rule in rules.in_force()}
    name = record.verdict.rule
    # Several rules that allow a call together are told with commas between.
    for each in (name,) if name in known else name.split(", "):
        yield BLANK
        yield labelled("Rule", said(each, "strong"))
        rule = known.get(each)
        if each == READ_ONLY_RULE:
            yield labelled("Defined in", said("whisper_tui itself: the built-in read-only list"))
        elif rule is None and each.startswith(BUILT_IN_PREFIX):
            yield labelled("Defined in", said("whisper_tui itself; rules.toml can ask about such calls"))
            continue
        elif rule is None:
            # Its words are not known any more, so nothing can be said about what it matched.
            yield labelled("Defined in", said(f"no file now: {whose_rule(each)} was removed or renamed"))
            continue
        else:
            yield labelled("Commands", said(rule.subject))
            yield labelled("Defined in", said(rule.file or "the rules file"))
        for line in _matched(masked, rule):
            yield labelled("Matched", line)


def _matched(masked: CallRecord, rule: ShownRule | None) -> Iterator[Line]:
    """The commands of a call that a rule is about, the words that it names in bold; without a rule, all of them."""
    prefix = tuple(rule.definition.get("prefix") or ()) if rule is not None else ()
    program = rule.definition.get("program") if rule is not None else None
    for meaning in masked.resolved.commands if masked.resolved is not None else ():
        words = tuple("…" if word is None else word for word in meaning.words)
        if not words or (program is not None and words[0].rpartition("/")[2] != program):
            continue
        begins = (words[0].rpartition("/")[2], *words[1:])[: len(prefix)] == prefix
        if begins or words[: len(prefix)] == prefix:
            length = len(prefix) or int(program is not None)
            yield (*said(" ".join(words[:length]), "strong"), *said(_rest(words[length:], after=bool(length))))


def _rest(words: Words, *, after: bool) -> str:
    return f" {' '.join(words)}" if words and after else " ".join(words)


def _memory(verdict: Verdict, grants: Sequence[Grant], denials: Sequence[SessionDenial]) -> Iterator[Paragraph]:
    """The standing approval or the session denial that decided."""
    for grant in map(masked_grant, (grant for grant in grants if grant.id == verdict.grant_id)):
        given = f"{date_and_time(grant.granted_at)}, with call {grant.from_call}, {decided_by_text(grant.by)}"
        yield BLANK
        yield labelled("Approval", said(grant.id, "strong"))
        yield labelled("Covers", said(scope_reach(grant.scope)))
        yield labelled("Given", said(given))
    for denial in map(masked_denial, (denial for denial in denials if denial.id == verdict.denial_id)):
        yield BLANK
        yield labelled("Denial", said(denial.id, "strong"))
        yield labelled("Words", said(" ".join(denial.words)))
        yield labelled("Given", said(f"{date_and_time(denial.denied_at)}, {decided_by_text(denial.by)}"))


SIGNS: dict[RuleEffect, Span] = {"deny": Span("✘", "bad"), "ask": Span("◆", "waiting"), "allow": Span("✔", "good")}
TITLES: dict[RuleEffect, str] = {
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
    """The role of the note."""


AllowanceKind = Literal["edits", "held-back", "sub-agents"]


@dataclass(frozen=True)
class ReadOnlyList:
    """The built-in list of commands that only read, as one row."""

    commands: tuple[str, ...]
    runs: bool
    """True if these commands run without approval."""


@dataclass(frozen=True)
class BuiltIn:
    """A kind of calls that is allowed by itself beside that list, as one row."""

    kind: AllowanceKind
    runs: bool
    """True if it needs no approval."""


Entry = Heading | Grant | SessionDenial | ShownRule | ReadOnlyList | BuiltIn


@dataclass(frozen=True)
class _AllowanceWords:
    """The words about a kind of calls that need no approval."""

    title: str
    covers: str
    rule: str
    """The name of the built-in rule in the history."""
    switch: str
    """How it is switched on and off."""


ALLOWANCES: dict[AllowanceKind, _AllowanceWords] = {
    "edits": _AllowanceWords(
        "edits of ordinary files",
        "edits inside the workspace, and of no file that decides something or runs later",
        EDITS_RULE,
        "Space adds a rule that asks about them, or removes it; they run only at the level workspace",
    ),
    "held-back": _AllowanceWords(
        "commands changing the workspace",
        "commands that run held back, whose changes become real if they are ordinary and can be taken back",
        HELD_BACK_RULE,
        "Space sets the level workspace, or reading, at which edits ask, too",
    ),
    "sub-agents": _AllowanceWords(
        "sub-agents",
        "the start of a sub-agent, each of whose calls is judged like those of its agent",
        SUBAGENT_RULE,
        "Space adds a rule that asks about them, or removes it",
    ),
}

ASKING: dict[AllowanceKind, dict[str, Any]] = {
    "edits": {"name": "edits", "anything": True, "tool": "edit"},
    "sub-agents": {"name": "sub-agents", "anything": True, "tool": "subagent"},
}
"""The rules of the user that ask about what would be allowed otherwise."""


def asking_rule(kind: AllowanceKind, rules: RuleList) -> ShownRule | None:
    """Return the user's rule that switches an allowance off."""
    return _rule_that_asks(ASKING[kind], rules) if kind in ASKING else None


def _rule_that_asks(definition: dict[str, Any], rules: RuleList) -> ShownRule | None:
    for rule in rules.rules:
        said = {name: value for name, value in rule.definition.items() if value not in (None, False, "", [], ())}
        if rule.effect == "ask" and not rule.disabled and said == definition:
            return rule
    return None


def asking_about(command: str) -> dict[str, Any]:
    """Return the rule of the user that asks about a command of the read-only list."""
    words = command.removesuffix(" *").split()
    subject: dict[str, Any] = {"program": words[0]} if len(words) == 1 else {"prefix": words}
    return {"name": f"ask: {' '.join(words)}", **subject}


def reader_rule(command: str, rules: RuleList) -> ShownRule | None:
    """Return the user's rule that switches a command of the read-only list off."""
    return _rule_that_asks(asking_about(command), rules)


def listed_readers(rules: RuleList) -> tuple[ListedCommand, ...]:
    """Return the commands of the read-only list with the rules that switch them off, those first."""
    rows = []
    for command in dict.fromkeys(each.removesuffix(" *") for each in rules.read_only):
        rule = reader_rule(command, rules)
        rows.append(ListedCommand(command, rule.name if rule is not None else ""))
    return tuple(sorted(rows, key=lambda each: not each.asked_by))


def _allowances(rules: RuleList) -> Iterator[BuiltIn]:
    runs: dict[AllowanceKind, bool] = {"edits": rules.edits_run, "held-back": rules.held_back_run, "sub-agents": True}
    for kind, does in runs.items():
        yield BuiltIn(kind, does and rules.broken is None and asking_rule(kind, rules) is None)


@dataclass
class Hits:
    """The number of decisions by each rule in the part of the history that was read."""

    looked_at: int
    by_rule: Counter[str]


def entries(grants: tuple[Grant, ...], denials: tuple[SessionDenial, ...], rules: RuleList | None) -> list[Entry]:
    """Return all standing approvals, denials and rules in sections; only that of the denials is left out if empty.

    `rules`: None if they are not known, as those of several machines: an empty section would say that there are none.
    """
    found: list[Entry] = [Heading("Standing approvals", len(grants)), *grants]
    if denials:
        found += [Heading("Denials for a session", len(denials)), *denials]
    if rules is None:
        return found
    for effect, title in TITLES.items():
        of_effect = [rule for rule in rules.rules if rule.effect == effect]
        found += [Heading(title, len(of_effect)), *of_effect]
    # Projects come last: a workspace that an agent writes to must not push the user's rules out of sight.
    if rules.read_only:
        allowances = tuple(_allowances(rules))
        found += [Heading("Built in", 1 + len(allowances)), ReadOnlyList(rules.read_only, rules.read_only_runs)]
        found += allowances
    for project in rules.projects:
        found += [_project_heading(project), *project.rules]
    return found


def _project_heading(project: ProjectRules) -> Heading:
    title = f"Rules of the project {PurePath(project.root).name}"
    if project.broken is not None:
        return Heading(title, 0, "cannot be read: every command needs approval", "bad")
    if project.trusted:
        return Heading(title, len(project.rules), "trusted", "good")
    return Heading(title, len(project.rules), "not trusted", "risk")


def row(entry: Entry, hits: Hits) -> Line:
    """Return an entry as one line of any width."""
    match entry:
        case Heading(title=title, number=number):
            note = (Span(f"  {entry.note}", entry.role),) if entry.note else ()
            return (*said(title, "running" if number else "muted"), Span(f"  {number}", "muted"), *note)
        case ShownRule():
            often = f"  {_times(hits.by_rule[entry.name])}" if hits.by_rule[entry.name] else ""
            sign = SIGNS[entry.effect] if entry.holds and not entry.disabled else Span("○", "muted")
            idle = "  disabled" if entry.disabled else "" if entry.holds else "  inactive"
            return (sign, Span(" "), *said(entry.subject[:LONGEST_NAME]), Span(f"{often}{idle}", "muted"))
        case ReadOnlyList(commands=commands, runs=runs):
            often = f"  {_times(hits.by_rule[READ_ONLY_RULE])}" if hits.by_rule[READ_ONLY_RULE] else ""
            sign = SIGNS["allow"] if runs else Span("○", "muted")
            idle = "" if runs else "  inactive"
            return (sign, Span(f" commands that only read: {len(commands)}"), Span(f"{often}{idle}", "muted"))
        case BuiltIn(kind=kind, runs=runs):
            about = ALLOWANCES[kind]
            often = f"  {_times(hits.by_rule[about.rule])}" if hits.by_rule[about.rule] else ""
            sign = SIGNS["allow"] if runs else Span("○", "muted")
            return (sign, Span(f" {about.title}"), Span(f"{often}{'' if runs else '  inactive'}", "muted"))
        case SessionDenial():
            words = " ".join(masked_denial(entry).words)
            return (Span("✘", "bad"), Span(" "), *_machine(entry.id), *said(f"{words} …"[:LONGEST_NAME]))
        case Grant():
            return (
                Span("↻", "good"),
                Span(" "),
                *_machine(entry.id),
                *said(_subject(entry)[:LONGEST_NAME]),
                Span(f"  {_times(entry.uses)}", "muted"),
            )


def _machine(id_: str) -> Line:
    """Return the name of the machine that an id begins with, if it does."""
    host = id_.rpartition(":")[0]
    return (Span(f"{host} ", "muted"),) if host else ()


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number) or f"{number:,} times"


def _subject(grant: Grant) -> str:
    grant = masked_grant(grant)
    if isinstance(grant.scope, PrefixScope):
        return f"{' '.join(grant.scope.words)} …"
    return "".join(span.text for span in one_line(grant.spec.command))


def grant_paragraphs(grant: Grant, session: Session | None, now: float) -> tuple[Paragraph, ...]:
    """Return a standing approval in full, with secrets masked (decision 2)."""
    grant = masked_grant(grant)
    given = f"{date_and_time(grant.granted_at)}, {age(now - grant.granted_at)} ago, with call {grant.from_call}"
    return (
        Paragraph((Span(f"Standing approval {grant.id}", "strong"),), margin=(Span(" "),)),
        BLANK,
        labelled("Covers", said(scope_reach(grant.scope))),
        *(
            (labelled("While", said(f"{', '.join(grant.files)} {'is' if len(grant.files) == 1 else 'are'} the same")),)
            if grant.files
            else ()
        ),
        *((labelled("Words", said(" ".join(grant.scope.words))),) if isinstance(grant.scope, PrefixScope) else ()),
        Paragraph((Span("Approved command", "label"),), margin=(Span(" "),)),
        *command_paragraphs(grant.spec.command, ()),
        BLANK,
        *place_paragraphs(grant.spec),
        labelled("Directory", said(grant.spec.cwd)),
        labelled("Session", session_line(session, grant.session_id)),
        labelled("Given", said(f"{given}, {decided_by_text(grant.by)}")),
        labelled("Holds", (Span(until_text(grant.until, now, "as long as the session")),)),
        *((labelled("Sandbox", sandbox_line(grant.sandbox)),) if grant.sandbox is not None else ()),
        labelled("Used", (Span(f"{count(grant.uses, 'time')}{of_uses(grant.scope)}", "strong"),)),
    )


def denial_paragraphs(denial: SessionDenial, session: Session | None, now: float) -> tuple[Paragraph, ...]:
    """Return a session denial in full, with secrets masked."""
    given = f"{date_and_time(denial.denied_at)}, {age(now - denial.denied_at)} ago"
    return (
        Paragraph((Span(f"Session denial {denial.id}", "strong"),), margin=(Span(" "),)),
        BLANK,
        labelled("Denies", said("every call that begins with these words, or holds a command that does")),
        labelled("Words", said(" ".join(masked_denial(denial).words), "strong")),
        labelled("Session", session_line(session, denial.session_id)),
        *((labelled("Because", said(denial.reason)),) if denial.reason else ()),
        labelled("Given", said(f"{given}, {decided_by_text(denial.by)}")),
        labelled("Holds", (Span("as long as the session"),)),
    )


def read_only_paragraphs(entry: ReadOnlyList, hits: Hits) -> tuple[Paragraph, ...]:
    """Return the built-in list in full."""
    often = hits.by_rule[READ_ONLY_RULE]
    does = "This list allows" if entry.runs else "This list would allow, but your rules switch it off"
    whole = ", ".join(each for each in entry.commands if " " not in each)
    parts = ", ".join(each for each in entry.commands if " " in each)
    return (
        Paragraph((SIGNS["allow"] if entry.runs else Span("○", "muted"), Span(f" {does}", "strong")), (Span(" "),)),
        BLANK,
        labelled("Commands", said("read-only commands, inside the workspace, with harmless options")),
        labelled("Sandbox", said("read-only, without the network, where the program could do more")),
        labelled("Decided", (Span(f"{often:,} of the last {count(hits.looked_at, 'call')}", "strong"),)),
        labelled("Programs", said(whole, whole=True)),
        labelled("Subcommands", said(parts, whole=True)),
        BLANK,
        Paragraph(
            said(
                "Built into whisper_tui. Enter or b lists them with a switch each. Space sets the level nothing, or "
                "reading: it holds for all sessions.",
                "muted",
            ),
            (Span(" "),),
        ),
    )


def allowance_paragraphs(entry: BuiltIn, hits: Hits) -> tuple[Paragraph, ...]:
    """Return an allowance in full."""
    words = ALLOWANCES[entry.kind]
    does = "These run without approval" if entry.runs else "These need approval"
    often = hits.by_rule[words.rule]
    return (
        Paragraph((SIGNS["allow"] if entry.runs else Span("○", "muted"), Span(f" {does}", "strong")), (Span(" "),)),
        BLANK,
        labelled("Covers", said(words.covers)),
        labelled("Decided", (Span(f"{often:,} of the last {count(hits.looked_at, 'call')}", "strong"),)),
        BLANK,
        Paragraph(said(f"Built into whisper_tui. {words.switch}.", "muted"), margin=(Span(" "),)),
    )


def rule_paragraphs(rule: ShownRule, hits: Hits, file: str, now: float) -> tuple[Paragraph, ...]:
    """Return a rule in full."""
    often = hits.by_rule[rule.name]
    whose = "project" if rule.name.startswith(PROJECT_PREFIX) else "file"
    does = f"This rule {_does(rule.effect)}" if rule.holds else f"This rule would allow, but its {whose} is not trusted"
    if rule.disabled:
        does = "This rule is disabled: it decides nothing until it is enabled"
    sign = SIGNS[rule.effect] if rule.holds and not rule.disabled else Span("○", "muted")
    return (
        Paragraph((sign, Span(f" {does}", "strong")), margin=(Span(" "),)),
        BLANK,
        labelled("Commands", said(rule.subject, "strong")),
        labelled("Name", said(rule.name)),
        labelled("Where", said(rule.where)),
        *((labelled("Because", said(rule.because)),) if rule.because else ()),
        *((labelled("Sandbox", said(rule.sandbox)),) if rule.sandbox else ()),
        *((labelled("Allows", said(f"if a preview {rule.by_effects}")),) if rule.by_effects else ()),
        labelled(
            "Holds", (Span(until_text(rule.until, now, "until it is removed") if rule.holds else "once it is trusted"),)
        ),
        labelled("Decided", (Span(f"{often:,} of the last {count(hits.looked_at, 'call')}", "strong"),)),
        BLANK,
        Paragraph(said(f"Defined in {file}.", "muted"), margin=(Span(" "),)),
    )


def _does(effect: RuleEffect) -> str:
    return {"deny": "denies", "ask": "asks, whatever else would allow it", "allow": "allows"}[effect]


def judgement_paragraphs(text: str, directory: str, found: Judgement) -> tuple[Paragraph, ...]:
    """Return the policy's answer to a tested command, and why."""
    command = Shell(text=text)
    first, *others = verdict_paragraphs(found.verdict)
    return (
        first,
        BLANK,
        *others,
        *([labelled("Place", said(found.place))] if found.place else []),
        BLANK,
        *command_paragraphs(command, found.verdict.risks),
        *meaning_paragraphs(command, found.resolved),
        BLANK,
        Paragraph(
            said(f"Tested as a session in {directory}; its standing approvals count as well.", "muted"),
            (Span(" "),),
        ),
    )


def verdict_paragraphs(verdict: Verdict) -> Iterator[Paragraph]:
    """Yield the verdict on a tested command, its reason and the risks of the command."""
    words: dict[str, tuple[str, Role]] = {
        "allow": ("✔ Allowed: would run without approval.", "good"),
        "ask": ("◆ Asked: you would decide.", "waiting"),
        "refuse": ("✘ Denied.", "bad"),
    }
    yield Paragraph((Span(*words[verdict.kind]),), margin=(Span(" "),))
    yield labelled("Because", said(verdict.reason))
    if verdict.rule:
        yield labelled("Rule", said(verdict.rule))
    if verdict.sandbox is not None:
        yield labelled("Sandbox", sandbox_line(verdict.sandbox))
    for risk in verdict.risks:
        sign = Finding.of(risk).sign
        yield Paragraph(said(f"{risk.sentence}.", sign.role), (Span(f" {sign.text:<2} ", sign.role),))
