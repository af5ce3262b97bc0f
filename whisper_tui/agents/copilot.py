"""GitHub Copilot CLI, and VS Code's Copilot: its hook, its files, and the doctor's checks."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents import other_hooks
from whisper_tui.agents.agent_tools import Content, FunctionTool, PatchTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON,
    JSON_WITH_COMMENTS,
    SERVER,
    InstallPlan,
    InstallRequest,
    Shared,
    is_hook,
    split,
)
from whisper_tui.agents.file_entries import Element, FileEntry, Member, value_at
from whisper_tui.agents.findings import (
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    bad,
    human_note_checks,
    not_compared,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import (
    SESSION_EVENT,
    DoneCall,
    HookAnswer,
    HookFormat,
    HookRequest,
    longest_server,
    parsed,
    printed,
)
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.other_hooks import OtherHook, sees_any
from whisper_tui.agents.own_rules import (
    OwnRules,
    RuleDirectories,
    RuleSource,
    file_rule,
    host_rule,
    literal_words,
    server_rule,
    work_tree_around,
)
from whisper_tui.agents.probe import canaries_of, prove_hook
from whisper_tui.agents.profile import ALL_MEASURED, ClientProfile, ServerTable
from whisper_tui.model.call import Shell
from whisper_tui.policy.rules.rule import Rule

NAME = "copilot"
TITLE = KNOWN["copilot"].title
EVENT = ("hooks", "preToolUse")
BEFORE_TOOLS = ("preToolUse", "PreToolUse")
"""The event before a tool, and the name that other clients give it."""
AFTER_EVENT = ("hooks", "postToolUse")
RESULT = "toolResult"
"""The member of an input that only the event after a tool has."""
COMMAND_KEYS = ("bash", "command")
"""The keys of a handler under which its command line may stand."""
PATCH = "apply_patch"
BLANK = '{\n  "version": 1\n}\n'
DEFAULT_TIMEOUT_S = 30.0

NAMES = {
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "sessionId": "session_id",
    "agentType": "agent_type",
    "agentId": "agent_id",
}
"""Its names of members, and those of the other clients."""


class CopilotHook(HookFormat):
    """Copilot, as of version 1.0.102. What its hook allows, it does not ask about itself."""

    name = "copilot"
    shell_tool = "bash"
    event = "preToolUse"
    # Only under this name the event is named in its input.
    session_event = SESSION_EVENT
    after_events = frozenset({AFTER_EVENT[1]})
    # Its hooks have the root of the repository in a variable. That is too much for a workspace: nobody would be asked
    # about edits below it.
    server_separator = "-"
    names_servers = False
    asks_about_own_tools = True
    shows_what_runs = False
    tools: ClassVar[Mapping[str, Tool]] = {
        "create": WriteTool("path", "file_text"),
        "edit": ReplaceTool("path", "old_str", "new_str", every=""),
        # Models of OpenAI have this tool instead of the two above.
        PATCH: PatchTool("patch"),
        "task": FunctionTool("subagent", name="agent_type"),
        "web_fetch": FunctionTool("web", url="url"),
    }
    hooked_tools = ("create", "edit", PATCH, "task", "web_fetch", "server-tool")
    # `write_bash` is not among them: what it types into a running shell may be a command. Nor are `sql` and
    # `session_store_sql`: with SQL, files can be written.
    quiet_tools = frozenset(
        {
            "view", "glob", "grep", "rg", "read_bash", "list_bash", "stop_bash", "report_intent", "read_agent",
            "list_agents", "write_agent", "skill", "ask_user", "semantic_code_search",
            "fetch_copilot_cli_documentation",
        }
    )  # fmt: skip

    def read(self, content: Content) -> HookRequest | None:
        """Read an input."""
        found = super().read(_renamed(content))
        if found is None or not isinstance(found.command, Shell):
            return found
        given = found.tool_input
        return replace(found, background=given.get("mode") == "async" or given.get("detach") is True)

    def done(self, content: Content) -> DoneCall | None:
        """Return the call that is over. The input of this event does not name it, but has a result."""
        return super().done({**_renamed(content), "hook_event_name": AFTER_EVENT[1]}) if RESULT in content else None

    def after(self, event: str, note: str) -> HookAnswer:
        """Add a note to the result that the model reads."""
        return self.session_note(note)

    def server_of(self, tool: str, content: Content) -> tuple[str, str] | None:
        """Return the server with the longest name, of those that are configured, with which the tool's name begins."""
        return longest_server(tool, content.get("servers"), self.server_separator)

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the decision, with the whole arguments where they are others."""
        changed: object = arguments
        if arguments is not None and asked.tool == PATCH:
            changed = arguments["patch"]
        # The first name is Copilot's own. The second is Claude Code's, which the Copilot of VS Code takes as well.
        both = {} if arguments is None else {"modifiedArgs": changed, "updatedInput": changed}
        return printed({"permissionDecision": "allow", **both, **({"additionalContext": note} if note else {})})

    def deny(self, reason: str) -> HookAnswer:
        """Deny with a reason."""
        return printed({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def denial_in(self, answer: Content) -> str | None:
        """Return the reason of a denial."""
        denied = answer.get("permissionDecision") == "deny"
        return str(answer.get("permissionDecisionReason")) if denied else None

    def session_note(self, context: str) -> HookAnswer:
        """Tell the model something: outside of the object in which other clients expect it."""
        return printed({"additionalContext": context})

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        return {"sessionId": "whisper-tui-doctor", "cwd": cwd, "toolName": tool, "toolArgs": arguments}

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"create": {"path": path, "file_text": "canary\n"}, "web_fetch": {"url": url}}


def _renamed(content: Content) -> Content:
    """Return an input with the names of the other clients. Older versions send the arguments as a text."""
    named = {NAMES.get(key, key): value for key, value in content.items()}
    arguments = named.get("tool_input")
    if isinstance(arguments, str):
        # A patch is no JSON in any version.
        arguments = {"patch": arguments} if named.get("tool_name") == PATCH else parsed(arguments)
    return {**named, "tool_input": arguments}


HOOK = CopilotHook()
SHELLS = (HOOK.shell_tool, "write_bash")
# Only for commands: with all tools there is no matcher, because the names of servers' tools have no mark.
MATCHER_OF_COMMANDS = "|".join(SHELLS)


def is_ours(handler: object) -> bool:
    """True if a handler starts the hook of any installation."""
    return is_hook(_words(handler), NAME)


def _words(handler: object) -> list[str]:
    if not isinstance(handler, dict):
        return []
    return next((words for key in COMMAND_KEYS if (words := split(handler.get(key)))), [])


def home_of(request: InstallRequest) -> Path:
    """Return the user's directory of Copilot."""
    return Path(request.environ.get("COPILOT_HOME") or request.user_directory / ".copilot")


