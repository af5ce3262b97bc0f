"""What the user trusts of the rules on the disk: commands run as the user and can write there, so what allows has to be
agreed to by a human, and what was agreed to is a fact in the journal."""

import hashlib
from collections.abc import Callable, Iterable

from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import ChangedSinceSeen, JournalFailed
from whisper_tui.model.event import RulesChanged
from whisper_tui.model.rule_entries import ALLOW, LOOKS, digest_of, untrusted
from whisper_tui.policy.examples import by_effect
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.supervisor.ledger import Ledger

SHOWN = 20
"""How many entries a fact tells that were added, and as many that were removed."""
LONGEST_SUBJECT = 60
"""Characters of what a rule is about in its mark."""
FOUND = "it is as it was found when whisper_tui began to look at it, and holds"
KILLED = "the supervisor was killed meanwhile, so what it allows has to be trusted again"


def mark_of(effect: str, rule: Rule) -> str:
    """A rule as an entry of a file: what it is about, for people, and a digest of all of it."""
    subject = " ".join(rule.subject().split())[:LONGEST_SUBJECT]
    digest = hashlib.sha256(rule.model_dump_json(exclude_defaults=True).encode("utf-8", "surrogatepass"))
    return f"{effect} {subject} #{digest.hexdigest()[:24]}".encode("utf-8", "replace").decode()


def marks_of(rules: Rules) -> tuple[str, ...]:
    """All that a file of rules says, in its order."""
    marks = [mark_of(effect, rule) for effect, rule in by_effect(rules)]
    marks += [f"strict {tool}" for tool in rules.strict]
    return (*dict.fromkeys(marks), *(() if rules.read_only is False else (LOOKS,)))


def as_trusted(rules: Rules, changed: RulesChanged | None) -> Rules:
    """The rules of a file without what allows and is not trusted."""
    kept_out = set(untrusted(changed))
    if not kept_out:
        return rules
    allow = tuple(rule for rule in rules.allow if mark_of("allow", rule) not in kept_out)
    return rules.model_copy(update={"allow": allow, "read_only": False if LOOKS in kept_out else rules.read_only})


class RuleTrust:
    """Compares what files say with what is journaled about them, and journals each change, also when nobody asks."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock

    @property
    def version(self) -> int:
        """Another number whenever another trust may hold."""
        return max((changed.seq for changed in self._ledger.board.rules.values()), default=0)

    def open(self) -> None:
        """After the supervisor was killed, a record that something is trusted is no more than a record."""
        if self._ledger.journal.ended_cleanly:
            return
        for known in tuple(self._ledger.board.rules.values()):
            stricter = tuple(mark for mark in known.trusted if not mark.startswith(ALLOW))
            if stricter != known.trusted:
                self._record(known.path, known.entries, known.entries, stricter, why=KILLED)

    def look(self, path: str, entries: tuple[str, ...]) -> RulesChanged:
        """What is known about a file that says this now; a change is journaled. What is met first is trusted."""
        known = self._ledger.board.rules.get(path)
        if known is not None and known.entries == entries:
            return known
        before, trusted, why = ((), entries, FOUND) if known is None else (known.entries, known.trusted, "")
        try:
            return self._record(path, before, entries, trusted, why=why)
        except JournalFailed:
            # It is tried again at the next look; until then only what was trusted holds.
            return RulesChanged(at=self._clock(), path=path, entries=entries, trusted=known.trusted if known else ())

    def screen(self, path: str, rules: Rules) -> Rules:
        """The rules of a file as far as they hold. What cannot be read is not looked at: it allows nothing."""
        return rules if rules.broken is not None else as_trusted(rules, self.look(path, marks_of(rules)))

    def trust_all(self, path: str, digest: str, by: Decider) -> None:
        """Trust a file as it is. Raises `ChangedSinceSeen` if that is not what the human has seen."""
        known = self._ledger.board.rules.get(path)
        if known is None or digest_of(known.entries) != digest:
            raise ChangedSinceSeen(
                f"{path} is not what the supervisor knows of it",
                hint="Look at it again; what stands in the configuration file counts from whisper-tui restart on",
            )
        self._record(path, known.entries, known.entries, known.entries, by=by)

    def extend(self, path: str, add: Iterable[str], remove: Iterable[str], by: Decider | None = None) -> None:
        """Trust these entries besides, which are about to be written, and expect these to go."""
        known = self._ledger.board.rules.get(path)
        entries, trusted = ((), ()) if known is None else (known.entries, known.trusted)
        gone = set(remove)
        after = tuple(dict.fromkeys(mark for mark in (*trusted, *add) if mark not in gone))
        if after != trusted:
            self._record(path, entries, entries, after, by=by)

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
        self._ledger.record(changed, durable=by is not None)
        return self._ledger.board.rules.get(path, changed)
