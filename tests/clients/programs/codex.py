"""Codex."""

import json
import re
from pathlib import Path
from typing import Any

from tests.clients.model.responses import CodeMode, Responses
from tests.clients.model.script import Call

CONFIG = """\
# These settings are the tests' own.
model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
"""

FIGURES = re.compile(r"^(Chunk ID|Wall time|Original token count): .*\n", re.MULTILINE)


class Codex:
    """`codex exec`, which speaks the Responses format."""

    name = "codex"
    client_name = "codex"
    dialect = Responses()
    untrusted_too = ("--dangerously-bypass-hook-trust",)
    prefers_structured = True

    def configure(self, home: Path, url: str) -> None:
        """A model provider of ours."""
        directory = home / ".codex"
        directory.mkdir(mode=0o700)
        (directory / "config.toml").write_text(CONFIG.format(url=url))

    def environment(self, url: str) -> dict[str, str]:
        """The provider's dummy key."""
        return {"SCRIPTED_KEY": "dummy"}

    def arguments(self, prompt: str) -> list[str]:
        """One turn, with its events on standard output."""
        return ["codex", "exec", "--json", "--skip-git-repo-check", prompt]

    def shell(self, command: str) -> Call:
        """The tool exec_command, which waits for as long as it may before it lets a command go on by itself."""
        return Call("exec_command", {"cmd": command, "yield_time_ms": 30_000})

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """Codex puts the tools of a server into a namespace."""
        return Call(tool, arguments, namespace="mcp__whisper")

    def shell_shows(self, output: str, exit_code: int) -> str:
        """The exit code always comes first."""
        return f"Process exited with code {exit_code}\nOutput:\n{output}"

    def shell_said(self, result: str) -> str:
        """Figures come first; the exit code is one of them, so it is kept."""
        return FIGURES.sub("", result)

    mcp_said = shell_said


class CodexInCodeMode(Codex):
    """The same with a model of its newer kind, which writes JavaScript that calls the tools."""

    dialect = CodeMode()

    def configure(self, home: Path, url: str) -> None:
        """A model that Codex knows to be of that kind."""
        super().configure(home, url)
        path = home / ".codex" / "config.toml"
        path.write_text(path.read_text().replace('model = "gpt-5"', 'model = "gpt-6-sol"'))

    def script(self, text: str) -> Call:
        """A script."""
        return Call("exec", {"script": text}, namespace="functions")

    def shell(self, command: str) -> Call:
        """A script that runs one command, and shows what came of it."""
        asked = json.dumps({"cmd": command, "yield_time_ms": 30_000})
        return self.script(f"const ran = await tools.exec_command({asked}); text(ran.output);")
