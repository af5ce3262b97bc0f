"""Qwen Code."""

import json
from pathlib import Path
from typing import Any

from tests.clients.model.chat import ChatCompletions
from tests.clients.model.script import Call

SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


class Qwen:
    """`qwen -p`, which speaks the chat completions format."""

    name = "qwen"
    client_name = "qwen-code"
    dialect = ChatCompletions()
    untrusted_too = ()
    prefers_structured = False

    def configure(self, home: Path, url: str) -> None:
        """Nobody is called home."""
        directory = home / ".qwen"
        directory.mkdir(mode=0o700)
        (directory / "settings.json").write_text(json.dumps(SETTINGS, indent=2) + "\n")

    def environment(self, url: str) -> dict[str, str]:
        """Where the model is, and a dummy key."""
        return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "dummy", "OPENAI_MODEL": "scripted"}

    def arguments(self, prompt: str) -> list[str]:
        """One prompt, in the only mode in which the shell tool is allowed without a terminal."""
        return ["qwen", "--approval-mode", "yolo", "-o", "stream-json", "-p", prompt]

    def shell(self, command: str) -> Call:
        """The tool run_shell_command."""
        given = {"command": command, "description": "Do as the script says", "is_background": False}
        return Call("run_shell_command", given)

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Qwen Code names the server and the tool."""
        return Call(f"mcp__whisper__{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """Two lines of what is shown."""
        return f"Output: {output.rstrip() or '(empty)'}\nError: (none)\nExit Code: {exit_code}"

    def shell_said(self, result: str) -> str:
        """Without the command, the directory and the processes."""
        return result[result.find("Output: ") :].partition("\nSignal: ")[0] if "Output: " in result else result

    def mcp_said(self, result: str) -> str:
        """Nothing is added."""
        return result
