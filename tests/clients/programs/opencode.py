"""OpenCode."""

import json
from pathlib import Path
from typing import Any

from tests.clients.model.chat import ChatCompletions
from tests.clients.model.script import Call


class OpenCode:
    """`opencode run`, which speaks the chat completions format."""

    name = "opencode"
    client_name = "opencode"
    dialect = ChatCompletions()
    untrusted_too = ()
    prefers_structured = False

    def configure(self, home: Path, url: str) -> None:
        """A model provider of ours."""
        directory = home / ".config" / "opencode"
        directory.mkdir(mode=0o700, parents=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted", "limit": {"context": 200_000, "output": 8_000}}},
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"scripted": provider},
        }
        (directory / "opencode.json").write_text(json.dumps(settings, indent=2) + "\n")

    def environment(self, url: str) -> dict[str, str]:
        """Nobody is called home, not even for the types that plugins may be written with."""
        quiet = ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD")
        return dict.fromkeys(quiet, "1") | {"npm_config_offline": "true"}

    def arguments(self, prompt: str) -> list[str]:
        """One prompt, with its events on standard output."""
        return ["opencode", "run", "--format", "json", "-m", "scripted/scripted", prompt]

    def shell(self, command: str) -> Call:
        """The tool bash."""
        return Call("bash", {"command": command, "description": "Do as the script says"})

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """OpenCode prefixes the tool with its server."""
        return Call(f"whisper_{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The output and nothing else: OpenCode never tells its model an exit code."""
        return output

    def shell_said(self, result: str) -> str:
        """Nothing is added."""
        return result

    mcp_said = shell_said
