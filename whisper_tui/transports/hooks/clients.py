"""What each agent's hook says and wants to hear: its own input read, its own answer written.

Measured with Claude Code 2.1.329, Codex 0.169, Gemini CLI 0.61 and OpenCode 1.18.33. All of them let a command run when
an answer is not understood, so nothing is written that they were not seen to take.
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
class Asked:
    """A command that an agent's own shell tool is about to run."""

    session: str
    """The agent's own name of its session."""
    tool: str
    tool_input: Content
    """As the agent gave it."""
    command: str
    cwd: str
    description: str = ""
    call_id: str | None = None
    """The agent's own name of the call. None: it gives none."""
    asker: str = ""
    """Which helper of the agent asks. Empty: the agent itself."""
    model: str = ""


@dataclass(frozen=True)
class HookAnswer:
    """What the hook's program prints and how it ends."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


PASSES = HookAnswer()
"""Nothing is said about this: the agent goes on as if there were no hook."""

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
"""Events before which no command runs. Of an event that is not known, that is not known."""

NOT_SHELLS = frozenset({"apply_patch"})
"""Tools whose `command` is no command."""


class Client(ABC):
    """One agent program."""

    name: ClassVar[str]
    """As sessions show it."""
    tools: ClassVar[frozenset[str]]
    """Its tools that run commands."""
    root_variable: ClassVar[str | None] = None
    """The variable that holds its workspace."""

    def read(self, content: Content) -> Asked | None:
        """What a hook's input asks. None: it is about nothing that runs a command. Raises `InvalidRequest`.

        To say nothing lets the agent go on. So what is not understood raises, which the agent takes for a refusal.
        """
        event = _text(content, "hook_event_name") if "hook_event_name" in content else self.event
        if event in OTHER_EVENTS and event != self.event:
            return None
        if event != self.event:
            raise InvalidRequest(f"the hook's event {event!r} is not known, so nothing may pass it", hint=_UPDATE)
        tool, tool_input = _text(content, "tool_name"), content.get("tool_input")
        if tool not in self.tools:
            self._check_runs_nothing(tool, tool_input)
            return None
        if not isinstance(tool_input, dict):
            raise InvalidRequest("the hook's input has no tool_input")
        return Asked(
            session=str(content.get("session_id") or ""),
            tool=tool,
            tool_input=tool_input,
            command=_text(tool_input, "command"),
            cwd=self.directory(content, tool_input),
            description=str(tool_input.get("description") or ""),
            call_id=_optional(content, "tool_use_id", "call_id"),
            asker=str(content.get("agent_type") or content.get("agent_id") or ""),
            model=str(content.get("model") or ""),
        )

    event: ClassVar[str] = "PreToolUse"
    keeps_directory: ClassVar[frozenset[str]] = frozenset()
    """Its tools whose next command begins where the last one ended."""
    shows_what_runs: ClassVar[bool] = True
    """Whether its screen shows what it runs, and not what its model has written."""

    def _check_runs_nothing(self, tool: str, tool_input: object) -> None:
        """Raises `InvalidRequest` for a tool of the agent's own that is not known and has a command."""
        is_own = not tool.startswith(("mcp_", "mcp__")) and tool not in NOT_SHELLS
        if is_own and isinstance(tool_input, dict) and isinstance(tool_input.get("command"), str):
            raise InvalidRequest(f"the tool {tool!r} is not known and may run a command", hint=_UPDATE)

    def directory(self, content: Content, _tool_input: Content) -> str:
        """The directory in which the command would run. Raises `InvalidRequest`."""
        cwd = _text(content, "cwd")
        if not cwd.startswith("/"):
            raise InvalidRequest(f"the hook's input has no absolute cwd, but {cwd!r}")
        return cwd

    def workspace(self, asked: Asked, environment: Mapping[str, str]) -> str:
        """Absolute path of the workspace."""
        named = environment.get(self.root_variable or "", "")
        return named if named.startswith("/") else asked.cwd

    @abstractmethod
    def allow(self, asked: Asked, command: str, note: str) -> HookAnswer:
        """The command runs as `command`; `note` is for the model, where it is not empty."""

    @abstractmethod
    def deny(self, reason: str) -> HookAnswer:
        """The command does not run."""


