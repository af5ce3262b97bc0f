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
from whisper_tui.model.shown_rules import Judgement, RuleList
from whisper_tui.policy.rules.rule import Effect, Rule, Rules
from whisper_tui.supervisor.approvals.judge import judge_alone


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
        rules, environment = self._rules(directory), self._environment(directory)
        spec = CommandSpec(command=Shell(text=text), cwd=directory)

        def judge() -> Judgement:
            now = time.time()
            found = judge_alone(spec, rules, environment, root=directory, tool=tool, own=self._own, now=now)
            return Judgement(verdict=found[0], resolved=found[1])

        # A long text takes a second to read, in which the event loop must serve others.
        return await asyncio.to_thread(judge)

    def add(self, effect: Effect, definition: Mapping[str, Any], by: Decider) -> None:
        """Add a rule to the rules file. Raises `InvalidRequest` if the fields make no rule."""
        try:
            rule = Rule.model_validate(dict(definition))
        except ValidationError as error:
            fields = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False))
            raise InvalidRequest(f"this is not a rule: {fields}", hint="See docs/policy.md for the fields") from error
        self._files.add(effect, rule, by)

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


def _check_directory(path: str) -> None:
    """Raise `InvalidRequest` unless it can be a workspace: a relative path would mean the supervisor's directory."""
    if not os.path.isabs(path) or "\0" in path:  # noqa: PTH117
        raise InvalidRequest(f"{path!r} is not the absolute path of a directory", hint="Give a path that begins with /")
