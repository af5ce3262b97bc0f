"""Gemini CLI: its settings for the hook and the MCP server, and a policy that lets approved commands pass."""

import json
from pathlib import Path

from whisper_tui.install.entries import Entry, Handler, Member
from whisper_tui.install.files import JSON_WITH_COMMENTS, Own, Shared
from whisper_tui.install.launch import DAY_S, SERVER, is_hook, split
from whisper_tui.install.wish import Fulfilment, Wish

NAME = "gemini"
TITLE = "Gemini CLI"
EVENT = ("hooks", "BeforeTool")
TELLING_EVENT = ("hooks", "AfterTool")
"""Where alone Gemini CLI can be told what became of a command: it shows its model no note of the hook before."""
TELLING_S = 60
SHELL_TOOL = "run_shell_command"
MATCHER = f"^{SHELL_TOOL}$"
"""Anchored, for Gemini CLI searches in the names of MCP tools too, and one of ours is called like its shell."""
MARK = "# Written by whisper-tui install gemini"


def settings_of(wish: Wish) -> Path:
    """The settings of the project or of the user."""
    return (wish.project or home_of(wish)) / ".gemini" / "settings.json"


def policy_of(wish: Wish) -> Path:
    """Our policy. It is the user's also for a project: Gemini CLI does not read policies of projects."""
    return home_of(wish) / ".gemini" / "policies" / "whisper_tui.toml"


def home_of(wish: Wish) -> Path:
    """The directory that holds the user's `.gemini`."""
    return Path(wish.environ.get("GEMINI_CLI_HOME") or wish.user_directory)


def hook_entry(wish: Wish) -> Handler:
    """The hook that asks; Gemini CLI counts in milliseconds."""
    return _hook(wish, EVENT, DAY_S)


def telling_entry(wish: Wish) -> Handler:
    """The hook that tells the model how its command was changed."""
    return _hook(wish, TELLING_EVENT, TELLING_S, closed=False)


def _hook(wish: Wish, event: tuple[str, str], timeout_s: int, *, closed: bool = True) -> Handler:
    handler = {
        "name": "whisper_tui",
        "type": "command",
        "command": wish.launch.hook_text(NAME, agent_runs=wish.agent_runs, closed=closed),
        "timeout": timeout_s * 1000,
    }
    return Handler(event, {"matcher": MATCHER, "hooks": [handler]}, is_ours)


def server_entry(wish: Wish) -> Member:
    """The MCP server. `trust` keeps Gemini CLI from asking a second time."""
    command, *args = wish.launch.server()
    value = {"command": command, "args": args, "timeout": DAY_S * 1000, "trust": True}
    return Member(("mcpServers", SERVER), value)


def is_ours(handler: object) -> bool:
    """Whether a handler starts our hook."""
    return isinstance(handler, dict) and is_hook(split(handler.get("command")), NAME)


def policy_text(wish: Wish) -> str:
    """Approved commands, and they alone, are not asked about a second time."""
    return (
        f"{MARK}: a command that was approved in whisper_tui is not asked about again.\n"
        "[[rule]]\n"
        f'toolName = "{SHELL_TOOL}"\n'
        f"commandPrefix = {json.dumps(wish.launch.exec())}\n"
        'decision = "allow"\n'
        "priority = 900\n"
    )


def fulfil(wish: Wish) -> Fulfilment:
    """The files of Gemini CLI."""
    rewrites = wish.hook and not wish.agent_runs
    entries: list[tuple[Entry, bool]] = [
        (hook_entry(wish), wish.hook),
        (telling_entry(wish), rewrites),
        (server_entry(wish), wish.mcp),
    ]
    settings = Shared(
        settings_of(wish),
        JSON_WITH_COMMENTS,
        wanted=tuple(entry for entry, wanted in entries if wanted),
        unwanted=tuple(entry for entry, wanted in entries if not wanted),
    )
    policy = Own(policy_of(wish), MARK, policy_text(wish) if rewrites else None)
    notes = []
    if wish.hook and wish.agent_runs:
        notes.append("Gemini CLI will ask about each approved command itself, because the agent runs it")
    if wish.project is not None and (wish.hook or wish.mcp):
        notes.append("Gemini CLI reads a project's settings only if its folder is trusted (/permissions)")
    return Fulfilment([settings, policy], notes)
