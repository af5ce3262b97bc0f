"""The scope of a standing approval in words."""

import re
import shlex
import time

from whisper_tui.model.decision import ExactScope, PrefixScope, RuleScope, Scope, ToolScope
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.quantities import count, limit
from whisper_tui.present.spans import LONGEST_TEXT

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
    return f"for {limit(max(0, round(until - now)))} more, until {time.strftime('%H:%M', time.localtime(until))}"
