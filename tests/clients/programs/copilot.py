"""GitHub Copilot CLI."""

import json
import re
from pathlib import Path
from typing import Any

from tests.clients.model.chat import ChatCompletions
from tests.clients.model.script import Call

SHELL = re.compile(r"\n?<shellId: \d+ completed with exit code (\d+)>\Z")

STRUCTURED = re.compile(r'\n\n\{"stdout":.*\}\Z')


class Copilot:
    """`copilot -p`, which speaks the chat completions format with a provider of ours."""

    name = "copilot"
    client_name = "copilot-cli"
    dialect = ChatCompletions()
    untrusted_too = ()
    prefers_structured = False
    model = "scripted"
    """A model that it does not know edits with `create` and `edit`."""

    def configure(self, home: Path, url: str) -> None:
        """The workspace, which is beside the home, is trusted."""
        directory = home / ".copilot"
        directory.mkdir(mode=0o700)
        trusted = {"trustedFolders": [str(home.parent / "workspace")]}
        (directory / "config.json").write_text(json.dumps(trusted, indent=2) + "\n")

    def environment(self, url: str) -> dict[str, str]:
        """Where the model is, and nobody called home."""
        return {
            "COPILOT_OFFLINE": "1",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_MODEL": self.model,
            "COPILOT_AUTO_UPDATE": "false",
        }

    def arguments(self, prompt: str) -> list[str]:
        """One prompt. What neither a hook nor an option allows, is denied."""
        return ["copilot", "-p", prompt, "--no-color", "--allow-tool=whisper"]

    def shell(self, command: str) -> Call:
        """The tool bash, which waits for as long as it may before it lets a command go on by itself."""
        given = {"command": command, "description": "Do as the script says", "initial_wait": 600}
        return Call("bash", given)

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Copilot prefixes the tool with its server."""
        return Call(f"whisper-{tool}", arguments)

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The exit code comes last, also that of a success."""
        return f"{output.rstrip()}\n[{exit_code}]"

    def shell_said(self, result: str) -> str:
        """The number of the shell is left out."""
        return SHELL.sub(r"\n[\1]", result)

    def mcp_said(self, result: str) -> str:
        """Both forms of the result are shown; this is the text."""
        return STRUCTURED.sub("", result)


class CopilotWithPatches(Copilot):
    """The same with a model of OpenAI, which edits with patches that are no JSON."""

    model = "gpt-5.4"
