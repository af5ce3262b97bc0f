"""Claude Code: its hook, its files, its rules, and the doctor's checks."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents import findings, other_hooks
from whisper_tui.agents.agent_tools import CellTool, Content, FunctionTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON,
    SERVER,
    InstallPlan,
    InstallRequest,
    Shared,
    is_approved,
    is_our_hook,
)
from whisper_tui.agents.file_entries import FileEntry, Handler, Item, Member, Setting, handlers, value_at
from whisper_tui.agents.findings import (
    Check,
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    among,
    bad,
    note,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import SESSION_EVENT, ClaudeFormat, HookRequest
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.other_hooks import OtherHook, in_groups, sees_any
from whisper_tui.agents.own_rules import (
    ImportedRules,
    OwnRules,
    RuleDirectories,
    RuleSource,
    file_rule,
    files_in,
    host_rule,
    literal_words,
    server_rule,
    strictest_wins,
    work_tree_around,
)
from whisper_tui.agents.probe import numbers
from whisper_tui.agents.profile import (
    ALL_MEASURED,
    LONG_WAIT_S,
    AnswerBudget,
    ClientProfile,
    RuleFormat,
    ServerTable,
    WaitLimit,
)
from whisper_tui.agents.running_clients import option_of
from whisper_tui.agents.shell_gate import ShellSetting, shell_behind
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.policy.rules.rule import SUBAGENT, WEB, Effect, Rule

NAME = "claude"
TITLE = KNOWN["claude"].title
EVENT = ("hooks", "PreToolUse")
QUESTION_EVENT = ("hooks", "PermissionRequest")
"""The event before Claude Code asks its user: about some files, whatever the hook before the call has answered."""

is_ours = partial(is_our_hook, NAME)
"""True if a handler in the settings starts our hook."""


SERVER_TOOL = "mcp__server__tool"
QUESTION_TIMEOUT_S = 60


class ClaudeCodeHook(ClaudeFormat):
    """Claude Code."""

    name = "claude-code"
    shell_tool = "Bash"
    other_shell_tools = frozenset({"Monitor", "PowerShell"})
    keeps_directory = frozenset({"Bash"})
    shows_what_runs = False
    root_variable = KNOWN["claude"].project_variable
    question_event = QUESTION_EVENT[1]
    session_event = SESSION_EVENT
    tools: ClassVar[Mapping[str, Tool]] = {
        "Edit": ReplaceTool("file_path", "old_string", "new_string", "replace_all"),
        # Versions before 2.1 have it.
        "MultiEdit": ReplaceTool("file_path", "old_string", "new_string", "replace_all", edits="edits"),
        "Write": WriteTool("file_path", "content"),
        "NotebookEdit": CellTool(),
        "WebFetch": FunctionTool("web", url="url"),
        "WebSearch": FunctionTool("web"),
        "Agent": FunctionTool("subagent", name="subagent_type"),
        "Task": FunctionTool("subagent", name="subagent_type"),
        # They start work, now or later, whose own calls are judged.
        "Workflow": FunctionTool("subagent", name="name"),
        "CronCreate": FunctionTool("subagent"),
        "ScheduleWakeup": FunctionTool("subagent"),
        "SendMessage": FunctionTool("subagent"),
    }
    hooked_tools = (
        *tools,
        # Git's own hooks run where a work tree is made. The others send data to other machines.
        "EnterWorktree", "ExitWorktree", "Artifact", "ClaudeDesign", "Projects", "PushNotification", "RemoteTrigger",
        "SendFeedback",
        SERVER_TOOL,
    )  # fmt: skip
    quiet_tools = frozenset(
        {
            "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "ToolSearch", "TaskCreate", "TaskGet",
            "TaskList", "TaskUpdate", "TaskOutput", "TaskStop", "BashOutput", "KillShell", "AskUserQuestion",
            "EnterPlanMode", "ExitPlanMode", "Skill", "CronList", "CronDelete", "ListAgents", "ReportFindings",
            "ReadNotifications", "ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool",
            "RefreshMcpTools", "StructuredOutput", "LSP", "Sleep",
        }
    )  # fmt: skip

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"Write": {"file_path": path, "content": "canary\n"}, "WebFetch": {"url": url, "prompt": "canary"}}

    def read(self, content: Content) -> HookRequest | None:
        """Read an input. Tools that run no command of a POSIX shell are refused."""
        tool, tool_input = content.get("tool_name"), content.get("tool_input")
        # Monitor watches the output of a command, or a WebSocket.
        if tool == "Monitor" and isinstance(tool_input, dict) and not isinstance(tool_input.get("command"), str):
            raise InvalidRequest(
                "this Monitor runs no command (it would open a WebSocket), so nobody can approve it here",
                hint="Watch it with a command instead",
            )
        if tool == "PowerShell":
            raise InvalidRequest("commands of PowerShell cannot be judged and run by whisper_tui", hint="Use Bash")
        return super().read(content)


HOOK = ClaudeCodeHook()
# Claude Code calls a hook with the matcher Bash for Monitor too, as if it were Bash, but obeys only its denials:
# an approved command would run as the model wrote it, outside of whisper_tui. So the matcher names every tool.
SHELL_TOOLS = (HOOK.shell_tool, *sorted(HOOK.other_shell_tools))
MATCHER_OF_COMMANDS = "|".join(SHELL_TOOLS)
# Every tool but those that are known to be harmless, so that a tool of a newer version is seen. Calls of our own tools
# wait in the queue themselves: a hook for them would only cost time, as for Read, which is called most often.
MATCHER = f"^(?!({'|'.join(sorted(HOOK.quiet_tools))})$|mcp__{SERVER}__).*$"
ALLOWED = f"mcp__{SERVER}"
"""The permission to call the tools of whisper_tui without another question."""

# Claude Code calls no hook for the commands in skills, and an agent can write a skill.
NO_SKILL_SHELL = ("disableSkillShellExecution",)
"""The setting that keeps Claude Code from running the commands in skills and slash commands (`` !`command` ``)."""
SHELL = ShellSetting(NAME, TITLE, ("env", "CLAUDE_CODE_SHELL"), "CLAUDE_CODE_SHELL")
"""The setting with the shell of its tools Bash and Monitor. Hooks and MCP servers are started without it."""

UNSANDBOXED = ("sandbox", "excludedCommands")
"""The commands that run outside of Claude Code's sandbox. A process inside cannot reach the supervisor."""


