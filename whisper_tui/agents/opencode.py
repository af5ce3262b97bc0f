"""OpenCode and its descendants: the plugin that acts as hook, their files, their rules, and the doctor's checks."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    not_compared,
    seconds,
    unseen_tools,
)
from whisper_tui.agents.gateway_servers import GatewayTable, wrapped_servers
from whisper_tui.agents.hook_formats import DecisionFormat, HookAnswer, HookRequest, longest_server, printed
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.model_instructions import OWN_SHELL_INSTRUCTIONS
from whisper_tui.agents.other_hooks import ALWAYS_LOADED, OtherHook, listed_plugins
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
from whisper_tui.agents.probe import canaries_of, prove_plugin
from whisper_tui.agents.profile import ALL_MEASURED, Abilities, AnswerBudget, ClientProfile, ServerTable, WaitLimit
from whisper_tui.agents.running_clients import WithoutHook, option_of, unhooked
from whisper_tui.agents.shell_gate import Enforced, ShellSetting
from whisper_tui.model.call import Shell
from whisper_tui.policy.rules.rule import SUBAGENT, WEB, Effect, Rule

TEMPLATE = "opencode_plugin.js"
COMMAND_LINE = "const HOOK = "
"""The prefix of the plugin's line with the command line of the hook, as JSON."""
ALL_TOOLS = "const COMMANDS_ONLY = false"
"""The plugin's line with which it sees every tool."""
COMPARES = 'hook_event_name: "tool.execute.after"'
"""The words of a plugin that compares what ran with what was approved."""
NO_GATE = 'const GATE = ""'
"""The plugin's line with which it leaves the shell as the settings name it."""
PURE = "--pure"
"""The option that switches all plugins off."""
TELLS_NOTHING = 'const CONTEXT = ""'
"""The plugin's line with which it does not tell the model about whisper_tui."""


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
    after_events = frozenset({"tool.execute.after"})
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

    def after(self, event: str, note: str) -> HookAnswer:
        """Return a note that the plugin prepends to the output."""
        return printed({"note": note})

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return a new file, and a fetch."""
        return {"write": {"filePath": path, "content": "canary\n"}, "webfetch": {"url": url, "format": "text"}}

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input that the plugin sends."""
        return {**super().call(tool, arguments, cwd, call_id), "call_id": call_id}


SHELL_TOOL = OpenCodeHook.shell_tool


@dataclass(frozen=True)
class Edition:
    """OpenCode itself, or a program that descends from it: its names, and the places of its files."""

    name: str
    title: str
    hook: OpenCodeHook
    names: tuple[str, ...]
    """The names of configuration files, that with the highest precedence first."""
    directories: tuple[str, ...]
    """Its directories in a project, the one for a new file first."""
    schema: str

    @property
    def variable(self) -> str:
        """The beginning of the names of its variables."""
        return self.name.upper()

    @property
    def file_variable(self) -> str:
        """The variable that names a configuration file."""
        return f"{self.variable}_CONFIG"

    @property
    def reinstall(self) -> str:
        """The hint of the doctor about something that is missing."""
        return f"Run whisper-tui install {self.name}"

    @property
    def mark(self) -> str:
        """The beginning of the plugin."""
        return f"// Written by whisper-tui install {self.name}"

    def directory_of(self, request: InstallRequest) -> Path:
        """Return the user's directory."""
        moved = request.environ.get("XDG_CONFIG_HOME")
        return Path(moved or request.user_directory / ".config") / self.name

    def configuration_of(self, request: InstallRequest) -> Path:
        """Return the configuration file with the highest precedence, or the usual name of a new one."""
        if request.project is not None:
            names, directory, usual = self.names, request.project, f"{self.name}.json"
        elif named := request.environ.get(self.file_variable):
            return Path(named).absolute()
        else:
            names, directory, usual = (*self.names, "config.json"), self.directory_of(request), self.names[0]
        return next((directory / name for name in names if (directory / name).exists()), directory / usual)

    def plugin_of(self, request: InstallRequest) -> Path:
        """Return the path of the plugin."""
        project = request.project
        directory = self.directory_of(request) if project is None else project / self.directories[0]
        return directory / "plugin" / "whisper_tui.js"

    def plugins(self, request: InstallRequest) -> list[Path]:
        """Return every file that is loaded as a plugin."""
        project = request.project
        above = [self.directory_of(request)] if project is None else [project / name for name in self.directories]
        found = (path for each in above for name in ("plugin", "plugins") for path in (each / name).glob("*.[jt]s"))
        return sorted(path for path in found if path.is_file())

    @property
    def without_plugin(self) -> WithoutHook:
        """Return a function that finds what switches the plugin off, in a command line and its environment."""
        return option_of(PURE, variables=(f"{self.variable}_PURE",))

    def files_of_user(self, request: InstallRequest) -> Iterator[Path]:
        """Yield the user's configuration files, there or not. A later one wins."""
        yield from (self.directory_of(request) / name for name in ("config.json", *reversed(self.names)))
        if named := request.environ.get(self.file_variable):
            yield Path(named).absolute()

    def files_of_project(self, root: Path) -> Iterator[Path]:
        """Yield the configuration files of a project, there or not. A later one wins, and wins over the user's."""
        above = (root, *root.parents)
        depth = above.index(work_tree_around(root) or root)
        for layer in (*reversed(above[: depth + 1]), *(root / name for name in self.directories)):
            yield from (layer / name for name in reversed(self.names))

    def files(self, request: InstallRequest) -> Iterator[Path]:
        """Yield the configuration files of the user, and of the project of a request. A later one wins."""
        yield from self.files_of_user(request)
        if request.project is not None:
            yield from self.files_of_project(request.project)

    def server_tables(self, request: InstallRequest) -> Iterator[ServerTable]:
        """Yield the tables of MCP servers of the user and of the project, in every file that may have one."""
        for path in self.files(request):
            yield ServerTable(path, JSON_WITH_COMMENTS, ("mcp",))

    def own_rules(self, places: RuleDirectories) -> Iterator[RuleSource]:
        """Yield the files with rules of the client's own."""
        if self.file_variable in places.moved:
            yield RuleSource(places.moved[self.file_variable], _own_rules_in)
        for directory in places.users(".config", "XDG_CONFIG_HOME"):
            for name in (*self.names, "config.json"):
                yield RuleSource(directory / self.name / name, _own_rules_in)
        for path in self.files_of_project(places.root):
            yield RuleSource(path, _own_rules_in)


