"""The scope of a standing approval in words."""

import shlex
import time

from whisper_tui.model.decision import ExactScope, PrefixScope, RuleScope, Scope, ToolScope
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.quantities import count, limit
from whisper_tui.present.spans import LONGEST_TEXT


def approved_scope(scope: Scope) -> str:
    """Return what a standing approval allows, as a clause after a semicolon."""
    match scope:
        case ExactScope(uses=uses, minutes=minutes):
            return f"the same command runs without approval {_duration(uses, minutes)}"
        case PrefixScope(words=words, directory=directory, uses=uses, minutes=minutes):
            where = f" in {visible(directory)}" if directory is not None else ""
            return f"commands starting with {_said(words)} run without approval{where} {_duration(uses, minutes)}"
        case RuleScope(words=words, where=where, minutes=minutes):
            place = "in this workspace" if where == "project" else "everywhere"
            until = f", for {limit(minutes * 60)}" if minutes is not None else ""
            return f"a rule is saved: commands starting with {_said(words)} run without approval {place}{until}"
        case ToolScope():
            until = _duration(scope.uses, scope.minutes)
            place = {"session": "", "project": " in this workspace", "user": " everywhere"}[scope.where]
            lasting = f"a rule is saved: {_targets(scope)} without approval{place}" if scope.is_rule else ""
            return lasting or f"{_targets(scope)} without approval {until}"
        case _:
            return "the same command runs without approval for the rest of the session"


def _targets(scope: ToolScope) -> str:
    if scope.tool:
        return f"every call of {visible(scope.tool)} is made"
    if scope.path:
        return f"every edit of {visible(scope.path)} is made"
    return f"every fetch from {visible(', '.join(scope.hosts))} is made"


def _duration(uses: int | None, minutes: float | None) -> str:
    parts = [count(uses, "more time")] if uses is not None else []
    parts += [f"for {limit(minutes * 60)}"] if minutes is not None else []
    return ", ".join(parts) if parts else "for the rest of the session"


def _said(words: tuple[str, ...]) -> str:
    # A toast stays over whatever else is on the screen, also when the call is not shown any more.
    return visible(shlex.join(masked_words(words)))


def scope_reach(scope: Scope) -> str:
    """Return the scope of a standing approval."""
    match scope:
        case PrefixScope(directory=directory):
            where = f", in {one_line_beginning(directory, LONGEST_TEXT)} and below" if directory is not None else ""
            return f"every command of the session that starts with these words{where}"
        case RuleScope():
            return "a rule in the rules file"
        case ToolScope():
            return f"{_targets(scope)} in the session"
        case _:
            return "exactly this command in this directory, for its session"


def of_uses(scope: Scope) -> str:
    """Return the limit of uses, to append to the number of uses. Empty: there is no limit."""
    most = scope.uses if isinstance(scope, ExactScope | PrefixScope | ToolScope) else None
    return f" of {most:,}" if most is not None else ""


def until_text(until: float | None, now: float, without: str) -> str:
    """Return the remaining time of an approval or rule. `without`: the text for one without an end."""
    if until is None:
        return without
    return f"for {limit(max(0, round(until - now)))} more, until {time.strftime('%H:%M', time.localtime(until))}"
