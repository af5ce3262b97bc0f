"""Calls for lists, history, exports and logs: as rows of plain JSON, and without the secrets in them."""

from typing import Any, assert_never

from whisper_tui.model.call import Argv, Command, CommandSpec, FileEdits, Function, Session, Shell, ToolCall, paths_of
from whisper_tui.model.decision import (
    Approve,
    ExactScope,
    Grant,
    PrefixScope,
    RuleScope,
    Scope,
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
from whisper_tui.model.preview import Preview
from whisper_tui.model.run import NO_STALL, BackgroundProcess, Blocked, Stall
from whisper_tui.model.secrets import MASK, Span, is_secret_name, masked, masked_json, masked_words, secret_spans
from whisper_tui.model.state import (
    Alarm,
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
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict, is_grave


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
        "applied": record.applies,
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


SHORTEST = 6
"""Characters of a secret that is looked for in other texts about the same call; a shorter one could be any word."""


def masked_command(command: Command) -> Command:
    """The same command with every secret in it replaced."""
    match command:
        case Argv():
            program, *args = masked_words(command.words())
            return Argv(program=program, args=tuple(args))
        case Shell():
            return command.model_copy(update={"text": masked(command.text)})
        case Function():
            return command.model_copy(update={"arguments": masked_json(command.arguments)})
        case FileEdits():
            return FileEdits.model_validate(masked_json(command.model_dump()))


def masked_environment(environment: dict[str, str]) -> dict[str, str]:
    """Variables with the value of each that is secret by its name, or by its shape, replaced."""
    return {name: MASK if value and is_secret_name(name) else masked(value) for name, value in environment.items()}


def masked_alarm(alarm: Alarm) -> Alarm:
    """An alarm with every secret in its texts replaced."""
    return alarm.model_copy(update={"approved": masked(alarm.approved), "ran": masked(alarm.ran)})


def masked_spec(spec: CommandSpec) -> CommandSpec:
    """The same specification with every secret in its command and in its variables replaced."""
    hidden = {"command": masked_command(spec.command), "environment": masked_environment(spec.environment)}
    return spec.model_copy(update=hidden)


def masked_record(record: CallRecord) -> CallRecord:
    """Everything known about a call with every secret in it replaced. Decide nothing by it: its digest is another."""
    hidden = _Hidden(record)
    if isinstance(decision := record.decision, Approve):
        edited = decision.edited and masked_spec(decision.edited)
        decision = decision.model_copy(update={"edited": edited, "remember": _scope(decision.remember)})
    changes: dict[str, object] = {
        "alarms": tuple(map(masked_alarm, record.alarms)),
        "call": hidden.call(record.call),
        "decision": decision,
        "verdict": record.verdict and hidden.verdict(record.verdict),
        "resolved": record.resolved and hidden.resolved(record.resolved),
        "background": tuple(hidden.process(process) for process in record.background),
    }
    if record.preview is not None:
        changes["preview"] = hidden.preview(record.preview)
    if isinstance(record.state, Ended) and record.state.blocked is not None:
        changes["state"] = record.state.model_copy(update={"blocked": hidden.blocked(record.state.blocked)})
    return record.model_copy(update=changes)


def mask_unless_undecided(record: CallRecord) -> CallRecord:
    """A call as lists show it: whole while a human has to decide about it, and masked from then on."""
    # Whoever approves a command must see exactly what is approved (decision 2).
    return record if isinstance(record.state, Unjudged | Waiting) else masked_record(record)


def masked_grant(grant: Grant) -> Grant:
    """A standing approval with every secret in it replaced."""
    return grant.model_copy(update={"spec": masked_spec(grant.spec), "scope": _scope(grant.scope) or grant.scope})


def _scope(scope: Scope | None) -> Scope | None:
    if isinstance(scope, PrefixScope | RuleScope):
        return scope.model_copy(update={"words": masked_words(scope.words)})
    return scope


class _Hidden:
    """Replaces the secrets of one call, also where only the command's own text shows that they are secrets."""

    def __init__(self, record: CallRecord) -> None:
        self._values: set[str] = set()
        for spec in (record.call.spec, record.spec):
            self._collect(spec)
        command = record.spec.command
        self._cuts = secret_spans(command.text) if isinstance(command, Shell) else ()
        # The spans of an argv refer to its joined words, in which the replaced secrets cannot be located again.
        self._keeps_places = isinstance(command, Shell) or not self._values

    def call(self, call: ToolCall) -> ToolCall:
        arguments = masked_json(call.arguments)
        return call.model_copy(
            update={
                "spec": masked_spec(call.spec),
                "arguments": {name: self._deep(value) for name, value in arguments.items()},
                "description": self._text(call.description),
            }
        )

    def verdict(self, verdict: Verdict) -> Verdict:
        return verdict.model_copy(
            update={
                "reason": self._text(verdict.reason),
                "rule": verdict.rule and self._text(verdict.rule),
                "risks": tuple(self._risk(risk) for risk in verdict.risks),
                "prefixes": tuple(masked_words(prefix) for prefix in verdict.prefixes),
            }
        )

    def resolved(self, resolved: Resolved) -> Resolved:
        problem = resolved.problem and self._text(resolved.problem)
        commands = tuple(self._meaning(meaning) for meaning in resolved.commands)
        variables = masked_environment(resolved.variables)
        code = tuple(each.model_copy(update={"name": self._text(each.name)}) for each in resolved.code)
        own = resolved.own_shell
        defines = {self._text(word): self._text(text) for word, text in own.defines.items()} if own else {}
        shown = own and own.model_copy(update={"defines": defines})
        facts = {"problem": problem, "commands": commands, "variables": variables, "code": code, "own_shell": shown}
        return resolved.model_copy(update=facts)

    def process(self, process: BackgroundProcess) -> BackgroundProcess:
        return process.model_copy(update={"command": self._text(process.command)})

    def blocked(self, blocked: Blocked) -> Blocked:
        attempts = tuple(
            attempt.model_copy(update={"subject": self._text(attempt.subject)}) for attempt in blocked.attempts
        )
        return blocked.model_copy(update={"attempts": attempts, "messages": tuple(map(self._text, blocked.messages))})

    def preview(self, preview: Preview) -> Preview:
        edited, report = preview.edited and masked_spec(preview.edited), preview.report
        if report is not None:
            blocked = tuple(each.model_copy(update={"target": self._text(each.target)}) for each in report.blocked)
            texts = {"left": tuple(map(self._text, report.left)), "problem": self._text(report.problem)}
            report = report.model_copy(update={"blocked": blocked, **texts})
        return preview.model_copy(update={"edited": edited, "report": report})

    def _meaning(self, meaning: Meaning) -> Meaning:
        known = iter(masked_words([word or "" for word in meaning.words]))
        words = tuple(
            None if word is None else self._text(shown) for word, shown in zip(meaning.words, known, strict=True)
        )
        assignments = {
            name: MASK if value and is_secret_name(name) else value and self._text(value)
            for name, value in meaning.assignments.items()
        }
        redirects = tuple(
            each.model_copy(update={"target": each.target and self._text(each.target)}) for each in meaning.redirects
        )
        expanded = tuple(map(self._text, meaning.expanded))
        changes = {"words": words, "assignments": assignments, "redirects": redirects, "expanded": expanded}
        return meaning.model_copy(update=changes)

    def _risk(self, risk: Risk) -> Risk:
        span = self._moved(risk.span) if risk.span and self._keeps_places else None
        return risk.model_copy(update={"sentence": self._text(risk.sentence), "span": span})

    def _moved(self, span: Span) -> Span:
        """Map a span to the masked text; a span inside a secret becomes the whole mask."""
        start, end, shift = *span, 0
        for cut_start, cut_end in self._cuts:
            grown = len(MASK) - (cut_end - cut_start)
            if cut_end <= span[0]:
                start += grown
            elif cut_start < span[0]:
                start = cut_start + shift
            if cut_end <= span[1]:
                end += grown
            elif cut_start < span[1]:
                end = cut_start + shift + len(MASK)
            shift += grown
        return start, end

    def _collect(self, spec: CommandSpec) -> None:
        match spec.command:
            case Shell(text=text):
                self._values.update(text[start:end].strip("'\"") for start, end in secret_spans(text))
            case Argv() as command:
                words = zip(command.words(), masked_words(command.words()), strict=True)
                self._values.update(_difference(word, shown) for word, shown in words if word != shown)
            case Function() | FileEdits():
                pass
        self._values.update(value for name, value in spec.environment.items() if is_secret_name(name))

    def _deep(self, value: object) -> object:
        match value:
            case str():
                return self._text(value)
            case dict():
                return {name: self._deep(each) for name, each in value.items()}
            case list():
                return [self._deep(each) for each in value]
            case _:
                return value

    def _text(self, text: str) -> str:
        # Longest first: a secret may contain another one.
        for value in sorted(self._values, key=len, reverse=True):
            # Replacing every `a` because the password is `a` would destroy the text and reveal the password.
            if len(value) >= SHORTEST:
                text = text.replace(value, MASK)
        return masked(text)


def _difference(word: str, shown: str) -> str:
    """The one secret in a word; the whole word if there are several."""
    before, _, after = shown.partition(MASK)
    return word if MASK in after else word[len(before) : len(word) - len(after)]
