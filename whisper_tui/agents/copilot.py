"""GitHub Copilot CLI, and VS Code's Copilot: its hook. It is connected by hand; `install` does not know its files."""

from collections.abc import Mapping
from typing import ClassVar

from whisper_tui.agents.agent_tools import Content, FunctionTool, ReplaceTool, Tool, WriteTool
from whisper_tui.agents.hook_formats import HookAnswer, HookFormat, HookRequest, parsed, printed
from whisper_tui.agents.profile import ClientProfile

NAMES = {
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "sessionId": "session_id",
    "agentType": "agent_type",
    "agentId": "agent_id",
}
"""Its names of members, and those of the other clients."""


class CopilotHook(HookFormat):
    """Copilot, as of version 1.0.102: its hook has no matcher, so it is called before every tool."""

    name = "copilot"
    shell_tool = "bash"
    event = "preToolUse"
    tools: ClassVar[Mapping[str, Tool]] = {
        "create": WriteTool("path", "file_text"),
        "edit": ReplaceTool("path", "old_str", "new_str", every=""),
        "task": FunctionTool("subagent", name="agent_type"),
        "web_fetch": FunctionTool("web", url="url"),
    }
    # `write_bash` is not among them: what it types into a running shell may be a command.
    quiet_tools = frozenset({"view", "glob", "grep", "read_bash", "report_intent"})

    def read(self, content: Content) -> HookRequest | None:
        """Read an input. Older versions send the arguments as a text."""
        named = {NAMES.get(key, key): value for key, value in content.items()}
        arguments = named.get("tool_input")
        return super().read({**named, "tool_input": parsed(arguments) if isinstance(arguments, str) else arguments})

    def allow(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the decision, with the whole arguments where they are others."""
        changed = {} if arguments is None else {"modifiedArgs": arguments}
        return printed(
            {"permissionDecision": "allow", **changed, **({"permissionDecisionReason": note} if note else {})}
        )

    def deny(self, reason: str) -> HookAnswer:
        """Deny with a reason."""
        return printed({"permissionDecision": "deny", "permissionDecisionReason": reason})

    def denial_in(self, answer: Content) -> str | None:
        """Return the reason of a denial."""
        denied = answer.get("permissionDecision") == "deny"
        return str(answer.get("permissionDecisionReason")) if denied else None

    def call(self, tool: str, arguments: Content, cwd: str, call_id: str) -> Content:
        """Return the input before a tool."""
        return {"sessionId": "whisper-tui-doctor", "cwd": cwd, "toolName": tool, "toolArgs": arguments}


PROFILE = ClientProfile(name="copilot", title="GitHub Copilot CLI", hook=CopilotHook(), hook_timeout_s=30.0)
