"""Claude Code: its settings for the hook and its permissions, and its list of MCP servers."""

from pathlib import Path

from whisper_tui.install.entries import Entry, Handler, Item, Member, Setting
from whisper_tui.install.files import JSON, Shared
from whisper_tui.install.launch import DAY_S, SERVER, is_approved, is_hook, split
from whisper_tui.install.wish import Fulfilment, Wish

NAME = "claude"
TITLE = "Claude Code"
EVENT = ("hooks", "PreToolUse")
SHELL_TOOL = "Bash"
SHELL_TOOLS = (SHELL_TOOL, "Monitor", "PowerShell")
"""All its tools that run commands. A hook that is for Bash alone is asked about Monitor too, as if it were Bash, but
only a refusal counts then: Claude Code would run the command as the model wrote it, outside of whisper_tui."""
MATCHER = "|".join(SHELL_TOOLS)
ALLOWED = f"mcp__{SERVER}"
"""The rule that lets Claude Code call our tools without asking a second time."""

NO_SKILL_SHELL = ("disableSkillShellExecution",)
"""What keeps Claude Code from running the commands in skills and slash commands (`` !`command` ``) itself. No hook is
asked about them, and an agent can write a skill."""
UNBOXED = ("sandbox", "excludedCommands")
"""The commands that run outside of Claude Code's sandbox, in which no supervisor can be reached."""


def settings_of(wish: Wish) -> Path:
    """The settings. Those of a project are the ones that are not shared with others, for they name absolute paths."""
    if wish.project is not None:
        return wish.project / ".claude" / "settings.local.json"
    return directory_of(wish) / "settings.json"


def servers_of(wish: Wish) -> Path:
    """The file in which Claude Code keeps MCP servers, and much else that it writes itself."""
    early = directory_of(wish) / ".config.json"
    if early.exists():
        return early
    return Path(wish.environ.get("CLAUDE_CONFIG_DIR") or wish.user_directory) / ".claude.json"


def directory_of(wish: Wish) -> Path:
    """The user's directory of Claude Code."""
    return Path(wish.environ.get("CLAUDE_CONFIG_DIR") or wish.user_directory / ".claude")


def server_path(wish: Wish) -> tuple[str, ...]:
    """Where the MCP server stands in its file; for a project, Claude Code looks under the root of its repository."""
    place = ("mcpServers", SERVER)
    if wish.project is None:
        return place
    above = (wish.project, *wish.project.parents)
    root = next((directory for directory in above if (directory / ".git").exists()), wish.project)
    return ("projects", str(root), *place)


def hook_entry(wish: Wish) -> Handler:
    """The hook. `onFailure` keeps a command from running when the hook fails, which would let it pass otherwise."""
    handler = {
        "type": "command",
        "command": wish.launch.hook_text(NAME, agent_runs=wish.agent_runs),
        "timeout": DAY_S,
        "onFailure": "block",
        "statusMessage": "waiting in whisper_tui",
    }
    return Handler(EVENT, {"matcher": MATCHER, "hooks": [handler]}, is_ours)


def server_entry(wish: Wish) -> Member:
    """The MCP server; its tools are there from the first turn."""
    command, *args = wish.launch.server()
    value = {"type": "stdio", "command": command, "args": args, "timeout": DAY_S * 1000, "alwaysLoad": True}
    return Member(server_path(wish), value)


def is_ours(handler: object) -> bool:
    """Whether a handler starts our hook."""
    return isinstance(handler, dict) and is_hook(split(handler.get("command")), NAME)


def fulfil(wish: Wish) -> Fulfilment:
    """The files of Claude Code."""
    entries: list[tuple[Entry, bool]] = [
        (hook_entry(wish), wish.hook),
        (Item(("permissions", "allow"), ALLOWED), wish.mcp),
        (Setting(NO_SKILL_SHELL, value=True), wish.hook),
        (Item(UNBOXED, f"{wish.launch.exec()} *", ours=is_approved), wish.hook and not wish.agent_runs),
    ]
    server: tuple[Entry, ...] = (server_entry(wish),)
    settings = Shared(
        settings_of(wish),
        JSON,
        wanted=tuple(entry for entry, wanted in entries if wanted),
        unwanted=tuple(entry for entry, wanted in entries if not wanted),
    )
    servers = Shared(servers_of(wish), JSON, wanted=server if wish.mcp else (), unwanted=() if wish.mcp else server)
    return Fulfilment([settings, servers])
