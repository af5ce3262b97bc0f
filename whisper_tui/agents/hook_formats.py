"""The formats of hooks: read a client's request, and write the decision in the client's format.

A hook sees the commands of the client's shell, and its other tools: edits of files, the web, the tools of MCP servers,
and the starts of sub-agents. A tool that is not known is asked about with its arguments (decision 28).

Measured with Claude Code 2.1.332, Codex 0.171, Gemini CLI 0.61 and OpenCode 1.18.33. All of them run a command when
they do not understand an answer, so only answers are written that they are known to accept.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic_core import from_json

from whisper_tui.agents.agent_tools import (
    Content,
    FileResult,
    Tool,
    ToolArguments,
    server_and_tool,
    server_call,
)
from whisper_tui.agents.client_files import SERVER
from whisper_tui.agents.model_instructions import OWN_SHELL_INSTRUCTIONS
from whisper_tui.model.call import FileEdits, Function, Shell
from whisper_tui.model.errors import InvalidRequest


@dataclass(frozen=True)
class HookRequest:
    """A call of a tool that an agent is about to make."""

    session: str
    """The agent's id of its session."""
    tool: str
    tool_input: Content
    """As the agent gave it."""
    command: Shell | FileEdits | Function
    cwd: str
    description: str = ""
    call_id: str | None = None
    """The agent's id of the call, if it sends one."""
    asker: str = ""
    """The subagent that runs the command. Empty: the agent itself."""
    model: str = ""
    background: bool = False
    """True if the agent does not wait for the command to end."""
    configured: bool = True
    """False if the files of the client do not name the MCP server whose tool is called."""
    absolute: Content = field(default_factory=dict)
    """Arguments with relative paths, as the absolute paths that are judged."""
    decided: bool = False
    """True if a human, or what one has said before, has allowed the call: the client does not have to ask again."""


@dataclass(frozen=True)
class DoneCall:
    """A call of a tool that is over, by the account of the program that made it."""

    event: str
    """The name of the event that says so."""
    session: str
    tool: str
    tool_input: Content
    """The arguments with which it says that it has called the tool."""
    cwd: str
    call_id: str | None = None
    """The program's id of the call, if it sends one."""


@dataclass(frozen=True)
class HookAnswer:
    """The output and the exit code of the hook's program."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


NO_DECISION = HookAnswer()
"""No decision: the agent continues as if there were no hook."""

SESSION_EVENT = "SessionStart"
"""The event at the start of a session, as most clients call it."""

CALL_IDS = ("tool_use_id", "call_id", "tool_call_id")
"""Names under which clients send their ids of calls."""

OTHER_EVENTS = frozenset(
    [
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "Notification",
        "UserPromptSubmit",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "SessionStart",
        "SessionEnd",
        "PreCompact",
        "PostCompact",
        "AfterTool",
        "BeforeAgent",
        "AfterAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeToolSelection",
        "PreCompress",
    ]
)
"""Events that precede no call. An event that is neither here nor the format's own is refused."""