def settings_of(request: InstallRequest) -> Path:
    """Return the path of the settings."""
    # The local settings of a project, which nobody commits: the entries hold absolute paths of this machine.
    if request.project is not None:
        return request.project / ".claude" / "settings.local.json"
    return directory_of(request) / "settings.json"


def servers_of(request: InstallRequest) -> Path:
    """Return the file with the MCP servers. Claude Code keeps much else in it."""
    early = directory_of(request) / ".config.json"
    if early.exists():
        return early
    return Path(request.environ.get("CLAUDE_CONFIG_DIR") or request.user_directory) / ".claude.json"


def directory_of(request: InstallRequest) -> Path:
    """Return the user's directory of Claude Code."""
    return Path(request.environ.get("CLAUDE_CONFIG_DIR") or request.user_directory / ".claude")


def server_path(request: InstallRequest) -> tuple[str, ...]:
    """Return the path of the MCP server in its file."""
    place = ("mcpServers", SERVER)
    if request.project is None:
        return place
    # Claude Code looks a project up under the root of its repository.
    return ("projects", str(work_tree_around(request.project) or request.project), *place)


def hook_entry(request: InstallRequest) -> Handler:
    """Return the hook's entry."""
    handler = {
        "type": "command",
        "command": request.launch.hook_text(NAME, agent_runs=request.agent_runs),
        "timeout": DAY_S,
        # Without this, a command runs when its hook fails.
        "onFailure": "block",
        "statusMessage": "waiting in whisper_tui",
    }
    return Handler(EVENT, {"matcher": MATCHER if request.tools else MATCHER_OF_COMMANDS, "hooks": [handler]}, is_ours)


