"""Kimi Code: its hook, its files, and the doctor's checks."""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents.agent_tools import Content, FunctionTool, ReplaceTool, Tool, ToolArguments, WriteTool
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON_WITH_COMMENTS,
    SERVER,
    TOML,
    InstallPlan,
    InstallRequest,
    Shared,
    is_our_hook,
)
from whisper_tui.agents.file_entries import Element, FileEntry, Member, value_at
from whisper_tui.agents.findings import (
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    bad,
    human_note_checks,
    is_found_by,
    not_compared,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import ClaudeFormat, HookAnswer, printed
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.own_rules import work_tree_around
from whisper_tui.agents.profile import Abilities, ClientProfile, Evidence, ServerTable
from whisper_tui.model.call import FileEdits, Function
from whisper_tui.model.errors import InvalidRequest, Refused

NAME = "kimi"
TITLE = KNOWN["kimi"].title
HOOKS = ("hooks",)
PERMISSIONS = ("permission", "rules")
EVENT = "PreToolUse"
PROMPT_EVENT = "UserPromptSubmit"
TIMEOUT_S = 600
"""The longest time that a hook can have. With a longer one, Kimi Code silently ignores all hooks."""
DEADLINE_S = 570
DEFAULT_TIMEOUT_S = 30.0


class KimiHook(ClaudeFormat):
    """Kimi Code, as of version 2.1.0. It ignores other arguments, so its calls can only be approved or denied."""

    name = "kimi-code"
    shell_tool = "Bash"
    takes_result = False
    # The answer to its event at the start of a session does not reach the model.
    session_event = PROMPT_EVENT
    repeats_session_event = True
    directory_keys = ("cwd",)
    tools: ClassVar[Mapping[str, Tool]] = {
        "Edit": ReplaceTool("path", "old_string", "new_string", "replace_all"),
        "Write": WriteTool("path", "content"),
        "FetchURL": FunctionTool("web", url="url"),
        "WebSearch": FunctionTool("web"),
        "Agent": FunctionTool("subagent", name="subagent_type"),
        "AgentSwarm": FunctionTool("subagent", name="subagent_type"),
    }
    hooked_tools = ("Edit", "Write", "FetchURL", "WebSearch", "Agent", "AgentSwarm", "mcp__server__tool")
    quiet_tools = frozenset(
        {
            "Read", "ReadMediaFile", "Glob", "Grep", "Skill", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode",
            "TodoList", "TaskList", "TaskOutput", "TaskStop", "WaitFor", "CronList", "CreateGoal", "GetGoal",
            "UpdateGoal", "SetGoalBudget",
        }
    )  # fmt: skip

    def _call(self, arguments: ToolArguments, content: Content) -> FileEdits | Function | None:
        if arguments.tool == "Write" and arguments.values.get("mode", "overwrite") != "overwrite":
            # What it appends to may change until it runs, so no new content can be shown.
            return Function(tool=arguments.tool, arguments=arguments.values)
        return super()._call(arguments, content)

    def directory(self, content: Content, tool_input: Content) -> str:
        """Return the directory that the tool's arguments name, or the workspace. Raises `InvalidRequest`."""
        workspace, named = super().directory(content, tool_input), tool_input.get("cwd")
        if named is not None and not isinstance(named, str):
            raise InvalidRequest("the directory of the command is not a text")
        return os.path.normpath(os.path.join(workspace, named or ""))  # noqa: PTH118  it may not exist

    def session_note(self, context: str) -> HookAnswer:
        """Tell the model something with its first prompt."""
        return printed({"message": context})

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"Write": {"path": path, "content": "canary\n"}, "FetchURL": {"url": url}}


HOOK = KimiHook()
MATCHER_OF_COMMANDS = f"^{HOOK.shell_tool}$"
# All but the tools that only read, and our own: a tool that a later version adds is seen too.
MATCHER = f"^(?!(?:{'|'.join(sorted(HOOK.quiet_tools))}|mcp__{SERVER}__.*)$).*$"


def is_ours(event: str, hook: object) -> bool:
    """True if an entry of the settings starts the hook of any installation at this event."""
    return isinstance(hook, dict) and hook.get("event") == event and is_our_hook(NAME, hook)


def is_our_rule(rule: object) -> bool:
    """True if a rule allows our own tools, which wait in the queue themselves."""
    return isinstance(rule, dict) and rule.get("pattern") == f"mcp__{SERVER}__*"


def home_of(request: InstallRequest) -> Path:
    """Return the user's directory of Kimi Code."""
    return Path(request.environ.get("KIMI_CODE_HOME") or request.user_directory / ".kimi-code")


def settings_of(request: InstallRequest) -> Path:
    """Return the settings of the user. Projects have none."""
    return home_of(request) / "config.toml"


