"""How far a remembered approval reaches, in words."""

import shlex

from whisper_tui.model.decision import ExactScope, PrefixScope, RuleScope, Scope
from whisper_tui.model.text import visible
from whisper_tui.tui.words import count, limit


def scope_sentence(scope: Scope) -> str:
    """What an approval answers for from now on, after a semicolon."""
    match scope:
        case ExactScope(uses=uses, minutes=minutes):
            return f"the same command runs unasked {_how_long(uses, minutes)}"
        case PrefixScope(words=words, directory=directory, uses=uses, minutes=minutes):
            where = f" in {visible(directory)}" if directory is not None else ""
            return f"what begins with {_said(words)} runs unasked{where} {_how_long(uses, minutes)}"
        case RuleScope(words=words, where=where, minutes=minutes):
            place = "in this workspace" if where == "project" else "everywhere"
            until = f", for {limit(minutes * 60)}" if minutes is not None else ""
            return f"a rule is saved: what begins with {_said(words)} runs unasked {place}{until}"
        case _:
            return "the same command runs unasked for the rest of the session"


def _how_long(uses: int | None, minutes: float | None) -> str:
    parts = [count(uses, "more time")] if uses is not None else []
    parts += [f"for {limit(minutes * 60)}"] if minutes is not None else []
    return ", ".join(parts) if parts else "for the rest of the session"


def _said(words: tuple[str, ...]) -> str:
    return visible(shlex.join(words))