def question_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that answers questions of Claude Code about calls that the user has decided."""
    # If it fails, Claude Code asks.
    command = request.launch.hook_text(NAME, agent_runs=request.agent_runs, closed=False)
    handler = {"type": "command", "command": command, "timeout": QUESTION_TIMEOUT_S}
    return Handler(QUESTION_EVENT, {**hook_entry(request).group, "hooks": [handler]}, is_ours)


def after_entries(request: InstallRequest) -> list[Handler]:
    """Return the entries of the hook that compares what ran with what was approved."""
    handler = {"type": "command", "command": request.launch.after_text(NAME), "timeout": AFTER_TIMEOUT_S}
    group = {**hook_entry(request).group, "hooks": [handler]}
    return [Handler(("hooks", event), group, is_ours) for event in sorted(HOOK.after_events)]


def context_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that tells the model about whisper_tui at the start of a session."""
    command = request.launch.hook_text(NAME, closed=False)
    handler = {"type": "command", "command": command, "timeout": QUESTION_TIMEOUT_S}
    return Handler(("hooks", SESSION_EVENT), {"hooks": [handler]}, is_ours)


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers: the user's, the user's for the project, and the project's own."""
    yield ServerTable(servers_of(request), JSON, ("mcpServers",))
    if request.project is not None:
        yield ServerTable(servers_of(request), JSON, server_path(request)[:-1])
        yield ServerTable(request.project / ".mcp.json", JSON, ("mcpServers",))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    # `alwaysLoad`: otherwise the model does not see the tools until it searches for them.
    value = {"type": "stdio", "command": command, "args": args, "timeout": DAY_S * 1000, "alwaysLoad": True}
    return Member(server_path(request), value)


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of Claude Code with the content that they should have."""
    shell, gates = SHELL.plan(request, settings_of(request), JSON)
    entries: list[tuple[FileEntry, bool]] = [
        (hook_entry(request), request.hook),
        (question_entry(request), request.hook),
        *((entry, request.hook) for entry in after_entries(request)),
        (context_entry(request), request.tells_model),
        (Item(("permissions", "allow"), ALLOWED), request.mcp),
        (Setting(NO_SKILL_SHELL, value=True), request.hook),
        (
            Item(UNSANDBOXED, f"{request.launch.exec()} *", ours=is_approved),
            request.hook and not request.agent_runs,
        ),
        *shell,
    ]
    server: tuple[FileEntry, ...] = (server_entry(request),)
    settings = Shared.of(settings_of(request), JSON, entries)
    behind, notes = wrapped_servers(request, gateway_tables(request)[0])
    servers = Shared(
        servers_of(request),
        JSON,
        wanted=(*(server if request.mcp else ()), *(behind if request.gateway else ())),
        unwanted=(*(() if request.mcp else server), *(() if request.gateway else behind)),
    )
    return InstallPlan([*gates, settings, servers], notes)


def gateway_tables(request: InstallRequest) -> list[GatewayTable]:
    """Return the place of the MCP servers that `install` may change."""
    tables = [GatewayTable(servers_of(request), JSON, server_path(request)[:-1])]
    if request.project is not None:
        tables.append(GatewayTable(request.project / ".mcp.json", JSON, ("mcpServers",), shared=True))
    return tables


DEFAULT_TIMEOUT_S = 600.0
MANAGED = (
    Path("/Library/Application Support/ClaudeCode/managed-settings.json")
    if sys.platform == "darwin"
    else Path("/etc/claude-code/managed-settings.json")
)
LAST_WITHOUT_ON_FAILURE = (2, 1, 240)
"""The last version that may ignore `onFailure`."""


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the settings, the servers and the version."""
    result = Findings()
    user, project = context.requests()
    shared = context.project / ".claude" / "settings.json"
    settings = {path: result.read(path, JSON) for path in (settings_of(user), shared, settings_of(project))}
    for path, plain in settings.items():
        groups = value_at(plain, EVENT)
        for number, _, handler in handlers(plain, EVENT):
            if is_ours(handler):
                result.hooks.append(_hook(context, path, groups[number], handler))
        if among(plain, ("permissions", "deny"), HOOK.shell_tool):
            result.shell_disabled_in.append(path)
        if isinstance(plain, dict) and plain.get("disableAllHooks"):
            result.checks.append(bad("hooks", f"{path} disables all hooks", "Remove disableAllHooks"))
    for path in (shared, settings_of(project)):
        given = findings.variables_set_in(settings[path])
        result.checks.extend(findings.variable_checks(path, given, TITLE, result.hooks))
    result.others.extend(_other_hooks(user, context.project, settings))
    result.checks.extend(findings.after_checks(result, [*settings.values()], HOOK.after_events, is_ours, _REINSTALL))
    managed = result.read(MANAGED, JSON)
    if managed.get("allowManagedHooksOnly"):
        result.checks.append(bad("hooks", f"{MANAGED} allows no hooks but its own", "Ask who manages this machine"))
    if result.hooks:
        result.checks.extend(_second_question(settings))
        result.checks.extend(_skills({**settings, MANAGED: managed}))
        SHELL.check(result, context, {**settings, MANAGED: managed})
        result.checks.extend(_sandbox({**settings, MANAGED: managed}, result.hooks))
    allowed = any(among(plain, ("permissions", "allow"), ALLOWED) for plain in settings.values())
    servers = result.read(servers_of(user), JSON)
    for path, place, plain in (
        (servers_of(user), server_path(user), servers),
        (servers_of(user), server_path(project), servers),
        (context.project / ".mcp.json", ("mcpServers", SERVER), result.read(context.project / ".mcp.json", JSON)),
    ):
        if isinstance(entry := value_at(plain, place), dict):
            result.servers.append(_server(path, entry, asks=not allowed))
    result.checks.extend(findings.context_checks(result, list(settings.values()), is_ours, TITLE, _REINSTALL))
    if version is not None and result.hooks and numbers(version) <= LAST_WITHOUT_ON_FAILURE:
        result.checks.append(
            note("version", f"Claude Code {version} may run a command whose hook fails", "Update Claude Code")
        )
    return result