def shell_setting(edition: Edition) -> ShellSetting:
    """Return the setting with the shell of the tool bash."""
    return ShellSetting(edition.name, edition.title, ("shell",))


def server_entry(request: InstallRequest) -> Member:
    """Return the MCP server's entry."""
    command = [*request.launch.server(own_shell=request.hook)]
    # In milliseconds.
    value = {"type": "local", "command": command, "enabled": True, "timeout": DAY_S * 1000}
    return Member(("mcp", SERVER), value)


def plugin_text(edition: Edition, request: InstallRequest) -> str:
    """Return the plugin with the command line of the hook."""
    template = resources.files("whisper_tui.agents").joinpath(TEMPLATE).read_text(encoding="utf-8")
    line = json.dumps(request.launch.hook(edition.name, agent_runs=request.agent_runs))
    text = template.replace("install opencode", f"install {edition.name}")
    text = text.replace(f"{COMMAND_LINE}[]", f"{COMMAND_LINE}{line}", 1)
    if request.tells_model:
        text = text.replace(TELLS_NOTHING, TELLS_NOTHING.replace('""', json.dumps(OWN_SHELL_INSTRUCTIONS)), 1)
    gate = shell_setting(edition).gate(request, edition.configuration_of(request), JSON_WITH_COMMENTS)
    text = text.replace(NO_GATE, NO_GATE.replace('""', json.dumps(gate)), 1)
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


def plan_install(edition: Edition, request: InstallRequest) -> InstallPlan:
    """Return the files of OpenCode with the content that they should have."""
    path = edition.configuration_of(request)
    behind, notes = wrapped_servers(
        request, GatewayTable(path, JSON_WITH_COMMENTS, ("mcp",), listed=True, variables="environment")
    )
    offered, approved = f"{SERVER}_*", f"{request.launch.exec()} *"
    tools = Permission(("permission",), offered, ours=offered.__eq__)
    shell = Permission(("permission", SHELL_TOOL), approved, ours=is_approved, left_alone="deny")
    rewrites = request.hook and not request.agent_runs
    gate_entries, gates = shell_setting(edition).plan(request, path, JSON_WITH_COMMENTS)
    entries: list[tuple[FileEntry, bool]] = [
        (server_entry(request), request.mcp),
        (tools, request.mcp),
        (shell, rewrites),
        *gate_entries,
        *((entry, request.gateway) for entry in behind),
    ]
    configuration = Shared.of(
        path, JSON_WITH_COMMENTS, entries, blank=json.dumps({"$schema": edition.schema}, indent=2) + "\n"
    )
    place = edition.plugin_of(request)
    plugin = Own(place, edition.mark, plugin_text(edition, request) if request.hook else None)
    if request.hook and not place.exists():
        notes.append(
            f"{edition.title} downloads its plugin library at the first start; without a network that takes a minute"
        )
    return InstallPlan([*gates, configuration, plugin], notes)


