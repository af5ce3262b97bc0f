"""Qwen Code: its hook, its files, and the doctor's checks."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents.agent_tools import CellTool, Content, FunctionTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON_WITH_COMMENTS,
    SERVER,
    InstallPlan,
    InstallRequest,
    Shared,
    is_our_hook,
)
from whisper_tui.agents.file_entries import FileEntry, Handler, Member, handlers, value_at
from whisper_tui.agents.findings import (
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    after_checks,
    bad,
    context_checks,
    is_found_by,
    note,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import SESSION_EVENT, ClaudeFormat
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.profile import Abilities, ClientProfile, Evidence, ServerTable
from whisper_tui.agents.running_clients import option_of
from whisper_tui.model.errors import InvalidRequest

NAME = "qwen"
TITLE = KNOWN["qwen"].title
EVENT = ("hooks", "PreToolUse")
TIMEOUT_S = 60
"""Seconds after which it runs the tool without an answer. It takes no longer time from its settings."""

is_ours = partial(is_our_hook, NAME)
"""True if a handler in the settings starts our hook."""


class QwenHook(ClaudeFormat):
    """Qwen Code, as of version 0.24.4. It ignores other arguments, so its calls can only be approved or denied."""

    name = "qwen-code"
    shell_tool = "run_shell_command"
    takes_result = False
    background_key = "is_background"
    directory_keys = ("directory",)
    session_event = SESSION_EVENT
    tools: ClassVar[Mapping[str, Tool]] = {
        "edit": ReplaceTool("file_path", "old_string", "new_string", "replace_all"),
        "write_file": WriteTool("file_path", "content"),
        "notebook_edit": CellTool(),
        "web_fetch": FunctionTool("web", url="url"),
        "web_search": FunctionTool("web"),
        "agent": FunctionTool("subagent", name="subagent_type"),
    }
    hooked_tools = (
        "edit", "write_file", "notebook_edit", "web_fetch", "web_search", "agent", "mcp__server__tool"
    )  # fmt: skip
    quiet_tools = frozenset(
        {
            "read_file", "glob", "grep_search", "list_directory", "list_agents", "tool_search", "skill", "get_goal",
            "update_goal", "todo_write", "ask_user_question", "exit_plan_mode",
        }
    )  # fmt: skip

    def directory(self, content: Content, tool_input: Content) -> str:
        """Return the directory that the tool's arguments name, or the workspace. Raises `InvalidRequest`."""
        named = tool_input.get("directory")
        if not named:
            return super().directory(content, tool_input)
        if not isinstance(named, str) or not named.startswith("/"):
            raise InvalidRequest("a command was asked for in a relative directory", hint="Use an absolute path")
        return named

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {
            "write_file": {"file_path": path, "content": "canary\n"},
            "web_fetch": {"url": url, "prompt": "look"},
        }


HOOK = QwenHook()
MATCHER_OF_COMMANDS = f"^{HOOK.shell_tool}$"
# All but the tools that only read, and our own: a tool that a later version adds is seen too.
MATCHER = f"^(?!(?:{'|'.join(sorted(HOOK.quiet_tools))}|mcp__{SERVER}__.*)$).*$"


def settings_of(request: InstallRequest) -> Path:
    """Return the settings of the project or of the user."""
    return (request.project or request.user_directory) / ".qwen" / "settings.json"


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project."""
    for directory in dict.fromkeys((request.user_directory, request.project or request.user_directory)):
        yield ServerTable(directory / ".qwen" / "settings.json", JSON_WITH_COMMENTS, ("mcpServers",))


def hook_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook."""
    deadline_s = int(KNOWN[NAME].deadline_s)
    handler = {
        "name": "whisper_tui",
        "type": "command",
        "command": request.launch.hook_text(NAME, agent_runs=True, deadline_s=deadline_s),
        "timeout": TIMEOUT_S * 1000,
    }
    matcher = MATCHER if request.tools else MATCHER_OF_COMMANDS
    return Handler(EVENT, {"matcher": matcher, "hooks": [handler]}, is_ours)


