"""whisper_tui as what it is compared as: an agent's MCP server, a Python library, and a program of the command line.

Each has a supervisor of its own with policy, journal and keepers; a rule allows the commands, so nobody is waited for.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import directories
from benchmarks.peers.mcp_stdio import Server
from benchmarks.peers.processes import until
from benchmarks.peers.programs import said
from benchmarks.peers.way import Argv, Failed, Way, environment
from whisper_tui.model.call import Argv as ArgvCommand
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import CallRecord
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient

SCRIPT = str(Path(sys.executable).parent / "whisper-tui")
STOP_S = 60.0
_TIMEOUT_S = 120
_MOST_WORKERS = 1000


def home_in(place: Path, workers: int = 8, commands: Sequence[Argv] = ()) -> Directories:
    """Directories for a supervisor, with rules that allow exactly these commands."""
    # A command that reads a file or a pipe beside the workspace could not do so in a sandbox.
    rules = [
        f'[[rules.allow]]\nname = "measured {number}"\nargv = {json.dumps(argv)}\n'
        f"{'sandbox = false' if any(word.startswith('/') for word in argv) else ''}\n"
        for number, argv in enumerate(commands)
    ]
    home = directories(place)
    Path(home.config).mkdir(mode=0o700)
    file = Path(home.config) / "config.toml"
    file.touch(mode=0o600)
    file.write_text(f"[supervisor]\nworkers = {min(workers, _MOST_WORKERS)}\n{''.join(rules)}")
    return home


async def stop(place: Path) -> None:
    """Stop the supervisor of a place, as the system does: to what an agent has started it would not listen."""
    door = await SupervisorClient.connect(directories(place), start=False)
    pid = (await door.status()).pid
    await door.close()
    os.kill(pid, signal.SIGTERM)
    if not await until(lambda: not (place / "run" / "supervisor.sock").exists(), STOP_S):
        raise Failed("the supervisor did not stop")


class _Ours(Way):
    """A supervisor of its own, which some client uses."""

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Write its configuration, and let the client start it."""
        self._place = place
        await self._connect(home_in(place, at_once, commands))

    async def close(self) -> None:
        """End the client and then the supervisor."""
        await self._disconnect()
        await stop(self._place)

    async def _connect(self, home: Directories) -> None:
        """Get ready to have commands run; the supervisor is started by that."""
        raise NotImplementedError

    async def _disconnect(self) -> None:
        """Let go of the supervisor."""

    def kept(self) -> int:
        """The largest file of output: that of the only command with output."""
        return max((file.stat().st_size for file in (self._place / "state" / "runs").glob("*/out")), default=0)


class OverMcp(_Ours):
    """What an agent launches."""

    name = "whisper-tui mcp"

    async def _connect(self, _home: Directories) -> None:
        argv = (SCRIPT, "mcp", "--home", str(self._place), "--wait", "600")
        self._server = await Server.start(argv, environment(self._place), self._place)

    async def run(self, argv: Argv) -> None:
        """One call."""
        arguments = {"command": argv[0], "args": list(argv[1:]), "timeout": _TIMEOUT_S}
        result = await self._server.call("execute_command", arguments)
        _check_code(result.get("structuredContent") or {})

    async def _disconnect(self) -> None:
        await self._server.close()


class FromPython(_Ours):
    """A program that uses the socket: what the library and the hooks do."""

    name = "whisper-tui from Python"

    async def _connect(self, home: Directories) -> None:
        self._door = await SupervisorClient.connect(home)
        hello = SessionHello(name="benchmark", root=str(self._place), environment=dict(os.environ))
        self._session = (await self._door.open_session(hello)).id

    async def run(self, argv: Argv) -> None:
        """One call."""
        record = await self._door.outcome(await self._door.submit(request(self._session, self._place, argv)))
        _check_record(record)

    async def _disconnect(self) -> None:
        await self._door.close()


class FromShell(_Ours):
    """`whisper-tui call`: an interpreter starts for each command."""

    name = "whisper-tui call"

    async def _connect(self, _home: Directories) -> None:
        await said((SCRIPT, "list", "--home", str(self._place)), environment(self._place))

    async def run(self, argv: Argv) -> None:
        """One call."""
        arguments = {"command": argv[0], "args": list(argv[1:]), "timeout": _TIMEOUT_S}
        words = (SCRIPT, "call", "--home", str(self._place), "execute_command", json.dumps(arguments))
        _check_code(json.loads(await said(words, environment(self._place))))


def request(session: str, place: Path, argv: Argv) -> CallRequest:
    """A call of `execute_command`."""
    spec = CommandSpec(command=ArgvCommand(program=argv[0], args=argv[1:]), cwd=str(place))
    return CallRequest(session_id=session, tool="execute_command", arguments={}, spec=spec)


def _check_code(result: dict[str, Any]) -> None:
    if result.get("return_code") != 0:
        raise Failed(f"return code {result.get('return_code')}")


def _check_record(record: CallRecord) -> None:
    ending = getattr(record.state, "ending", None)
    if not isinstance(ending, Exited) or ending.code != 0:
        raise Failed(f"ended as {ending}")