REWRITING = (EVENT[1], QUESTION_EVENT[1])
"""The events whose hooks can give a call other arguments."""


def _other_hooks(user: InstallRequest, project: Path, settings: Mapping[Path, Any]) -> Iterator[OtherHook]:
    """Yield the other hooks in settings, plugins, agents and skills, of the user, of the project, and of this machine.

    Claude Code runs all of them at once, and the answer that comes last counts.
    """
    above, own = directory_of(user), project / ".claude"
    managed = [MANAGED, *files_in(MANAGED.with_suffix(".d"), ".json")]
    files = {**settings, **{path: other_hooks.read_or_nothing(path) for path in managed}}
    for directory in _plugins(above, list(files.values())):
        for name in ("hooks/hooks.json", ".claude-plugin/plugin.json"):
            files[directory / name] = other_hooks.read_or_nothing(directory / name)
    seen = sees_any((*SHELL_TOOLS, *HOOK.hooked_tools), _matches)
    for path, plain in files.items():
        yield from in_groups(path, plain, REWRITING, is_ours=is_ours, seen=seen, wins=other_hooks.IF_LATER)
    for directory in (above, own):
        texts = [*other_hooks.plugin_files(directory, "agents/**/*.md")]
        texts += other_hooks.plugin_files(directory, "skills/*/SKILL.md")
        texts += other_hooks.plugin_files(directory, "commands/**/*.md")
        yield from other_hooks.in_front_matter(texts, REWRITING)


def _plugins(directory: Path, settings: Sequence[Any]) -> list[Path]:
    """Return the directories of the installed plugins that no settings switch off."""
    installed = value_at(other_hooks.read_or_nothing(directory / "plugins" / "installed_plugins.json"), ("plugins",))
    states = [value for plain in settings if isinstance(value := value_at(plain, ("enabledPlugins",)), dict)]
    found: list[Path] = []
    for name, places in installed.items() if isinstance(installed, dict) else ():
        said = [state[name] for state in states if name in state]
        if said and not any(said):
            continue
        for place in places if isinstance(places, list) else [places]:
            path = place.get("installPath") if isinstance(place, dict) else None
            if isinstance(path, str) and path.startswith("/"):
                found.append(Path(path))
    return found


def _second_question(settings: Mapping[Path, Any]) -> list[Check]:
    """Check that the question of Claude Code about what was approved is answered."""
    asks = [handler for plain in settings.values() for _, _, handler in handlers(plain, QUESTION_EVENT)]
    if any(map(is_ours, asks)):
        return []
    sentence = "Claude Code asks a second time about some files, after you have approved an edit of them"
    return [note("question", sentence, _REINSTALL)]


