"""How far an approval shall reach, as a person fills it in: checked, and made into a scope."""

import math
import shlex
from dataclasses import dataclass
from typing import Literal, get_args

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import ExactScope, PrefixScope, RuleScope, Scope
from whisper_tui.tui.drafts import unseen_problems

Reach = Literal["exact", "here", "session", "project", "user"]
REACHES: tuple[Reach, ...] = get_args(Reach)
REACH_WORDS: dict[Reach, str] = {
    "exact": "Exactly this command, in this directory",
    "here": "What begins like this, in this directory and below",
    "session": "What begins like this, wherever the session works",
    "project": "A saved rule for what begins like this, in this workspace",
    "user": "A saved rule for what begins like this, everywhere",
}
"""How far it may reach, the least first. The first three end with the session."""


@dataclass(frozen=True)
class ScopeDraft:
    """The fields as they are typed."""

    reach: Reach
    words: str = ""
    """The beginning, quoted as for a shell."""
    uses: str = ""
    """How many later calls. Empty: any number."""
    minutes: str = ""
    """Empty: for ever, or as long as the session."""

    @property
    def has_words(self) -> bool:
        """Whether it is about a beginning."""
        return self.reach != "exact"

    @property
    def has_uses(self) -> bool:
        """Whether uses are counted: a saved rule counts none."""
        return self.reach in {"exact", "here", "session"}


def scope_of(draft: ScopeDraft, spec: CommandSpec, problems: list[str]) -> Scope | None:
    """The scope that a draft means for a command. None: `problems` say, in sentences, what is wrong with it."""
    before = len(problems)
    words = _words(draft.words, problems) if draft.has_words else ()
    uses = _uses(draft.uses, problems) if draft.has_uses else None
    minutes = _minutes(draft.minutes, problems)
    if len(problems) > before:
        return None
    match draft.reach:
        case "exact":
            return ExactScope(uses=uses, minutes=minutes)
        case "here":
            return PrefixScope(words=words, directory=spec.cwd, uses=uses, minutes=minutes)
        case "session":
            return PrefixScope(words=words, uses=uses, minutes=minutes)
        case "project" | "user":
            return RuleScope(words=words, where=draft.reach, minutes=minutes)


def _words(text: str, problems: list[str]) -> tuple[str, ...]:
    problems += unseen_problems("beginning", text)
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        problems.append("A quote in the beginning is not closed, or a backslash stands at its end.")
        return ()
    if not words:
        problems.append("Type the words that it begins with.")
    return words


def _uses(text: str, problems: list[str]) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not 0 < int(text) < 1_000_000:
        problems.append("How many times must be a whole number above 0, or empty for any number.")
        return None
    return int(text)


def _minutes(text: str, problems: list[str]) -> float | None:
    if not text.strip():
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < 10_000_000:
        problems.append("How many minutes must be a number above 0, or empty for no end.")
        return None
    return minutes
