"""Crush: its hook. It can only be connected by hand; `install` and `doctor` do not know its files."""

from whisper_tui.agents.agent_tools import Content
from whisper_tui.agents.hook_formats import ClaudeFormat, HookRequest
from whisper_tui.agents.profile import ClientProfile


class CrushHook(ClaudeFormat):
    """Crush, which accepts Claude Code's answers."""

    name = "crush"
    shell_tool = "bash"
    other_shell_tools = frozenset({"Bash"})
    server_prefix = "mcp_"
    server_separator = "_"
    quiet_tools = frozenset({"view", "ls", "glob", "grep", "todos"})

    def read(self, content: Content) -> HookRequest | None:
        """Read an input whose event is called `event`."""
        return super().read({**content, "hook_event_name": content.get("event", self.event)})


PROFILE = ClientProfile(name="crush", title="Crush", hook=CrushHook(), hook_timeout_s=30.0)