def find(edition: Edition, context: DoctorContext, version: str | None) -> Findings:
    """Examine the plugins and the configuration."""
    result = Findings()
    told = False
    if pure := edition.without_plugin((), context.environ):
        result.checks.append(bad("hooks", f"{pure} switches all plugins off", f"Start {edition.title} without it"))
    for request in context.requests():
        for path in edition.plugins(request):
            text = path.read_text(encoding="utf-8", errors="replace")
            words = hook_of(text)
            if is_hook(words, edition.name) or path == edition.plugin_of(request):
                sees_all = ALL_TOOLS in text.splitlines()
                result.hooks.append(_found_plugin(edition, context, path, words, sees_all=sees_all))
                told = told or TELLS_NOTHING not in text.splitlines()
                if COMPARES not in text:
                    result.checks.append(not_compared(edition.reinstall))
            else:
                result.others.append(OtherHook(path, "", "", ALWAYS_LOADED))
        path = edition.configuration_of(request)
        plain = result.read(path, JSON_WITH_COMMENTS)
        result.others.extend(listed_plugins(path, plain, "plugin"))
        if value_at(plain, ("permission", SHELL_TOOL)) == "deny":
            result.shell_disabled_in.append(path)
        if isinstance(entry := value_at(plain, ("mcp", SERVER)), dict):
            result.servers.append(_server(path, entry, plain))
    if result.hooks:
        files = edition.files(context.requests()[1])
        configurations = {path: result.read(path, JSON_WITH_COMMENTS) for path in files}
        # The plugin names the gate again after all settings were read.
        enforced = Enforced(PURE, partial(_without_plugin, edition, context))
        shell_setting(edition).check(result, context, configurations, enforced)
    by_server, again = bool(result.servers), edition.reinstall
    result.checks.extend(
        human_note_checks(result, edition.title, f"{again} --no-mcp", again, told=told, by_server=by_server)
    )
    return result


def _without_plugin(edition: Edition, context: DoctorContext) -> str:
    """Return the client that runs without plugins in the project, as a clause; empty if none does."""
    if variable := edition.without_plugin((), context.environ):
        return f"{variable} is set"
    running = unhooked(edition.name, edition.without_plugin, context.environ)
    root = context.project.resolve()
    there = (each for each in running if each.directory is not None and each.directory.is_relative_to(root))
    return next((f"{edition.title} (pid {each.pid}) was started with {each.option}" for each in there), "")


def _found_plugin(
    edition: Edition, context: DoctorContext, path: Path, words: list[str], *, sees_all: bool
) -> FoundHook:
    hook = edition.hook

    def seen(tool: str) -> bool:
        return sees_all or tool == SHELL_TOOL

    return FoundHook(
        path=path,
        words=words,
        timeout_s=None,
        problems=unseen_tools(path, seen, (SHELL_TOOL,), hook.hooked_tools, edition.reinstall),
        proves=canaries_of(hook, seen),
        prove=partial(prove_plugin, hook, path, words, context.environ, context.canary_s, seen=seen),
    )


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


def _shell(environment: Mapping[str, str]) -> str:
    """Return the user's shell, in which OpenCode runs commands. Its shell reads no files of functions and aliases."""
    return environment.get("SHELL", "")


def profile_for(edition: Edition, abilities: Abilities = ALL_MEASURED) -> ClientProfile:
    """Return the profile of OpenCode, or of a program that descends from it."""
    return ClientProfile(
        name=edition.name,
        title=edition.title,
        hook=edition.hook,
        without_hook=edition.without_plugin,
        hook_timeout_s=None,
        abilities=abilities,
        wait=WaitLimit(50.0),
        answer_budget=AnswerBudget(50_000, in_bytes=True, lines=1_900),
        # When a signal kills a command, OpenCode's shell waits for its own time limit: measured with version 1.18.33.
        hangs_on_signals=True,
        plan_install=partial(plan_install, edition),
        find=partial(find, edition),
        server_tables=edition.server_tables,
        own_rules=edition.own_rules,
        shell=_shell,
        directory_variables=("XDG_CONFIG_HOME", edition.file_variable),
    )


PROFILE = profile_for(
    Edition(
        name="opencode",
        title=KNOWN["opencode"].title,
        hook=OpenCodeHook(),
        names=("opencode.jsonc", "opencode.json"),
        directories=(".opencode",),
        schema="https://opencode.ai/config.json",
    )
)


class KiloHook(OpenCodeHook):
    """Kilo, as of version 7.7.9."""

    name = "kilo"


KILO = profile_for(
    Edition(
        name="kilo",
        title=KNOWN["kilo"].title,
        hook=KiloHook(),
        # It still reads the names of OpenCode, and its own earlier directory.
        names=("kilo.jsonc", "kilo.json", "opencode.jsonc", "opencode.json"),
        directories=(".kilo", ".kilocode"),
        schema="https://app.kilo.ai/config.json",
    )
)
