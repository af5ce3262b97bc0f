"""Calls without the secrets in them, for lists, exports, logs and other programs."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from whisper_tui.model.call import Argv, Command, CommandSpec, FileEdits, Function, Shell, ToolCall
from whisper_tui.model.decision import (
    Approve,
    Grant,
    PrefixScope,
    RuleScope,
    Scope,
    masked_denial,
)
from whisper_tui.model.event import (
    Decided,
    DenialAdded,
    Event,
    Granted,
    Judged,
    PreviewStarted,
    Started,
    Submitted,
)
from whisper_tui.model.preview import Preview
from whisper_tui.model.run import BackgroundProcess, Blocked
from whisper_tui.model.secrets import MASK, Span, is_secret_name, masked, masked_json, masked_words, secret_spans
from whisper_tui.model.state import (
    Alarm,
    CallRecord,
    Ended,
    Unjudged,
    Waiting,
)
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict

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


_DERIVED = frozenset({"digest", "sha256", "before", "after", "preview"})
"""Names of digests in events. Of a call with a secret they let anybody try what the secret is."""


def masked_events(events: Sequence[Event], record: CallRecord | None) -> list[dict[str, Any]]:
    """Return events as JSON with every secret in them replaced. `record`: the call that all are about, as it is now.

    Where one of them holds a secret, the digests and the proofs of all are left out. The ticket of a call that can
    still start is a secret as well.
    """
    hidden = _Hidden(record) if record is not None else None
    plain = [json.loads(event.model_dump_json()) for event in events]
    found = [_masked_event(event, hidden) for event in events]
    if record is None:
        return found
    # A proof holds what the request and the verdict hold, and says nothing more that could be one.
    without = [{name: value for name, value in each.items() if name != "proof"} for each in plain]
    shown = [_without_digests(each) for each in found] if found != without else plain
    return [_without_tokens(each) for each in shown] if record.is_open else shown


def _masked_event(event: Event, hidden: "_Hidden | None") -> dict[str, Any]:
    shown: Event = event
    match event:
        case Submitted() if hidden is not None:
            shown = event.model_copy(update={"call": hidden.call(event.call)})
        case Judged() if hidden is not None:
            changes = {"verdict": hidden.verdict(event.verdict), "resolved": hidden.resolved(event.resolved)}
            shown = event.model_copy(update=changes)
        case Decided(decision=Approve() as approval):
            edited, scope = approval.edited and masked_spec(approval.edited), _scope(approval.remember)
            shown = event.model_copy(
                update={"decision": approval.model_copy(update={"edited": edited, "remember": scope})}
            )
        case Started():
            shown = event.model_copy(update={"spec": masked_spec(event.spec)})
        case PreviewStarted(edited=CommandSpec() as edited):
            shown = event.model_copy(update={"edited": masked_spec(edited)})
        case Granted():
            shown = event.model_copy(update={"grant": masked_grant(event.grant)})
        case DenialAdded():
            shown = event.model_copy(update={"denial": masked_denial(event.denial)})
        case _:
            pass
    row: dict[str, Any] = json.loads(shown.model_dump_json())
    row.pop("proof", None)
    text = hidden.text if hidden is not None else masked
    return {name: _each_text(value, text) for name, value in row.items()}


def _each_text(value: Any, shown: Callable[[str], str]) -> Any:
    """Return JSON with each text in it as `shown` returns it."""
    match value:
        case str():
            return shown(value)
        case dict():
            return {name: _each_text(each, shown) for name, each in value.items()}
        case list():
            return [_each_text(each, shown) for each in value]
        case _:
            return value


def _without_digests(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: MASK
                if name in _DERIVED and isinstance(each, str) and each
                else dict.fromkeys(each, MASK)
                if name == "contents" and isinstance(each, dict)
                else _without_digests(each)
                for name, each in value.items()
            }
        case list():
            return list(map(_without_digests, value))
        case _:
            return value


def _without_tokens(event: dict[str, Any]) -> dict[str, Any]:
    for name, token in (("call", "ticket"), ("claim", "by")):
        if isinstance(held := event.get(name), dict) and held.get(token):
            event[name] = held | {token: MASK}
    return event


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
        self._values.update(_named_secrets(record.call.arguments))
        command = record.spec.command
        self._cuts = secret_spans(command.text) if isinstance(command, Shell) else ()
        # The spans of an argv refer to its joined words, in which the replaced secrets cannot be located again.
        self._keeps_places = isinstance(command, Shell) or not self._values

    def call(self, call: ToolCall) -> ToolCall:
        spec = masked_spec(call.spec)
        if isinstance(spec.command, Function):
            command = spec.command.model_copy(update={"arguments": self._deep(spec.command.arguments)})
            spec = spec.model_copy(update={"command": command})
        return call.model_copy(
            update={
                "spec": spec,
                "arguments": self._deep(masked_json(call.arguments)),
                "description": self.text(call.description),
            }
        )

    def verdict(self, verdict: Verdict) -> Verdict:
        return verdict.model_copy(
            update={
                "reason": self.text(verdict.reason),
                "rule": verdict.rule and self.text(verdict.rule),
                "risks": tuple(self._risk(risk) for risk in verdict.risks),
                "prefixes": tuple(masked_words(prefix) for prefix in verdict.prefixes),
            }
        )

    def resolved(self, resolved: Resolved) -> Resolved:
        problem = resolved.problem and self.text(resolved.problem)
        commands = tuple(self._meaning(meaning) for meaning in resolved.commands)
        variables = masked_environment(resolved.variables)
        code = tuple(each.model_copy(update={"name": self.text(each.name)}) for each in resolved.code)
        own = resolved.own_shell
        defines = {self.text(word): self.text(text) for word, text in own.defines.items()} if own else {}
        shown = own and own.model_copy(update={"defines": defines})
        facts = {"problem": problem, "commands": commands, "variables": variables, "code": code, "own_shell": shown}
        return resolved.model_copy(update=facts)

    def process(self, process: BackgroundProcess) -> BackgroundProcess:
        return process.model_copy(update={"command": self.text(process.command)})

    def blocked(self, blocked: Blocked) -> Blocked:
        attempts = tuple(
            attempt.model_copy(update={"subject": self.text(attempt.subject)}) for attempt in blocked.attempts
        )
        return blocked.model_copy(update={"attempts": attempts, "messages": tuple(map(self.text, blocked.messages))})

    def preview(self, preview: Preview) -> Preview:
        edited, report = preview.edited and masked_spec(preview.edited), preview.report
        if report is not None:
            blocked = tuple(each.model_copy(update={"target": self.text(each.target)}) for each in report.blocked)
            texts = {"left": tuple(map(self.text, report.left)), "problem": self.text(report.problem)}
            report = report.model_copy(update={"blocked": blocked, **texts})
        return preview.model_copy(update={"edited": edited, "report": report})

    def _meaning(self, meaning: Meaning) -> Meaning:
        known = iter(masked_words([word or "" for word in meaning.words]))
        words = tuple(
            None if word is None else self.text(shown) for word, shown in zip(meaning.words, known, strict=True)
        )
        assignments = {
            name: MASK if value and is_secret_name(name) else value and self.text(value)
            for name, value in meaning.assignments.items()
        }
        redirects = tuple(
            each.model_copy(update={"target": each.target and self.text(each.target)}) for each in meaning.redirects
        )
        expanded = tuple(map(self.text, meaning.expanded))
        changes = {"words": words, "assignments": assignments, "redirects": redirects, "expanded": expanded}
        return meaning.model_copy(update=changes)

    def _risk(self, risk: Risk) -> Risk:
        span = self._moved(risk.span) if risk.span and self._keeps_places else None
        return risk.model_copy(update={"sentence": self.text(risk.sentence), "span": span})

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
            case Function(arguments=arguments):
                self._values.update(_named_secrets(arguments))
            case FileEdits():
                pass
        self._values.update(value for name, value in spec.environment.items() if is_secret_name(name))

    def _deep(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self._deep(each) for name, each in value.items()}
            case list():
                return [self._deep(each) for each in value]
            case _:
                return value

    def text(self, text: str) -> str:
        # Longest first: a secret may contain another one.
        for value in sorted(self._values, key=len, reverse=True):
            # Replacing every `a` because the password is `a` would destroy the text and reveal the password.
            if len(value) >= SHORTEST:
                text = text.replace(value, MASK)
        return masked(text)


def _named_secrets(value: object, name: str = "") -> Iterator[str]:
    """Yield the texts in arguments of a tool that are secrets by their names."""
    match value:
        case str():
            if masked_json(value, name) == MASK:
                yield value
        case dict():
            for key, each in value.items():
                yield from _named_secrets(each, str(key))
        case list():
            for each in value:
                yield from _named_secrets(each, name)
        case _:
            pass


def _difference(word: str, shown: str) -> str:
    """The one secret in a word; the whole word if there are several."""
    before, _, after = shown.partition(MASK)
    return word if MASK in after else word[len(before) : len(word) - len(after)]
