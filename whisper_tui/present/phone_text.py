"""Waiting calls as phones show them: plain text, of which nothing is left out without a word about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from whisper_tui.model.call import EditedFile, FileEdits, FileVersions, Session
from whisper_tui.model.effects import Effects
from whisper_tui.model.four_words import four_words
from whisper_tui.model.phone import (
    LONGEST_COMMAND,
    MOST_EFFECTS,
    MOST_LINES,
    DiffLine,
    PhoneCall,
    PhoneEffect,
    PhonePreview,
    PhoneRow,
)
from whisper_tui.model.phone_facts import ShownFacts
from whisper_tui.model.preview import PreviewChange
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import PLAIN_CONTROLS, hidden_parts, one_line_beginning, visible
from whisper_tui.present.call_text import unusual_paragraphs
from whisper_tui.present.column_words import REMARKS
from whisper_tui.present.command_text import call_line, whole_text
from whisper_tui.present.diff_text import DiffRow, FileDiff, Side, file_diffs
from whisper_tui.present.effects_text import EffectLine, effect_lines
from whisper_tui.present.preview_text import outcome_text, undo_paragraphs
from whisper_tui.present.quantities import count
from whisper_tui.present.session_text import session_label
from whisper_tui.present.spans import Line, Paragraph
from whisper_tui.present.verdict_text import findings

LONGEST_ROW = 200
"""Characters of a command in the list."""
LONGEST_LINE = 300
"""Characters of the line of a verdict."""


def row(record: CallRecord, session: Session | None) -> PhoneRow:
    """Return a waiting call as a row of the list."""
    yes = record.pending_yes
    return PhoneRow(
        id=record.id,
        session=session_label(session, record.call.session_id),
        agent=_agent(session),
        command=one_line_beginning(_text(call_line(record, session)), LONGEST_ROW),
        verdict=_verdict(record),
        severe=_is_severe(record),
        careful=_needs_care(record),
        waiting_since=_since(record),
        place=record.spec.place,
        aside=record.aside is not None,
        yes_until=yes.until if yes is not None else None,
    )


def card(record: CallRecord, session: Session | None, facts: ShownFacts, seen: str, revision: int) -> PhoneCall:
    """Return a waiting call whole, without what may be decided about it."""
    command = whole_text(record.call.spec.command)
    root = session.root if session is not None else record.spec.cwd
    preview = _preview(record, facts, root)
    effects = _effects(record, facts)
    left_out = f"{len(effects) - MOST_EFFECTS:,} more files are not listed."
    others = [*_other_effects(facts.effects), *([left_out] if len(effects) > MOST_EFFECTS else [])]
    yes = record.pending_yes
    return PhoneCall(
        id=record.id,
        session=session_label(session, record.call.session_id),
        agent=_agent(session),
        description=visible(record.call.description, keep_lines=True),
        tool=visible(record.call.tool),
        command=visible(command[:LONGEST_COMMAND], keep_lines=True),
        whole=len(command) <= LONGEST_COMMAND,
        directory=visible(record.spec.cwd),
        place=record.spec.place,
        verdict=_verdict(record),
        severe=_is_severe(record),
        careful=_needs_care(record),
        risks=_risks(record, session),
        effects=effects[:MOST_EFFECTS],
        other_effects=tuple(others[-MOST_EFFECTS:]),
        hosts=_hosts(facts.effects),
        undo=" ".join(_text(paragraph.spans) for paragraph in undo_paragraphs(record)),
        preview=preview,
        waiting_since=_since(record),
        aside=record.aside is not None,
        yes_until=yes.until if yes is not None else None,
        yes_by=visible(yes.by.who) if yes is not None else "",
        seen=seen,
        words=four_words(seen),
        may=(),
        revision=revision,
    )


def _agent(session: Session | None) -> str:
    if session is None or session.client is None:
        return ""
    return one_line_beginning(" ".join(filter(None, (session.client.name, session.client.version))), LONGEST_ROW)


def _since(record: CallRecord) -> float:
    return record.state.since if isinstance(record.state, Waiting) else record.call.submitted_at


def _is_severe(record: CallRecord) -> bool:
    return any(each.grave for each in findings(record))


def _needs_care(record: CallRecord) -> bool:
    return any(each.id not in REMARKS for each in findings(record))


def _verdict(record: CallRecord) -> str:
    """Return what matters most, or why the call is asked about, on one line."""
    if record.verdict is None:
        return "not judged yet"
    found = findings(record)
    text = found[0].sentence if found else record.verdict.reason
    more = f" (and {count(len(found) - 1, 'other risk')})" if len(found) > 1 else ""
    return f"{one_line_beginning(text, LONGEST_LINE)}{more}"


def _risks(record: CallRecord, session: Session | None) -> tuple[str, ...]:
    """Return all risks, the severe ones first, and what else is unusual."""
    state = record.state
    again = state.returned_because if isinstance(state, Waiting) else None
    return (
        *([f"It is asked again: {visible(again)}"] if again else []),
        *(f"{'Severe: ' if each.grave else ''}{visible(each.sentence)}" for each in findings(record)),
        *map(_paragraph, unusual_paragraphs(record, session)),
    )


def _text(line: Line) -> str:
    return "".join(span.text for span in line)


def _paragraph(paragraph: Paragraph) -> str:
    label, text = _text(paragraph.margin).strip(), _text(paragraph.spans).strip()
    return f"{label}: {text}" if label else text


def _hosts(effects: Effects | None) -> tuple[str, ...]:
    hosts = [] if effects is None else [each for each in effects.hosts if each.elsewhere]
    named = (visible(each.host) or f"a machine that only {visible(each.program)} knows" for each in hosts)
    return tuple(dict.fromkeys(named))


def _lines_of(effects: Effects) -> tuple[EffectLine, ...]:
    return effect_lines(effects.model_dump(mode="json"))


def _other_effects(effects: Effects | None) -> Iterator[str]:
    """Yield the effects that are about no single file, and what cannot be stated."""
    if effects is None:
        yield "What it would change cannot be stated."
        return
    # Files and machines have lists of their own.
    for line in _lines_of(effects.model_copy(update={"files": (), "removals": (), "hosts": ()})):
        # The word "severe" is for risks alone: those are decided at the desk.
        yield f"{'▲ ' if line.grave else ''}{visible(line.text)}"
    if not effects.complete:
        yield "There may be more: the time was over before everything had been looked at."


def _effects(record: CallRecord, facts: ShownFacts) -> tuple[PhoneEffect, ...]:
    """Return the files that change: as the preview has found them, as the edit says, or as they can be stated."""
    if facts.changes:
        return tuple(map(_of_preview, facts.changes))
    if isinstance(record.call.spec.command, FileEdits):
        return tuple(_of_edit(each) for each in (record.resolved.edits if record.resolved is not None else ()))
    return tuple(_stated(facts.effects, facts.later)) if facts.effects is not None else ()


def _of_preview(change: PreviewChange) -> PhoneEffect:
    notes = [*change.flags]
    if change.below:
        notes.append(f"with {count(change.below, 'entry', 'entries')} below")
    if change.moved_from or change.moved_to:
        notes.append(f"moved from {change.moved_from}" if change.moved_from else f"moved to {change.moved_to}")
    if change.mode_before is not None and change.mode_after not in (None, change.mode_before):
        notes.append(f"mode {change.mode_before:o} becomes {change.mode_after:o}")
    elif change.action == "attributes":
        notes.append("its owner, times or attributes change")
    notes += [f"a {change.kind}"] if change.kind != "file" else []
    return PhoneEffect(
        path=visible(change.path),
        mark="new" if change.action in {"creates", "links"} else "deleted" if change.action == "deletes" else "changed",
        outside=change.outside,
        runs_later=visible("; ".join(change.flags)),
        detail=visible(", ".join(notes[len(change.flags) :])),
    )


def _of_edit(file: EditedFile) -> PhoneEffect:
    notes = [f"moved from {file.moved_from}"] if file.moved_from else []
    notes += ["reached through a link"] if file.through_link else []
    notes += ["holds secrets by its name"] if file.secret else []
    notes += [file.problem or file.unread] if file.problem or file.unread else []
    return PhoneEffect(
        path=visible(file.path),
        mark="deleted" if file.action == "deletes" else "new" if file.size is None else "changed",
        outside=file.outside,
        runs_later=visible(file.sensitive or file.runs_later),
        added=file.added,
        removed=file.removed,
        detail=visible(", ".join(notes)),
    )


def _stated(effects: Effects, later: Mapping[str, str]) -> Iterator[PhoneEffect]:
    lines = _lines_of(effects)
    removals = len(effects.removals)
    for removal, line in zip(effects.removals, lines, strict=False):
        for path in removal.paths:
            yield PhoneEffect(path=visible(path), mark="deleted", outside=removal.outside, detail=visible(line.text))
    for file, line in zip(effects.files, lines[removals:], strict=False):
        yield PhoneEffect(
            path=visible(file.path),
            mark="new" if file.before == "absent" else "changed",
            outside=file.outside,
            runs_later=later.get(file.path, ""),
            added=file.diff.added if file.diff is not None else None,
            removed=file.diff.removed if file.diff is not None else None,
            detail=visible(line.text),
        )


def _preview(record: CallRecord, facts: ShownFacts, root: str) -> PhonePreview:
    """Return the preview of a command; of an edit, the difference that it makes."""
    if facts.edits:
        lines, whole = _diff(facts.edits, root)
        return PhonePreview(about="The difference that the edit makes.", diff=lines, whole=whole)
    preview = record.preview
    if preview is None or preview.dropped:
        return PhonePreview()
    if preview.report is None:
        return PhonePreview(state="running", about="A preview is running.")
    about = visible(outcome_text(preview.report))
    if preview.edited is not None:
        edited = visible(whole_text(preview.edited.command)[:LONGEST_LINE])
        return PhonePreview(state="problem", about=f"It is of another command, as the desk has edited it: {edited}")
    if not preview.can_be_applied or facts.problem:
        why = preview.report.problem or facts.problem
        return PhonePreview(
            state="problem", about=f"{about} Nothing can be applied: {visible(why)}".strip(), whole=False
        )
    lines, whole = _diff(facts.versions, root)
    whole = whole and facts.whole and not any(map(_is_unseen, facts.changes))
    part = "" if whole else " Not all of its changes can be shown here, so they can only be applied at the desk."
    return PhonePreview(state="finished", about=f"{about}{part}", diff=lines, whole=whole)


def _is_unseen(change: PreviewChange) -> bool:
    """True if the difference of files does not show all of a change."""
    if change.kind in {"link", "special"}:
        return change.action != "deletes"
    return change.kind == "directory" and change.below > 0 and change.action != "deletes"


def _diff(versions: Sequence[FileVersions], root: str) -> tuple[tuple[DiffLine, ...], bool]:
    """Return the differences of files as lines, and whether they are all."""
    diffs = file_diffs(versions, root)
    found = list(islice(_diff_lines(diffs), MOST_LINES + 1))
    whole = len(found) <= MOST_LINES and not any(map(_is_cut, diffs)) and not any(each.not_shown for each in versions)
    return tuple(found[:MOST_LINES]), whole and not any(map(_hides, versions))


def _hides(versions: FileVersions) -> bool:
    """True if a changed file has characters that cannot be seen."""
    texts: Iterable[str] = filter(None, (versions.old, versions.new))
    return any(next(hidden_parts(text.replace("\r\n", "\n"), keep=PLAIN_CONTROLS), None) for text in texts)


def _is_cut(diff: FileDiff) -> bool:
    sides = (side for each in diff.rows for side in (each.old, each.new) if side is not None)
    return any(each.hidden for each in diff.rows) or any(side.before or side.after for side in sides)


def _diff_lines(diffs: Iterable[FileDiff]) -> Iterator[DiffLine]:
    for diff in diffs:
        yield DiffLine(kind="file", text=_text(diff.title))
        for fact in diff.facts:
            yield DiffLine(kind="note", text=_text(fact))
        removed: list[DiffLine] = []
        added: list[DiffLine] = []
        for each in diff.rows:
            if each.changed:
                removed += [] if each.old is None else [_line("removed", each.old)]
                added += [] if each.new is None else [_line("added", each.new)]
                continue
            yield from (*removed, *added)
            removed, added = [], []
            yield _unchanged(each)
        yield from (*removed, *added)


def _unchanged(each: DiffRow) -> DiffLine:
    side = each.new or each.old
    if side is not None:
        return _line("same", side)
    if each.hidden:
        return DiffLine(kind="note", text=f"{each.hidden:,} more changed lines are not shown")
    return DiffLine(kind="hunk", text=f"{count(each.folded, 'unchanged line')}")


def _line(kind: str, side: Side) -> DiffLine:
    cut = ("… " if side.before else "", " …" if side.after else "")
    note = f"  ({side.note})" if side.note else ""
    text = f"{cut[0]}{visible(side.text, keep_lines=True)}{cut[1]}{note}"
    return DiffLine.model_validate({"kind": kind, "text": text})
