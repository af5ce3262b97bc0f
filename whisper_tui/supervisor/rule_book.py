"""The rule files of an instance, by the operations of the API, and the trust in what they allow.

Commands of agents run as the user, so they could write an allow rule into these files. A human confirms each rule that
allows something, and the journal records it (decision 10).
"""

import asyncio
import hashlib
import os.path
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from whisper_tui.model.call import HERE, CommandSpec, Shell, Unasked
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import ChangedSinceSeen, InvalidRequest, JournalFailed, Refused
from whisper_tui.model.event import (
    ALLOW_PREFIX,
    DISABLED_PREFIX,
    READ_ONLY_ENTRY,
    RulesChanged,
    entries_digest,
    entry_allows,
    untrusted_entries,
)
from whisper_tui.model.shown_rules import Judgement, RuleDraft, RuleList, RuleProblem, RuleTrial
from whisper_tui.policy.rules.grants import is_too_broad
from whisper_tui.policy.rules.matching import place_of_unsubmitted
from whisper_tui.policy.rules.rule import UNASKED, Effect, Rule, Rules, by_effect
from whisper_tui.policy.rules.rules_toml import failed_examples, shape_problems
from whisper_tui.supervisor.approvals.judge import Examinations, judge_alone
from whisper_tui.supervisor.approvals.session_grants import PastCall, rule_coverage
from whisper_tui.supervisor.journal.store import Store

SHOWN = 20
"""Limit of added entries, and of removed entries, that one event lists."""
LONGEST_SUBJECT = 60
"""Characters of a rule's subject in its mark."""
FOUND = "whisper_tui had not read the file before, and trusts it as it was found"
UNKNOWN = "the journal has no record of the file, so its allow rules have to be trusted"
KILLED = "the supervisor was killed, so its allow rules have to be trusted again"


EDITS_ALLOWED, EDITS_ASKED = f"{ALLOW_PREFIX}edits in the workspace", "ask edits"
"""The entries of a file that allows edits of ordinary files in the workspace, and of one that asks about them."""


def mark_of(effect: str, rule: Rule) -> str:
    """Return the mark of a rule: its effect and its subject for people, and a digest of the whole rule."""
    subject = " ".join(rule.subject().split())[:LONGEST_SUBJECT]
    state = DISABLED_PREFIX if rule.disabled else ""
    digest = hashlib.sha256(rule.model_dump_json(exclude_defaults=True).encode("utf-8", "surrogatepass"))
    return f"{state}{effect} {subject} #{digest.hexdigest()[:24]}".encode("utf-8", "replace").decode()


def marks_of(rules: Rules) -> tuple[str, ...]:
    """Return the marks of all entries of a rule file, in their order."""
    marks = [mark_of(effect, rule) for effect, rule in by_effect(rules)]
    marks += [f"strict {tool}" for tool in rules.strict]
    marks += [{"allow": EDITS_ALLOWED, "ask": EDITS_ASKED}[rules.edits]] if rules.edits is not None else []
    marks += [_unasked_mark(rules.unasked, rules.deletes)] if rules.unasked is not None else []
    nothing = rules.read_only is False or rules.unasked == "nothing"
    return (*dict.fromkeys(marks), *(() if nothing else (READ_ONLY_ENTRY,)))


def _unasked_mark(level: Unasked, deletes: int | None = None) -> str:
    if level != "workspace":
        return f"unasked {level}"
    return f"{ALLOW_PREFIX}unasked in the workspace" + (f", {deletes} deletions" if deletes is not None else "")


def as_trusted(rules: Rules, changed: RulesChanged) -> Rules:
    """Return the rules of a file without what allows more than a human has agreed to."""
    kept_out = set(untrusted_entries(changed))
    gone = set(changed.trusted).difference(changed.entries)
    if rules.unasked == "workspace" and _unasked_mark("workspace", rules.deletes) in kept_out:
        rules = rules.model_copy(update={"unasked": "reading", "deletes": None})
    if lower := next((level for level in UNASKED[:-1] if _unasked_mark(level) in gone), None):
        rules = rules.model_copy(update={"unasked": min(lower, rules.unasked or lower, key=UNASKED.index)})
    if EDITS_ASKED in gone or (rules.edits == "allow" and EDITS_ALLOWED in kept_out):
        rules = rules.model_copy(update={"edits": "ask"})
    # The usual case: the rules as they are, without a copy for every judgement.
    if not kept_out:
        return rules
    allow = tuple(rule for rule in rules.allow if mark_of("allow", rule) not in kept_out)
    untrusted = tuple(rule for rule in rules.allow if mark_of("allow", rule) in kept_out)
    rules = rules.model_copy(update={"allow": allow, "untrusted": untrusted})
    if READ_ONLY_ENTRY in kept_out:
        unasked = None if rules.unasked is None else "nothing"
        return rules.model_copy(update={"read_only": False, "unasked": unasked})
    return rules


