"""Claude Code."""

import re
from pathlib import Path
from typing import Any

from tests.clients.model.anthropic import Messages
from tests.clients.model.script import Call

REMINDER = re.compile(r"\n\n<system-reminder>.*?</system-reminder>", re.DOTALL)


class Claude:
    """`claude -p`, which speaks the Messages format."""

    name = "claude"
    client_name = "claude-code"
    dialect = Messages()
    untrusted_too = ()
    prefers_structured = True

    def configure(self, home: Path, url: str) -> None:
        """Nothing: the environment says all."""

    def environment(self, url: str) -> dict[str, str]:
        """Where the model is, a dummy key, nobody called home, and no turn before the servers are there."""
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            # It waits a few seconds otherwise, in which a busy machine starts none.
            "MCP_CONNECT_TIMEOUT_MS": "120000",
            "MCP_TIMEOUT": "120000",
        }

    def arguments(self, prompt: str) -> list[str]:
        """Print mode, with every message on standard output."""
        model = ("--model", "claude-sonnet-4-5")
        return ["claude", "-p", prompt, "--output-format", "stream-json", "--verbose", *model]

    def shell(self, command: str) -> Call:
        """The tool Bash."""
        return Call("Bash", {"command": command, "description": "Do as the script says"})

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Claude Code prefixes the tool with its server."""
        return Call(f"mcp__whisper__{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The exit code of a failure comes first; the last line's end is left out."""
        failure = f"Exit code {exit_code}\n" if exit_code else ""
        return f"{failure}{output}".rstrip("\n")

    def shell_said(self, result: str) -> str:
        """Reminders of the client's own may follow."""
        return REMINDER.sub("", result)

    mcp_said = shell_said
