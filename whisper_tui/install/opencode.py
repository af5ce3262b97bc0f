"""OpenCode: its configuration for the MCP server and permissions, and a plugin that is its hook."""

import json
from importlib import resources
from pathlib import Path

from whisper_tui.install.entries import Entry, Member, Permission
from whisper_tui.install.files import JSON_WITH_COMMENTS, Own, Shared
from whisper_tui.install.launch import DAY_S, SERVER, is_approved
from whisper_tui.install.wish import Fulfilment, Wish

NAME = "opencode"
TITLE = "OpenCode"
SHELL_TOOL = "bash"
MARK = "// Written by whisper-tui install opencode"
TEMPLATE = "opencode_plugin.js"
COMMAND_LINE = "const HOOK = "
"""Begins the line of the plugin that holds the command line of the hook, as JSON."""
BLANK = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'


def directory_of(wish: Wish) -> Path:
    """The user's directory of OpenCode."""
    moved = wish.environ.get("XDG_CONFIG_HOME")
    return Path(moved or wish.user_directory / ".config") / "opencode"


def configuration_of(wish: Wish) -> Path:
    """The configuration: the one that is there and holds against the others, or a new one as OpenCode names it."""
    names: tuple[str, ...]
    if wish.project is not None:
        names, directory = ("opencode.jsonc", "opencode.json"), wish.project
    elif named := wish.environ.get("OPENCODE_CONFIG"):
        return Path(named).absolute()
    else:
        names, directory = ("opencode.jsonc", "opencode.json", "config.json"), directory_of(wish)
    there = (directory / name for name in names)
    usual = directory / ("opencode.json" if wish.project is not None else names[0])
    return next((path for path in there if path.exists()), usual)


def plugin_of(wish: Wish) -> Path:
    """The plugin."""
    directory = directory_of(wish) if wish.project is None else wish.project / ".opencode"
    return directory / "plugin" / "whisper_tui.js"


def server_entry(wish: Wish) -> Member:
    """The MCP server; OpenCode counts in milliseconds."""
    value = {"type": "local", "command": [*wish.launch.server()], "enabled": True, "timeout": DAY_S * 1000}
    return Member(("mcp", SERVER), value)


def plugin_text(wish: Wish) -> str:
    """The plugin with the command line of the hook in it."""
    template = resources.files("whisper_tui.install").joinpath(TEMPLATE).read_text(encoding="utf-8")
    line = json.dumps(wish.launch.hook(NAME, agent_runs=wish.agent_runs))
    return template.replace(f"{COMMAND_LINE}[]", f"{COMMAND_LINE}{line}", 1)


def hook_of(plugin: str) -> list[str]:
    """The command line of the hook that a plugin holds; empty where it holds none."""
    for line in plugin.splitlines():
        if line.startswith(COMMAND_LINE):
            try:
                words = json.loads(line.removeprefix(COMMAND_LINE).rstrip("; "))
            except ValueError:
                return []
            return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else []
    return []


def fulfil(wish: Wish) -> Fulfilment:
    """The files of OpenCode."""
    offered, approved = f"{SERVER}_*", f"{wish.launch.exec()} *"
    tools = Permission(("permission",), offered, ours=offered.__eq__)
    shell = Permission(("permission", SHELL_TOOL), approved, ours=is_approved, left_alone="deny")
    rewrites = wish.hook and not wish.agent_runs
    entries: list[tuple[Entry, bool]] = [(server_entry(wish), wish.mcp), (tools, wish.mcp), (shell, rewrites)]
    configuration = Shared(
        configuration_of(wish),
        JSON_WITH_COMMENTS,
        wanted=tuple(entry for entry, wanted in entries if wanted),
        unwanted=tuple(entry for entry, wanted in entries if not wanted),
        blank=BLANK,
    )
    plugin = Own(plugin_of(wish), MARK, plugin_text(wish) if wish.hook else None)
    notes = []
    if wish.hook and not plugin_of(wish).exists():
        notes.append(
            "OpenCode fetches its own library for plugins at the first start; without a network that takes a minute"
        )
    return Fulfilment([configuration, plugin], notes)
