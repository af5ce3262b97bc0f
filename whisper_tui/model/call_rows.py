"""Calls as rows of plain JSON, for lists, history, exports and logs."""

from typing import Any, assert_never

from whisper_tui.model.call import Argv, Command, FileEdits, Function, Session, paths_of
from whisper_tui.model.decision import (
    Approve,
    ExactScope,
    Grant,
    PrefixScope,
    SessionDenial,
    ToolScope,
)
from whisper_tui.model.ending import (
    Denied,
    Ending,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
    signal_name,
)
from whisper_tui.model.masking import masked_alarm
from whisper_tui.model.run import NO_STALL, Stall
from whisper_tui.model.state import (
    Aside,
    CallRecord,
    Ended,
    Held,
    Queued,
    Running,
    Starting,
    Unjudged,
    Waiting,
)
from whisper_tui.model.verdict import is_grave


def broken_limit(record: CallRecord) -> str | None:
    """Return a sentence about the limit that ended a run. None: no limit did."""
    limits = record.limits
    match record.state:
        case Ended(ending=Signalled(limit="cpu")):
            return f"its CPU time limit of {limits.cpu_s} s was reached"
        case Ended(ending=Signalled(limit="memory")):
            return f"its processes together reached the memory limit of {limits.memory_bytes:,} bytes"
        case Ended(ending=Signalled(limit="processes")):
            return f"it exceeded the limit of {limits.processes} processes"
        case _:
            return None


Row = dict[str, Any]
"""An object that `json.dumps` takes as it is."""


def call_row(record: CallRecord, session: Session | None, *, still: bool = False, stall: Stall = NO_STALL) -> Row:
    """Return a call as `list`, `ps` and `history` print it. Every key is present; unknown values are null or [].

    `still`: whether everything is paused; `stall`: how the run stands, as it was measured.
    """
    spec, process, runs = record.spec, record.process, isinstance(record.state, Running)
    return {
        "id": record.id,
        "state": _state(record),
        # A pause of everything sends no signal to a single call, so its record does not show it.
        "paused": runs and (still or record.paused or stall.stopped),
        "needs_input_since": stall.silent_since if runs else None,
        "since": _since(record),
        "tool": record.call.tool,
        "description": record.call.description,
        **_command(record),
        "cwd": spec.cwd,
        "place": spec.place or None,
        "asked": _asked(record),
        "session": session.name if session else record.call.session_id,
        "session_id": record.call.session_id,
        "agent_pid": session.pid if session and not session.place else None,
        "submitted_at": record.call.submitted_at,
        "rule": record.verdict.rule if record.verdict else None,
        "agent_gave_up": record.agent_gave_up,
        "set_aside": _aside(record),
        "alarm": _alarm(record),
        "risks": [
            {"id": risk.id, "sentence": risk.sentence, "grave": is_grave(risk)}
            for risk in (record.verdict.risks if record.verdict else ())
        ],
        "not_inspected": [
            {"name": code.name, "why": code.not_inspected}
            for code in (record.resolved.not_inspected if record.resolved else ())
        ],
        "pid": process.leader.pid if process else None,
        **_ending_row(record),
        "blocked": _blocked(record),
        "taken_back": record.undo is not None and record.undo.done and record.undo.direction == "undo",
        "background": [
            {"pid": one.identity.pid, "command": one.command, "alive": one.alive} for one in record.background
        ],
    }


def call_details(record: CallRecord, session: Session | None, *, still: bool = False, stall: Stall = NO_STALL) -> Row:
    """Return a call as `show` prints it: its row and everything that a human decides by. Options as for `call_row`."""
    verdict, resolved, process = record.verdict, record.resolved, record.process
    ended = record.state if isinstance(record.state, Ended) else None
    return {
        **call_row(record, session, still=still, stall=stall),
        "client": session.client.name if session and session.client else None,
        "model": session.client.model or None if session and session.client else None,
        "asker": record.call.asker or None,
        "by_agent": record.call.by_agent,
        "past_hook": record.call.past_hook,
        "spec": record.spec.model_dump(mode="json"),
        "seen": record.seen_digest(),
        "verdict": verdict.model_dump(mode="json") if verdict else None,
        "resolved": resolved.model_dump(mode="json") if resolved else None,
        "returned_because": record.state.returned_because if isinstance(record.state, Waiting) else None,
        "decision": record.decision.kind if record.decision else None,
        "remembered": isinstance(record.decision, Approve) and record.decision.remember is not None,
        "decided_by": record.decided_by.model_dump(mode="json") if record.decided_by else None,
        "decided_at": record.decided_at,
        "sandbox": _sandbox(record),
        "attempt": record.attempt,
        "pgid": process.pgid if process else None,
        "keeper_pid": process.keeper_pid if process else None,
        "control_group": process.group.path if process and process.group else None,
        "started_at": process.started_at if process else None,
        "signals": list(record.signals),
        "needs_agent": record.call.ticket is not None,
        "output": ended.output.model_dump(mode="json") if ended else None,
        **_changes(record),
        "limits": {name: limit for name, limit in record.limits.model_dump().items() if limit is not None},
        "summed": list(process.group.sums) if process and process.group else [],
        "usage": ended.usage.model_dump(mode="json") if ended and ended.usage else None,
        # Ended is not over: processes that the command left behind may still run.
        "settled": not record.is_open,
    }


