"""What the doctor says: one sentence for each check, and whether everything that is installed is proved."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How a check came out."""

    GOOD = "good"
    NOTE = "note"
    """Worth knowing; the gate does its work."""
    BAD = "bad"
    """The gate is not proved, or something that is installed does not work."""


@dataclass(frozen=True)
class Check:
    """One check: its subject in a word, what was found, and what to do."""

    subject: str
    state: State
    sentence: str
    hint: str = ""


def good(subject: str, sentence: str) -> Check:
    """All is well."""
    return Check(subject, State.GOOD, sentence)


def note(subject: str, sentence: str, hint: str = "") -> Check:
    """Worth knowing."""
    return Check(subject, State.NOTE, sentence, hint)


def bad(subject: str, sentence: str, hint: str = "") -> Check:
    """It does not work."""
    return Check(subject, State.BAD, sentence, hint)


@dataclass(frozen=True)
class Report:
    """All that was found about one client."""

    client: str
    title: str
    version: str | None
    checks: list[Check] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        """Whether everything that is installed was proved."""
        return all(check.state is not State.BAD for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        checks = [
            {"check": one.subject, "state": str(one.state), "sentence": one.sentence, "hint": one.hint or None}
            for one in self.checks
        ]
        return {
            "client": self.client,
            "title": self.title,
            "version": self.version,
            "proved": self.proved,
            "checks": checks,
        }
