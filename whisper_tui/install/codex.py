"""Codex: its hook and the trust in it, its MCP server, and a rule that lets approved commands out of the sandbox."""

import json
import os
from pathlib import Path
from typing import Any

import tomlkit

from whisper_tui.install.app_server import NoAnswer, hooks_of, staged
from whisper_tui.install.documents import WrongShape, value_at
from whisper_tui.install.entries import Entry, Handler, Member, handlers
from whisper_tui.install.files import JSON, TOML, Opener, Own, Shared, misshapen, opened, plain_of, read_file
from whisper_tui.install.launch import DAY_S, SERVER, is_hook, split
from whisper_tui.install.wish import Fulfilment, Wish

NAME = "codex"
TITLE = "Codex"
EVENT = ("hooks", "PreToolUse")
STATE = ("hooks", "state")
"""Where Codex keeps which hooks it trusts, in the user's configuration also for a project's hooks."""
SHELL_TOOL = "Bash"
MARK = "# Written by whisper-tui install codex"
UNTRUSTED = (
    "The hook stays untrusted, and Codex skips it without a word, until you trust it with /hooks in Codex, "
    "or until you run whisper-tui install codex again"
)


def directory_of(wish: Wish) -> Path:
    """The user's directory of Codex."""
    return Path(wish.environ.get("CODEX_HOME") or wish.user_directory / ".codex")


def layer_of(wish: Wish) -> Path:
    """The directory of the configuration that is changed: the project's or the user's."""
    return directory_of(wish) if wish.project is None else wish.project / ".codex"


def hooks_file(wish: Wish) -> tuple[Path, Opener]:
    """Where the hooks are: one file holds them all, for Codex complains about two."""
    layer = layer_of(wish)
    configured = plain_of(layer / "config.toml", TOML).get("hooks")
    if isinstance(configured, dict) and set(configured) - {"state"} and not (layer / "hooks.json").exists():
        return layer / "config.toml", TOML
    return layer / "hooks.json", JSON


def hook_entry(wish: Wish) -> Handler:
    """The hook."""
    handler = {
        "type": "command",
        "command": wish.launch.hook_text(NAME, agent_runs=wish.agent_runs),
        "timeout": DAY_S,
        "statusMessage": "waiting in whisper_tui",
    }
    return Handler(EVENT, {"matcher": f"^{SHELL_TOOL}$", "hooks": [handler]}, is_ours)


def server_entry(wish: Wish) -> Member:
    """The MCP server. `required` lets the first turn wait for its tools."""
    command, *args = wish.launch.server()
    value = {
        "command": command,
        "args": args,
        "required": True,
        "startup_timeout_sec": 30,
        "tool_timeout_sec": DAY_S,
        "default_tools_approval_mode": "approve",
    }
    return Member(("mcp_servers", SERVER), value)


def is_ours(handler: object) -> bool:
    """Whether a handler starts our hook."""
    return isinstance(handler, dict) and is_hook(split(handler.get("command")), NAME)


def key_of(path: Path, place: tuple[int, int]) -> str:
    """What Codex calls a hook: by its file, without symbolic links, and its place there."""
    return os.path.realpath(path) + _ending(place)


def _ending(place: tuple[int, int]) -> str:
    return f":pre_tool_use:{place[0]}:{place[1]}"


def rules_text(wish: Wish) -> str:
    """Approved commands, and they alone, run outside of the sandbox, which would keep them from the supervisor."""
    pattern = json.dumps([*wish.launch.program, "exec"])
    return (
        f"{MARK}: what was approved in whisper_tui runs there, not in the sandbox of Codex.\n"
        f'prefix_rule(pattern={pattern}, decision="allow")\n'
    )


def fulfil(wish: Wish) -> Fulfilment:
    """The files of Codex."""
    path, opener = hooks_file(wish)
    hook, server = hook_entry(wish), server_entry(wish)
    states, notes = _trust(wish, path, opener, hook)
    files: dict[Path, tuple[Opener, list[Entry], list[Entry]]] = {}
    for place, kind, entries, wanted in (
        (path, opener, [hook], wish.hook),
        (layer_of(wish) / "config.toml", TOML, [server], wish.mcp),
        (directory_of(wish) / "config.toml", TOML, states, wish.hook),
    ):
        _, yes, no = files.setdefault(place, (kind, [], []))
        (yes if wanted else no).extend(entries)
    shared = [Shared(place, kind, wanted=tuple(yes), unwanted=tuple(no)) for place, (kind, yes, no) in files.items()]
    rewrites = wish.hook and not wish.agent_runs
    rules = Own(layer_of(wish) / "rules" / "whisper_tui.rules", MARK, rules_text(wish) if rewrites else None)
    return Fulfilment([*shared, rules], notes + _notes(wish, rewrites))


def _trust(wish: Wish, path: Path, opener: Opener, hook: Handler) -> tuple[list[Member], list[str]]:
    """The entries of trust in the hook, and what is to be said where Codex cannot be asked."""
    document = opened(path, opener, read_file(path) or "")
    if not wish.hook:
        states = [Member((*STATE, key_of(path, place)), {}) for place in hook.places(document.plain())]
        return states, _moved(document.plain())
    is_there = hook.holds(document.plain())
    if not is_there:
        try:
            hook.write(document)
        except WrongShape as error:
            raise misshapen(path, error) from error
    place = hook.places(document.plain())[0]
    state = (*STATE, key_of(path, place))
    try:
        return [Member(state, {"trusted_hash": _hash(wish, path.name, opener, document.plain(), place)})], []
    except NoAnswer as problem:
        sentence = f"{str(problem)[:1].upper()}{str(problem)[1:]}"
        if is_there and value_at(plain_of(directory_of(wish) / "config.toml", TOML), state) is not None:
            return [], [f"{sentence}. So whether it still trusts the hook is not known; /hooks in Codex shows it"]
        return [], [f"{sentence}. {UNTRUSTED}"]


def _hash(wish: Wish, name: str, opener: Opener, plain: Any, place: tuple[int, int]) -> str:
    """What Codex trusts a hook by, which depends on nothing but the hook. Raises `NoAnswer`."""
    only = {"hooks": {EVENT[1]: value_at(plain, EVENT)}}
    text = json.dumps(only) if opener is JSON else tomlkit.dumps(only)
    with staged(name, text, wish.environ) as environ:
        seen = hooks_of(environ, Path(environ["CODEX_HOME"]))
    for one in seen:
        if one.key.endswith(_ending(place)):
            return one.hash
    raise NoAnswer("codex does not see the hook")


def _moved(plain: Any) -> list[str]:
    """What is to be said when hooks behind ours get another place, by which Codex knows them."""
    groups = [number for number, _, handler in handlers(plain, EVENT) if is_ours(handler)]
    if groups and any(number > groups[0] for number, _, handler in handlers(plain, EVENT) if not is_ours(handler)):
        return ["Codex knows hooks by their place: trust those behind ours anew with /hooks in Codex"]
    return []


def _notes(wish: Wish, rewrites: bool) -> list[str]:
    notes = []
    if wish.project is not None and (wish.hook or wish.mcp):
        notes.append("Codex reads a project's configuration only if you trust the project")
    if rewrites and any(character.isspace() or character in "'\"" for character in "".join(wish.launch.program)):
        notes.append(
            "The path of the launcher has to be quoted, which keeps the rule for the sandbox of Codex from applying"
        )
    return notes
