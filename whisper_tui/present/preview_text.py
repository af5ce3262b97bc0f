"""The findings of a preview, and the changes of an approved call that can be undone, as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.preview import (
    WAY_NAMES,
    BlockedAccess,
    ChangeAction,
    ChangeCounts,
    ChangedFiles,
    Preview,
    PreviewChange,
    PreviewReport,
    PreviewWay,
    Undo,
)
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.text import visible
from whisper_tui.present.command_text import command_paragraphs
from whisper_tui.present.ending_text import ending_word, undone_words, went_well
from whisper_tui.present.quantities import clock_time, count, duration, size
from whisper_tui.present.spans import BLANK, HunkPlace, Line, Paragraph, Role, Span, labelled, said
from whisper_tui.present.tool_text import short_path
from whisper_tui.present.words import decided_by_text

MOST_PATHS = 3
"""Paths of an undo that are named."""
MOST_ROWS = 100
"""Changes that are listed on a card; the rest is counted."""
STOPPED: Mapping[str, str] = {
    "time": "It was ended at its time limit; these are its changes until then.",
    "space": "It was ended because its changes took too much disk space.",
    "network": "It waited for a refused connection and was ended; these are its changes until then.",
}
WAY_LIMITS: Mapping[PreviewWay, str] = {
    "bubblewrap": "Names of other machines could not be looked up; such attempts are listed as connections to the "
    "name server.",
    "copy": "It could not use absolute paths into the workspace, files outside it, the network or local services.",
    "read-only": "It could write nothing, so it may have ended early; it could not use files outside the workspace and "
    "your home, the network or local services.",
}
"""How a command had less in a preview than it will have, for each way that is not exact."""
SIGNS: Mapping[ChangeAction, tuple[str, Role]] = {
    "creates": ("A", "good"),
    "links": ("A", "good"),
    "changes": ("M", "edited"),
    "replaces": ("M", "edited"),
    "deletes": ("D", "bad"),
    "attributes": ("P", "edited"),
}
"""The letter of each change, like in version control; P is for permissions and other attributes."""
RENAMED: tuple[str, Role] = ("R", "edited")
"""The same of a file or directory with another name."""


def preview_mark(record: CallRecord) -> Line:
    """Return the words of a row of the list about a preview, or about an undo. Empty: there is nothing to say."""
    preview = record.preview
    if isinstance(record.state, Ended):
        return tuple(Span(f"{word} ", "edited") for word in undone_words(record))
    if preview is None or preview.dropped or record.decision is not None:
        return ()
    if preview.report is None:
        return (Span("previewing ", "running"),)
    if isinstance(preview.report.ending, FailedToStart):
        return (Span("no preview ", "risk"),)
    return (Span("previewed ", "good" if preview.can_be_applied else "risk"),)


def counts_text(counts: ChangeCounts) -> str:
    """Return how many files a preview changes: `2 created, 1 deleted`."""
    parts = (
        (counts.created, "created"),
        (counts.changed, "changed"),
        (counts.deleted, "deleted"),
        (counts.renamed, "renamed"),
        (counts.attributes, "with other attributes"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "no file is changed"


def changed_text(changed: ChangedFiles, root: str) -> str:
    """Return what a run has changed, like `git diff --stat`: `1 changed, +3 −1: app.py`."""
    lines = () if not changed.added and not changed.removed else (f"+{changed.added:,} −{changed.removed:,}",)
    named = [visible(short_path(path, root)) for path in changed.paths]
    left = changed.counts.all - len(named)
    if named and left > 0:
        named.append(f"{left:,} more")
    return ", ".join((counts_text(changed.counts), *lines)) + (f": {', '.join(named)}" if named else "")


def findings_text(report: PreviewReport) -> str:
    """Return how many files a preview changes, or would change if it could write."""
    if report.way != "read-only":
        return counts_text(report.counts)
    would = sum(each.what in {"write", "change"} for each in report.blocked)
    more = " and more" if would and report.more_blocked else ""
    return f"it would write to {count(would, 'file')}{more}" if would else "no file would be changed"


def preview_paragraphs(preview: Preview, now: float, key: str = "", *, typed: bool = False) -> tuple[Paragraph, ...]:
    """Return the outcome of a preview, or for how long it has been running, without the list of its changes.

    `key` ends one that runs; `typed`: its command reads what is typed.
    """
    title = Span("Preview", "label")
    edited = (Span("  of the edited command", "edited"),) if preview.edited is not None else ()
    command = command_paragraphs(preview.edited.command, ()) if preview.edited is not None else ()
    if preview.report is None:
        words = f"  running for {duration(max(0.0, now - preview.started_at))}; no real file changes"
        words += ", and nobody can type into it" if typed else ""
        ends: Line = (Span(f"   {key} ", "strong"), Span("ends it", "muted")) if key else ()
        return (Paragraph((title, *edited, Span(words, "running"), *ends), margin=(Span(" "),)), *command)
    report = preview.report
    # A preview that never began has said all with its problem.
    began = not isinstance(report.ending, FailedToStart)
    role: Role = "good" if went_well(report.ending) else "bad"
    facts: Line = (
        (
            Span(f"  {findings_text(report)}", "strong"),
            Span("  ·  ", "muted"),
            Span(ending_word(report.ending), role),
            Span(f" after {duration(report.seconds)}", "muted"),
        )
        if began
        else ()
    )
    way = _way_and_limits(report) if began else ()
    return (
        Paragraph((title, *edited, *facts), margin=(Span(" "),), decides=True),
        *(replace(paragraph, decides=True) for paragraph in command),
        *(Paragraph(said(text, "muted"), margin=(Span("   "),), decides=True) for text in way),
        *(_warning(text) for text in warnings(report)),
        # Last, because they say nothing about the command, and the reasons of a system may be long.
        *(Paragraph(said(text, "muted"), margin=(Span("   "),)) for text in _ways_not_there(report)),
    )


def warnings(report: PreviewReport) -> Iterator[str]:
    """Yield what a person must know of a preview beside its changes, as sentences."""
    if report.counts.outside:
        yield f"{count(report.counts.outside, 'change')} outside the workspace."
    yield from (blocked_text(each, report.way) for each in report.blocked)
    if report.more_blocked:
        yield f"It tried to reach {report.more_blocked:,} more, which were refused."
    for line in report.left:
        yield f"It left a process behind, which ended with the preview: {visible(line)}"
    if report.stopped:
        yield STOPPED[report.stopped]
    for why in report.beyond_rule:
        yield f"Its rule leaves the decision to you: {visible(why)}."
    if isinstance(report.ending, FailedToStart):
        yield f"It was not previewed: {visible(report.problem)}."
    elif report.problem:
        yield f"It cannot be applied: {visible(report.problem)}."


def way_text(report: PreviewReport) -> Iterator[str]:
    """Yield how a command was previewed, what that way cannot show, and why no better one, as sentences.

    Nothing: it was on overlays.
    """
    if report.way != "overlay":
        yield from (*_way_and_limits(report), *_ways_not_there(report))


def _way_and_limits(report: PreviewReport) -> Iterator[str]:
    """Yield how a command was previewed, and what that way cannot show, as sentences. Nothing: on overlays."""
    if report.way != "overlay":
        yield f"Previewed with {WAY_NAMES[report.way]}."
        yield from filter(None, (WAY_LIMITS.get(report.way),))


def _ways_not_there(report: PreviewReport) -> Iterator[str]:
    """Yield the better ways, or all of them, that do not work here, as sentences."""
    return (f"Not with {WAY_NAMES[way]}: {visible(reason)}." for way, reason in report.instead)


def blocked_text(access: BlockedAccess, way: PreviewWay = "overlay") -> str:
    """Return what a command tried in vain, as a sentence."""
    times = f" ({access.times:,} times)" if access.times > 1 else ""
    target = f"{visible(access.target)}{times}" if access.target else f"another machine{times}"
    match access.what:
        case "write" | "change":
            verb = "write to" if access.what == "write" else "change the attributes of"
            return f"It would {verb} {target}." if way == "read-only" else f"It tried to {verb} {target}: refused."
        case "reach":
            return f"It tried to use {target} by this path, which its copy does not have: refused."
        case "device":
            return f"It tried to write to {target}, where the preview has no device: refused."
        case _:
            what = {"network": "over the network", "socket": "a local service"}[access.what]
            return f"It tried to reach {target}, {what}: refused."


def _warning(text: str) -> Paragraph:
    return Paragraph(said(text, "risk"), margin=(Span(" ! ", "risk"),), decides=True)


def conflict_paragraphs(conflicts: Sequence[str]) -> tuple[Paragraph, ...]:
    """Return the paths that have changed since the preview: while there are any, it cannot be applied."""
    if not conflicts:
        return ()
    names = ", ".join(conflicts[:3]) + (f" and {len(conflicts) - 3:,} more" if len(conflicts) > 3 else "")
    return (_warning(f"Changed since the preview, so it cannot be applied: {names}. Preview it again."),)


def change_rows(
    changes: Sequence[PreviewChange], total: int, root: str, places: Mapping[int, int], *, decides: bool
) -> Iterator[Paragraph]:
    """Yield a row for each change; `places` has the place of its difference, by the number of the change.

    `decides`: True if they must have been on the screen before the changes are made real.
    """
    for change in without_renamed(changes[:MOST_ROWS]):
        place = places.get(change.number)
        at = HunkPlace(place, listed=True) if place is not None else None
        letter, role = RENAMED if change.moved_from else SIGNS[change.action]
        yield Paragraph(
            (Span(f"{letter} ", role), *change_line(change, root)),
            margin=(Span("  "),),
            hanging=(Span("    "),),
            at_words=False,
            decides=decides,
            place=at,
        )
    if total > MOST_ROWS:
        words = f"… {total - MOST_ROWS:,} more; whisper-tui preview lists them all"
        yield Paragraph((Span(words, "muted"),), margin=(Span("    "),), decides=decides)


def change_line(change: PreviewChange, root: str) -> Line:
    """Return the path of a change, its size or mode, and what is special about it."""
    end = "/" if change.kind == "directory" else "@" if change.kind == "link" else ""
    path = said(f"{short_path(change.path, root)}{end}", "risk" if change.outside else "text")
    flags = tuple(Span(f"  ! {visible(flag)}", "risk") for flag in change.flags)
    if change.moved_from:
        path = (Span("renamed ", "muted"), *said(short_path(change.moved_from, root)), Span(" → ", "muted"), *path)
    return (*path, Span(f"  {_measure(change)}", "muted"), *flags)


def _measure(change: PreviewChange) -> str:
    if change.action == "attributes":
        if change.mode_before is not None and change.mode_after is not None and change.mode_before != change.mode_after:
            return f"mode {change.mode_before:o} → {change.mode_after:o}"
        return "only its owner, time stamps or attributes"
    if change.alike is not None:
        return _measure_of_renamed(change)
    if change.below:
        return f"with {count(change.below, 'entry', 'entries')}"
    before, after = change.size_before, change.size_after
    if change.action == "links":
        return "a further name of a file"
    if before is not None and after is not None:
        return size(after) if before == after else f"{size(before)} → {size(after)}"
    found = after if after is not None else before
    return "" if found is None else size(found)


def _measure_of_renamed(change: PreviewChange) -> str:
    parts = [f"with {count(change.below, 'entry', 'entries')}"] if change.below else []
    if change.size_after is not None:
        parts.append(size(change.size_after))
    if change.alike is not None and change.alike < 100:
        parts.append(f"{change.alike}% the same")
    if change.mode_before is not None and change.mode_after is not None and change.mode_before != change.mode_after:
        parts.append(f"mode {change.mode_before:o} → {change.mode_after:o}")
    return " · ".join(parts)


def without_renamed(changes: Sequence[PreviewChange]) -> list[PreviewChange]:
    """Return the changes without those that the row of another one says: old names, and what is in renamed trees."""
    paths = {change.path for change in changes}
    trees = tuple(f"{change.path}/" for change in changes if change.moved_from and change.kind == "directory")

    def is_said(change: PreviewChange) -> bool:
        # What is special about one of the names is never left out.
        if change.flags or change.outside:
            return False
        is_same = change.alike == 100 or (change.alike is not None and change.kind == "directory")
        return change.moved_to in paths or (is_same and change.path.startswith(trees))

    return [change for change in changes if not is_said(change)]


def choice_paragraph(keys: Mapping[str, str], *, applies: bool, edited: bool = False, again: bool = True) -> Paragraph:
    """Return the line with the choices after a preview; `keys` has the keys of the commands by their ids.

    `again`: another preview can be made.
    """
    real = "run the requested command for real" if edited else "run it for real"
    choices = [("approve", "apply exactly these changes")] if applies else []
    choices.append(("approval-way" if applies else "approve", real))
    if again:
        choices.append(("preview", "preview the requested one" if edited else "preview again"))
    line: list[Span] = []
    for command, words in choices:
        if key := keys.get(command):
            line += [Span(f" {key} ", "strong"), Span(f"{words}   ", "muted")]
    return Paragraph(tuple(line), margin=(Span(" "),))


def undo_paragraphs(record: CallRecord, key: str = "") -> tuple[Paragraph, ...]:
    """Return how the changes of a waiting call could be undone, or why they could not.

    `key` runs it so that they can. Empty: there is nothing to undo.
    """
    plan = record.verdict.undo if record.verdict is not None else None
    if not isinstance(record.state, Waiting) or record.verdict is None or record.function is not None:
        return ()
    if plan is None:
        if not key or not record.verdict.risks or record.spec.place:
            return ()
        offer = (
            Span("no", "muted"),
            Span(f"   {key} ", "strong"),
            Span("holds its changes back, so that they can be undone", "muted"),
        )
        return (labelled("Undo", offer),)
    if plan.how == "none":
        return (labelled("Undo", (Span("no", "waiting"), *said(f": {plan.why}"))),)
    words = "a backup of its files is made first" if plan.how == "copies" else "it is held in a copy until it ends"
    return (labelled("Undo", (Span("yes", "good"), Span(f": {words}"))),)


def undo_text(undo: Undo, when: str) -> str:
    """Return an undo, or a redo, as words: its outcome, time and author, and the paths if not all were meant."""
    word = "undone" if undo.direction == "undo" else "redone"
    by = decided_by_text(undo.by)
    paths = _paths_text(undo, "")
    if undo.problem:
        return f"not {word} {when} {by}{paths}: {visible(undo.problem)}"
    return f"{word if undo.done else f'being {word}'} {when} {by}{paths}"


def _paths_text(undo: Undo, root: str) -> str:
    """Return the paths of an undo in parentheses, below a directory as they are called there. Empty: it was of all."""
    named = [visible(short_path(path, root)) for path in undo.paths[:MOST_PATHS]]
    more = [f"{len(undo.paths) - MOST_PATHS} more"] if len(undo.paths) > MOST_PATHS else []
    return f" ({', '.join(named + more)})" if named else ""


def outcome_text(report: PreviewReport, *, counted: bool = True) -> str:
    """Return the outcome of a preview as words: its changes, its ending, and what a person must know besides.

    `counted`: False where its changes are told by themselves.
    """
    missing = _ways_not_there(report) if isinstance(report.ending, FailedToStart) else ()
    found = f"{findings_text(report)}; " if counted else ""
    return " ".join((f"{found}{ending_word(report.ending)}.", *warnings(report), *missing))


def kept_paragraphs(record: CallRecord, key: str) -> tuple[Paragraph, ...]:
    """Return what became of the changes of an ended call, kept or not; `key` undoes them.

    Empty: it changed nothing, as far as anybody knows.
    """
    if not isinstance(record.state, Ended):
        return ()
    if record.not_kept_because:
        why = said(f"  not kept: {record.not_kept_because}", "waiting")
        return (BLANK, Paragraph((Span("Changes", "label"), *why), margin=(Span(" "),)))
    if record.discarded:
        return (_warning(f"Its changes did not become real: {visible(record.discarded)}."),)
    if not record.undoable:
        return ()
    changed = record.state.changed
    if changed is None and record.applies and record.preview is not None and record.preview.report is not None:
        # So earlier versions have recorded it.
        changed = ChangedFiles(counts=record.preview.report.counts)
    # The list of the changed files follows.
    counts = changed_text(changed.model_copy(update={"paths": ()}), "") if changed is not None else ""
    kept = "applied from its preview, without running again" if record.applies else "kept"
    source = ", ".join(filter(None, (counts, kept)))
    line: Line = (Span("Changes", "label"), Span(f"  {source}", "muted"))
    undo = record.undo
    word = "undone" if undo is None or undo.direction == "undo" else "redone"
    if undo is not None and undo.problem:
        line = (*line, *said(f"  could not be {word}: {undo.problem}", "risk"))
    elif undo is not None and undo.done:
        part = _paths_text(undo, record.spec.cwd)
        line = (*line, Span(f"  {word} {decided_by_text(undo.by)} at {clock_time(undo.at)}{part}", "edited"))
    back = undo is not None and undo.done and undo.direction == "undo"
    what = "undoes them" if undo is None or not back else "undoes the rest" if undo.paths else "redoes them"
    offer = Span(f"   {key} ", "strong"), Span(what, "muted")
    return (BLANK, Paragraph((*line, *(offer if key else ())), margin=(Span(" "),)))


def on_record_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return what the journal has of a call's preview, and of each undo and redo of its changes, in their order."""
    rows: list[Paragraph] = []
    preview = record.preview
    if isinstance(record.state, Ended) and preview is not None and preview.report is not None:
        # The line about the changes that were made real has their number.
        report = preview.report
        counts = "" if record.applies else f"{findings_text(report)}; "
        found = " ".join((f"{counts}{ending_word(report.ending)}.", *warnings(report)))
        when = f"at {clock_time(preview.started_at)} {decided_by_text(preview.by)}: "
        rows.append(labelled("Previewed", (Span(when), *said(found))))
    undos = (*record.earlier_undos, *((record.undo,) if record.undo is not None else ()))
    for number, undo in enumerate(undos):
        rows.append(labelled("Since then" if not number else "", said(undo_text(undo, f"at {clock_time(undo.at)}"))))
    return (BLANK, *rows) if rows else ()