class RuleTrust:
    """Compares rule files with the journal, and journals each change of them."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    @property
    def version(self) -> int:
        """A number that changes whenever the trust in a file may have changed."""
        return max((changed.seq for changed in self._store.board.rules.values()), default=0)

    def open(self) -> None:
        """Drop the trust in all allow rules if the last supervisor did not stop cleanly (decision 11)."""
        if self._store.journal.ended_cleanly:
            return
        for known in tuple(self._store.board.rules.values()):
            # Deny and ask rules stay in force: believing a forged one makes nothing run.
            stricter = tuple(mark for mark in known.trusted if not mark.startswith(ALLOW_PREFIX))
            if stricter != known.trusted:
                self._record(known.path, known.entries, known.entries, stricter, why=KILLED)

    def look(self, path: str, entries: tuple[str, ...]) -> RulesChanged:
        """Compare the entries of a file with the journal, and journal a change.

        The first supervisor of an instance trusts what it finds. In any other journal, a file without a record may be
        one whose record was lost: what it allows waits for a human.
        """
        known = self._store.board.rules.get(path)
        if known is not None and known.entries == entries:
            return known
        if known is not None:
            before, trusted, why = known.entries, known.trusted, ""
        elif self._store.journal.is_first:
            before, trusted, why = (), entries, FOUND
        else:
            before, trusted, why = (), tuple(mark for mark in entries if not entry_allows(mark)), UNKNOWN
        try:
            return self._record(path, before, entries, trusted, why=why)
        except JournalFailed:
            # The next look tries again; until then only the entries that were trusted before are in force.
            return RulesChanged(at=self._clock(), path=path, entries=entries, trusted=known.trusted if known else ())

    def screen(self, path: str, rules: Rules) -> Rules:
        """Return the rules of a file that are in force. A file that cannot be read allows nothing."""
        return rules if rules.broken is not None else as_trusted(rules, self.look(path, marks_of(rules)))

    def trust(self, path: str, by: Decider, digest: str) -> None:
        """Trust a file as it is. Raises `ChangedSinceSeen` if the human has seen another version of it."""
        known = self._store.board.rules.get(path)
        if known is None or entries_digest(known.entries) != digest:
            raise ChangedSinceSeen(
                f"{path} has changed since it was shown",
                hint="Look at it again; changes of the configuration file take effect at whisper-tui restart",
            )
        self._record(path, known.entries, known.entries, known.entries, by=by)

    def extend(
        self, path: str, add: Iterable[str], remove: Iterable[str], by: Decider | None = None
    ) -> tuple[str, ...]:
        """Trust entries that are about to be written to a file, and forget entries that are about to be removed.

        Returns the entries that were trusted before.
        """
        known = self._store.board.rules.get(path)
        entries, trusted = ((), ()) if known is None else (known.entries, known.trusted)
        gone = set(remove)
        after = tuple(dict.fromkeys(mark for mark in (*trusted, *add) if mark not in gone))
        if after != trusted:
            self._record(path, entries, entries, after, by=by)
        return trusted

    def _record(
        self,
        path: str,
        before: tuple[str, ...],
        entries: tuple[str, ...],
        trusted: tuple[str, ...],
        *,
        why: str = "",
        by: Decider | None = None,
    ) -> RulesChanged:
        added = [mark for mark in entries if mark not in set(before)]
        removed = [mark for mark in before if mark not in set(entries)]
        changed = RulesChanged(
            at=self._clock(),
            path=path,
            entries=entries,
            trusted=trusted,
            added=tuple(added[:SHOWN]),
            removed=tuple(removed[:SHOWN]),
            left_out=max(0, len(added) - SHOWN) + max(0, len(removed) - SHOWN),
            why=why,
            by=by,
        )
        # Only a human's trust has to survive a power cut; a change of the file is found again.
        self._store.record(changed, durable=by is not None)
        return self._store.board.rules.get(path, changed)


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

    def set_unasked(self, level: Unasked, by: Decider | None = None) -> None:
        """Write into the rules file how much runs unasked."""
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


class HasEnvironments(Protocol):
    """The sessions."""

    def environment_in(self, root: str) -> Mapping[str, str]:
        """Return the variables of a session with a workspace."""
        ...


class RuleOperations:
    """Lists, tries and changes the rules for the clients of the API."""

    def __init__(
        self,
        book: RuleBook | None,
        rules: Callable[[str], Rules],
        sessions: HasEnvironments,
        examinations: Examinations,
        own: Iterable[object],
    ) -> None:
        """`own`: whisper_tui's directories."""
        self._examinations = examinations
        self._book = book
        self._rules = rules
        self._environment = sessions.environment_in
        self._own = tuple(map(str, own))

    def listed(self, roots: Sequence[str]) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        return self._files.listed(roots)

    async def judge(self, text: str, directory: str, tool: str, place: str = "") -> Judgement:
        """Return the verdict on a shell command in a session with this workspace. While a place is away: to ask."""
        _check_directory(directory)
        return await self._judge(text, directory, tool, self._rules(directory), place)

    async def _judge(self, text: str, directory: str, tool: str, rules: Rules, place: str = "") -> Judgement:
        environment, examined = self._environment(directory), None
        spec = CommandSpec(command=Shell(text=text), cwd=directory)
        # A long text takes a second to read, in which the event loop must serve others.
        if not place:
            place = await asyncio.to_thread(place_of_unsubmitted, spec, rules, tool, time.time())
        if place not in {"", HERE}:
            spec, examined = await self._examinations.of_text(text, directory, place)

        def judge() -> Judgement:
            now = time.time()
            found = judge_alone(
                spec,
                rules,
                environment,
                root=spec.cwd,
                tool=tool,
                own=self._own,
                now=now,
                examined=examined,
                cwd_here=directory if spec.place else "",
            )
            return Judgement(verdict=found[0], resolved=found[1], place=spec.place)

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

    def set_unasked(self, level: Unasked, by: Decider) -> None:
        """Write into the rules file how much runs unasked. Raises `Refused` if another file says less."""
        self._files.set_unasked(level, by)

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
    shape = tuple(RuleProblem(field=field, clause=clause) for field, clause in shape_problems(rule, draft.effect))
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
