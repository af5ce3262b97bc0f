"""Servers of MCP that run commands without asking anybody."""

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.install import program
from benchmarks.peers.mcp_stdio import Server, text_of
from benchmarks.peers.way import Argv, Failed, Way, environment

_PATIENCE_S = 600


class _McpPeer(Way):
    _server: Server
    _result: dict[str, Any]

    def kept(self) -> int:
        """The answer is all that there is."""
        return len(text_of(self._result).encode())

    async def close(self) -> None:
        """End the server."""
        await self._server.close()


class ServerCommands(_McpPeer):
    """mcp-server-commands: a line for `/bin/sh`."""

    name = "mcp-server-commands"

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Start it."""
        self._server = await Server.start([program(self.name)], environment(place), place)

    async def run(self, argv: Argv) -> None:
        """One call."""
        self._result = await self._server.call("run_command", {"command": shlex.join(argv)})


class ShellServer(_McpPeer):
    """mcp-shell-server: words, the first of which its user has allowed. It allows no shell of a known name."""

    name = "mcp-shell-server"
    _shell = "benchmark-shell"

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Start it, with the commands allowed and the shell under a name that it does not know."""
        bash = shutil.which("bash")
        assert bash is not None
        (place / self._shell).symlink_to(bash)
        allowed = ",".join({self._renamed(argv)[0] for argv in commands})
        path = f"{place}:{os.environ['PATH']}"
        environ = environment(
            place, ALLOW_COMMANDS=allowed, MCP_SHELL_SAFE_PATH=path, MCP_SHELL_MAX_TIMEOUT_SECONDS=str(_PATIENCE_S)
        )
        self._place = place
        self._server = await Server.start([program(self.name)], environ, place)

    async def run(self, argv: Argv) -> None:
        """One call."""
        arguments = {"command": list(self._renamed(argv)), "directory": str(self._place), "timeout": _PATIENCE_S}
        self._result = await self._server.call("shell_execute", arguments)

    def _renamed(self, argv: Argv) -> Argv:
        return (self._shell, *argv[1:]) if argv[0] == "bash" else argv


class DesktopCommander(_McpPeer):
    """desktop-commander: a line for a shell, whose output is looked at until it seems to be over."""

    name = "desktop-commander"

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Start it, told to send nothing to its makers."""
        settings = place / ".claude-server-commander" / "config.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"telemetryEnabled": False}))
        self._server = await Server.start([program(self.name)], environment(place), place)

    async def run(self, argv: Argv) -> None:
        """One call. Its answer has no exit code; that the command was started is all that can be checked."""
        arguments = {"command": shlex.join(argv), "timeout_ms": _PATIENCE_S * 1000}
        self._result = await self._server.call("start_process", arguments)
        if "Process started with PID" not in text_of(self._result):
            raise Failed(text_of(self._result).splitlines()[0])