class _ClaudeLike(Client):
    """Claude Code's format, which others took over."""

    def allow(self, asked: Asked, command: str, note: str) -> HookAnswer:
        """The whole input comes back with another command."""
        decision: Content = {"permissionDecision": "allow", "updatedInput": {**asked.tool_input, "command": command}}
        if note:
            decision["additionalContext"] = note
        return self._said(decision)

    def deny(self, reason: str) -> HookAnswer:
        """The reason is what the model is shown."""
        return self._said({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def _said(self, decision: Content) -> HookAnswer:
        return _printed({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})


class ClaudeCode(_ClaudeLike):
    """Claude Code."""

    name = "claude-code"
    tools = frozenset({"Bash", "Monitor", "PowerShell"})
    keeps_directory = frozenset({"Bash"})
    shows_what_runs = False
    root_variable = "CLAUDE_PROJECT_DIR"

    def read(self, content: Content) -> Asked | None:
        """Its Monitor watches what a command writes, or a WebSocket; its PowerShell is a language of its own."""
        tool, tool_input = content.get("tool_name"), content.get("tool_input")
        if tool == "Monitor" and isinstance(tool_input, dict) and not isinstance(tool_input.get("command"), str):
            raise InvalidRequest(
                "this Monitor runs no command (it would open a WebSocket), so nobody can approve it here",
                hint="Watch it with a command instead",
            )
        if tool == "PowerShell":
            raise InvalidRequest("commands of PowerShell cannot be judged and run by whisper_tui", hint="Use Bash")
        return super().read(content)


class Codex(_ClaudeLike):
    """Codex CLI: every shell tool of its model is called Bash in its hooks."""

    name = "codex"
    tools = frozenset({"Bash"})


class Crush(_ClaudeLike):
    """Crush, which takes Claude Code's answers."""

    name = "crush"
    tools = frozenset({"bash", "Bash"})

    def read(self, content: Content) -> Asked | None:
        """Crush names its event `event`."""
        return super().read({**content, "hook_event_name": content.get("event", self.event)})


class GeminiCli(Client):
    """Gemini CLI: it tells its model of any change by itself, and takes a note only after the tool."""

    name = "gemini-cli"
    tools = frozenset({"run_shell_command"})
    root_variable = "GEMINI_PROJECT_DIR"
    event = "BeforeTool"

    def directory(self, content: Content, tool_input: Content) -> str:
        """Its tool may name a directory below the workspace."""
        below = str(tool_input.get("dir_path") or tool_input.get("directory") or "")
        cwd = super().directory(content, tool_input)
        return below if below.startswith("/") else f"{cwd.rstrip('/')}/{below}" if below else cwd

    def allow(self, asked: Asked, command: str, note: str) -> HookAnswer:
        """The note has to wait for `after`."""
        return _printed(
            {"decision": "allow", "hookSpecificOutput": {"tool_input": {**asked.tool_input, "command": command}}}
        )

    def deny(self, reason: str) -> HookAnswer:
        """The reason is what the model is shown."""
        return _printed({"decision": "deny", "reason": reason})

    def ran(self, content: Content) -> str | None:
        """The command that has run, where the input is of the hook after the tool."""
        tool_input = content.get("tool_input")
        if content.get("hook_event_name") != "AfterTool" or not isinstance(tool_input, dict):
            return None
        return str(tool_input.get("command") or "")

    def after(self, note: str) -> HookAnswer:
        """What the model is told behind a result."""
        return _printed({"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": note}})


class OpenCode(Client):
    """OpenCode, by the plugin that is installed into it."""

    name = "opencode"
    tools = frozenset({"bash"})

    def directory(self, content: Content, tool_input: Content) -> str:
        """Its tool may name a directory."""
        below = str(tool_input.get("workdir") or "")
        cwd = super().directory(content, tool_input)
        return below if below.startswith("/") else f"{cwd.rstrip('/')}/{below}" if below else cwd

    def allow(self, asked: Asked, command: str, note: str) -> HookAnswer:
        """The plugin puts the note in front of the output."""
        return _printed({"decision": "allow", "command": command, "note": note})

    def deny(self, reason: str) -> HookAnswer:
        """The plugin throws the reason, which is what the model is shown."""
        return _printed({"decision": "deny", "reason": reason})


CLIENTS: Mapping[str, Client] = {
    "claude": ClaudeCode(),
    "codex": Codex(),
    "gemini": GeminiCli(),
    "opencode": OpenCode(),
    "crush": Crush(),
}
"""By the word that names them on the command line."""


def parsed(text: str) -> Content:
    """A hook's input. Raises `InvalidRequest`."""
    try:
        content = from_json(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InvalidRequest("the hook's input is not a JSON object", hint="Is this the right client?")
    return content


_UPDATE = "Update whisper_tui, or take its hook away from this event"


def _printed(content: Content) -> HookAnswer:
    return HookAnswer(stdout=json.dumps(content) + "\n")


def _text(content: Content, name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise InvalidRequest(f"the hook's input has no text {name!r}", hint="Is this the right client?")
    return value


def _optional(content: Content, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := content.get(name), str) and value), None)
