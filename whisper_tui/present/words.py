"""Errors, deciders and the reach of their standing approvals as text for people."""

import shlex
import time

from whisper_tui.model.decision import DENIAL_ID, Decider, ExactScope, PrefixScope, RuleScope, Scope, ToolScope
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.model.verdict import whose_rule
from whisper_tui.present.quantities import limit
from whisper_tui.present.scope_words import scope_targets
from whisper_tui.present.session_text import LONGEST_NAME
from whisper_tui.present.spans import LONGEST_TEXT

LONGEST_TOAST = 1000
"""The longest toast in characters."""
REMOVED = "Some or all of this output was removed from the disk; everything else about the call is kept."


def toast_text(text: str) -> str:
    """Return a text that is short and safe enough for a toast (decision 21)."""
    return one_line_beginning(text, LONGEST_TOAST)


def error_text(error: WhisperError) -> str:
    """Return an error as sentences, with a capital letter and a full stop."""
    text = toast_text(error.sentence())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def decided_by_text(by: Decider) -> str:
    """Return who decided, and through which surface."""
    who = one_line_beginning(by.who, LONGEST_NAME)
    match by.surface:
        case "rule":
            return f"by {whose_rule(who)}"
        case "memory":
            return f"by {'a denial' if who.startswith(DENIAL_ID) else 'an approval'} for this session"
        case "library":
            return f"by {who} through the library" if who else "through the library"
        case "notification":
            return f"by {who} through a notification" if who else "through a notification"
        case "phone":
            return f"by {who} (phone)" if who else "by a phone"
        case "demo":
            return "by the demo"
        case _:
            return f"by {who} in the {by.surface}" if who else f"in the {by.surface}"


def rule_words(scope: RuleScope | ToolScope) -> str:
    """Return the calls that a saved rule would cover; of commands, their first words."""
    if isinstance(scope, ToolScope):
        return scope_targets(scope.model_dump())
    return visible(shlex.join(scope.words))


def scope_reach(scope: Scope) -> str:
    """Return the scope of a standing approval."""
    match scope:
        case PrefixScope(directory=directory):
            where = f", in {one_line_beginning(directory, LONGEST_TEXT)} and below" if directory is not None else ""
            return f"every command of the session that starts with these words{where}"
        case RuleScope():
            return "a rule in the rules file"
        case ToolScope():
            return f"{scope_targets(scope.model_dump())}, in the session"
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
    left = max(0, round(until - now))
    # A time of two hours has lost a second when it is shown first.
    left = left if left < 60 else 60 * -(-left // 60)
    return f"for {limit(left)} more, until {time.strftime('%H:%M', time.localtime(until))}"