def hooks_of(request: InstallRequest) -> Path:
    """Return the directory with the hooks of the project or of the user."""
    return (home_of(request) if request.project is None else request.project / ".github") / "hooks"


def hook_file_of(request: InstallRequest) -> Path:
    """Return the file with our hook."""
    return hooks_of(request) / "whisper_tui.json"


def servers_file_of(request: InstallRequest) -> Path:
    """Return the file with the MCP servers of the project or of the user."""
    return home_of(request) / "mcp-config.json" if request.project is None else request.project / ".github" / "mcp.json"


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project."""
    files = [home_of(request) / "mcp-config.json"]
    if request.project is not None:
        above = work_tree_around(request.project) or request.project
        for directory in dict.fromkeys((request.project, above)):
            files += [directory / ".github" / "mcp.json", directory / ".mcp.json"]
    for path in files:
        yield ServerTable(path, JSON_WITH_COMMENTS, ("mcpServers",))


def hook_entry(request: InstallRequest) -> Element:
    """Return the entry of the hook."""
    handler = {
        "type": "command",
        "bash": request.launch.hook_text(NAME, agent_runs=request.agent_runs),
        # In seconds. After them Copilot runs the tool; the hook itself denies before (decision 17).
        "timeoutSec": DAY_S,
    }
    return Element(EVENT, handler if request.tools else {"matcher": MATCHER_OF_COMMANDS, **handler}, is_ours)


def after_entry(request: InstallRequest) -> Element:
    """Return the entry of the hook that compares what ran with what was approved."""
    handler = {"type": "command", "bash": request.launch.after_text(NAME), "timeoutSec": AFTER_TIMEOUT_S}
    return Element(AFTER_EVENT, handler if request.tools else {"matcher": MATCHER_OF_COMMANDS, **handler}, is_ours)


def context_entry(request: InstallRequest) -> Element:
    """Return the entry of the hook that tells the model about whisper_tui at the start of a session."""
    command = request.launch.hook_text(NAME, closed=False)
    handler = {"type": "command", "bash": command, "timeoutSec": int(DEFAULT_TIMEOUT_S)}
    return Element(("hooks", SESSION_EVENT), handler, is_ours)


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    value = {"type": "local", "command": command, "args": args, "tools": ["*"], "timeout": DAY_S * 1000}
    return Member(("mcpServers", SERVER), value)


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of Copilot with the content that they should have."""
    path = servers_file_of(request)
    behind, notes = wrapped_servers(request, GatewayTable(path, JSON_WITH_COMMENTS, ("mcpServers",)))
    entries: list[tuple[FileEntry, bool]] = [
        (server_entry(request), request.mcp),
        *((entry, request.gateway) for entry in behind),
    ]
    # The instructions of our MCP server do not reach its model, so the hook tells it in any case.
    hooks = [(entry, request.hook) for entry in (hook_entry(request), after_entry(request), context_entry(request))]
    files = [
        Shared.of(hook_file_of(request), JSON, hooks, blank=BLANK),
        Shared.of(path, JSON_WITH_COMMENTS, entries),
    ]
    if request.project is not None and (request.hook or request.mcp):
        notes.append("Copilot reads the hooks and servers of a project only if you trust its folder")
        notes.append("The files in .github name programs of this machine: keep them out of version control")
    return InstallPlan([*files], notes)


