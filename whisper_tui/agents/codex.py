"""Codex: its profile, its files, and the requests to its app server."""

import ast
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import tomlkit

from whisper_tui.agents import other_hooks
from whisper_tui.agents.agent_tools import Content, FunctionTool, PatchTool, Tool, patch_of
from whisper_tui.agents.client_files import (
    AFTER_TIMEOUT_S,
    DAY_S,
    JSON,
    SERVER,
    TOML,
    InstallPlan,
    InstallRequest,
    Opener,
    Own,
    Shared,
    is_our_hook,
    opened,
    plain_of,
    read_file,
    shape_error,
)
from whisper_tui.agents.codex_programs import (
    ListedHook,
    NoAnswer,
    check_request,
    check_servers,
    environment_entries,
    examine_environment,
    hooks_of,
    is_supported,
    isolated_configuration,
    login_shell,
    trust_check,
)
from whisper_tui.agents.file_entries import FileEntry, Handler, Key, Member, WrongShape, handlers, value_at
from whisper_tui.agents.findings import (
    Check,
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
from whisper_tui.agents.hook_formats import SESSION_EVENT, ClaudeFormat, HookAnswer, HookRequest
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.other_hooks import OtherHook, in_groups, sees_any
from whisper_tui.agents.own_rules import ImportedRules, OwnRules, RuleDirectories, RuleSource, files_in, strictest_wins
from whisper_tui.agents.probe import program_of, version_of
from whisper_tui.agents.profile import NO_WEB, AnswerBudget, ClientProfile, RuleFormat, ServerTable, WaitLimit
from whisper_tui.policy.rules.rule import Effect, Rule

NAME = "codex"
is_ours = partial(is_our_hook, NAME)
"""True if a handler in the settings starts our hook."""
TITLE = KNOWN["codex"].title
EVENT = ("hooks", "PreToolUse")
QUESTION_EVENT = ("hooks", "PermissionRequest")
"""The event before Codex asks its user, whatever the hook before the call has answered."""
START_EVENT = ("hooks", SESSION_EVENT)
AFTER_EVENT = ("hooks", "PostToolUse")
_EVENT_NAMES: dict[tuple[Key, ...], str] = {
    EVENT: "pre_tool_use",
    QUESTION_EVENT: "permission_request",
    START_EVENT: "session_start",
    AFTER_EVENT: "post_tool_use",
}
_ASKING = (EVENT, QUESTION_EVENT)
"""The events whose hooks ask the human: an installation without their trust is none."""
_OURS = tuple(Handler(event, {}, is_ours) for event in _EVENT_NAMES)
STATE = ("hooks", "state")
"""The table of trusted hooks; those of a project are in the user's configuration, too."""
MARK = "# Written by whisper-tui install codex"
UNTRUSTED = (
    "The hook stays untrusted, and Codex silently skips it, until you trust it with /hooks in Codex, "
    "or until you run whisper-tui install codex again"
)


SPAWN = "spawn_agent"
OFFER = (
    "This version of Codex can leave all commands, typed input and edits to whisper_tui, and runs nothing without it: "
    "whisper-tui install codex --executor"
)


class CodexHook(ClaudeFormat):
    """Codex. Its hooks call every shell tool of its model Bash."""

    name = "codex"
    shell_tool = "Bash"
    tools: ClassVar[Mapping[str, Tool]] = {"apply_patch": PatchTool("command")}
    hooked_tools = ("apply_patch", SPAWN, "mcp__server__tool")
    quiet_tools = frozenset({"view_image", "update_plan"})
    question_event = QUESTION_EVENT[1]
    session_event = SESSION_EVENT
    after_events = frozenset({AFTER_EVENT[1]})

    def subject(self, tool: str, tool_input: Content) -> object:
        """Return the command or patch alone: in its question, Codex adds a description."""
        return tool_input.get("command") if tool in {self.shell_tool, *self.tools} else tool_input

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a patch with a new file."""
        return {"apply_patch": {"command": patch_of([(path, None, "canary\n")])}}

    def tool_of(self, name: str) -> Tool | None:
        """Return the kind of a tool. Those for sub-agents have the name of their group before their own."""
        return FunctionTool("subagent", name="task_name") if name.endswith(SPAWN) else super().tool_of(name)

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the decision, always with the whole input, without which Codex takes none."""
        return super().allow(asked, asked.tool_input if arguments is None else arguments, note)

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        return {**super().call(tool, arguments, cwd, call_id), "turn_id": call_id, "model": "doctor"}


HOOK = CodexHook()
MATCHER_OF_COMMANDS = f"^{HOOK.shell_tool}$"
MATCHER_OF_CALLS = f"^(.*{SPAWN}|mcp__.*)$"
"""For Codex in our environment, which asks about commands and edits itself."""
MATCHER = f"^({HOOK.shell_tool}|apply_patch|.*{SPAWN}|mcp__.*)$"


def directory_of(request: InstallRequest) -> Path:
    """Return the user's directory of Codex."""
    return Path(request.environ.get("CODEX_HOME") or request.user_directory / ".codex")


def environments_file(request: InstallRequest) -> Path:
    """Return the file that names the programs to which Codex leaves its commands and files."""
    return directory_of(request) / "environments.toml"


def layer_of(request: InstallRequest) -> Path:
    """Return the directory of the configuration: the project's or the user's."""
    return directory_of(request) if request.project is None else request.project / ".codex"


def hooks_file(request: InstallRequest) -> tuple[Path, Opener]:
    """Return the file of the hooks and its format."""
    # All hooks have to be in one file: Codex warns if there are two.
    layer = layer_of(request)
    configured = plain_of(layer / "config.toml", TOML).get("hooks")
    if isinstance(configured, dict) and set(configured) - {"state"} and not (layer / "hooks.json").exists():
        return layer / "config.toml", TOML
    return layer / "hooks.json", JSON


def hook_entries(request: InstallRequest) -> list[Handler]:
    """Return the entries of the hook: before each call, before Codex asks about a call itself, and after the call."""
    command = partial(request.launch.hook_text, NAME, agent_runs=request.agent_runs)
    waits = {"type": "command", "command": command(), "timeout": DAY_S, "statusMessage": "waiting in whisper_tui"}
    # If it fails, Codex asks.
    answers = {"type": "command", "command": command(closed=False), "timeout": 60}
    matcher = MATCHER_OF_CALLS if request.executor else MATCHER if request.tools else MATCHER_OF_COMMANDS
    compares = {"type": "command", "command": request.launch.after_text(NAME), "timeout": AFTER_TIMEOUT_S}
    groups = {EVENT: waits, QUESTION_EVENT: answers, AFTER_EVENT: compares}
    return [Handler(event, {"matcher": matcher, "hooks": [one]}, is_ours) for event, one in groups.items()]


def context_entry(request: InstallRequest) -> Handler:
    """Return the entry of the hook that tells the model about whisper_tui at the start of a session."""
    handler = {"type": "command", "command": request.launch.hook_text(NAME, closed=False), "timeout": 60}
    return Handler(START_EVENT, {"hooks": [handler]}, is_ours)


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project."""
    for layer in dict.fromkeys((directory_of(request), layer_of(request))):
        yield ServerTable(layer / "config.toml", TOML, ("mcp_servers",))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command, *args = request.launch.server(own_shell=request.hook)
    value = {
        "command": command,
        "args": args,
        # The first turn waits for the tools.
        "required": True,
        "startup_timeout_sec": 30,
        "tool_timeout_sec": DAY_S,
        "default_tools_approval_mode": "approve",
    }
    return Member(("mcp_servers", SERVER), value)


def key_of(path: Path, event: tuple[Key, ...], place: tuple[int, int]) -> str:
    """Return the key by which Codex identifies a hook: its resolved file, its event and its indexes there."""
    return f"{os.path.realpath(path)}:{_EVENT_NAMES[event]}:{place[0]}:{place[1]}"


def _ending(key: str) -> str:
    return ":".join(key.rsplit(":", 3)[1:])


def rules_text(request: InstallRequest) -> str:
    """Return the rule that lets approved commands run outside of Codex's sandbox."""
    # Inside the sandbox, `exec` could not reach the supervisor. Only its command line is allowed (decision 20).
    pattern = json.dumps([*request.launch.program, "exec"])
    return (
        f"{MARK}: whisper_tui runs approved commands itself, outside of the sandbox of Codex.\n"
        f'prefix_rule(pattern={pattern}, decision="allow")\n'
    )


def gateway_tables(request: InstallRequest) -> list[GatewayTable]:
    """Return the place of the MCP servers that `install` may change."""
    path = layer_of(request) / "config.toml"
    unasked = {"default_tools_approval_mode": "approve"}
    return [GatewayTable(path, TOML, ("mcp_servers",), timeout="tool_timeout_sec", per_second=1, unasked=unasked)]


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of Codex with the content that they should have."""
    program = program_of(NAME, request.environ)
    version = version_of(program, request.environ) if program else None
    unavailable: list[str] = []
    if request.executor:
        check_request(request, version)
        configuration = plain_of(directory_of(request) / "config.toml", TOML)
        unavailable = check_servers(directory_of(request) / "config.toml", configuration)
        # Codex starts no program itself then, and does not begin a session without a server that it requires.
        request = replace(request, mcp=False)
    behind, left = wrapped_servers(request, gateway_tables(request)[0])
    path, opener = hooks_file(request)
    hooks, server, context = hook_entries(request), server_entry(request), context_entry(request)
    # It drops the instructions of a server that offers no tools, as ours does beside the hook.
    states, notes = _trust(request, path, opener, [*hooks, context])
    files: dict[Path, tuple[Opener, list[FileEntry], list[FileEntry]]] = {}
    for place, kind, entries, wanted in (
        (path, opener, [*hooks, context], request.hook),
        (layer_of(request) / "config.toml", TOML, [server], request.mcp),
        (layer_of(request) / "config.toml", TOML, behind, request.gateway),
        (directory_of(request) / "config.toml", TOML, states, request.hook),
        (environments_file(request), TOML, environment_entries(request), request.executor),
    ):
        _, yes, no = files.setdefault(place, (kind, [], []))
        (yes if wanted else no).extend(entries)
    shared = [Shared(place, kind, wanted=tuple(yes), unwanted=tuple(no)) for place, (kind, yes, no) in files.items()]
    rewrites = request.hook and not request.agent_runs and not request.executor
    rules = Own(layer_of(request) / "rules" / "whisper_tui.rules", MARK, rules_text(request) if rewrites else None)
    offer = request.hook and not request.executor and request.project is None and is_supported(version)
    return InstallPlan([*shared, rules], notes + unavailable + left + _notes(request, rewrites) + [OFFER] * offer)


def _trust(request: InstallRequest, path: Path, opener: Opener, hooks: list[Handler]) -> tuple[list[Member], list[str]]:
    """The entries that make Codex trust the hooks, and notes if Codex does not answer."""
    document = opened(path, opener, read_file(path) or "")
    if not request.hook:
        return _states_of(path, document.plain(), hooks), _moved(document.plain())
    missing = [hook for hook in hooks if not hook.holds(document.plain())]
    try:
        for hook in missing:
            hook.write(document)
    except WrongShape as error:
        raise shape_error(path, error) from error
    states = [(*STATE, key_of(path, hook.path, hook.places(document.plain())[0])) for hook in hooks]
    try:
        hashes = _hashes(request, path.name, opener, document.plain())
        # What only informs must not cost the trust in what asks the human.
        asking = tuple(f":{_EVENT_NAMES[event]}:" for event in _ASKING)
        states = [one for one in states if _ending(one[-1]) in hashes or any(name in one[-1] for name in asking)]
        return [Member(state, {"trusted_hash": hashes[_ending(state[-1])]}) for state in states], []
    except KeyError:
        return [], [f"Codex does not see the hook. {UNTRUSTED}"]
    except NoAnswer as problem:
        sentence = f"{str(problem)[:1].upper()}{str(problem)[1:]}"
        user = plain_of(directory_of(request) / "config.toml", TOML)
        if not missing and all(value_at(user, state) is not None for state in states):
            return [], [f"{sentence}. So it is unknown whether it still trusts the hook; /hooks in Codex shows it"]
        return [], [f"{sentence}. {UNTRUSTED}"]


def _states_of(path: Path, plain: Any, hooks: list[Handler]) -> list[Member]:
    """The trust in hooks of ours that are in a file, whatever it is."""
    return [Member((*STATE, key_of(path, hook.path, place)), {}) for hook in hooks for place in hook.places(plain)]


def _hashes(request: InstallRequest, name: str, opener: Opener, plain: Any) -> dict[str, str]:
    """The hashes under which Codex trusts our hooks, by the ends of their keys. Raises `NoAnswer`."""
    # A hash depends on its hook alone, so Codex is given a configuration with nothing else.
    ours = {str(event[-1]): groups for event in _EVENT_NAMES if (groups := value_at(plain, event)) is not None}
    only = {"hooks": ours}
    text = json.dumps(only) if opener is JSON else tomlkit.dumps(only)
    with isolated_configuration(name, text, request.environ) as environ:
        return {_ending(one.key): one.hash for one in hooks_of(environ, Path(environ["CODEX_HOME"]))}


def _moved(plain: Any) -> list[str]:
    """A note about hooks after ours."""
    # Removing ours changes their indexes, by which Codex identifies hooks.
    groups = [number for number, _, handler in handlers(plain, EVENT) if is_ours(handler)]
    if groups and any(number > groups[0] for number, _, handler in handlers(plain, EVENT) if not is_ours(handler)):
        return ["Codex identifies hooks by their position: trust those after ours again with /hooks in Codex"]
    return []


def _notes(request: InstallRequest, rewrites: bool) -> list[str]:
    notes = []
    if request.project is not None and (request.hook or request.mcp):
        notes.append("Codex reads a project's configuration only if you trust the project")
    if rewrites and any(character.isspace() or character in "'\"" for character in "".join(request.launch.program)):
        notes.append("The path of the launcher has to be quoted, so the rule for the sandbox of Codex does not apply")
    return notes


DEFAULT_TIMEOUT_S = 600.0
_REINSTALL = "Run whisper-tui install codex"
_REINSTALL_BOTH = f"{_REINSTALL} --executor"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the hooks and servers, and ask Codex about the hooks."""
    result = Findings()
    keys: dict[str, Path] = {}
    files: list[Any] = []
    environments = environments_file(context.requests()[0])
    found = examine_environment(context, environments, result.read(environments, TOML), version)
    if found:
        result.environments.append(environments)
        result.checks.extend(found)
    # If the project is the user's home directory, both have the same layer.
    layers = {os.path.realpath(layer_of(request)): request for request in reversed(context.requests())}
    for request in reversed(layers.values()):
        layer = layer_of(request)
        configuration = result.read(layer / "config.toml", TOML)
        for path, plain in (
            (layer / "hooks.json", result.read(layer / "hooks.json", JSON)),
            (layer / "config.toml", configuration),
        ):
            files.append(plain)
            groups = value_at(plain, EVENT)
            for group, _, handler in handlers(plain, EVENT):
                if is_ours(handler):
                    result.hooks.append(_hook(context, path, groups[group], handler, found=bool(found)))
            keys |= {key_of(path, hook.path, place): path for hook in _OURS for place in hook.places(plain)}
        if isinstance(entry := value_at(configuration, ("mcp_servers", SERVER)), dict):
            result.servers.append(_server(layer / "config.toml", entry))
        if result.hooks and _switched_off(configuration):
            result.checks.append(
                bad("hooks", f"{layer / 'config.toml'} switches all hooks off", "Remove hooks = false")
            )
        if value_at(configuration, ("features", "shell_tool")) is False:
            result.shell_disabled_in.append(layer / "config.toml")
        result.checks.extend(_rule(request, result))
    result.others.extend(_other_hooks(context))
    result.checks.extend(after_checks(result, files, HOOK.after_events, is_ours, _REINSTALL))
    result.checks.extend(context_checks(result, files, is_ours, TITLE, _REINSTALL, by_server=False))
    if keys and not any(_EVENT_NAMES[QUESTION_EVENT] in key for key in keys):
        result.checks.append(note("question", "Codex asks a second time about what you have approved", _REINSTALL))
    if version is not None and keys:
        result.checks.extend(_trust_checks(context, keys))
    return result


SYSTEM = Path("/etc/codex")
"""The directory of the configuration of this machine."""


def _other_hooks(context: DoctorContext) -> Iterator[OtherHook]:
    """Yield the other hooks of the user, of the project, of plugins and of this machine.

    Codex runs all of them at once, and the answer that comes last counts.
    """
    user, project = context.requests()
    layers = dict.fromkeys((layer_of(user), layer_of(project), SYSTEM))
    files = [
        (layer / name, opener) for layer in layers for name, opener in (("hooks.json", JSON), ("config.toml", TOML))
    ]
    files += [(SYSTEM / name, TOML) for name in ("managed_config.toml", "requirements.toml")]
    files += [(path, JSON) for path in other_hooks.plugin_files(directory_of(user) / "plugins")]
    seen = sees_any((HOOK.shell_tool, *HOOK.hooked_tools), is_found_by)
    for path, opener in files:
        plain = other_hooks.read_or_nothing(path, opener)
        yield from in_groups(path, plain, EVENT[1:], is_ours=is_ours, seen=seen, wins=other_hooks.IF_LATER)


def _hook(context: DoctorContext, path: Path, group: Any, handler: dict[str, Any], *, found: bool) -> FoundHook:
    """Return a hook of ours. `found`: there is an environment of ours as well."""
    seen = partial(is_found_by, group.get("matcher"))
    if found:
        problems = unseen_tools(path, seen, HOOK.hooked_tools[1:], (), _REINSTALL_BOTH)
        if seen(HOOK.shell_tool):
            problems.append(bad("hook", f"{path} and the environment both ask about each command", _REINSTALL_BOTH))
    else:
        problems = unseen_tools(path, seen, (HOOK.shell_tool,), HOOK.hooked_tools, _REINSTALL)
    if handler.get("async"):
        problems.append(bad("hook", f"{path} does not wait for the hook (async)", _REINSTALL))
    timeout_s = seconds(handler.get("timeout")) or DEFAULT_TIMEOUT_S
    return FoundHook.of(HOOK, path, handler["command"], context, seen, timeout_s=timeout_s, problems=problems)


def _server(path: Path, entry: dict[str, Any]) -> FoundServer:
    approving = entry.get("default_tools_approval_mode") == "approve"
    asks_again = None if approving else 'Set default_tools_approval_mode = "approve" in its table'
    return FoundServer.of(path, entry, seconds(entry.get("tool_timeout_sec")), asks_again)


def _trust_checks(context: DoctorContext, keys: dict[str, Path]) -> list[Check]:
    """Ask Codex whether it would run the hooks in the project."""
    try:
        seen: dict[str, ListedHook] = {hook.key: hook for hook in hooks_of(context.environ, context.project)}
    except NoAnswer as problem:
        return [bad("trust", f"It is unknown whether Codex trusts the hook: {problem}", "Look at /hooks in Codex")]
    return list(dict.fromkeys(trust_check(path, seen.get(key)) for key, path in keys.items()))


def _rule(request: InstallRequest, result: Findings) -> list[Check]:
    """Check that approved commands run outside of the sandbox, if the layer's hook rewrites them."""
    layer = layer_of(request)
    rewriting = [hook for hook in result.hooks if hook.path.parent == layer and "--agent-runs" not in hook.words]
    if not rewriting or result.environments or (layer / "rules" / "whisper_tui.rules").exists():
        return []
    return [note("sandbox", "No rule lets approved commands out of the sandbox of Codex, where they fail", _REINSTALL)]


def _switched_off(configuration: Any) -> bool:
    features = value_at(configuration, ("features",))
    return isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))


