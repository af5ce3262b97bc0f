"""The messages to an agent about what a human has done with one of its earlier calls."""

import posixpath
from collections.abc import Sequence

from whisper_tui.model.call import FileEdits, paths_of
from whisper_tui.model.decision import Decision, Deny
from whisper_tui.model.preview import UndoDirection
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible

MOST_NAMED = 5
"""Files that the message names; of more it says how many there are besides."""


def undo_message(
    record: CallRecord, direction: UndoDirection = "undo", paths: Sequence[str] = (), *, all_but: bool = False
) -> str:
    """Return the sentence for an agent. `paths`: only these changes, or all others. None: all of them."""
    command = record.spec.command
    noun = "edit" if isinstance(command, FileEdits) else "call"
    what = f"the changes of {noun} {record.id}" + (f" ({_title(record)})" if noun == "call" else "")
    when = "after" if direction == "redo" else "before"
    files = _files(record, paths, all_but=all_but)
    are = "are as they were" if len(files) > 1 else "is as it was"
    now = f": {', '.join(files)} {are} {when} it" if files else ""
    if direction == "redo":
        return f"The human has made {what} again{now}."
    return f"The human has undone {'some of ' if paths else ''}{what}{now}. Look at the files before you go on."


def calls_undone_message(records: Sequence[CallRecord], direction: UndoDirection, left: Sequence[str]) -> str:
    """Return the sentences for an agent about several of its calls. `left`: paths that stay as they are."""
    if len(records) == 1:
        what = f"the changes of call {records[0].id} ({_title(records[0])})"
    else:
        ids = sorted((record.id for record in records), key=int)
        many = f"{', '.join(ids[:MOST_NAMED])} and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
        what = f"the changes of {len(ids):,} calls: {many or ', '.join(ids)}"
    base = records[0].spec.cwd
    named = ", ".join(visible(_short(path, base)) for path in left[:MOST_NAMED])
    more = f" and {len(left) - MOST_NAMED:,} more" if len(left) > MOST_NAMED else ""
    stays = f" Left as they are, since they were changed by others: {named}{more}." if left else ""
    if direction == "redo":
        return f"The human has made {what} again.{stays} Look at the files before you go on."
    return f"The human has undone {what}.{stays} Look at the files before you go on."


def draft_message() -> str:
    """Return the sentences for an agent whose commands run in a draft from now on."""
    return (
        "The human has begun a draft of this session. From now on each command runs at once in a private view of the "
        "files, one after the other: it finds what your earlier commands have changed, and the real files stay as they "
        "are until the human applies the draft. The network, services and processes in the background are closed "
        "there; a command that needs them waits for the human. Files that you read or write without a command of "
        "this session are the real ones."
    )


def draft_applied_message(*, over: bool) -> str:
    """Return the sentences for an agent whose draft was made real. `over`: all of it."""
    if over:
        return "The human has applied the draft: its changes are real, and your commands run on the real files again."
    return "The human has applied a part of the draft: that is real now. Your commands still run in the draft."


def draft_dropped_message() -> str:
    """Return the sentences for an agent whose draft was discarded."""
    return (
        "The human has dropped the draft: nothing of what your commands have changed in it is left, and they run on "
        "the real files again. Look at the files before you go on."
    )


def message_after_aside(record: CallRecord, decision: Decision) -> str:
    """Return the sentences for an agent that went on while its call was set aside, now that it is decided."""
    noun = "edit" if isinstance(record.spec.command, FileEdits) else "call"
    what = f"{noun} {record.id}" + (f" ({_title(record)})" if noun == "call" else "") + ", which was set aside"
    if isinstance(decision, Deny):
        return f"The human has denied {what}." + (f" Reason: {decision.reason}" if decision.reason else "")
    # What has a ticket of its own starts when its agent shows that, which it is given when it asks.
    if record.call.ticket is not None:
        return f"The human has approved {what}. Ask for the same again, and it is done."
    return f'The human has approved {what}. `wait` with ticket "{record.id}" returns its result.'


def _title(record: CallRecord) -> str:
    text = " ".join(record.spec.command.text.split())
    return f"`{visible(text[:60])}{'…' if len(text) > 60 else ''}`"


def _files(record: CallRecord, paths: Sequence[str], *, all_but: bool) -> list[str]:
    """The names of the files, as far as they are known, and the number of others."""
    command, state = record.spec.command, record.state
    if isinstance(command, FileEdits):
        known: Sequence[str] = tuple(dict.fromkeys(path for each in command.changes for path in paths_of(each)))
        total = len(known)
    else:
        changed = state.changed if isinstance(state, Ended) else None
        known, total = ((), 0) if changed is None else (changed.paths, changed.counts.all)
    if paths and not all_but:
        known, total = paths, len(paths)
    elif all_but:
        # how many changes lie below these paths is not known here
        left = {posixpath.join(record.spec.cwd, path) for path in paths}
        known = [path for path in known if not any(path == each or path.startswith(f"{each}/") for each in left)]
        total = len(known)
    named = [visible(_short(path, record.spec.cwd)) for path in known[:MOST_NAMED]]
    more = total - len(named)
    return [*named, f"{more:,} more"] if named and more > 0 else named


def _short(path: str, directory: str) -> str:
    base = f"{directory.rstrip('/')}/"
    return path.removeprefix(base) if len(path) > len(base) else path