_REINSTALL = "Run whisper-tui install copilot"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the files with hooks, the settings and the servers."""
    result = Findings()
    requests = context.requests()
    answered = told = False
    for path in dict.fromkeys(path for request in requests for path in _files_with_hooks(request)):
        plain = result.read(path, JSON_WITH_COMMENTS)
        told = told or any(is_ours(handler) for _, _, handler in _handlers(plain, SESSION_EVENT))
        for _, matcher, handler in _handlers(plain, *BEFORE_TOOLS):
            if is_ours(handler):
                result.hooks.append(_found_hook(context, path, matcher, handler))
                answered = answered or _is_called(matcher, f"{SERVER}-wait")
        if value_at(plain, ("disableAllHooks",)) is True:
            result.checks.append(bad("hooks", f"{path} switches hooks off", "Remove disableAllHooks"))
    result.others.extend(_other_hooks(context))
    if result.hooks and not any(
        is_ours(handler)
        for path in dict.fromkeys(hook.path for hook in result.hooks)
        for _, _, handler in _handlers(result.read(path, JSON_WITH_COMMENTS), AFTER_EVENT[1])
    ):
        result.checks.append(not_compared(_REINSTALL))
    trusted = _trusts(context, result)
    if any(hook.path.is_relative_to(context.project / ".github") for hook in result.hooks) and not trusted:
        sentence = f"Copilot does not run the hooks of {context.project}, because you have not trusted its folder"
        result.checks.append(bad("trust", sentence, "Start copilot there and trust the folder"))
    for table in dict.fromkeys(server_tables(requests[1])):
        if isinstance(entry := value_at(result.read(table.file, table.opener), (*table.place, SERVER)), dict):
            result.servers.append(_server(table.file, entry, answered=answered))
    result.checks.extend(human_note_checks(result, TITLE, _REINSTALL, _REINSTALL, told=told, by_server=False))
    return result


def _files_with_hooks(request: InstallRequest) -> Iterator[Path]:
    """Yield every file in which Copilot looks for hooks."""
    yield from sorted(path for path in hooks_of(request).glob("*.json") if path.is_file())
    above = home_of(request) if request.project is None else request.project / ".github" / "copilot"
    for name in ("settings.json", "settings.local.json", "config.json"):
        yield above / name


def _handlers(plain: Any, *events: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the place, the matcher and the handler of every hook of these events: by itself, or in a group."""
    for name in events:
        listed = value_at(plain, ("hooks", name))
        for number, each in enumerate(listed if isinstance(listed, list) else ()):
            inner = each.get("hooks") if isinstance(each, dict) else None
            for handler in inner if isinstance(inner, list) else (each,):
                matcher = each.get("matcher") if isinstance(each, dict) else None
                yield f"hooks.{name}[{number}]", matcher, handler


def _other_hooks(context: DoctorContext) -> Iterator[OtherHook]:
    """Yield the other hooks of the user, of the project and of plugins.

    Copilot asks one after the other, and the last answer counts.
    """
    requests = context.requests()
    files = [path for request in requests for path in _files_with_hooks(request)]
    for pattern in ("installed-plugins/**/hooks.json", "installed-plugins/**/hooks/*.json"):
        files += other_hooks.plugin_files(home_of(requests[0]), pattern)
    seen = sees_any((*SHELLS, *HOOK.hooked_tools), _is_called)
    for path in dict.fromkeys(files):
        plain = other_hooks.read_or_nothing(path, JSON_WITH_COMMENTS)
        for place, matcher, handler in _handlers(plain, *BEFORE_TOOLS):
            if isinstance(handler, dict) and not is_ours(handler) and seen(matcher):
                command = next((said for key in COMMAND_KEYS if isinstance(said := handler.get(key), str)), "")
                yield OtherHook(path, place, command or str(handler.get("type") or "something"), other_hooks.IF_BEHIND)