def _skills(settings: dict[Path, Any]) -> list[Check]:
    """Check that Claude Code does not run the commands in skills and slash commands."""
    # If several files have the setting, the last one wins.
    said = {path: value for path, plain in settings.items() if (value := value_at(plain, NO_SKILL_SHELL)) is not None}
    path, value = next(reversed(said.items()), (None, None))
    if value is True:
        return []
    where = f": {path} sets disableSkillShellExecution to {str(value).lower()}" if path is not None else ""
    sentence = f"Claude Code runs the commands in skills and slash commands (!`command`) unsupervised{where}"
    return [bad("skills", sentence, _REINSTALL if path is None else "Set it to true, or remove it there")]


def _sandbox(settings: dict[Path, Any], hooks: list[FoundHook]) -> list[Check]:
    """Check that approved commands run outside of Claude Code's own sandbox, in which they fail."""
    sandboxed = [path for path, plain in settings.items() if value_at(plain, ("sandbox", "enabled")) is True]
    lists = (value_at(plain, UNSANDBOXED) for plain in settings.values())
    free = [word for words in lists if isinstance(words, list) for word in words if isinstance(word, str)]
    if not sandboxed or all("--agent-runs" in hook.words for hook in hooks) or any(map(is_approved, free)):
        return []
    sentence = f"{sandboxed[0]} switches the sandbox on, and in it every approved command fails"
    return [bad("sandbox", sentence, _REINSTALL)]