def after_entries(request: InstallRequest) -> list[Handler]:
    """Return the entries of the hook that compares what ran with what was approved."""
    command = request.launch.after_text(NAME)
    handler = {"name": "whisper_tui", "type": "command", "command": command, "timeout": AFTER_TIMEOUT_S * 1000}
    group = {**hook_entry(request).group, "hooks": [handler]}
    return [Handler(("hooks", event), group, is_ours) for event in sorted(HOOK.after_events)]


def context_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that tells the model about whisper_tui at the start of a session."""
    command = request.launch.hook_text(NAME, closed=False)
    handler = {"name": "whisper_tui", "type": "command", "command": command, "timeout": TIMEOUT_S * 1000}
    return Handler(("hooks", SESSION_EVENT), {"hooks": [handler]}, is_ours)


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    # `trust`: it does not ask a second time about each call.
    return Member(("mcpServers", SERVER), {"command": command, "args": args, "timeout": DAY_S * 1000, "trust": True})


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the file of Qwen Code with the content that it should have."""
    path = settings_of(request)
    table = GatewayTable(path, JSON_WITH_COMMENTS, ("mcpServers",), unasked={"trust": True})
    behind, notes = wrapped_servers(request, table)
    entries: list[tuple[FileEntry, bool]] = [
        (hook_entry(request), request.hook),
        *((entry, request.hook) for entry in after_entries(request)),
        (context_entry(request), request.tells_model),
        (server_entry(request), request.mcp),
        *((entry, request.gateway) for entry in behind),
    ]
    settings = Shared.of(path, JSON_WITH_COMMENTS, entries)
    if request.hook:
        notes.append("Qwen Code takes no changes: its calls can only be approved or denied, and it runs them itself")
        notes.append(f"What is not decided within {KNOWN[NAME].deadline_s:g} s is denied, and has to be asked again")
    return InstallPlan([settings], notes)


_REINSTALL = "Run whisper-tui install qwen"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the settings of the user and of the project."""
    result = Findings()
    user, project = context.requests()
    settings = {path: result.read(path, JSON_WITH_COMMENTS) for path in (settings_of(user), settings_of(project))}
    for path, plain in settings.items():
        groups = value_at(plain, EVENT)
        for group, _, handler in handlers(plain, EVENT):
            if is_ours(handler):
                result.hooks.append(_found_hook(context, path, groups[group], handler))
        if value_at(plain, ("disableAllHooks",)) is True:
            result.checks.append(bad("hooks", f"{path} switches all hooks off", "Remove disableAllHooks"))
        if isinstance(entry := value_at(plain, ("mcpServers", SERVER)), dict):
            result.servers.append(_server(path, entry))
    result.checks.extend(after_checks(result, [*settings.values()], HOOK.after_events, is_ours, _REINSTALL))
    result.checks.extend(context_checks(result, list(settings.values()), is_ours, TITLE, _REINSTALL))
    if result.hooks:
        sentence = "Qwen Code runs no hooks with --safe-mode: nothing is supervised then"
        result.checks.append(note("safe mode", sentence, "Start it without"))
    return result


def _found_hook(context: DoctorContext, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    seen = partial(is_found_by, group.get("matcher"))
    given = seconds(handler.get("timeout"), 1000) or TIMEOUT_S
    # A longer time is ignored.
    timeout_s = min(given, TIMEOUT_S)
    problems = unseen_tools(path, seen, (HOOK.shell_tool,), HOOK.hooked_tools, _REINSTALL)
    return FoundHook.of(HOOK, path, handler["command"], context, seen, timeout_s=timeout_s, problems=problems)


def _server(path: Path, entry: dict[str, Any]) -> FoundServer:
    asks_again = None if entry.get("trust") is True else 'Set "trust": true in its entry'
    return FoundServer.of(path, entry, seconds(entry.get("timeout"), 1000), asks_again)


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    without_hook=option_of("--safe-mode"),
    hook_timeout_s=float(TIMEOUT_S),
    abilities=Abilities(
        change_of_command=Evidence.NOT_POSSIBLE,
        change_of_edit=Evidence.NOT_POSSIBLE,
        one_question=Evidence.DOCUMENTED,
        late_decision=Evidence.MEASURED,
        edits=Evidence.MEASURED,
        web=Evidence.MEASURED,
        servers=Evidence.MEASURED,
    ),
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
)