_EFFECTS: dict[str, Effect] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_MOST_ALTERNATIVES = 200
_NOT_ABOUT_COMMANDS = frozenset({"host_executable", "network_rule"})
"""Statements that deny no command."""


def rules_in(text: str) -> ImportedRules:
    """Return the rules of a `.rules` file. Raises `ValueError` if it cannot be read."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} cannot be read") from error
    imported = ImportedRules()
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Constant):
            continue
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule":
            imported.left.append(f"line {statement.lineno}: it is not a prefix_rule")
            if not (
                isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _NOT_ABOUT_COMMANDS
            ):
                imported.uncertain.append(f"line {statement.lineno}")
            continue
        _import_prefix_rule(call, imported)
    return imported


def _import_prefix_rule(call: ast.Call, imported: ImportedRules) -> None:
    source = f"line {call.lineno}"
    try:
        said = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    except ValueError:
        imported.left.append(f"{source}: its arguments are not literal")
        imported.uncertain.append(source)
        return
    effect = _EFFECTS.get(said.get("decision", "allow"))
    pattern = said.get("pattern")
    if effect is None or call.args or not isinstance(pattern, list) or not pattern:
        imported.left.append(f"{source}: its pattern or decision is not understood")
        if effect != "allow":
            imported.uncertain.append(source)
        return
    for words in itertools.islice(_alternatives(pattern), _MOST_ALTERNATIVES):
        name = " ".join(words)
        justification = str(said.get("justification", ""))
        imported.take(effect, Rule(name=name, prefix=words, justification=justification), f"{source} ({name})")


def _alternatives(pattern: list[object]) -> Iterator[tuple[str, ...]]:
    """The prefixes that a pattern stands for. Each of its elements is a word or a list of words."""
    choices = [[str(word) for word in element] if isinstance(element, list) else [str(element)] for element in pattern]
    return itertools.product(*choices)


def own_rules_in(text: str) -> OwnRules:
    """Return the stricter rules of a `.rules` file. Raises `ValueError`."""
    # If several rules match a command, the strictest wins in Codex.
    return strictest_wins(rules_in(text))


def _own_rules(places: RuleDirectories) -> Iterator[RuleSource]:
    for layer in (Path("/etc/codex"), *places.users(".codex", "CODEX_HOME"), places.root / ".codex"):
        for path in files_in(layer / "rules", ".rules"):
            yield RuleSource(path, own_rules_in)


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    hook_timeout_s=DEFAULT_TIMEOUT_S,
    abilities=NO_WEB,
    wait=WaitLimit(280.0),
    answer_budget=AnswerBudget(11_000),
    asks_no_hook_about_input=True,
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    own_rules=_own_rules,
    shell=login_shell,
    directory_variables=("CODEX_HOME",),
    rule_formats=(RuleFormat("codex", TITLE, ".rules", rules_in),),
)