def servers_file_of(request: InstallRequest) -> Path:
    """Return the file with the MCP servers of the project or of the user."""
    return home_of(request) / "mcp.json" if request.project is None else request.project / ".kimi-code" / "mcp.json"


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project."""
    files = [home_of(request) / "mcp.json"]
    if request.project is not None:
        root = work_tree_around(request.project) or request.project
        files += [root / ".mcp.json", request.project / ".kimi-code" / "mcp.json"]
    for path in files:
        yield ServerTable(path, JSON_WITH_COMMENTS, ("mcpServers",))


def hook_entry(request: InstallRequest) -> Element:
    """Return the entry of the hook."""
    hook = {
        "event": EVENT,
        "matcher": MATCHER if request.tools else MATCHER_OF_COMMANDS,
        "command": request.launch.hook_text(NAME, agent_runs=True, deadline_s=DEADLINE_S),
        "timeout": TIMEOUT_S,
    }
    return Element(HOOKS, hook, partial(is_ours, EVENT))


def after_entries(request: InstallRequest) -> list[Element]:
    """Return the entries of the hook that compares what ran with what was approved."""
    matcher = MATCHER if request.tools else MATCHER_OF_COMMANDS
    same = {"matcher": matcher, "command": request.launch.after_text(NAME), "timeout": AFTER_TIMEOUT_S}
    return [Element(HOOKS, {"event": event, **same}, partial(is_ours, event)) for event in sorted(HOOK.after_events)]


def context_entry(request: InstallRequest) -> Element:
    """Return the entry of the hook that tells the model about whisper_tui with its first prompt."""
    command = request.launch.hook_text(NAME, closed=False)
    return Element(HOOKS, {"event": PROMPT_EVENT, "command": command, "timeout": 30}, partial(is_ours, PROMPT_EVENT))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    return Member(("mcpServers", SERVER), {"command": command, "args": args, "toolTimeoutMs": DAY_S * 1000})


def permission_entry() -> Element:
    """Return the rule that keeps Kimi Code from asking about our own tools."""
    return Element(PERMISSIONS, {"decision": "allow", "pattern": f"mcp__{SERVER}__*"}, is_our_rule)


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of Kimi Code with the content that they should have. Raises `Refused` for a project's hook."""
    if request.project is not None and request.hook:
        raise Refused("Kimi Code reads no hooks of a project", hint="Install it without --project, or with --no-hook")
    path = servers_file_of(request)
    behind, notes = wrapped_servers(
        request, GatewayTable(path, JSON_WITH_COMMENTS, ("mcpServers",), timeout="toolTimeoutMs")
    )
    ours: list[tuple[FileEntry, bool]] = [
        (hook_entry(request), request.hook),
        *((entry, request.hook) for entry in after_entries(request)),
        (context_entry(request), request.hook),
        (permission_entry(), request.mcp),
    ]
    servers: list[tuple[FileEntry, bool]] = [
        (server_entry(request), request.mcp),
        *((entry, request.gateway) for entry in behind),
    ]
    files = [
        Shared.of(file, opener, entries)
        for file, opener, entries in ((settings_of(request), TOML, ours), (path, JSON_WITH_COMMENTS, servers))
        if file == path or request.project is None
    ]
    if request.hook:
        notes.append("Kimi Code takes no changes: its calls can only be approved or denied, and it runs them itself")
        notes.append(f"What is not decided within {DEADLINE_S} s is denied, and has to be asked again")
        notes.append("Unless it is started with --yolo or --auto, Kimi Code asks again about what you have approved")
    return InstallPlan([*files], notes)


_REINSTALL = "Run whisper-tui install kimi"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the settings of the user, and the servers."""
    result = Findings()
    user, project = context.requests()
    path = settings_of(user)
    plain = result.read(path, TOML)
    hooks = value_at(plain, HOOKS)
    listed = [each for each in hooks if isinstance(each, dict)] if isinstance(hooks, list) else []
    for hook in listed:
        if is_ours(EVENT, hook):
            result.hooks.append(_found_hook(context, path, hook))
        given = hook.get("timeout")
        if isinstance(given, int) and given > TIMEOUT_S:
            sentence = f"{path} gives a hook {given} s, so Kimi Code ignores all of its hooks"
            result.checks.append(bad("hooks", sentence, f"Lower its timeout to {TIMEOUT_S}"))
    allowed = any(map(is_our_rule, value_at(plain, PERMISSIONS) or ()))
    for table in dict.fromkeys(server_tables(project)):
        if isinstance(entry := value_at(result.read(table.file, table.opener), (*table.place, SERVER)), dict):
            result.servers.append(_server(table.file, entry, allowed=allowed))
    if result.hooks and not all(any(is_ours(event, hook) for hook in listed) for event in HOOK.after_events):
        result.checks.append(not_compared(_REINSTALL))
    told = any(is_ours(PROMPT_EVENT, hook) for hook in listed)
    result.checks.extend(human_note_checks(result, TITLE, _REINSTALL, _REINSTALL, told=told, by_server=False))
    return result


def _found_hook(context: DoctorContext, path: Path, hook: dict[str, Any]) -> FoundHook:
    seen = partial(is_found_by, hook.get("matcher"))
    timeout_s = seconds(hook.get("timeout")) or DEFAULT_TIMEOUT_S
    problems = unseen_tools(path, seen, (HOOK.shell_tool,), HOOK.hooked_tools, _REINSTALL)
    return FoundHook.of(HOOK, path, hook["command"], context, seen, timeout_s=timeout_s, problems=problems)


def _server(path: Path, entry: dict[str, Any], *, allowed: bool) -> FoundServer:
    asks_again = None if allowed else _REINSTALL
    return FoundServer.of(path, entry, seconds(entry.get("toolTimeoutMs"), 1000), asks_again)


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    hook_timeout_s=DEFAULT_TIMEOUT_S,
    abilities=Abilities(
        change_of_command=Evidence.NOT_POSSIBLE,
        change_of_edit=Evidence.NOT_POSSIBLE,
        one_question=Evidence.NOT_POSSIBLE,
        late_decision=Evidence.MEASURED,
        edits=Evidence.MEASURED,
        web=Evidence.MEASURED,
        servers=Evidence.MEASURED,
    ),
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    directory_variables=("KIMI_CODE_HOME",),
)
