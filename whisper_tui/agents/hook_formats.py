"""The formats of hooks: read a client's request, and write the decision in the client's format.

Measured with Claude Code 2.1.329, Codex 0.169, Gemini CLI 0.61 and OpenCode 1.18.33. All of them run a command when
they do not understand an answer, so only answers are written that they are known to accept.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import from_json

from whisper_tui.model.errors import InvalidRequest

Content = dict[str, Any]


@dataclass(frozen=True)
class HookRequest:
    """A command that an agent's own shell tool is about to run."""

    session: str
    """The agent's id of its session."""
    tool: str
    tool_input: Content
    """As the agent gave it."""
    command: str
    cwd: str
    description: str = ""
    call_id: str | None = None
    """The agent's id of the call, if it sends one."""
    asker: str = ""
    """The subagent that runs the command. Empty: the agent itself."""
    model: str = ""
    background: bool = False
    """True if the agent does not wait for the command to end."""


@dataclass(frozen=True)
class HookAnswer:
    """The output and the exit code of the hook's program."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


NO_DECISION = HookAnswer()
"""No decision: the agent continues as if there were no hook."""

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
"""Events that precede no command. An event that is neither here nor the format's own is refused."""

NOT_SHELLS = frozenset({"apply_patch"})
"""Tools with an argument `command` that is not run by a shell."""


class HookFormat(ABC):
    """The format of one client's hook."""

    name: ClassVar[str]
    """The client's name in sessions, and the prefix of its name in MCP."""
    shell_tool: ClassVar[str]
    """Its tool that runs commands."""
    other_shell_tools: ClassVar[frozenset[str]] = frozenset()
    """Further tools that run commands."""
    event: ClassVar[str] = "PreToolUse"
    """The event before a tool runs."""
    root_variable: ClassVar[str | None] = None
    """The variable in which hooks find the client's workspace."""
    background_key: ClassVar[str] = "run_in_background"
    """The argument of its shell tool that asks for a command in the background."""
    keeps_directory: ClassVar[frozenset[str]] = frozenset()
    """Its tools that start each command in the directory in which the last one ended."""
    shows_what_runs: ClassVar[bool] = True
    """True if its screen shows the command that runs, False if it shows the one that its model wrote."""
    blocks_by_code: ClassVar[bool] = True
    """True if exit code 2 is a denial, with the reason on standard error."""

    def read(self, content: Content) -> HookRequest | None:
        """Read a hook's input. None: it is not about a command. Raises `InvalidRequest`."""
        # Without an answer the client runs the command. So an unknown input must raise an error, which ends the
        # hook with the exit code that clients treat as a denial.
        event = _text(content, "hook_event_name") if "hook_event_name" in content else self.event
        if event in OTHER_EVENTS and event != self.event:
            return None
        if event != self.event:
            raise InvalidRequest(f"the hook's event {event!r} is unknown, so its commands are denied", hint=_UPDATE)
        tool, tool_input = _text(content, "tool_name"), content.get("tool_input")
        if tool != self.shell_tool and tool not in self.other_shell_tools:
            self._check_runs_nothing(tool, tool_input)
            return None
        if not isinstance(tool_input, dict):
            raise InvalidRequest("the hook's input has no tool_input")
        return HookRequest(
            session=str(content.get("session_id") or ""),
            tool=tool,
            tool_input=tool_input,
            command=_text(tool_input, "command"),
            cwd=self.directory(content, tool_input),
            description=str(tool_input.get("description") or ""),
            call_id=_optional(content, "tool_use_id", "call_id"),
            asker=str(content.get("agent_type") or content.get("agent_id") or ""),
            model=str(content.get("model") or ""),
            background=tool_input.get(self.background_key) is True,
        )

    def _check_runs_nothing(self, tool: str, tool_input: object) -> None:
        """Raise `InvalidRequest` for an unknown tool of the client with a command."""
        is_own = not tool.startswith(("mcp_", "mcp__")) and tool not in NOT_SHELLS
        if is_own and isinstance(tool_input, dict) and isinstance(tool_input.get("command"), str):
            raise InvalidRequest(f"the tool {tool!r} is unknown and may run a command", hint=_UPDATE)

    def directory(self, content: Content, _tool_input: Content) -> str:
        """Return the directory in which the command would run. Raises `InvalidRequest`."""
        cwd = _text(content, "cwd")
        if not cwd.startswith("/"):
            raise InvalidRequest(f"the hook's input needs an absolute cwd, not {cwd!r}")
        return cwd

    def workspace(self, asked: HookRequest, environment: Mapping[str, str]) -> str:
        """Return the absolute path of the workspace."""
        named = environment.get(self.root_variable or "", "")
        return named if named.startswith("/") else asked.cwd

    @abstractmethod
    def allow(self, asked: HookRequest, command: str, note: str) -> HookAnswer:
        """Let `command` run instead of the requested one. The model reads `note` unless it is empty."""

    @abstractmethod
    def deny(self, reason: str) -> HookAnswer:
        """Keep the command from running; the model reads the reason."""

    @abstractmethod
    def denial_in(self, answer: Content) -> str | None:
        """Return the reason in a parsed answer of `deny`. None: it does not deny."""

    def question(self, command: str, cwd: str, call_id: str) -> Content:
        """Return the input that the client would send for a command of its shell tool."""
        return {
            "session_id": "whisper-tui-doctor",
            "transcript_path": "",
            "cwd": cwd,
            "tool_name": self.shell_tool,
            "tool_input": {"command": command, "description": "whisper-tui doctor tests that this is stopped"},
        }

    def ran(self, content: Content) -> str | None:
        """Return the command that ran, if the input is of an event after a tool and needs an answer, else None.

        Only clients whose hook before the tool cannot reach the model have a hook after it.
        """
        return None

    def after(self, note: str) -> HookAnswer:
        """Tell the model something about the result of a command."""
        return NO_DECISION


class ClaudeFormat(HookFormat):
    """Claude Code's format, which other clients have adopted."""

    def allow(self, asked: HookRequest, command: str, note: str) -> HookAnswer:
        """Return the whole input with another command."""
        # `updatedInput` replaces the whole input, so the other arguments are repeated.
        decision: Content = {"permissionDecision": "allow", "updatedInput": {**asked.tool_input, "command": command}}
        if note:
            decision["additionalContext"] = note
        return self._said(decision)

    def deny(self, reason: str) -> HookAnswer:
        """Deny with a reason."""
        return self._said({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def _said(self, decision: Content) -> HookAnswer:
        return printed({"hookSpecificOutput": {"hookEventName": self.event, **decision}})

    def denial_in(self, answer: Content) -> str | None:
        """Return the reason of a denial."""
        inner = answer.get("hookSpecificOutput")
        inner = inner if isinstance(inner, dict) else {}
        denied = inner.get("permissionDecision") == "deny" and inner.get("hookEventName") == self.event
        return str(inner.get("permissionDecisionReason")) if denied else None

    def question(self, command: str, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        asked = super().question(command, cwd, call_id)
        return {**asked, "tool_use_id": call_id, "permission_mode": "default", "hook_event_name": self.event}


class DecisionFormat(HookFormat):
    """A format with `decision` and `reason` at the top of the answer."""

    directory_keys: ClassVar[tuple[str, ...]] = ()
    """Arguments of its shell tool that name a directory, absolute or relative to the workspace."""

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
