"""OpenCode: the plugin that acts as its hook, its files, its rules, and the doctor's checks."""

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from whisper_tui.agents.agent_tools import Content, FunctionTool, PatchTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.client_files import (
    DAY_S,
    JSON_WITH_COMMENTS,
    SERVER,
    InstallPlan,
    InstallRequest,
    Own,
    Shared,
    is_approved,
    is_hook,
)
from whisper_tui.agents.documents import read_json
from whisper_tui.agents.file_entries import FileEntry, Member, Permission, value_at
from whisper_tui.agents.findings import (
    DoctorContext,
    Findings,
    FoundHook,
    FoundServer,
    bad,
    human_note_checks,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import CONTEXT, DecisionFormat, HookAnswer, HookRequest, longest_server, printed
from whisper_tui.agents.own_rules import (
    OrderedRule,
    OwnRules,
    RuleDirectories,
    RuleSource,
    escaped,
    file_rule,
    last_match_wins,
    literal_words,
    work_tree_around,
)
from whisper_tui.agents.probe import Canary, Seen, ask_hook, canaries_of, denied_by_supervisor, last_line, prove, run
from whisper_tui.agents.profile import ALL_MEASURED, AnswerBudget, ClientProfile, ServerTable, WaitLimit
from whisper_tui.model.call import Shell
from whisper_tui.policy.rules.rule import SUBAGENT, WEB, Effect, Rule

NAME = "opencode"
TITLE = "OpenCode"
MARK = "// Written by whisper-tui install opencode"
TEMPLATE = "opencode_plugin.js"
COMMAND_LINE = "const HOOK = "
"""The prefix of the plugin's line with the command line of the hook, as JSON."""
ALL_TOOLS = "const COMMANDS_ONLY = false"
"""The plugin's line with which it sees every tool."""
TELLS_NOTHING = 'const CONTEXT = ""'
"""The plugin's line with which it does not tell the model about whisper_tui."""
BLANK = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'


class OpenCodeHook(DecisionFormat):
    """OpenCode, through the plugin that is installed into it."""

    name = "opencode"
    shell_tool = "bash"
    directory_keys = ("workdir",)
    tools: ClassVar[Mapping[str, Tool]] = {
        "edit": ReplaceTool("filePath", "oldString", "newString", "replaceAll"),
        "multiedit": ReplaceTool("filePath", "oldString", "newString", "replaceAll", edits="edits"),
        "write": WriteTool("filePath", "content"),
        "apply_patch": PatchTool("patchText"),
        "webfetch": FunctionTool("web", url="url"),
        "websearch": FunctionTool("web"),
        "codesearch": FunctionTool("web"),
        "task": FunctionTool("subagent", name="subagent_type"),
    }
    hooked_tools = ("edit", "write", "apply_patch", "webfetch", "task")
    # The plugin names them too: it starts no program for them.
    quiet_tools = frozenset(
        {"read", "list", "glob", "grep", "todoread", "todowrite", "skill", "question", "lsp", "invalid", "plan_exit"}
    )
    # The plugin throws on any exit code but 0. That stops the command as an error and not as a denial.
    blocks_by_code = False

    def server_of(self, tool: str, content: Content) -> tuple[str, str] | None:
        """Return the server with the longest name, of those that are configured, with which the tool's name begins."""
        return longest_server(tool, content.get("servers"), "_")

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the arguments, and the note that the plugin prepends to the output."""
        arguments = asked.tool_input if arguments is None else arguments
        # A plugin of an earlier version, which OpenCode has loaded, takes a command alone.
        command = {"command": arguments["command"]} if isinstance(asked.command, Shell) else {}
        decided = {"decided": True} if asked.decided else {}
        return printed({"decision": "allow", "arguments": arguments, **command, "note": note, **decided})

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"write": {"filePath": path, "content": "canary\n"}, "webfetch": {"url": url, "format": "text"}}

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input that the plugin sends."""
        return {**super().call(tool, arguments, cwd, call_id), "call_id": call_id}


HOOK = OpenCodeHook()
SHELL_TOOL = HOOK.shell_tool


def directory_of(request: InstallRequest) -> Path:
    """Return the user's directory of OpenCode."""
    moved = request.environ.get("XDG_CONFIG_HOME")
    return Path(moved or request.user_directory / ".config") / "opencode"


def configuration_of(request: InstallRequest) -> Path:
    """Return the configuration file with the highest precedence, or the usual name of a new one."""
    names: tuple[str, ...]
    if request.project is not None:
        names, directory = ("opencode.jsonc", "opencode.json"), request.project
    elif named := request.environ.get("OPENCODE_CONFIG"):
        return Path(named).absolute()
    else:
        names, directory = ("opencode.jsonc", "opencode.json", "config.json"), directory_of(request)
    there = (directory / name for name in names)
    usual = directory / ("opencode.json" if request.project is not None else names[0])
    return next((path for path in there if path.exists()), usual)


def plugin_of(request: InstallRequest) -> Path:
    """Return the path of the plugin."""
    directory = directory_of(request) if request.project is None else request.project / ".opencode"
    return directory / "plugin" / "whisper_tui.js"


def server_tables(request: InstallRequest) -> Iterator[ServerTable]:
    """Yield the tables of MCP servers of the user and of the project, in every file that may have one."""
    directories = [directory_of(request)] if request.project is None else [directory_of(request), request.project]
    files = [
        directory / name for directory in directories for name in ("opencode.jsonc", "opencode.json", "config.json")
    ]
    if named := request.environ.get("OPENCODE_CONFIG"):
        files.append(Path(named).absolute())
    for path in files:
        yield ServerTable(path, JSON_WITH_COMMENTS, ("mcp",))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command = [*request.launch.server(own_shell=request.hook)]
    # In milliseconds.
    value = {"type": "local", "command": command, "enabled": True, "timeout": DAY_S * 1000}
    return Member(("mcp", SERVER), value)


def plugin_text(request: InstallRequest) -> str:
    """Return the plugin with the command line of the hook."""
    template = resources.files("whisper_tui.agents").joinpath(TEMPLATE).read_text(encoding="utf-8")
    line = json.dumps(request.launch.hook(NAME, agent_runs=request.agent_runs))
    text = template.replace(f"{COMMAND_LINE}[]", f"{COMMAND_LINE}{line}", 1)
    if request.tells_model:
        text = text.replace(TELLS_NOTHING, TELLS_NOTHING.replace('""', json.dumps(CONTEXT)), 1)
    return text if request.tools else text.replace(ALL_TOOLS, ALL_TOOLS.replace("false", "true"), 1)


def hook_of(plugin: str) -> list[str]:
    """Return the command line of the hook in a plugin; empty if there is none."""
    for line in plugin.splitlines():
        if line.startswith(COMMAND_LINE):
            try:
                words = json.loads(line.removeprefix(COMMAND_LINE).rstrip("; "))
            except ValueError:
                return []
            return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else []
    return []


def gateway_tables(request: InstallRequest) -> list[GatewayTable]:
    """Return the place of the MCP servers that `install` may change."""
    path = configuration_of(request)
    return [GatewayTable(path, JSON_WITH_COMMENTS, ("mcp",), listed=True, variables="environment")]


def plan_install(request: InstallRequest) -> InstallPlan:
    """Return the files of OpenCode with the content that they should have."""
    behind, notes = wrapped_servers(request, gateway_tables(request)[0])
    offered, approved = f"{SERVER}_*", f"{request.launch.exec()} *"
    tools = Permission(("permission",), offered, ours=offered.__eq__)
    shell = Permission(("permission", SHELL_TOOL), approved, ours=is_approved, left_alone="deny")
    rewrites = request.hook and not request.agent_runs
    entries: list[tuple[FileEntry, bool]] = [
        (server_entry(request), request.mcp),
        (tools, request.mcp),
        (shell, rewrites),
        *((entry, request.gateway) for entry in behind),
    ]
    configuration = Shared(
        configuration_of(request),
        JSON_WITH_COMMENTS,
        wanted=tuple(entry for entry, wanted in entries if wanted),
        unwanted=tuple(entry for entry, wanted in entries if not wanted),
        blank=BLANK,
    )
    plugin = Own(plugin_of(request), MARK, plugin_text(request) if request.hook else None)
    if request.hook and not plugin_of(request).exists():
        notes.append("OpenCode downloads its plugin library at the first start; without a network that takes a minute")
    return InstallPlan([configuration, plugin], notes)


_RUN_PLUGIN = """
import { readFileSync } from "node:fs"
const said = JSON.parse(readFileSync(0, "utf8"))
const made = await import(said.plugin)
const answers = []
for (const plugin of new Set(Object.values(made))) {
  const hooks = await plugin({ directory: said.cwd })
  for (const [tool, args] of Object.entries(said.calls)) {
    try {
      await hooks["tool.execute.before"]({ tool, sessionID: said.session, callID: `${said.call}-${tool}` }, { args })
      answers.push({ passed: tool })
    } catch (error) {
      answers.push({ thrown: error.message })
    }
  }
}
process.stdout.write(JSON.stringify(answers))
process.exit(0)
"""


def _prove_plugin(
    plugin: Path, words: list[str], environ: Mapping[str, str], patience_s: float, seen: Seen
) -> str | None:
    """Run the plugin with node, or only its hook if node is missing. None: it stopped the canary."""
    node = shutil.which("node", path=environ.get("PATH"))
    if node is not None:
        return prove(lambda canary: _by_node(node, plugin, environ, canary, patience_s, seen=seen))
    if not words:
        return "the plugin has no command line of a hook"
    return prove(lambda canary: ask_hook(HOOK, words, environ, canary, patience_s, seen=seen))


def _by_node(
    node: str, plugin: Path, environ: Mapping[str, str], canary: Canary, patience_s: float, *, seen: Seen
) -> str | None:
    copy = canary.directory / "plugin.mjs"
    shutil.copyfile(plugin, copy)
    others = HOOK.canary_calls(str(canary.file), canary.url)
    said = {
        "plugin": copy.as_uri(),
        "cwd": str(canary.directory),
        "calls": {SHELL_TOOL: {"command": canary.command}, **{tool: others[tool] for tool in others if seen(tool)}},
        "session": "whisper-tui-doctor",
        "call": canary.name,
    }
    words = [node, "--input-type=module", "--eval", _RUN_PLUGIN]
    answer = run(words, environ, canary.directory, given=json.dumps(said), patience_s=patience_s)
    try:
        outcomes = json.loads(answer.out)
        thrown = [outcome.get("thrown") for outcome in outcomes]
    except (ValueError, AttributeError, TypeError):
        return f"the plugin cannot be run: {last_line(answer.err) or 'it said nothing'}"
    if thrown and all(isinstance(text, str) for text in thrown):
        return next((why for text in thrown if (why := denied_by_supervisor(text, canary)) is not None), None)
    return "the plugin let the canary pass"


_REINSTALL = "Run whisper-tui install opencode"


def find(context: DoctorContext, version: str | None) -> Findings:
    """Examine the plugins and the configuration."""
    result = Findings()
    told = False
    if context.environ.get("OPENCODE_PURE", "") not in {"", "0", "false"}:
        result.checks.append(bad("hooks", "OPENCODE_PURE switches all plugins off", "Start OpenCode without it"))
    for request in context.requests():
        for path in _plugins(request):
            text = path.read_text(encoding="utf-8", errors="replace")
            words = hook_of(text)
            if is_hook(words, NAME) or path == plugin_of(request):
                result.hooks.append(_found_plugin(context, path, words, sees_all=ALL_TOOLS in text.splitlines()))
                told = told or TELLS_NOTHING not in text.splitlines()
        path = configuration_of(request)
        plain = result.read(path, JSON_WITH_COMMENTS)
        if value_at(plain, ("permission", SHELL_TOOL)) == "deny":
            result.shell_disabled_in.append(path)
        if isinstance(entry := value_at(plain, ("mcp", SERVER)), dict):
            result.servers.append(_server(path, entry, plain))
    by_server, without = bool(result.servers), f"{_REINSTALL} --no-mcp"
    result.checks.extend(human_note_checks(result, TITLE, without, _REINSTALL, told=told, by_server=by_server))
    return result


def _found_plugin(context: DoctorContext, path: Path, words: list[str], *, sees_all: bool) -> FoundHook:
    def seen(tool: str) -> bool:
        return sees_all or tool == SHELL_TOOL

    return FoundHook(
        path=path,
        words=words,
        timeout_s=None,
        problems=unseen_tools(path, seen, (SHELL_TOOL,), HOOK.hooked_tools, _REINSTALL),
        proves=canaries_of(HOOK, seen),
        prove=partial(_prove_plugin, path, words, context.environ, context.canary_s, seen),
    )


def _plugins(request: InstallRequest) -> list[Path]:
    """Every file that OpenCode loads as a plugin."""
    above = plugin_of(request).parent.parent
    return sorted(path for name in ("plugin", "plugins") for path in (above / name).glob("*.[jt]s") if path.is_file())


def _server(path: Path, entry: dict[str, Any], plain: Any) -> FoundServer:
    command = entry.get("command")
    words = command if isinstance(command, list) and all(isinstance(word, str) for word in command) else []
    return FoundServer(
        path=path,
        words=words if entry.get("enabled", True) else [],
        timeout_s=seconds(entry.get("timeout"), 1000),
        asks_again=f'Set "{SERVER}_*": "allow" in "permission"' if _asks(plain) else None,
    )


def _asks(plain: Any) -> bool:
    """True if a rule of the user makes OpenCode ask about our tools. By default it does not."""
    rules = value_at(plain, ("permission",))
    if isinstance(rules, str):
        return rules != "allow"
    if not isinstance(rules, dict):
        return False
    return rules.get(f"{SERVER}_*", rules.get("*", "allow")) != "allow"


def own_rules_in(document: Any) -> OwnRules:
    """Return the rules of a configuration that deny or ask."""
    permission = document.get("permission") if isinstance(document, dict) else None
    found = _shell_rules_in(permission)
    for effect, rule in _tool_rules_in(permission if isinstance(permission, dict) else {}):
        (found.deny if effect == "deny" else found.ask).append(rule)
    return found


def _tool_rules_in(permission: dict[str, Any]) -> Iterator[tuple[Effect, Rule]]:
    """Yield the rules about edits, the web, sub-agents and tools of servers that deny or ask."""
    for key, said in permission.items():
        if key in {SHELL_TOOL, "*", "read", "grep", "glob", "list", "external_directory", "doom_loop"}:
            continue
        entries = list(said.items()) if isinstance(said, dict) else [("*", said)]
        for at, (pattern, word) in enumerate(entries):
            # The last match wins, and a rule here cannot have exceptions: a denial before one becomes a question.
            milder = any(later in {"allow", "ask"} for _, later in entries[at + 1 :])
            if word not in {"ask", "deny"}:
                continue
            effect: Effect = "ask" if word == "ask" or milder else "deny"
            rule = _tool_rule(key, str(pattern))
            if rule is not None:
                yield effect, rule


def _tool_rule(key: str, pattern: str) -> Rule | None:
    name = f"{key}: {pattern}"
    if key == "edit":
        return file_rule(name, pattern)
    kinds = {"webfetch": WEB, "websearch": WEB, "codesearch": WEB, "task": SUBAGENT}
    if key in kinds:
        return Rule(name=name, tool=kinds[key], anything=True)
    # The tools of servers have the server's name and a line before their own.
    return Rule(name=name, tool=key, anything=True) if "_" in key and not key.startswith(SERVER) else None


def _shell_rules_in(permission: Any) -> OwnRules:
    """Return the rules about commands."""
    shell = permission.get(SHELL_TOOL, permission.get("*")) if isinstance(permission, dict) else permission
    if isinstance(shell, str):
        shell = {"*": shell}
    if not isinstance(shell, dict):
        return OwnRules()
    effects: dict[Any, Effect] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    known = [(str(pattern), effects[word]) for pattern, word in shell.items() if word in effects]
    # The last rule that matches wins.
    return last_match_wins([OrderedRule(effect, pattern, _rule_of(pattern)) for pattern, effect in known])


def _rule_of(pattern: str) -> Rule | None:
    """The rule that a pattern stands for. None: it matches every command."""
    if pattern == "*":
        return None
    if "*" not in pattern and "?" not in pattern:
        return Rule(name=pattern, text=pattern)
    # A trailing ` *` also matches no further words.
    for ending in (" *", "*"):
        words = literal_words(pattern.removesuffix(ending)) if ending == " *" and pattern.endswith(ending) else None
        if words and "*" not in pattern.removesuffix(ending):
            return Rule(name=pattern, prefix=words)
    return Rule(name=pattern, pattern=escaped(pattern))


def _own_rules_in(text: str) -> OwnRules:
    return own_rules_in(read_json(text, comments=True).value if text.strip() else {})


def _own_rules(places: RuleDirectories) -> Iterator[RuleSource]:
    if "OPENCODE_CONFIG" in places.moved:
        yield RuleSource(places.moved["OPENCODE_CONFIG"], _own_rules_in)
    for directory in places.users(".config", "XDG_CONFIG_HOME"):
        for name in ("opencode.json", "opencode.jsonc", "config.json"):
            yield RuleSource(directory / "opencode" / name, _own_rules_in)
    above = (places.root, *places.root.parents)
    depth = above.index(work_tree_around(places.root) or places.root)
    for layer in (*above[: depth + 1], places.root / ".opencode"):
        for name in ("opencode.json", "opencode.jsonc"):
            yield RuleSource(layer / name, _own_rules_in)


def _shell(environment: Mapping[str, str]) -> str:
    """Return the user's shell, in which OpenCode runs commands. Its shell reads no files of functions and aliases."""
    return environment.get("SHELL", "")


PROFILE = ClientProfile(
    name=NAME,
    title=TITLE,
    hook=HOOK,
    hook_timeout_s=None,
    abilities=ALL_MEASURED,
    wait=WaitLimit(50.0),
    answer_budget=AnswerBudget(50_000, in_bytes=True, lines=1_900),
    # When a signal kills a command, OpenCode's shell waits for its own time limit: measured with version 1.18.33.
    hangs_on_signals=True,
    plan_install=plan_install,
    find=find,
    server_tables=server_tables,
    own_rules=_own_rules,
    shell=_shell,
    directory_variables=("XDG_CONFIG_HOME", "OPENCODE_CONFIG"),
)
