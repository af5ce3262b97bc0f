"""The effects of a waiting call as rows of its card, with the findings that are about one of them beside it."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from whisper_tui.model.call import Command
from whisper_tui.model.effects import CodeEffect, Effects, FileEffect, Removal, StepEffect, TextDiff
from whisper_tui.present.column_words import REMARKS, UNREAD
from whisper_tui.present.diff_text import unified_rows
from whisper_tui.present.effect_marks import file_row, host_chip, removal_row
from whisper_tui.present.effects_text import EffectLine, effect_lines, name_below, no_effects_text
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, LABEL, Line, Paragraph, Span, labelled, said
from whisper_tui.present.verdict_text import Finding, deletes, with_objects
from whisper_tui.tui.edit_diff import flowing_rows

MOST_DIFF_LINES, MOST_CODE_LINES = 60, 80
"""Lines of one diff, and of one script, on the card."""


class EffectRows(NamedTuple):
    """The effects of a call as rows."""

    paragraphs: tuple[Paragraph, ...] = ()
    """Files, machines, code and what is not known, a row or two each."""
    told: frozenset[str] = frozenset()
    """The sentences of the findings that they tell, so that these have no rows of their own (decision 42)."""
    nothing_there: bool = False
    """True if all that the call does is to delete what does not exist: its verdict says that, and no other row."""
    texts: tuple[Paragraph, ...] = ()
    """The differences and the code, which come last: they may be long, and push no other row off the screen."""
    steps: tuple[StepEffect, ...] = ()
    """The effect of each command of a chain, for the lines of the command."""


def effect_rows(
    effects: Effects, command: Command, findings: Sequence[Finding] = (), later: Collection[str] = ()
) -> EffectRows:
    """Return the effects of a call: files with marks, machines as chips, code with its risks; then the texts of both.

    `findings` are those of the call, the first of which is its verdict. It and the severe ones stand above. `later`:
    the files that it may write and that decide what runs later.
    """
    return _Rows(effects, command, findings, later).made()


class _Rows:
    """The rows of the effects of one call, and the findings that they tell."""

    def __init__(self, effects: Effects, command: Command, findings: Sequence[Finding], later: Collection[str]) -> None:
        self._effects, self._command, self._findings, self._later = effects, command, findings, later
        self._above = {each.sentence for number, each in enumerate(findings) if each.grave or not number}
        self._others = [each for each in findings if each.sentence not in self._above]
        self._certain = effects.complete and not any(each.about in {"files", "everything"} for each in effects.unknown)
        deletions = [each for each in findings if deletes(each)]
        alone = len(deletions) == sum(each.id not in REMARKS for each in findings) > 0
        self._nothing_there = alone and _nothing_is_there(effects)
        self._rows: list[Paragraph] = []
        self._texts: list[tuple[str, tuple[Paragraph, ...]]] = []
        """The differences and the code, each with its name."""
        self._told: set[str] = set()
        self._label = ""

    def made(self) -> EffectRows:
        """Return them."""
        effects = self._effects
        facts = _without_what_stands_elsewhere(effects, self._above)
        if self._nothing_there:
            facts["removals"] = []
        lines: dict[str, list[EffectLine]] = {}
        for line in effect_lines(facts):
            lines.setdefault(line.kind, []).append(line)
        self._rows.append(BLANK)
        if nothing := no_effects_text(facts):
            self._rows.append(labelled("Changes", (Span(nothing, "muted"),)))
        self._add_files()
        for line, effect in zip(lines.get("git", ()), effects.git, strict=True):
            self._add("Changes", said(_without_command(line, self._command).text), grave=line.grave)
            for lost in effect.loses:
                self._texts.append((lost.path, tuple(_difference(lost.diff))))
        self._add_hosts()
        for line, code in zip(lines.get("code", ()), effects.code, strict=True):
            self._add_code(line, code)
        for line in lines.get("secret", ()):
            self._add("Secrets", said(line.text), grave=line.grave)
        for number, line in enumerate(lines.get("unknown", ())):
            # The last one may say that time ran out, and is about no command.
            what = effects.unknown[number] if number < len(effects.unknown) else None
            program = what.command.partition(" ")[0] if what is not None and what.about == "hosts" else ""
            text = line.text.replace("unknown: ", "", 1)
            self._add("Unknown", said(text, "muted"), self._connecting(program))
        texts = tuple(self._named_texts())
        return EffectRows(tuple(self._rows), frozenset(self._told), self._nothing_there, texts, effects.steps)

    def _add(
        self,
        label: str,
        line: Line,
        about: Sequence[Finding] = (),
        *,
        grave: bool = False,
        script: str = "",
        right: Line = (),
    ) -> None:
        told = {each.sentence for each in about} - self._above
        self._told |= told
        by = said(f"  by {script}", "muted") if script else ()
        # Only the first row of a kind has its label.
        shown = "" if label == self._label else label
        self._label = label
        sign = Span("▲", "risk") if about or grave else Span("")
        self._rows.append(_signed(shown, sign, (*line, *by), decides=bool(told), right=right))

    def _add_files(self) -> None:
        effects = self._effects
        for removal in () if self._nothing_there else effects.removals:
            about = self._one_kind("deletes-files", effects.removals) if not removal.script else []
            grave = bool(removal.paths) and (removal.outside or removal.restorable != removal.files)
            row = removal_row(removal, effects.directory)
            self._add("Changes", row.line, about, grave=grave, script=removal.script, right=row.amount)
        for file in effects.files:
            row = file_row(file, effects.directory, self._later)
            self._add("Changes", row.line, self._about(file), grave=file.outside, script=file.script, right=row.amount)
            if file.diff is not None and file.diff.text:
                self._texts.append((name_below(file.path, effects.directory), tuple(_difference(file.diff))))

    def _one_kind(self, id_: str, effects: Sequence[FileEffect | Removal]) -> list[Finding]:
        """Return the finding of a kind that one of these effects certainly is; none if there could be others."""
        found = [each for each in self._others if each.id == id_]
        alone = len(found) == sum(not each.script for each in effects) == 1
        return found if self._certain and alone else []

    def _about(self, file: FileEffect) -> list[Finding]:
        about = self._one_kind("writes-file", self._effects.files) if not file.script else []
        directory = self._effects.directory
        return about + [each for each in self._others if file.outside and _writes_to(each, file.path, directory)]

    def _connecting(self, program: str) -> list[Finding]:
        sentence = f"Uses the network (`{program}`)"
        return [each for each in self._others if program and each.id == "network" and each.sentence == sentence]

    def _add_hosts(self) -> None:
        for host in self._effects.hosts:
            about = self._connecting(host.program) if host.elsewhere else []
            self._add("Hosts", host_chip(host), about, script=host.script)

    def _add_code(self, line: EffectLine, code: CodeEffect) -> None:
        about = [each for each in self._findings if each.id == UNREAD and each.sentence == _not_read(code)]
        before, name, after = line.text.replace("runs ", "", 1).partition(code.name)
        self._add("Runs", (*said(before, "muted"), *said(name, "strong"), *said(after)), about, grave=line.grave)
        for risk in code.risks:
            sentence = risk.sentence_about(code.name)
            if sentence not in self._above:
                self._told.add(sentence)
                where = (Span(f"line {risk.line:,}  ", "muted"),) if risk.line else ()
                line_of_it = (*where, *with_objects(f"{risk.sentence}."))
                self._rows.append(_signed("", Finding.of(risk).sign, line_of_it, decides=True))
        unread = [each.name for each in self._effects.code if each.script == code.name and not each.inspected]
        if text := tuple(_script(code, unread)):
            self._texts.append((code.name, text))

    def _named_texts(self) -> Iterator[Paragraph]:
        """Yield the texts, each below its name unless the only row above is about it."""
        named = len(self._texts) > 1 or len(self._rows) > 2
        for name, text in self._texts:
            yield BLANK
            if named:
                yield Paragraph(said(name, "file"), margin=(Span(" ▌ ", "file"),))
            yield from text


def _signed(label: str, sign: Span, line: Line, *, decides: bool, right: Line = ()) -> Paragraph:
    """Return a row with a label, and a sign before its text."""
    margin = (Span(f" {label:<{LABEL - 4}}", "label"), sign._replace(text=f"{sign.text:<3}"))
    return Paragraph(line, margin, decides=decides, right=right)


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


def _script(code: CodeEffect, unread: Sequence[str]) -> Iterator[Paragraph]:
    """Yield the difference of a script since it was approved, and its text.

    `unread`: the names of the code that it runs in turn and that nobody has read.
    """
    if code.since is not None:
        yield from _difference(code.since)
        yield Paragraph((Span("now", "muted"),), (Span("   "),))
    if code.text:
        signs: dict[int, Span] = {}
        for finding, line in sorted((Finding.of(risk), risk.line or 0) for risk in code.risks):
            if line not in signs or finding.grave:
                signs[line] = finding.sign
        yield from _block(code.text, signs, unread, cut=code.cut)


def _difference(diff: TextDiff) -> Iterator[Paragraph]:
    margin: Line = (Span("  "),)
    yield from flowing_rows(unified_rows(diff.text, MOST_DIFF_LINES), margin)
    yield from _more(diff.text.count("\n") - MOST_DIFF_LINES, margin, cut=diff.cut)


def _block(text: str, signs: dict[int, Span], unread: Sequence[str], *, cut: bool) -> Iterator[Paragraph]:
    lines = text.rstrip("\n").split("\n")
    shown = lines[:MOST_CODE_LINES]
    digits = len(str(len(shown)))
    hanging: Line = (Span(" " * (digits + 5)), Span("┆ ", "frame"))
    for number, line in enumerate(shown, 1):
        spans = said(line.replace("\t", "    "), "command", whole=True)
        not_read = any(name in line for name in unread)
        sign = signs.get(number, Span("▲", "risk") if not_read else Span(""))
        place = Span(f"{number:>{digits}} ", "muted")
        margin: Line = (Span(" "), sign._replace(text=f"{sign.text:<3}"), place, Span("│ ", "frame"))
        right = (Span("  not read ", "risk"),) if not_read else ()
        # Unlike a command, a script breaks between words: a row that is not full ends with a blank.
        yield Paragraph(spans, margin, hanging, card=True, right=right)
    yield from _more(len(lines) - MOST_CODE_LINES, (Span(" " * (digits + 5)), Span("│ ", "frame")), cut=cut)


def _more(lines: int, margin: Line, *, cut: bool) -> Iterator[Paragraph]:
    if lines > 0 or cut:
        more = f"… {count(lines, 'more line')}" if lines > 0 else "… more, too long to be shown"
        yield Paragraph((Span(more, "muted"),), margin)