def _trusts(context: DoctorContext, result: Findings) -> bool:
    """True if the user has trusted the project's folder, or one above."""
    path = home_of(context.requests()[0]) / "config.json"
    listed = value_at(result.read(path, JSON_WITH_COMMENTS), ("trustedFolders",))
    folders = {str(folder) for folder in (context.project, *context.project.parents)}
    return isinstance(listed, list) and any(isinstance(each, str) and each in folders for each in listed)


def _is_called(matcher: Any, tool: str) -> bool:
    """True if Copilot calls a hook with this matcher for a tool. The pattern has to match all of the name."""
    if matcher in (None, "*"):
        return True
    try:
        return isinstance(matcher, str) and re.fullmatch(matcher, tool) is not None
    except re.error:
        return False


def _found_hook(context: DoctorContext, path: Path, matcher: Any, handler: dict[str, Any]) -> FoundHook:
    seen = partial(_is_called, matcher)
    given = next((text for key in COMMAND_KEYS if isinstance(text := handler.get(key), str)), "")
    return FoundHook(
        path=path,
        words=_words(handler),
        timeout_s=seconds(handler.get("timeoutSec", handler.get("timeout"))) or DEFAULT_TIMEOUT_S,
        problems=unseen_tools(path, seen, SHELLS, HOOK.hooked_tools, _REINSTALL),
        proves=canaries_of(HOOK, seen),
        prove=partial(prove_hook, HOOK, given, context.environ, context.canary_s, seen),
    )


def _server(path: Path, entry: dict[str, Any], *, answered: bool) -> FoundServer:
    # The hook answers for these tools: their calls wait in the queue themselves.
    asks_again = None if answered else f"{_REINSTALL} without --no-hook and --commands-only: its hook answers"
    return FoundServer.of(path, entry, seconds(entry.get("timeout"), 1000), asks_again)


def own_rules_in_options(text: str) -> OwnRules:
    """Return what the options of a command line deny. `text`: its words, with a NUL after each."""
    found = OwnRules()
    option = ""
    for word in text.split("\0"):
        if word == "--":
            break
        if word.startswith("-"):
            # Without "=" all words up to the next option are its values.
            option, _, value = word.partition("=")
        else:
            value = word
        if value and option in DENYING:
            for pattern in _LIST.split(value):
                _deny(found, option, pattern.strip())
    return found


DENYING = ("--deny-tool", "--deny-url")
_LIST = re.compile(r",(?![^(]*\))")
_PATTERN = re.compile(r"([^()]+)(?:\((.*)\))?", re.DOTALL)


def _deny(found: OwnRules, option: str, pattern: str) -> None:
    name = f"{option}={pattern}"
    read = _PATTERN.fullmatch(pattern if option == "--deny-tool" else f"url({pattern})")
    if read is None:
        found.asks_all.append(name)
        return
    kind, inside = read[1].strip(), (read[2] or "").strip()
    rule: Rule | None
    match kind:
        case "shell" if not inside:
            rule = Rule(name=name, anything=True)
        case "shell":
            # More than Copilot denies: there a command without `:*` has to be the same, apart from its arguments.
            words = literal_words(inside.removesuffix(":*"))
            rule = Rule(name=name, prefix=words) if words else None
        case "write":
            # A path is absolute, or the end of one.
            start = "/" if inside.startswith("/") else "**/" if inside else ""
            rule = file_rule(name, f"{start}{inside}")
        case "url":
            # The scheme, the port and the path say which of a host's addresses: all of them are denied.
            rule = host_rule(name, re.sub(r"\A[a-z]+://", "", inside).partition("/")[0].partition(":")[0])
        case _:
            rule = server_rule(name, kind, inside)
    if rule is None:
        found.asks_all.append(name)
    else:
        found.deny.append(rule)


def _own_rules(places: RuleDirectories) -> Iterator[RuleSource]:
    # It has none in files.
    if places.process is not None:
        yield RuleSource(places.process / "cmdline", own_rules_in_options)


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    hook_timeout_s=DEFAULT_TIMEOUT_S,
    abilities=ALL_MEASURED,
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    own_rules=_own_rules,
    directory_variables=("COPILOT_HOME",),
)
