"""The entries of a file of rules as the journal keeps them: which of them allow, and which of those hold."""

import hashlib
from collections.abc import Iterable

from whisper_tui.model.event import RulesChanged

LOOKS = "looks"
"""The entry of a file that leaves the commands alone which only look."""
ALLOW = "allow "
"""Begins the entry of a rule that allows. All others make things stricter."""


def is_loose(entry: str) -> bool:
    """Whether an entry lets something run without a human."""
    return entry == LOOKS or entry.startswith(ALLOW)


def digest_of(entries: Iterable[str]) -> str:
    """A fingerprint of what a file says."""
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()


def untrusted(changed: RulesChanged | None) -> tuple[str, ...]:
    """The entries that allow and do not hold. A stricter entry that is gone takes all of them along."""
    if changed is None:
        return ()
    trusted = set(changed.trusted)
    stricter_gone = any(not is_loose(entry) for entry in trusted.difference(changed.entries))
    return tuple(entry for entry in changed.entries if is_loose(entry) and (stricter_gone or entry not in trusted))
