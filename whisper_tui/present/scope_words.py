"""The scope of a standing approval as text for people. Standard library only, because light subcommands import it.

A scope is its fields, as `Scope` in `model/decision.py` has them and light subcommands send them.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from whisper_tui.model.secrets import masked_words
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count, limit

_ESCAPED = re.compile(r"\\(.)")
_WILD = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_KIND = re.compile(r"\*\.[A-Za-z0-9]+")


def approved_scope(scope: Mapping[str, Any] | str) -> str:
    """Return what a standing approval allows, as a clause after a semicolon. The word alone has no limits."""
    fields: Mapping[str, Any] = {"kind": "exact"} if isinstance(scope, str) else scope
    kind, minutes = fields["kind"], fields.get("minutes")
    if kind == "rule" or fields.get("where", "session") != "session":
        place = "in this workspace" if fields["where"] == "project" else "everywhere"
        until = f", for {limit(minutes * 60)}" if minutes is not None else ""
        return f"a rule is saved: {_calls(fields)} without approval {place}{until}"
    directory = fields.get("directory")
    where = f" in {visible(directory)}" if directory is not None else ""
    return f"{_calls(fields)} without approval{where} {_duration(fields.get('uses'), minutes)}"


def _calls(scope: Mapping[str, Any]) -> str:
    """Return the calls that a scope covers and what they do then: run, or are made."""
    if scope["kind"] == "exact":
        return "the same command in the same directory runs"
    if scope["kind"] == "tool":
        return f"{scope_targets(scope)} are made"
    return f"commands starting with {_said(scope['words'])} run"


def scope_targets(scope: Mapping[str, Any]) -> str:
    """Return the calls that a scope for a tool, hosts or files covers, as a clause without a verb."""
    if scope.get("tool"):
        return f"calls of {_tool(visible(scope['tool']))}"
    if scope.get("path"):
        return f"edits of {_files(visible(scope['path']))}"
    return f"fetches from {' and '.join(map(_host, scope['hosts']))}"


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


def _said(words: Sequence[str]) -> str:
    # A toast stays over whatever else is on the screen, also when the call is not shown any more.
    return visible(shlex.join(masked_words(words)))
