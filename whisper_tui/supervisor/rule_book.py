"""The operations of the API about rules, over the rule files of an instance."""

import asyncio
import os.path
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.shown_rules import Judgement, RuleDraft, RuleList, RuleProblem, RuleTrial
from whisper_tui.policy.rules.broad_prefixes import is_too_broad
from whisper_tui.policy.rules.rule import Effect, Rule, Rules
from whisper_tui.policy.rules.rules_toml import failed_examples, shape_problems
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.approvals.session_grants import PastCall, rule_coverage


class RuleBook(Protocol):
    """The rule files of an instance. Raises `WhisperError`."""

    def current(self, root: str = "") -> Rules:
        """Return all rules in force for sessions with this workspace."""
        ...

    def keep(self, rule: Rule) -> None:
        """Add a rule that allows, from an approval, unless the file has it already."""
        ...

    def add(self, effect: Effect, rule: Rule, by: Decider | None = None) -> None:
        """Add a rule to the rules file."""
        ...

    def remove(self, name: str, by: Decider | None = None) -> int:
        """Remove the rules of a name from the rules file. Returns their number."""
        ...

    def replace(self, old: tuple[Effect, Rule], new: tuple[Effect, Rule] | None, by: Decider | None = None) -> None:
        """Put a rule in the place of another of the rules file, or remove that one."""
        ...

    def with_draft(self, root: str, draft: tuple[Effect, Rule], replaced: tuple[Effect, Rule] | None = None) -> Rules:
        """Return the rules in force for a workspace as if a draft were one of them, in the place of another rule."""
        ...

    def listed(self, roots: Sequence[str] = ()) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        ...

    def trust_project(self, root: str, digest: str, by: Decider | None = None) -> None:
        """Trust the rules file of a workspace, if this is the digest of its content."""
        ...

    def distrust_project(self, root: str, by: Decider | None = None) -> None:
        """Withdraw the trust in the rules file of a workspace."""
        ...


class RuleOperations:
    """Lists, tries and changes the rules for the clients of the API."""

    def __init__(
        self,
        book: RuleBook | None,
        rules: Callable[[str], Rules],
        environment: Callable[[str], Mapping[str, str]],
        own: Sequence[str],
    ) -> None:
        """`environment` returns the variables of a session with a workspace; `own`: whisper_tui's directories."""
        self._book = book
        self._rules = rules
        self._environment = environment
        self._own = tuple(own)

    def listed(self, roots: Sequence[str]) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        return self._files.listed(roots)

    async def judge(self, text: str, directory: str, tool: str) -> Judgement:
        """Return the verdict on a shell command in a session with this workspace."""
        _check_directory(directory)
        return await self._judge(text, directory, tool, self._rules(directory))

    async def _judge(self, text: str, directory: str, tool: str, rules: Rules) -> Judgement:
        environment = self._environment(directory)
        spec = CommandSpec(command=Shell(text=text), cwd=directory)

        def judge() -> Judgement:
            now = time.time()
            found = judge_alone(spec, rules, environment, root=directory, tool=tool, own=self._own, now=now)
            return Judgement(verdict=found[0], resolved=found[1])

        # A long text takes a second to read, in which the event loop must serve others.
        return await asyncio.to_thread(judge)

    async def try_draft(
        self, draft: RuleDraft, replaces: RuleDraft | None, text: str, directory: str, past: Sequence[PastCall]
    ) -> RuleTrial:
        """Try a draft on past calls and on a command, as if it were in the rules file."""
        problems = problems_of(draft)
        if problems:
            return RuleTrial(problems=problems)
        effect, rule = _rule_of(draft)
        found = await asyncio.to_thread(rule_coverage, effect, rule, past)
        judgement = None
        if text.strip():
            _check_directory(directory)
            replaced = None if replaces is None else _rule_of(replaces)
            rules = self._files.with_draft(directory, (effect, rule), replaced)
            judgement = await self._judge(text, directory, rule.tool or "", rules)
        broad = effect == "allow" and rule.prefix is not None and is_too_broad(rule.prefix)
        return RuleTrial(warning=TOO_BROAD if broad else "", coverage=found, judgement=judgement)

    def add(self, effect: Effect, definition: Mapping[str, Any], by: Decider) -> None:
        """Add a rule to the rules file. Raises `InvalidRequest` if the fields make no rule."""
        self._files.add(*_rule_of(RuleDraft(effect=effect, definition=dict(definition))), by)

    def replace(self, old: RuleDraft, new: RuleDraft | None, by: Decider) -> None:
        """Put a rule in the place of another, or remove that one. Raises `InvalidRequest` or `ChangedSinceSeen`."""
        self._files.replace(_rule_of(old), None if new is None else _rule_of(new), by)

    def remove(self, name: str, by: Decider) -> int:
        """Remove the rules of a name from the rules file. Returns their number."""
        return self._files.remove(name, by)

    def trust_project(self, root: str, digest: str, by: Decider, *, trusted: bool) -> None:
        """Trust the rules file of a workspace as it was shown, or withdraw that trust."""
        _check_directory(root)
        if trusted:
            self._files.trust_project(root, digest, by)
        else:
            self._files.distrust_project(root, by)

    @property
    def _files(self) -> RuleBook:
        if self._book is None:
            raise Refused("this supervisor has no rule files", hint="Use the supervisor of an instance")
        return self._book


TOO_BROAD = "These words are too broad: commands that begin with them can do nearly anything."


def problems_of(draft: RuleDraft) -> tuple[RuleProblem, ...]:
    """Return why a draft is no rule, by its fields."""
    try:
        rule = Rule.model_validate(draft.definition)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return tuple(RuleProblem(field=str(each["loc"][0]), clause=each["msg"]) for each in found)
    shape = tuple(RuleProblem(field=field, clause=clause) for field, clause in shape_problems(rule))
    if shape:
        return shape
    return tuple(RuleProblem(field="match", clause=each) for each in failed_examples(draft.effect, rule))


def _rule_of(draft: RuleDraft) -> tuple[Effect, Rule]:
    """Return the rule that a draft makes. Raises `InvalidRequest`."""
    try:
        return draft.effect, Rule.model_validate(draft.definition)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False))
        raise InvalidRequest(f"this is not a rule: {fields}", hint="See docs/policy.md for the fields") from error


def _check_directory(path: str) -> None:
    """Raise `InvalidRequest` unless it can be a workspace: a relative path would mean the supervisor's directory."""
    if not os.path.isabs(path) or "\0" in path:  # noqa: PTH117
        raise InvalidRequest(f"{path!r} is not the absolute path of a directory", hint="Give a path that begins with /")