class HookFormat(ABC):
    """The format of one client's hook."""

    name: ClassVar[str]
    """The client's name in sessions, and the prefix of its name in MCP."""
    shell_tool: ClassVar[str]
    """Its tool that runs commands."""
    other_shell_tools: ClassVar[frozenset[str]] = frozenset()
    """Further tools that run commands."""
    tools: ClassVar[Mapping[str, Tool]] = {}
    """Its other tools whose calls are asked about."""
    quiet_tools: ClassVar[frozenset[str]] = frozenset()
    """Its tools that neither change nor send anything, whose calls pass."""
    hooked_tools: ClassVar[tuple[str, ...]] = ()
    """Its tools beside the shell for which an installed hook is called, with an example of a server's tool."""
    server_prefix: ClassVar[str] = "mcp__"
    """The beginning of the names of MCP tools."""
    server_separator: ClassVar[str] = "__"
    """The text between the names of a server and of its tool."""
    names_servers: ClassVar[bool] = True
    """False if only the files of the client tell of which server a tool is."""
    asks_about_own_tools: ClassVar[bool] = False
    """True if it asks about the tools of whisper_tui itself, unless its hook allows them."""
    takes_result: ClassVar[bool] = True
    """True if it carries out a call with other arguments than its model's."""
    event: ClassVar[str] = "PreToolUse"
    """The event before a tool runs."""
    root_variable: ClassVar[str | None] = None
    """The variable in which hooks find the client's workspace."""
    background_key: ClassVar[str] = "run_in_background"
    """The argument of its shell tool that asks for a command in the background."""
    question_event: ClassVar[str] = ""
    """The event before it asks its user itself. Empty: no hook can answer its question."""
    session_event: ClassVar[str] = ""
    """The event at the start of a session, whose hook can tell the model something. Empty: there is none."""
    repeats_session_event: ClassVar[bool] = False
    """True if this event comes again in the same session."""
    after_events: ClassVar[frozenset[str]] = frozenset()
    """The events after a tool, which say what has run."""
    explains_after: ClassVar[bool] = False
    """True if only the answer to such an event can tell the model that its command was changed."""
    directory_keys: ClassVar[tuple[str, ...]] = ()
    """Arguments of its shell tool that name a directory, absolute or relative to the workspace."""
    keeps_directory: ClassVar[frozenset[str]] = frozenset()
    """Its tools that start each command in the directory in which the last one ended."""
    shows_what_runs: ClassVar[bool] = True
    """True if its screen shows the command that runs, False if it shows the one that its model wrote."""
    blocks_by_code: ClassVar[bool] = True
    """True if exit code 2 is a denial, with the reason on standard error."""

    def read(self, content: Content) -> HookRequest | None:
        """Read a hook's input. None: nobody has to be asked. Raises `InvalidRequest`."""
        # Without an answer the client goes on. So an unknown input must raise an error, which ends the hook with the
        # exit code that clients treat as a denial.
        event = _text(content, "hook_event_name") if "hook_event_name" in content else self.event
        if event in OTHER_EVENTS and event != self.event:
            return None
        if event != self.event:
            raise InvalidRequest(f"the hook's event {event!r} is unknown, so its calls are denied", hint=_UPDATE)
        tool = _text(content, "tool_name")
        if tool in self.quiet_tools:
            return None
        is_shell = self.runs_commands(tool)
        given = content.get("tool_input")
        arguments = ToolArguments(tool, given, "" if is_shell else self.workspace_directory(content))
        command = Shell(text=_text(arguments.values, "command")) if is_shell else self._call(arguments, content)
        if command is None:
            return None
        if arguments.absolute and not self.takes_result:
            # What it makes of a relative path is not known, and it takes no other one.
            raise InvalidRequest(f"the tool {tool!r} was called with a relative path", hint="Use an absolute path")
        return HookRequest(
            session=str(content.get("session_id") or ""),
            tool=tool,
            tool_input=arguments.values,
            command=command,
            cwd=self.directory(content, arguments.values) if is_shell else arguments.cwd,
            description=str(arguments.values.get("description") or ""),
            call_id=_optional(content, *CALL_IDS),
            asker=str(content.get("agent_type") or content.get("agent_id") or ""),
            model=str(content.get("model") or ""),
            background=is_shell and arguments.values.get(self.background_key) is True,
            absolute=arguments.absolute,
            configured=_server_of(content).get("source") != "dynamic",
        )

    def _call(self, arguments: ToolArguments, content: Content) -> FileEdits | Function | None:
        """The meaning of a call of another tool than a shell. None: nobody has to be asked."""
        known = self.tool_of(arguments.tool)
        if known is not None:
            return known.read(arguments, takes_result=self.takes_result)
        found = self.server_of(arguments.tool, content)
        if found is not None:
            # Calls of our own tools wait in the queue themselves.
            passes = is_own_tool(*found) and not self.asks_about_own_tools
            return None if passes else server_call(arguments, *found)
        if isinstance(arguments.values.get("command"), str):
            raise InvalidRequest(f"the tool {arguments.tool!r} is unknown and may run a command", hint=_UPDATE)
        return Function(tool=arguments.tool, arguments=arguments.values)

    def tool_of(self, name: str) -> Tool | None:
        """Return the kind of a tool of the client. None: it is not known."""
        return self.tools.get(name)

    def server_of(self, tool: str, content: Content) -> tuple[str, str] | None:
        """Return the MCP server and its tool that a name stands for. None: it is no tool of a server."""
        if not tool.startswith(self.server_prefix):
            return None
        told = _server_of(content)
        named = told.get("name") or told.get("server_name")
        return server_and_tool(tool.removeprefix(self.server_prefix), self.server_separator, named)

    def rewritten(self, asked: HookRequest, files: Sequence[FileResult]) -> Content:
        """Return the arguments with which an edit makes other files than asked. Raises `InvalidRequest`."""
        known = self.tool_of(asked.tool)
        if known is None or not self.takes_result:
            raise InvalidRequest("the agent's program takes no other edit than its own", hint="Deny the edit instead")
        return known.rewrite(ToolArguments(asked.tool, asked.tool_input, asked.cwd), files)

    def directory(self, content: Content, _tool_input: Content) -> str:
        """Return the directory in which the command would run. Raises `InvalidRequest`."""
        return self.workspace_directory(content)

    def workspace_directory(self, content: Content) -> str:
        """Return the directory in which the agent works. Raises `InvalidRequest`."""
        cwd = _text(content, "cwd")
        if not cwd.startswith("/"):
            raise InvalidRequest(f"the hook's input needs an absolute cwd, not {cwd!r}")
        return cwd

    def workspace(self, asked: HookRequest, environment: Mapping[str, str]) -> str:
        """Return the absolute path of the workspace."""
        named = environment.get(self.root_variable or "", "")
        return named if named.startswith("/") else asked.cwd

    @abstractmethod
    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Let the tool be called with these arguments. None: as it was asked. The model reads the note, if any."""

    @abstractmethod
    def deny(self, reason: str) -> HookAnswer:
        """Keep the command from running; the model reads the reason."""

    @abstractmethod
    def denial_in(self, answer: Content) -> str | None:
        """Return the reason in a parsed answer of `deny`. None: it does not deny."""

    def subject(self, tool: str, tool_input: Content) -> object:
        """Return the arguments by which the client's own question about a call is known."""
        return tool_input

    def agree(self) -> HookAnswer:
        """Answer the client's own question in the place of its user."""
        return NO_DECISION

    def question(self, command: str, cwd: str, call_id: str) -> Content:
        """Return the input that the client would send for a command of its shell tool."""
        described = {"command": command, "description": "whisper-tui doctor tests that this is stopped"}
        return self.call(self.shell_tool, described, cwd, call_id)

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input that the client would send for a call of a tool."""
        session = {"session_id": "whisper-tui-doctor", "transcript_path": "", "cwd": cwd}
        return {**session, "tool_name": tool, "tool_input": arguments}

    def canary_calls(self, path: str, url: str) -> dict[str, Content]:
        """Return the arguments with which its tools would edit this file and fetch this address, by tool."""
        return {}

    def is_session_start(self, content: Content) -> bool:
        """True if the input is of the event at which the model is told about whisper_tui."""
        return bool(self.session_event) and content.get("hook_event_name") == self.session_event

    def session_start(self, content: Content, besides: str = "") -> HookAnswer:
        """Return the answer that tells the model about whisper_tui."""
        # A session that goes on has been told before.
        if content.get("source") == "resume":
            return NO_DECISION
        return self.session_note(f"{OWN_SHELL_INSTRUCTIONS} {besides}".rstrip())

    def session_note(self, context: str) -> HookAnswer:
        """Tell the model something at the start of a session."""
        return printed({"hookSpecificOutput": {"hookEventName": self.session_event, "additionalContext": context}})

    def runs_commands(self, tool: str) -> bool:
        """True if a tool runs commands of a shell."""
        return tool == self.shell_tool or tool in self.other_shell_tools

    def done(self, content: Content) -> DoneCall | None:
        """Return the call that is over, if the input is of an event after a tool. None: it is of another event."""
        event, tool_input = content.get("hook_event_name"), content.get("tool_input")
        if event not in self.after_events or not isinstance(tool_input, dict):
            return None
        return DoneCall(
            event=str(event),
            session=str(content.get("session_id") or ""),
            tool=str(content.get("tool_name") or ""),
            tool_input=tool_input,
            cwd=str(content.get("cwd") or ""),
            call_id=_optional(content, *CALL_IDS),
        )

    def after(self, event: str, note: str) -> HookAnswer:
        """Tell the model something about the result of a call."""
        return NO_DECISION


class ClaudeFormat(HookFormat):
    """Claude Code's format, which other clients have adopted."""

    after_events = frozenset({"PostToolUse", "PostToolUseFailure"})

    def after(self, event: str, note: str) -> HookAnswer:
        """Add a note to the result that the model reads."""
        return printed({"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}})

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the decision, with the whole input where it is another one."""
        decision: Content = {"permissionDecision": "allow"}
        if arguments is not None:
            decision["updatedInput"] = arguments
        if note:
            decision["additionalContext"] = note
        return self._said(decision)

    def deny(self, reason: str) -> HookAnswer:
        """Deny with a reason."""
        return self._said({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def _said(self, decision: Content) -> HookAnswer:
        return printed({"hookSpecificOutput": {"hookEventName": self.event, **decision}})

    def agree(self) -> HookAnswer:
        """Answer the question in the place of the user."""
        decision = {"hookEventName": self.question_event, "decision": {"behavior": "allow"}}
        return printed({"hookSpecificOutput": decision})

    def denial_in(self, answer: Content) -> str | None:
        """Return the reason of a denial."""
        inner = answer.get("hookSpecificOutput")
        inner = inner if isinstance(inner, dict) else {}
        denied = inner.get("permissionDecision") == "deny" and inner.get("hookEventName") == self.event
        return str(inner.get("permissionDecisionReason")) if denied else None

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        asked = super().call(tool, arguments, cwd, call_id)
        return {**asked, "tool_use_id": call_id, "permission_mode": "default", "hook_event_name": self.event}


class CrushHook(ClaudeFormat):
    """Crush, which accepts Claude Code's answers. It can only be connected by hand."""

    name = "crush"
    shell_tool = "bash"
    other_shell_tools = frozenset({"Bash"})
    server_prefix = "mcp_"
    server_separator = "_"
    quiet_tools = frozenset({"view", "ls", "glob", "grep", "todos"})

    def read(self, content: Content) -> HookRequest | None:
        """Read an input whose event is called `event`."""
        return super().read({**content, "hook_event_name": content.get("event", self.event)})


class DecisionFormat(HookFormat):
    """A format with `decision` and `reason` at the top of the answer."""

    def directory(self, content: Content, tool_input: Content) -> str:
        """Return the directory that the tool's arguments name, or the workspace."""
        below = str(next((tool_input[key] for key in self.directory_keys if tool_input.get(key)), ""))
        cwd = super().directory(content, tool_input)
        return below if below.startswith("/") else f"{cwd.rstrip('/')}/{below}" if below else cwd

    def deny(self, reason: str) -> HookAnswer:
        """Deny with a reason."""
        return printed({"decision": "deny", "reason": reason})

    def denial_in(self, answer: Content) -> str | None:
        """Return the reason of a denial."""
        return str(answer.get("reason")) if answer.get("decision") == "deny" else None


def _server_of(content: Content) -> Content:
    """The account that a client gives of the MCP server of a tool."""
    return next((content[key] for key in ("mcp_server", "mcp_context") if isinstance(content.get(key), dict)), {})


def longest_server(tool: str, servers: object, separator: str) -> tuple[str, str] | None:
    """Return the server, of those that are configured, with whose name a tool's name begins, and the rest."""
    named = [name for name in servers if isinstance(name, str) and name] if isinstance(servers, list) else []
    prefixes = {re.sub(r"[^A-Za-z0-9_-]", "_", name) + separator: name for name in named}
    found = max((prefix for prefix in prefixes if tool.startswith(prefix)), key=len, default=None)
    return None if found is None else (prefixes[found], tool.removeprefix(found))


def is_own_tool(server: str, tool: str) -> bool:
    """True if a tool of an MCP server is one of whisper_tui."""
    # A server called `whisper_` would have tools whose names begin in the same way.
    return server == SERVER and tool[:1].isalpha()


def parsed(text: str) -> Content:
    """Parse a hook's input. Raises `InvalidRequest`."""
    try:
        content = from_json(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InvalidRequest("the hook's input is not a JSON object", hint="Is this the right client?")
    return content


_UPDATE = "Update whisper_tui, or remove its hook from this event"


def printed(content: Content) -> HookAnswer:
    """Return the answer that prints an object as JSON."""
    return HookAnswer(stdout=json.dumps(content) + "\n")


def _text(content: Content, name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise InvalidRequest(f"the hook's input has no text {name!r}", hint="Is this the right client?")
    return value


def _optional(content: Content, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := content.get(name), str) and value), None)
