"""Errors, sessions, deciders and the scope of their standing approvals as text for people."""

import re
import shlex
import time

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.decision import DENIAL_ID, Decider, ExactScope, PrefixScope, RuleScope, Scope, ToolScope
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.model.verdict import whose_rule
from whisper_tui.present.quantities import count, limit
from whisper_tui.present.spans import LONGEST_TEXT

LONGEST_NAME = 100
"""The longest name within a line in characters."""
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


def session_label(session: Session | None, session_id: str) -> str:
    """Return the name of a session, safe to show within a line."""
    return one_line_beginning(session.name if session is not None else session_id, LONGEST_NAME)


def session_label_of(record: CallRecord, board: Board) -> str:
    """Return the name of a call's session, safe to show within a line."""
    return session_label(board.sessions.get(record.call.session_id), record.call.session_id)


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
        case "demo":
            return "by the demo"
        case _:
            return f"by {who} in the {by.surface}" if who else f"in the {by.surface}"


_ESCAPED = re.compile(r"\\(.)")
_WILD = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_KIND = re.compile(r"\*\.[A-Za-z0-9]+")


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
            if not scope.is_rule:
                return f"{scope_targets(scope)} are made without approval {until}"
            ends = f", for {limit(scope.minutes * 60)}" if scope.minutes is not None else ""
            place = "in this workspace" if scope.where == "project" else "everywhere"
            return f"a rule is saved: {scope_targets(scope)} are made without approval {place}{ends}"
        case _:
            return "the same command runs without approval for the rest of the session"


def rule_words(scope: RuleScope | ToolScope) -> str:
    """Return the calls that a saved rule would cover; of commands, their first words."""
    return scope_targets(scope) if isinstance(scope, ToolScope) else visible(shlex.join(scope.words))


def scope_targets(scope: ToolScope) -> str:
    """Return the calls that a scope for a tool, hosts or files covers, as a clause without a verb."""
    if scope.tool:
        return f"calls of {_tool(visible(scope.tool))}"
    if scope.path:
        return f"edits of {_files(visible(scope.path))}"
    return f"fetches from {' and '.join(map(_host, scope.hosts))}"


def _tool(name: str) -> str:
    return f"every tool of {name[5:-3]} ({name})" if name.startswith("mcp__") and name.endswith("__*") else name


def _host(host: str) -> str:
    return f"every host below {visible(host[2:])}" if host.startswith("*.") else visible(host)


def _files(pattern: str) -> str:
    plain = _ESCAPED.sub(r"\1", pattern)
    # `//` begins at the root of the file system, `/` at the workspace: the sentence says where a file is.
    shown = plain[1:] if plain.startswith("/") else plain
    if _WILD.search(pattern):
        kind = _KIND.fullmatch(pattern)
        where = "" if pattern.startswith(("//", "~/")) else " in the workspace"
        return f"every {pattern} file{where}" if kind else f"files that match {pattern}{where}"
    # Without a slash before the end, .gitignore means the name in any directory.
    anywhere = "/" not in pattern.rstrip("/")
    if pattern.endswith("/"):
        return f"every file below {f'a directory named {shown} in the workspace' if anywhere else shown}"
    return f"every file named {shown} in the workspace" if anywhere else shown


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
            return f"{scope_targets(scope)}, in the session"
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