def _alarm(record: CallRecord) -> Row | None:
    """The alarm that holds. None: there is none."""
    alarm = record.alarm
    return None if alarm is None else {**masked_alarm(alarm).model_dump(), "word": alarm.word(), "words": alarm.words()}


def _aside(record: CallRecord) -> Row | None:
    """By whom a call was set aside, when, and True if its agent goes on meanwhile. None: it is not."""
    aside = record.aside
    return None if aside is None else {**aside.model_dump(mode="json"), "agent_went_on": record.agent_went_on}


def _asked(record: CallRecord) -> Row | None:
    """The command that was asked for. None: it is the one that runs."""
    asked = record.call.spec
    row = {"command": command_of(asked.command), "cwd": asked.cwd, "place": asked.place or None}
    return row if record.edited else None


def _changes(record: CallRecord) -> Row:
    """The preview of a call, what it changed, and what has been done with that."""
    ended = record.state if isinstance(record.state, Ended) else None
    return {
        "preview": _preview_row(record),
        "applied": record.applies and not record.discarded,
        "discarded": record.discarded or None,
        "changed": None if ended is None or ended.changed is None else ended.changed.model_dump(mode="json"),
        "undoable": record.undoable,
        "not_undoable_because": _not_undoable(record),
        "undos": [each.model_dump(mode="json") for each in (*record.earlier_undos, *filter(None, (record.undo,)))],
    }


def _preview_row(record: CallRecord) -> Row | None:
    """The newest preview. None: there was none."""
    preview = record.preview
    if preview is None:
        return None
    report = preview.report
    row: Row = {
        "by": preview.by.model_dump(mode="json"),
        "started_at": preview.started_at,
        "state": "dropped" if preview.dropped else "running" if report is None else "over",
        "edited": None if preview.edited is None else command_of(preview.edited.command),
        "exit_code": None,
        "report": None,
    }
    if report is not None:
        row["exit_code"] = report.ending.code if isinstance(report.ending, Exited) else None
        row["report"] = report.model_dump(mode="json")
    return row


def _not_undoable(record: CallRecord) -> str | None:
    """The reason why the changes of a call are not kept although that was wanted, as a clause. None: there is none."""
    if isinstance(record.state, Ended):
        return record.not_kept_because or None
    plan = record.verdict.undo if record.verdict is not None else None
    return plan.why or None if plan is not None else None


def grant_row(grant: Grant, session: Session | None) -> Row:
    """Return a standing approval as `approvals` prints it. One command has neither `prefix` nor `target`."""
    scope = grant.scope
    return {
        "id": grant.id,
        "command": command_of(grant.spec.command),
        "cwd": grant.spec.cwd,
        "place": grant.spec.place or None,
        "session": session.name if session else grant.session_id,
        "session_id": grant.session_id,
        "from_call": grant.from_call,
        "granted_at": grant.granted_at,
        "uses": grant.uses,
        "prefix": list(scope.words) if isinstance(scope, PrefixScope) else None,
        "target": scope.model_dump(mode="json") if isinstance(scope, ToolScope) else None,
        "directory": scope.directory if isinstance(scope, PrefixScope) else None,
        "most_uses": scope.uses if isinstance(scope, ExactScope | PrefixScope | ToolScope) else None,
        "until": grant.until,
    }


def denial_row(denial: SessionDenial, session: Session | None) -> Row:
    """Return a session denial as `approvals --denied` prints it."""
    return {
        "id": denial.id,
        "words": list(denial.words),
        "reason": denial.reason,
        "session": session.name if session else denial.session_id,
        "session_id": denial.session_id,
        "denied_at": denial.denied_at,
        "by": denial.by.model_dump(mode="json"),
    }


