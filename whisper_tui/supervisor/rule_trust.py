"""Trust in rule files: a human confirms each rule that allows something, and the journal records it (decision 12).

Commands of agents run as the user, so they could write an allow rule into these files.
"""

import hashlib
from collections.abc import Callable, Iterable

from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import ChangedSinceSeen, JournalFailed
from whisper_tui.model.event import (
    ALLOW_PREFIX,
    DISABLED_PREFIX,
    READ_ONLY_ENTRY,
    RulesChanged,
    entries_digest,
    untrusted_entries,
)
from whisper_tui.policy.rules.rule import Rule, Rules, by_effect
from whisper_tui.supervisor.journal.store import Store

SHOWN = 20
"""Limit of added entries, and of removed entries, that one event lists."""
LONGEST_SUBJECT = 60
"""Characters of a rule's subject in its mark."""
FOUND = "the file was new to whisper_tui, and is trusted as it was found"
KILLED = "the supervisor was killed, so its allow rules have to be trusted again"


EDITS_ASKED = "ask edits"
"""The entry of a file that asks about edits in the workspace. Without it, they are allowed."""


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
    marks += [EDITS_ASKED] if rules.edits == "ask" else []
    return (*dict.fromkeys(marks), *(() if rules.read_only is False else (READ_ONLY_ENTRY,)))


def as_trusted(rules: Rules, changed: RulesChanged | None) -> Rules:
    """Return the rules of a file without the allow rules that are not trusted."""
    kept_out = set(untrusted_entries(changed))
    if changed is not None and EDITS_ASKED in changed.trusted and EDITS_ASKED not in changed.entries:
        rules = rules.model_copy(update={"edits": "ask"})
    # The usual case: the rules as they are, without a copy for every judgement.
    if not kept_out:
        return rules
    allow = tuple(rule for rule in rules.allow if mark_of("allow", rule) not in kept_out)
    return rules.model_copy(
        update={"allow": allow, "read_only": False if READ_ONLY_ENTRY in kept_out else rules.read_only}
    )


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
        """Compare the entries of a file with the journal, and journal a change. A new file is trusted as found."""
        known = self._store.board.rules.get(path)
        if known is not None and known.entries == entries:
            return known
        before, trusted, why = ((), entries, FOUND) if known is None else (known.entries, known.trusted, "")
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
