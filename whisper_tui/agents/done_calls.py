"""Calls that an agent's program says it has made, and how they differ from what its hook has allowed (decision 34).

Programs add, drop and complete arguments. So only what certainly changes the meaning counts as another call.
"""

import json
import os
from typing import Any, NamedTuple

from whisper_tui.agents.agent_tools import Content, ToolArguments
from whisper_tui.agents.hook_formats import DoneCall, HookFormat
from whisper_tui.model.call import FileEdits
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.value import Value


class Different(NamedTuple):
    """Two texts about a call: as it was allowed, and as it was made."""

    allowed: str
    made: str


def difference(client: HookFormat, allowed: Content, done: DoneCall) -> Different | None:
    """Return how a call differs from what the hook allowed. None: it is the same, as far as can be known."""
    if client.runs_commands(done.tool):
        return _other_command(client, allowed, done)
    names = _different_names(client, allowed, done)
    if not names:
        return None
    return Different(_arguments(done.tool, allowed, names), _arguments(done.tool, done.tool_input, names))


def _other_command(client: HookFormat, allowed: Content, done: DoneCall) -> Different | None:
    texts = [given.get("command") for given in (allowed, done.tool_input)]
    if not all(isinstance(text, str) for text in texts):
        return None
    said, made = (str(text) for text in texts)
    if said.strip() != made.strip():
        return Different(said, made)
    places = [_directory(client, given, done.cwd) for given in (allowed, done.tool_input)]
    if None in places or places[0] == places[1]:
        return None
    return Different(*(f"{said} in {place}" for place in places))


def _directory(client: HookFormat, arguments: Content, cwd: str) -> str | None:
    """Return the directory that the arguments of a shell tool name. None: they name none."""
    named = next((arguments[key] for key in client.directory_keys if arguments.get(key)), None)
    if not isinstance(named, str) or not cwd.startswith("/"):
        return None
    try:
        return os.path.realpath(os.path.join(cwd, named))  # noqa: PTH118  it may not exist
    except (OSError, ValueError):
        return named


def _different_names(client: HookFormat, allowed: Content, done: DoneCall) -> list[str]:
    """Return the names of the arguments that make it another call."""
    names = [name for name in allowed if name in done.tool_input and _is_other(allowed[name], done.tool_input[name])]
    meanings = [_edits(client, arguments, done) for arguments in (allowed, done.tool_input)]
    if None not in meanings:
        # The same edit can be written in several ways: with a path that is relative, or with defaults.
        return names or sorted(done.tool_input) if _is_other(*meanings) else []
    if client.tool_of(done.tool) is None:
        # Nothing is known about the arguments of a server's tool, so one more may mean anything.
        names += [name for name, value in done.tool_input.items() if name not in allowed and value]
    return names


def _edits(client: HookFormat, arguments: Content, done: DoneCall) -> Any:
    """Return the meaning of an edit as plain values. None: it is no edit, or none that can be read."""
    known = client.tool_of(done.tool)
    if known is None:
        return None
    try:
        meant = known.read(ToolArguments(done.tool, arguments, done.cwd), takes_result=client.takes_result)
    except InvalidRequest:
        return None
    return [_plain(change) for change in meant.changes] if isinstance(meant, FileEdits) else None


def _plain(change: Value) -> Any:
    found = change.model_dump()
    for name in ("path", "move_to"):
        if isinstance(found.get(name), str):
            found[name] = os.path.realpath(found[name])
    return found


def _is_other(first: Any, second: Any) -> bool:
    """True if two values differ in more than blanks at the ends of lines, which programs remove."""
    return bool(_trimmed(first) != _trimmed(second))


def _trimmed(value: Any) -> Any:
    match value:
        case str():
            return "\n".join(line.rstrip() for line in value.rstrip().split("\n"))
        case list() | tuple():
            return [_trimmed(each) for each in value]
        case dict():
            return {name: _trimmed(each) for name, each in value.items() if each not in (None, "", False)}
        case _:
            return value


def _arguments(tool: str, arguments: Content, names: list[str]) -> str:
    return f"{tool} {json.dumps({name: arguments[name] for name in names if name in arguments}, ensure_ascii=False)}"
