"""Gemini CLI."""

import json
import re
from pathlib import Path
from typing import Any

from tests.clients.model.gemini import GenerateContent
from tests.clients.model.script import Call

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}

UNTRUSTED = re.compile(r"<untrusted_context>\n(.*?)\n</untrusted_context>", re.DOTALL)
CHANGED = "\n\n[System] Tool input parameters were modified by a hook before execution."
HOOK = re.compile(r"\n\n<hook_context>.*?</hook_context>", re.DOTALL)
GROUP = re.compile(r"\nProcess Group PGID: \d+")


class Gemini:
    """`gemini -p`, which speaks the generateContent format."""

    name = "gemini"
    client_name = "gemini-cli"
    dialect = GenerateContent()
    untrusted_too = ()
    prefers_structured = False

    def configure(self, home: Path, url: str) -> None:
        """A dummy key is chosen as the way to log in, and nobody is called home."""
        directory = home / ".gemini"
        directory.mkdir(mode=0o700)
        (directory / "settings.json").write_text(json.dumps(SETTINGS, indent=2) + "\n")

    def environment(self, url: str) -> dict[str, str]:
        """Where the model is, and that the empty workspace is trusted."""
        return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "dummy", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def arguments(self, prompt: str) -> list[str]:
        """One prompt, in the only mode in which the shell tool is offered without a terminal."""
        how = ("--approval-mode", "yolo", "-o", "stream-json")
        return ["gemini", "-m", "gemini-2.5-pro", *how, "-p", prompt]

    def shell(self, command: str) -> Call:
        """The tool run_shell_command."""
        return Call("run_shell_command", {"command": command, "description": "Do as the script says"})

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Gemini CLI prefixes the tool with its server."""
        return Call(f"mcp_whisper_{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The exit code of a failure comes last."""
        shown = "Output: " + output.rstrip("\n")
        return f"{shown}\nExit Code: {exit_code}" if exit_code else shown

    def shell_said(self, result: str) -> str:
        """What comes from outside is marked as untrusted; a process group and what hooks did and said are added."""
        without = HOOK.sub("", result.removesuffix(CHANGED))
        return GROUP.sub("", UNTRUSTED.sub(r"\1", without))

    def mcp_said(self, result: str) -> str:
        """An error is told with the whole response as JSON, in which the words are."""
        _, mark, response = result.partition(" with response: ")
        if mark:
            (answer,) = json.loads(response)
            return "\n".join(part["text"] for part in answer["functionResponse"]["response"]["content"])
        return UNTRUSTED.sub(r"\1", result)