def command_of(command: Command) -> list[str] | str:
    """An argv as a list of words, a shell's line as its text."""
    return list(command.words()) if isinstance(command, Argv) else command.text


def _command(record: CallRecord) -> Row:
    """The command, and the tool, or the files of an edit, if the agent carries it out itself."""
    command = record.spec.command
    return {"command": command_of(command), "function": _function(command), "edits": _edits(record)}


def _function(command: Command) -> Row | None:
    """A tool that its agent carries out itself. None: it is a command, or an edit of files."""
    if not isinstance(command, Function):
        return None
    arguments = _beginning_of(command.arguments, DEEPEST_ARGUMENT)
    return {"tool": command.tool, "about": command.about, "targets": command.targets, "arguments": arguments}


LONGEST_ARGUMENT, MOST_ARGUMENTS, DEEPEST_ARGUMENT = 500, 16, 4
"""Characters of a text, entries of an object or a list, and levels, of which a row has the arguments of a tool."""


def _beginning_of(value: Any, levels: int) -> Any:
    """Return the beginning of a JSON value: arguments may be megabytes, and `show` has all of them in its `spec`."""
    match value:
        case str():
            return value[:LONGEST_ARGUMENT]
        case dict():
            entries = list(value.items())[:MOST_ARGUMENTS] if levels else ()
            return {name[:LONGEST_ARGUMENT]: _beginning_of(each, levels - 1) for name, each in entries}
        case list() | tuple():
            return [_beginning_of(each, levels - 1) for each in value[:MOST_ARGUMENTS]] if levels else []
        case _:
            return value


def _edits(record: CallRecord) -> list[Row]:
    """The files that an edit changes, as they were at its judgement; of an edited call only the names."""
    if not isinstance(command := record.spec.command, FileEdits):
        return []
    if record.resolved is not None and record.resolved.edits and not record.edited:
        return [file.model_dump(mode="json") for file in record.resolved.edits]
    paths = dict.fromkeys(path for change in command.changes for path in paths_of(change))
    return [{"action": "changes", "path": path} for path in paths]


def _state(record: CallRecord) -> str:
    if record.is_held_back:
        return "held back"
    if record.aside is not None:
        return "set aside"
    return "waiting" if isinstance(record.state, Unjudged) else record.state.kind


def _since(record: CallRecord) -> float:
    """When it came into its state, in seconds since the epoch."""
    match record.state:
        case Unjudged():
            return record.call.submitted_at
        case Waiting(aside=Aside(since=since)):
            return since
        case Waiting() | Held() | Queued() | Starting():
            return record.state.since
        case Running():
            return record.state.process.started_at
        case Ended():
            return record.state.at
        case _ as never:
            assert_never(never)


def _sandbox(record: CallRecord) -> Row | None:
    return {**sandbox.model_dump(mode="json"), "words": sandbox.words()} if (sandbox := record.sandbox) else None


def _blocked(record: CallRecord) -> Row | None:
    return {**blocked.model_dump(mode="json"), "words": blocked.words()} if (blocked := record.blocked) else None


def _ending_row(record: CallRecord) -> Row:
    row: Row = {"exit_code": None, "signal": None, "signal_name": None, "ending": None, "reason": None}
    if not isinstance(record.state, Ended):
        return row
    ending = record.state.ending
    row["ending"] = ending.kind
    row["reason"] = _reason(record, ending)
    if isinstance(ending, Exited):
        row["exit_code"] = ending.code
    elif isinstance(ending, Signalled):
        row["signal"], row["signal_name"] = ending.number, signal_name(ending.number)
    return row


def _reason(record: CallRecord, ending: Ending) -> str | None:
    """Fields of an ending beside its kind."""
    match ending:
        case Exited(problem=problem):
            return problem or None
        case Signalled():
            sent = "sent by its agent" if record.ended_by_agent else "sent through whisper_tui"
            return broken_limit(record) or (sent if ending.by_us else None)
        case TimedOut():
            return f"its time limit of {ending.after_s:g} s was reached"
        case FailedToStart():
            return ending.message
        case Denied():
            return ending.reason
        case HandedOver():
            return "its agent runs it itself"
        case Withdrawn() | Lost():
            return ending.why
        case _ as never:
            assert_never(never)