def _hook(context: DoctorContext, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    seen = partial(_matches, group.get("matcher"))
    problems = unseen_tools(path, seen, SHELL_TOOLS, HOOK.hooked_tools, _REINSTALL)
    if handler.get("async") or handler.get("if"):
        problems.append(bad("hook", f"{path} lets commands pass the hook (async or if)", _REINSTALL))
    if handler.get("onFailure") != "block":
        problems.append(note("hook", f"{path} lets a command run when the hook itself fails", _REINSTALL))
    timeout_s = seconds(handler.get("timeout")) or DEFAULT_TIMEOUT_S
    return FoundHook.of(HOOK, path, handler["command"], context, seen, timeout_s=timeout_s, problems=problems)


def _server(path: Path, entry: dict[str, Any], *, asks: bool) -> FoundServer:
    asks_again = f'Allow "{ALLOWED}" in its permissions' if asks else None
    return FoundServer.of(path, entry, seconds(entry.get("timeout"), 1000), asks_again)


_LEAVES_OUT = option_of("--bare", "--safe-mode", variables=("CLAUDE_CODE_SIMPLE",))
_SOURCES = "--setting-sources"


def _without_hook(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return what makes a command line load no hooks, or not those of the user's settings."""
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == _SOURCES:
            value = value or next(iter(words[at + 1 : at + 2]), "")
            if "user" not in value.split(","):
                return f"{_SOURCES} {value}"
    return _LEAVES_OUT(words, environ)


def _matches(matcher: Any, tool: str) -> bool:
    """True if a group's matcher, a regular expression for the whole name, matches a tool."""
    if matcher in (None, "", "*"):
        return True
    try:
        return isinstance(matcher, str) and re.fullmatch(matcher, tool) is not None
    except re.error:
        return False


_REINSTALL = "Run whisper-tui install claude"


_PERMISSION = re.compile(r"Bash(?:\((.*)\))?\Z", re.DOTALL)


def rules_in(text: str) -> ImportedRules:
    """Return the rules of a settings file. Raises `ValueError` if it has another format."""
    document = json.loads(text)
    permissions = document.get("permissions", {}) if isinstance(document, dict) else None
    if not isinstance(permissions, dict):
        raise ValueError("it holds no permissions")
    imported = ImportedRules()
    effects: tuple[Effect, ...] = ("deny", "ask", "allow")
    for effect in effects:
        for entry in map(str, permissions.get(effect, [])):
            meant = _ESCAPED.sub(r"\1", entry)
            _import_permission(effect, entry, meant, imported)
            # a person may have written the backslashes, so a rule that denies or asks holds in both readings
            if effect != "allow" and meant != entry:
                _import_permission(effect, entry, entry, imported)
    return imported


_ESCAPED = re.compile(r"\\([()\\])")
"""Claude Code escapes parentheses and backslashes in the rules that it writes."""


def _import_permission(effect: Effect, entry: str, meant: str, imported: ImportedRules) -> None:
    """Import a rule. `meant`: its text without escapes."""
    match = _PERMISSION.match(meant)
    if match is None:
        rule = _tool_rule(entry, meant)
        if rule is None:
            imported.left.append(f"{effect} {entry}: it is not about a supervised tool, or cannot be expressed")
        else:
            imported.take(effect, rule, f"{effect} {entry}")
        return
    inside = match[1]
    if inside is None or inside.strip() in {"", "*", ":*"}:
        imported.take(effect, Rule(name=entry, anything=True), f"{effect} {entry}")
        return
    rule = _rule(entry, inside)
    if rule is None:
        imported.left.append(f"{effect} {entry}: its prefix is not literal words")
        if effect != "allow":
            imported.uncertain.append(entry)
    else:
        imported.take(effect, rule, f"{effect} {entry}")


_TOOL = re.compile(r"(?P<tool>\w+?)(?:\((?P<inside>.*)\))?\Z", re.DOTALL)


def _tool_rule(entry: str, meant: str) -> Rule | None:
    """Return the rule for a permission that is not about the shell. None: no rule can express it."""
    if entry.startswith("mcp__"):
        server, _, tool = entry.removeprefix("mcp__").partition("__")
        return server_rule(entry, server, tool) if server and server != SERVER else None
    match = _TOOL.match(meant)
    if match is None:
        return None
    tool, inside = match["tool"], match["inside"]
    if tool in {"Edit", "Write", "MultiEdit", "NotebookEdit"}:
        return file_rule(entry, inside)
    if tool == "WebFetch":
        return host_rule(entry, None if inside is None else inside.removeprefix("domain:"))
    if tool in {"WebSearch", "Agent", "Task"} and inside is None:
        return Rule(name=entry, tool=WEB if tool == "WebSearch" else SUBAGENT, anything=True)
    return None


def _rule(entry: str, inside: str) -> Rule | None:
    for ending in (":*", " *"):
        if inside.endswith(ending) and "*" not in inside.removesuffix(ending):
            words = literal_words(inside.removesuffix(ending))
            return None if words is None else Rule(name=entry, prefix=words)
    if "*" in inside:
        return None if "?" in inside or "[" in inside else Rule(name=entry, pattern=inside)
    return Rule(name=entry, text=inside)


def own_rules_in(text: str) -> OwnRules:
    """Return the rules of a settings file that deny or ask. Raises `ValueError`."""
    return strictest_wins(rules_in(text)) if text.strip() else OwnRules()


def _own_rules(places: RuleDirectories) -> Iterator[RuleSource]:
    managed = Path("/etc/claude-code")
    users = (directory / "settings.json" for directory in places.users(".claude", "CLAUDE_CONFIG_DIR"))
    mine = (places.root / ".claude" / "settings.json", places.root / ".claude" / "settings.local.json")
    for path in (managed / "managed-settings.json", *files_in(managed / "managed-settings.d", ".json"), *users, *mine):
        yield RuleSource(path, own_rules_in)


def _shell(environment: Mapping[str, str]) -> str:
    # The gate is no shell of a call: it stands for one.
    named = (environment.get(name, "") for name in ("CLAUDE_CODE_SHELL", "SHELL"))
    return next(filter(None, map(shell_behind, named)), "")


def _shell_profile(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the snapshot that Claude Code has made of the user's functions and aliases: its shell reads it first."""
    text = words[2] if len(words) == 3 and words[1] == "-c" else ""
    home = environment.get("CLAUDE_CONFIG_DIR") or f"{environment.get('HOME', '')}/.claude"
    read = literal_words(text.partition(" 2>/dev/null")[0]) or ()
    found = read[1] if len(read) == 2 and read[0] == "source" else ""
    # No other file: a project could have Claude Code read one of its own.
    return found if found.startswith(f"{home.rstrip('/')}/shell-snapshots/snapshot-") and "/../" not in found else ""


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    without_hook=_without_hook,
    hook_timeout_s=DEFAULT_TIMEOUT_S,
    abilities=ALL_MEASURED,
    wait=WaitLimit(280.0, with_progress_s=LONG_WAIT_S, since=(2, 1, 329)),
    answer_budget=AnswerBudget(48 * 1024, in_bytes=True),
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    own_rules=_own_rules,
    shell=_shell,
    shell_profile=_shell_profile,
    directory_variables=("CLAUDE_CONFIG_DIR",),
    rule_formats=(RuleFormat("claude", TITLE, ".json", rules_in),),
)
