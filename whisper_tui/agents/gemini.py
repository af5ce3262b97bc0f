"""Gemini CLI: its hooks, its files, its rules, and the doctor's checks."""

import json
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents import findings, other_hooks
from whisper_tui.agents.agent_tools import Content, FunctionTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON_WITH_COMMENTS,
    SERVER,
    InstallPlan,
    InstallRequest,
    Own,
    Shared,
    is_our_hook,
)
from whisper_tui.agents.documents import read_json
from whisper_tui.agents.file_entries import FileEntry, Handler, Member, handlers, value_at
from whisper_tui.agents.findings import (
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    among,
    bad,
    is_found_by,
    note,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, not_wrapped, wrapped_servers
from whisper_tui.agents.hook_formats import SESSION_EVENT, DecisionFormat, HookAnswer, HookRequest, printed
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.other_hooks import OtherHook, in_groups, sees_any
from whisper_tui.agents.own_rules import (
    ImportedRules,
    OrderedRule,
    OwnRules,
    RuleDirectories,
    RuleSource,
    files_in,
    last_match_wins,
    literal_words,
    server_rule,
    strictest_wins,
)
from whisper_tui.agents.profile import ALL_MEASURED, AnswerBudget, ClientProfile, RuleFormat, ServerTable, WaitLimit
from whisper_tui.policy.rules.rule import EDIT, SUBAGENT, WEB, Effect, Rule
from whisper_tui.policy.rules.rules_toml import allowances, denials

NAME = "gemini"
TITLE = KNOWN["gemini"].title
EVENT = ("hooks", "BeforeTool")
AFTER_EVENT = ("hooks", "AfterTool")
"""The only event whose hook can send the model a note: it ignores the notes of `BeforeTool`."""
CONTEXT_TIMEOUT_S = 60

is_ours = partial(is_our_hook, NAME)
"""True if a handler in the settings starts our hook."""


MARKED = ("replace", "write_file", "web_fetch")
"""The tools about which Gemini CLI asks even if a hook allows them."""
MARK_OF_APPROVAL = {"whisper_tui": "approved"}


class GeminiHook(DecisionFormat):
    """Gemini CLI. It tells its model about a changed command itself, and accepts a note only after the tool."""

    name = "gemini-cli"
    shell_tool = "run_shell_command"
    root_variable = "GEMINI_PROJECT_DIR"
    event = "BeforeTool"
    after_events = frozenset({AFTER_EVENT[1]})
    explains_after = True
    session_event = SESSION_EVENT
    background_key = "is_background"
    directory_keys = ("dir_path", "directory")
    server_prefix = "mcp_"
    server_separator = "_"
    tools: ClassVar[Mapping[str, Tool]] = {
        "replace": ReplaceTool(
            "file_path", "old_string", "new_string", "allow_multiple", counted="expected_replacements"
        ),
        "write_file": WriteTool("file_path", "content"),
        "web_fetch": FunctionTool("web", url="url", prompt="prompt"),
        "google_web_search": FunctionTool("web"),
        "invoke_agent": FunctionTool("subagent", name="agent_name"),
    }
    hooked_tools = (
        "replace", "write_file", "web_fetch", "google_web_search", "invoke_agent", "mcp_server_tool"
    )  # fmt: skip
    quiet_tools = frozenset(
        {
            "read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content",
            "activate_skill", "write_todos", "ask_user", "enter_plan_mode", "exit_plan_mode", "get_internal_docs",
        }
    )  # fmt: skip

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the decision, with the whole input where it is another one. A note has to wait for `after`."""
        if asked.tool in MARKED:
            # Gemini CLI asks once more, unless a policy allows it. The policy is about calls with this mark alone.
            arguments = {**(asked.tool_input if arguments is None else arguments), **MARK_OF_APPROVAL}
        changed = {} if arguments is None else {"hookSpecificOutput": {"tool_input": arguments}}
        return printed({"decision": "allow", **changed})

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {**super().call(tool, arguments, cwd, call_id), "hook_event_name": self.event, "timestamp": stamp}

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"write_file": {"file_path": path, "content": "canary\n"}, "web_fetch": {"prompt": f"look at {url}"}}

    def after(self, event: str, note: str) -> HookAnswer:
        """Add a note to the result that the model reads."""
        return printed({"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}})


HOOK = GeminiHook()
SHELL_TOOL = HOOK.shell_tool
# Anchored: Gemini CLI searches the names of MCP tools too, and one of ours has the name of its shell tool.
MATCHER_OF_COMMANDS = f"^{SHELL_TOOL}$"
# The calls of our own tools wait in the queue themselves: a hook for them would only cost time.
MATCHER = f"^({'|'.join((SHELL_TOOL, *HOOK.hooked_tools[:-1]))}|mcp_(?!{SERVER}_).*)$"
MARK = "# Written by whisper-tui install gemini"


def settings_of(request: InstallRequest) -> Path:
    """Return the settings of the project or of the user."""
    return (request.project or home_of(request)) / ".gemini" / "settings.json"


def policy_of(request: InstallRequest) -> Path:
    """Return the path of our policy."""
    # The user's policy, even for a project, because Gemini CLI does not read policies of projects.
    return home_of(request) / ".gemini" / "policies" / "whisper_tui.toml"


def home_of(request: InstallRequest) -> Path:
    """Return the parent of the user's `.gemini`."""
    return Path(request.environ.get("GEMINI_CLI_HOME") or request.user_directory)


def hook_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that asks."""
    matcher = MATCHER if request.tools else MATCHER_OF_COMMANDS
    return _hook(EVENT, DAY_S, matcher, request.launch.hook_text(NAME, agent_runs=request.agent_runs))


def after_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that compares what ran, and tells the model how its command was changed."""
    matcher = MATCHER if request.tools else MATCHER_OF_COMMANDS
    return _hook(AFTER_EVENT, AFTER_TIMEOUT_S, matcher, request.launch.after_text(NAME))


def context_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that tells the model about whisper_tui at the start of a session."""
    command = request.launch.hook_text(NAME, agent_runs=request.agent_runs, closed=False)
    return _hook(("hooks", SESSION_EVENT), CONTEXT_TIMEOUT_S, "", command)


def _hook(event: tuple[str, str], timeout_s: int, matcher: str, command: str) -> Handler:
    milliseconds = timeout_s * 1000
    handler = {"name": "whisper_tui", "type": "command", "command": command, "timeout": milliseconds}
    return Handler(event, {**({"matcher": matcher} if matcher else {}), "hooks": [handler]}, is_ours)


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project."""
    for directory in dict.fromkeys((home_of(request), request.project or home_of(request))):
        yield ServerTable(directory / ".gemini" / "settings.json", JSON_WITH_COMMENTS, ("mcpServers",))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    # `trust`: Gemini CLI does not ask a second time about each call.
    value = {"command": command, "args": args, "timeout": DAY_S * 1000, "trust": True}
    return Member(("mcpServers", SERVER), value)


def policy_text(request: InstallRequest) -> str:
    """Return the policy that allows approved calls, and no others, without another question."""
    rules = (
        [f'toolName = "{SHELL_TOOL}"\ncommandPrefix = {json.dumps(request.launch.exec())}\n'] if _runs(request) else []
    )
    if request.hook and request.tools:
        mark = json.dumps(json.dumps(MARK_OF_APPROVAL, separators=(",", ":")).strip("{}"))
        rules.append(f"toolName = {json.dumps(list(MARKED))}\nargsPattern = {mark}\n")
    texts = (f'[[rule]]\n{rule}decision = "allow"\npriority = 900\n' for rule in rules)
    return f"{MARK}: what was approved in whisper_tui is not asked about again.\n" + "\n".join(texts)


def _runs(request: InstallRequest) -> bool:
    """True if whisper_tui runs the approved commands."""
    return request.hook and not request.agent_runs


def _gateway_table(path: Path) -> GatewayTable:
    # A project that defines a server of the same name replaces the whole entry, and so the trust in it.
    return GatewayTable(path, JSON_WITH_COMMENTS, ("mcpServers",), unasked={"trust": True})


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of Gemini CLI with the content that they should have."""
    behind, notes = wrapped_servers(request, _gateway_table(settings_of(request)))
    rewrites = _runs(request)
    entries: list[tuple[FileEntry, bool]] = [
        (hook_entry(request), request.hook),
        (after_entry(request), request.hook),
        (context_entry(request), request.tells_model),
        (server_entry(request), request.mcp),
        *((entry, request.gateway) for entry in behind),
    ]
    settings = Shared.of(settings_of(request), JSON_WITH_COMMENTS, entries)
    policy = Own(
        policy_of(request), MARK, policy_text(request) if rewrites or (request.hook and request.tools) else None
    )
    if request.hook and request.agent_runs:
        notes.append("Gemini CLI will ask about each approved command itself, because the agent runs it")
    if request.project is not None and (request.hook or request.mcp):
        notes.append("Gemini CLI reads a project's settings only if its folder is trusted (/permissions)")
    return InstallPlan([settings, policy], notes)


DEFAULT_TIMEOUT_S = 60.0
_REINSTALL = "Run whisper-tui install gemini"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the settings and the policy."""
    result = Findings()
    user, project = context.requests()
    settings = {path: result.read(path, JSON_WITH_COMMENTS) for path in (settings_of(user), settings_of(project))}
    for path, plain in settings.items():
        groups = value_at(plain, EVENT)
        for group, _, handler in handlers(plain, EVENT):
            if is_ours(handler):
                result.hooks.append(_found_hook(context, path, groups[group], handler))
        if value_at(plain, ("hooksConfig", "enabled")) is False:
            result.checks.append(bad("hooks", f"{path} switches all hooks off", "Remove hooksConfig.enabled"))
        _look_for_disabled(path, plain, result)
        if among(plain, ("tools", "exclude"), SHELL_TOOL) or among(plain, ("excludeTools",), SHELL_TOOL):
            result.shell_disabled_in.append(path)
        if result.hooks and (named := not_wrapped(_gateway_table(path), plain)):
            sentence = f"Gemini CLI asks a second time about each call of the tools of {', '.join(named)}"
            result.checks.append(note("servers", sentence, f"{_REINSTALL} --gateway, if it starts these servers"))
        if isinstance(entry := value_at(plain, ("mcpServers", SERVER)), dict):
            result.servers.append(_server(path, entry))
    result.others.extend(_other_hooks(context, settings))
    result.checks.extend(findings.after_checks(result, [*settings.values()], HOOK.after_events, is_ours, _REINSTALL))
    for path, names in findings.dotenv_files(context.project):
        result.checks.extend(findings.variable_checks(path, names, TITLE, result.hooks))
    result.checks.extend(findings.context_checks(result, list(settings.values()), is_ours, TITLE, _REINSTALL))
    rewriting = [hook for hook in result.hooks if "--agent-runs" not in hook.words]
    if result.hooks:
        sentence = "Gemini CLI runs no hooks when an editor starts it (--acp): nothing is supervised then"
        result.checks.append(note("acp", sentence, "Start it in a terminal"))
    if rewriting and not policy_of(user).exists():
        result.checks.append(note("policy", "Gemini CLI asks again about approved commands", _REINSTALL))
    return result


SYSTEM = tuple(Path("/etc/gemini-cli") / name for name in ("system-defaults.json", "settings.json"))
"""The settings of this machine."""


def _other_hooks(context: DoctorContext, settings: Mapping[Path, Any]) -> Iterator[OtherHook]:
    """Yield the other hooks of the user, of the project, of extensions and of this machine.

    Gemini CLI asks one after the other, and each gets what the one before has answered.
    """
    user, project = context.requests()
    files = {**settings, **{path: other_hooks.read_or_nothing(path, JSON_WITH_COMMENTS) for path in SYSTEM}}
    for request in (user, project):
        for path in other_hooks.plugin_files(settings_of(request).parent / "extensions", "*/hooks/hooks.json"):
            files[path] = other_hooks.read_or_nothing(path, JSON_WITH_COMMENTS)
    seen = sees_any((SHELL_TOOL, *HOOK.hooked_tools), is_found_by)
    for path, plain in files.items():
        yield from in_groups(path, plain, EVENT[1:], is_ours=is_ours, seen=seen, wins=other_hooks.IF_BEHIND)


def _look_for_disabled(path: Path, plain: Any, result: Findings) -> None:
    disabled = value_at(plain, ("hooksConfig", "disabled"))
    if isinstance(disabled, list) and any(word == "whisper_tui" or is_ours({"command": word}) for word in disabled):
        result.checks.append(bad("hooks", f"{path} switches the hook off", "Remove it from hooksConfig.disabled"))


def _found_hook(context: DoctorContext, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    seen = partial(is_found_by, group.get("matcher"))
    problems = unseen_tools(path, seen, (SHELL_TOOL,), HOOK.hooked_tools, _REINSTALL)
    timeout_s = seconds(handler.get("timeout"), 1000) or DEFAULT_TIMEOUT_S
    return FoundHook.of(HOOK, path, handler["command"], context, seen, timeout_s=timeout_s, problems=problems)


def _server(path: Path, entry: dict[str, Any]) -> FoundServer:
    asks_again = None if entry.get("trust") is True else 'Set "trust": true in its entry'
    return FoundServer.of(path, entry, seconds(entry.get("timeout"), 1000), asks_again)


_EFFECTS: dict[str, Effect] = {"allow": "allow", "ask_user": "ask", "deny": "deny"}
_UNDERSTOOD = frozenset(
    {"toolName", "commandPrefix", "decision", "priority", "allowRedirection", "allow_redirection", "name"}
) | {"description"}
"""The keys of a rule that can be imported."""


def policy_rules_in(text: str) -> ImportedRules:
    """Return the rules of a policy file. Raises `ValueError` if it has another format."""
    document = tomllib.loads(text)
    rules = document.get("rule")
    if not isinstance(rules, list):
        raise ValueError("it holds no [[rule]]")
    imported = ImportedRules()
    for number, rule in enumerate(rules, start=1):
        _import_policy(number, rule if isinstance(rule, Mapping) else {}, imported)
    return imported


def _import_policy(number: int, rule: Mapping[str, Any], imported: ImportedRules) -> None:
    source = f"rule {number}"
    effect = _EFFECTS.get(str(rule.get("decision")))
    tools = rule.get("toolName")
    tools = tools if isinstance(tools, list) else [tools]
    rules = [] if effect is None else _tool_rules(rule)
    for each in rules:
        imported.take(effect or "ask", each, source)
    if rules and SHELL_TOOL not in tools:
        return
    if effect is None or SHELL_TOOL not in tools:
        imported.left.append(f"{source}: it is not about {SHELL_TOOL}")
        return
    extra = sorted(set(rule) - _UNDERSTOOD)
    if extra:
        imported.left.append(f"{source}: {', '.join(extra)} cannot be imported")
        return
    prefixes = rule.get("commandPrefix")
    if prefixes is None:
        imported.take(effect, Rule(name=f"every {SHELL_TOOL}", anything=True, tool=SHELL_TOOL), source)
        return
    redirections = effect == "allow" and bool(rule.get("allowRedirection", rule.get("allow_redirection", False)))
    for prefix in prefixes if isinstance(prefixes, list) else [prefixes]:
        words = literal_words(str(prefix))
        if words is None:
            imported.left.append(f"{source}: {prefix!r} is not a literal prefix of a command")
        else:
            imported.take(
                effect, Rule(name=str(prefix), prefix=words, tool=SHELL_TOOL, redirections=redirections), source
            )


_KINDS = {"write_file": EDIT, "replace": EDIT, "web_fetch": WEB, "google_web_search": WEB, "invoke_agent": SUBAGENT}


def _tool_rules(rule: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for the tools beside the shell that a rule of a policy names."""
    named = rule.get("toolName")
    tools = [str(tool) for tool in (named if isinstance(named, list) else [named]) if tool is not None]
    # A rule with a condition that no rule here can have is about fewer calls; only a stricter one may be about more.
    if set(rule) - _UNDERSTOOD - {"denyMessage", "deny_message", "mcpName"} and rule.get("decision") == "allow":
        return []
    if server := rule.get("mcpName"):
        return [server_rule(f"{server}: {tool}", str(server), tool) for tool in tools or ["*"]]
    kinds = dict.fromkeys(_KINDS[tool] for tool in tools if tool in _KINDS)
    return [Rule(name=f"every {kind}", tool=kind, anything=True) for kind in kinds]


_LISTS = ("coreTools", "excludeTools")


def holds_lists(text: str) -> bool:
    """True if a JSON text has one of the lists of tools."""
    try:
        return any(_list(json.loads(text), name) for name in _LISTS)
    except ValueError:
        return False


def list_rules_in(text: str) -> ImportedRules:
    """Return the rules that the lists of tools express. Raises `ValueError` if the text has no such list."""
    document = json.loads(text)
    found = {name: _list(document, name) for name in _LISTS}
    if not any(found.values()):
        raise ValueError("it holds neither coreTools nor excludeTools")
    imported = ImportedRules()
    for rule in denials(found["excludeTools"], imported.left):
        imported.take("deny", rule, rule.name)
    for entry in found["coreTools"]:
        problems: list[str] = []
        rules = allowances((entry,), problems)
        imported.left += problems
        if not rules and not problems:
            imported.left.append(f"coreTools: {entry}: it only enables the tool, and allows nothing")
        for rule in rules:
            imported.take("allow", rule, rule.name)
    return imported


def _list(document: Any, name: str) -> list[str]:
    """The entries of a list, which may have its newer name `tools.core` or `tools.exclude`."""
    if not isinstance(document, dict):
        return []
    tools = document.get("tools")
    newer = tools.get(name.removesuffix("Tools")) if isinstance(tools, dict) else None
    found = document.get(name, newer)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def own_rules_in_policy(text: str) -> OwnRules:
    """Return the rules of a policy that deny or ask. Raises `ValueError`."""
    rules = tomllib.loads(text).get("rule", [])
    shell = [rule for rule in rules if isinstance(rule, Mapping) and _is_about_shell(rule)]
    # The rule with the highest priority wins.
    found = last_match_wins([entry for rule in sorted(shell, key=_priority) for entry in _ordered_rules(rule)])
    for rule in (each for each in rules if isinstance(each, Mapping)):
        effect = _EFFECTS.get(str(rule.get("decision")))
        if effect in {"deny", "ask"}:
            (found.deny if effect == "deny" else found.ask).extend(_tool_rules(rule))
    return found


def own_rules_in_lists(text: str) -> OwnRules:
    """Return the denying and asking rules of the tool lists in settings without comments. Raises `ValueError`."""
    return strictest_wins(list_rules_in(text)) if holds_lists(text) else OwnRules()


def _own_rules_in_settings(text: str) -> OwnRules:
    plain = read_json(text, comments=True).value if text.strip() else {}
    return own_rules_in_lists(json.dumps(plain))


def _is_about_shell(rule: Mapping[str, Any]) -> bool:
    tools = rule.get("toolName")
    named = tools if isinstance(tools, list) else [tools]
    return (SHELL_TOOL in named or "*" in named or tools is None) and "mcpName" not in rule


def _priority(rule: Mapping[str, Any]) -> float:
    priority = rule.get("priority", 0)
    return float(priority) if isinstance(priority, int | float) else 0.0


def _ordered_rules(rule: Mapping[str, Any]) -> Iterable[OrderedRule]:
    effect = _EFFECTS.get(str(rule.get("decision")))
    if effect is None:
        return
    special = set(rule) - _UNDERSTOOD - {"denyMessage", "deny_message"}
    prefixes = rule.get("commandPrefix")
    if special or prefixes is None:
        yield OrderedRule(effect, None if special else "*", None)
        return
    for prefix in prefixes if isinstance(prefixes, list) else [prefixes]:
        words = literal_words(str(prefix))
        yield OrderedRule(effect, f"{prefix}*", Rule(name=str(prefix), prefix=words) if words else None)


def _own_rules(places: RuleDirectories) -> Iterator[RuleSource]:
    layers = (Path("/etc/gemini-cli"), *(home / ".gemini" for home in places.users("", "GEMINI_CLI_HOME")))
    for layer in layers:
        for path in files_in(layer / "policies", ".toml"):
            yield RuleSource(path, own_rules_in_policy)
    for layer in (*layers, places.root / ".gemini"):
        yield RuleSource(layer / "settings.json", _own_rules_in_settings)


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    hook_timeout_s=DEFAULT_TIMEOUT_S,
    abilities=ALL_MEASURED,
    wait=WaitLimit(570.0),
    answer_budget=AnswerBudget(39_000),
    # Gemini CLI adds this key to the schema of every tool that it shows its model, and passes it on.
    added_keys=frozenset({"wait_for_previous"}),
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    own_rules=_own_rules,
    directory_variables=("GEMINI_CLI_HOME",),
    rule_formats=(
        RuleFormat("gemini", TITLE, ".toml", policy_rules_in),
        RuleFormat("lists", "tool lists", ".json", list_rules_in, recognizes=holds_lists),
    ),
)
