"""Kimi Code."""

from pathlib import Path
from typing import Any

from tests.clients.model.chat import ChatCompletions
from tests.clients.model.script import Call


class Kimi:
    """`kimi acp`, an agent for editors, which has them run its commands and write its files."""

    name = "kimi"
    client_name = "Kimi Code CLI"
    dialect = ChatCompletions()
    untrusted_too = ()
    prefers_structured = False

    def configure(self, home: Path, url: str) -> None:
        """Variables are enough."""

    def environment(self, url: str) -> dict[str, str]:
        """A model provider of ours."""
        model = {"NAME": "scripted", "PROVIDER_TYPE": "openai", "BASE_URL": f"{url}/v1", "API_KEY": "dummy"}
        return {f"KIMI_MODEL_{name}": value for name, value in model.items()} | {"KIMI_MODEL_CAPABILITIES": "tool_use"}

    def arguments(self, prompt: str) -> list[str]:
        """The agent of an editor, which is sent the prompt later."""
        return ["kimi", "acp"]

    def shell(self, command: str, timeout_s: int = 60) -> Call:
        """The tool Bash."""
        return Call("Bash", {"command": command, "description": "Do as the script says", "timeout": timeout_s})

    def write(self, path: Path, content: str) -> Call:
        """The tool Write."""
        return Call("Write", {"path": str(path), "content": content})

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Kimi prefixes the tool with its server."""
        return Call(f"mcp__whisper__{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The output, after a line about the time that it took; a failure is named before and after it."""
        if exit_code == 0:
            return output
        return f"<system>ERROR: Tool execution failed.</system>\n{output}Command failed with exit code: {exit_code}."

    def shell_said(self, result: str) -> str:
        """Everything but the time."""
        return result.partition("\n")[2] if result.startswith("Wall time:") else result

    def mcp_said(self, result: str) -> str:
        """Nothing is added."""
        return result


class KimiWithPrompt(Kimi):
    """`kimi -p`, which runs commands itself."""

    def arguments(self, prompt: str) -> list[str]:
        """One prompt. Without a terminal, it asks nothing itself."""
        return ["kimi", "-p", prompt, "--output-format", "stream-json"]
