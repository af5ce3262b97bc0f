"""The effects of a waiting call as rows of its card, with the findings that are about one of them beside it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from whisper_tui.model.call import Command
from whisper_tui.model.effects import CodeEffect, Effects, FileEffect, GitEffect, Removal, TextDiff
from whisper_tui.present.column_words import REMARKS, UNREAD
from whisper_tui.present.diff_text import unified_rows
from whisper_tui.present.effects_text import EffectLine, effect_lines, no_effects_text
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Line, Paragraph, Role, Span, said
from whisper_tui.present.verdict_text import Finding, deletes, with_objects
from whisper_tui.tui.edit_diff import flowing_rows

MOST_DIFF_LINES, MOST_CODE_LINES = 60, 80
"""Lines of one diff, and of one script, on the card."""


class EffectRows(NamedTuple):
    """The effects of a call as rows."""

    paragraphs: tuple[Paragraph, ...] = ()
    told: frozenset[str] = frozenset()
    """The sentences of the findings that they tell, so that these have no rows of their own (decision 42)."""
    nothing_there: bool = False
    """True if all that the call does is to delete what does not exist: its verdict says that, and no other row."""


def effect_rows(effects: Effects, command: Command, findings: Sequence[Finding] = ()) -> EffectRows:
    """Return the effects of a call: one line each, a diff below each known write, the text of each unread script.

    `findings` are those of the call, the first of which is its verdict. It and the severe ones stand above.
    """
    return _Rows(effects, command, findings).made()


class _Rows:
    """The rows of the effects of one call, and the findings that they tell."""

    def __init__(self, effects: Effects, command: Command, findings: Sequence[Finding]) -> None:
        self._effects, self._command, self._findings = effects, command, findings
        self._above = {each.sentence for number, each in enumerate(findings) if each.grave or not number}
        self._others = [each for each in findings if each.sentence not in self._above]
        self._certain = effects.complete and not any(each.about in {"files", "everything"} for each in effects.unknown)
        deletions = [each for each in findings if deletes(each)]
        alone = len(deletions) == sum(each.id not in REMARKS for each in findings) > 0
        self._nothing_there = alone and _nothing_is_there(effects)
        self._rows: list[Paragraph] = []
        self._told: set[str] = set()

    def made(self) -> EffectRows:
        """Return them."""
        effects = self._effects
        facts = _without_what_stands_elsewhere(effects, self._above)
        if self._nothing_there:
            facts["removals"] = []
        nothing = no_effects_text(facts)
        title = (Span("Effects", "label"), *((Span(f"  {nothing}", "muted"),) if nothing else ()))
        self._rows += (BLANK, Paragraph(title, margin=(Span(" "),)))
        files, removals, hosts = iter(effects.files), iter(effects.removals), iter(effects.hosts)
        repositories, scripts, unknown = iter(effects.git), iter(effects.code), iter(effects.unknown)
        for line in effect_lines(facts):
            match line.kind:
                case "file":
                    self._add_file(line, next(files))
                case "removal":
                    script = next(removals).script
                    self._add(line, self._one_kind("deletes-files", effects.removals) if not script else ())
                case "host":
                    host = next(hosts)
                    self._add(line, [each for each in self._others if host.elsewhere and _connects(each, host.program)])
                case "git":
                    self._add_git(line, next(repositories))
                case "code":
                    self._add_code(line, next(scripts))
                case "unknown":
                    # The last one may say that time ran out, and is about no command.
                    what = next(unknown, None)
                    program = what.command.partition(" ")[0] if what is not None and what.about == "hosts" else ""
                    self._add(line, [each for each in self._others if program and _connects(each, program)])
                case "secret":
                    self._add(line)
        return EffectRows(tuple(self._rows), frozenset(self._told), self._nothing_there)

    def _add(self, line: EffectLine, about: Sequence[Finding] = ()) -> None:
        told = {each.sentence for each in about} - self._above
        self._told |= told
        role: Role = "muted" if line.kind == "unknown" else "text"
        margin = (Span(" ▲ ", "risk"),) if about or line.grave else (Span(" • ", "muted"),)
        self._rows.append(Paragraph(said(line.text, role), margin, (Span("   "),), decides=bool(told)))

    def _one_kind(self, id_: str, effects: Sequence[FileEffect | Removal]) -> list[Finding]:
        """Return the finding of a kind that one of these effects certainly is; none if there could be others."""
        found = [each for each in self._others if each.id == id_]
        alone = len(found) == sum(not each.script for each in effects) == 1
        return found if self._certain and alone else []

    def _add_file(self, line: EffectLine, file: FileEffect) -> None:
        about = self._one_kind("writes-file", self._effects.files) if not file.script else []
        directory = self._effects.directory
        self._add(line, [*about, *(e for e in self._others if file.outside and _writes_to(e, file.path, directory))])
        if file.diff is not None:
            self._rows += _difference(file.diff)

    def _add_git(self, line: EffectLine, effect: GitEffect) -> None:
        self._add(_without_command(line, self._command))
        for lost in effect.loses:
            self._rows.append(Paragraph(said(lost.path, "file"), (Span("   "),)))
            self._rows += _difference(lost.diff)

    def _add_code(self, line: EffectLine, code: CodeEffect) -> None:
        self._add(line, [each for each in self._findings if each.id == UNREAD and each.sentence == _not_read(code)])
        for risk in code.risks:
            sentence = risk.sentence_about(code.name)
            if sentence not in self._above:
                self._told.add(sentence)
                where = (Span(f"line {risk.line:,}  ", "muted"),) if risk.line else ()
                margin = (Span("   "), Finding.of(risk).sign, Span(" "))
                self._rows.append(Paragraph((*where, *with_objects(f"{risk.sentence}.")), margin, decides=True))
        self._rows += _script(code)


_MAKES_NOTHING_BELOW = frozenset({"writes", "appends to", "edits", "touches", "makes directory"})
"""The actions on files below which no deletion could find something."""


def _nothing_is_there(effects: Effects) -> bool:
    """True if all that a call changes is known, and it deletes what does not exist and cannot come into being."""
    # Branches, and files of other machines, are deleted in the same words.
    known = effects.files_are_certain and not (effects.unknown or effects.git or effects.hosts)
    makes = any(each.action not in _MAKES_NOTHING_BELOW for each in effects.files)
    return known and not makes and bool(effects.removals) and not any(each.paths for each in effects.removals)


def _without_what_stands_elsewhere(effects: Effects, above: set[str]) -> dict[str, Any]:
    """Return the effects as plain data, without what the card says above or in rows of its own."""
    facts = effects.model_dump(mode="json")
    for code, fact in zip(effects.code, facts["code"], strict=True):
        fact["told"] = fact["risks"]
        if _not_read(code) in above:
            fact["not_inspected"] = ""
    facts["secret_files"] = [name for name in facts["secret_files"] if name not in facts["shown_secrets"]]
    one = len({each.command for each in effects.unknown}) == 1
    for fact in facts["unknown"]:
        # The command stands above: its first words tell which part of it is meant.
        words = fact["command"].split()
        named = one or (words and words[0] in fact["reason"].split())
        fact["command"] = "" if named else " ".join(words[:2]) + (" …" if len(words) > 2 else "")
        fact["reason"] = fact["reason"].removesuffix(" is not known before it runs")
    return facts


def _not_read(code: CodeEffect) -> str:
    return f"Not read: {code.name}, {code.not_inspected}"


def _without_command(line: EffectLine, command: Command) -> EffectLine:
    """Return the line of a git command without the words that stand in the call, if there is more to say."""
    words, comma, rest = line.text.partition(", ")
    return line._replace(text=rest) if comma and words.startswith("git ") and words in command.text else line


def _writes_to(finding: Finding, path: str, directory: str) -> bool:
    """True if a finding is about a write to this file, which its line says to be outside of the workspace."""
    if finding.id != "writes-outside" or not finding.sentence.startswith("Writes to "):
        return False
    name = finding.sentence.removeprefix("Writes to ").rpartition(", outside the workspace ")[0]
    return bool(name) and path in {name, f"{directory.rstrip('/')}/{name}"}


def _connects(finding: Finding, program: str) -> bool:
    return finding.id == "network" and finding.sentence == f"Uses the network (`{program}`)"


def _script(code: CodeEffect) -> Iterator[Paragraph]:
    """Yield the difference of a script since it was approved, and its text."""
    if code.since is not None:
        yield from _difference(code.since)
        yield Paragraph((Span("now", "muted"),), (Span("   "),))
    if code.text:
        signs: dict[int, Span] = {}
        for finding, line in sorted((Finding.of(risk), risk.line or 0) for risk in code.risks):
            if line not in signs or finding.grave:
                signs[line] = finding.sign
        yield from _block(code.text, signs, cut=code.cut)


def _difference(diff: TextDiff) -> Iterator[Paragraph]:
    margin: Line = (Span("  "),)
    yield from flowing_rows(unified_rows(diff.text, MOST_DIFF_LINES), margin)
    yield from _more(diff.text.count("\n") - MOST_DIFF_LINES, margin, cut=diff.cut)


def _block(text: str, signs: dict[int, Span], *, cut: bool) -> Iterator[Paragraph]:
    lines = text.rstrip("\n").split("\n")
    for number, line in enumerate(lines[:MOST_CODE_LINES], 1):
        spans = said(line.replace("\t", "    "), "command", whole=True)
        sign = signs.get(number, Span(""))
        margin: Line = (Span(" "), sign._replace(text=f"{sign.text:<2}"), Span("│ ", "frame"))
        # Unlike a command, a script breaks between words: a row that is not full ends with a blank.
        yield Paragraph(spans, margin, (Span("   "), Span("┆ ", "frame")), card=True)
    yield from _more(len(lines) - MOST_CODE_LINES, (Span("   "), Span("│ ", "frame")), cut=cut)


def _more(lines: int, margin: Line, *, cut: bool) -> Iterator[Paragraph]:
    if lines > 0 or cut:
        more = f"… {count(lines, 'more line')}" if lines > 0 else "… more, too long to be shown"
        yield Paragraph((Span(more, "muted"),), margin)
