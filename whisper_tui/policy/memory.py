"""Remembered approvals: what each of them covers, and which may be given at all."""

from collections.abc import Sequence

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import ExactScope, Grant, PrefixScope, RuleScope, Scope
from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.banned import is_banned
from whisper_tui.policy.dangers.of_inner import dangers_of_certain
from whisper_tui.policy.environment import is_mark
from whisper_tui.policy.reading.plain import PlainCommand
from whisper_tui.policy.rules import Rule
from whisper_tui.policy.view import view

PREFIX_OF_GRANT = "approval "
"""Begins the name of the rule that stands for a remembered prefix."""


def holds(grant: Grant, session_id: str, now: float) -> bool:
    """Whether an approval still allows anything in this session; one that is for some time, only while that is sure."""
    if grant.session_id != session_id or is_over(grant, now):
        return False
    return grant.until is None or grant.granted_at <= now


def is_over(grant: Grant, now: float) -> bool:
    """Whether an approval was revoked or used up, or its time is over."""
    limit = grant.scope.uses if isinstance(grant.scope, ExactScope | PrefixScope) else None
    used_up = limit is not None and grant.uses >= limit
    return used_up or grant.revoked_at is not None or (grant.until is not None and now >= grant.until)


def same_files(grant: Grant, resolved: Resolved) -> bool:
    """Whether the scripts of the workspace still hold what they held when it was approved."""
    return all(resolved.contents.get(path) == content for path, content in grant.files.items())


def is_exact(grant: Grant) -> bool:
    """Whether it covers one command in one directory."""
    return not isinstance(grant.scope, PrefixScope | RuleScope)


def rule_of(grant: Grant) -> Rule:
    """A remembered prefix as a rule: options that the approved command did not have are not covered."""
    scope = grant.scope
    if not isinstance(scope, PrefixScope):
        raise ValueError(f"the approval {grant.id} remembers no prefix")
    return Rule(
        name=PREFIX_OF_GRANT + grant.id,
        prefix=scope.words,
        options=options_behind(grant.spec, scope.words),
        directory=scope.directory,
        sandbox=grant.sandbox.kind if grant.sandbox is not None else False,
        network=grant.sandbox is not None and grant.sandbox.network,
        execute=grant.sandbox.execute if grant.sandbox is not None else (),
    )


def saved_rule(
    scope: RuleScope, spec: CommandSpec, *, call_id: str, root: str | None, now: float, sandbox: Sandbox | None = None
) -> Rule:
    """The rule that a human saved with an approval; with `root`, it holds in that workspace alone.

    What it allows is confined as the approved call was: that is what the human has seen work.
    """
    return Rule(
        name=" ".join(scope.words),
        prefix=scope.words,
        options=options_behind(spec, scope.words),
        directory=root,
        until=None if scope.minutes is None else now + 60 * scope.minutes,
        justification=f"saved with the approval of call {call_id}",
        sandbox=sandbox.kind if sandbox is not None else False,
        network=sandbox is not None and sandbox.network,
        execute=sandbox.execute if sandbox is not None else (),
    )


def options_behind(spec: CommandSpec, words: Sequence[str]) -> tuple[str, ...]:
    """The options that an approved command had behind a prefix."""
    found: list[str] = []
    for command in view(spec.command).plain or ():
        if begins(command, words):
            found += [word for word in command.argv[len(words) :] if word.startswith("-")]
    return tuple(dict.fromkeys(found))


def begins(command: PlainCommand, words: Sequence[str]) -> bool:
    """Whether a command begins with these words."""
    return command.argv[: len(words)] == tuple(words)


def scope_problem(scope: Scope, spec: CommandSpec) -> str | None:
    """Why an approval may not be remembered like this. None: it may."""
    if not isinstance(scope, PrefixScope | RuleScope):
        return None
    seen = view(spec.command)
    if any(not is_mark(name) for name in spec.environment):
        return "a command with variables of its own can only be remembered exactly as it is"
    if seen.plain is None:
        return f"it can only be remembered exactly as it is, for {seen.doubt}"
    shown = " ".join(scope.words)
    meant = [command for command in seen.plain if begins(command, scope.words)]
    if not meant:
        return f"no command of this call begins with {shown!r}"
    if len(scope.words) < 2:
        return f"{shown!r} is too short: name what it shall do, too"
    if is_banned(scope.words):
        return f"{shown!r} could run nearly anything"
    if any(command.assignments or any(each.opens_file for each in command.redirections) for command in meant):
        return "a command with variables or files behind < and > can only be remembered exactly as it is"
    if any(
        danger.word >= len(scope.words)
        for command in meant
        for danger in dangers_of_certain(command.argv, comes=command.piped)
    ):
        return f"{shown!r} does not name what is dangerous in it"
    return None
