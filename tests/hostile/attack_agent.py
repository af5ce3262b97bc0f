"""An agent that asks for the command of each attack, and writes what came of it: a program of `test_attacks`."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from whisper_tui.config import find_directories
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.state import Ended, Unjudged, Waiting
from whisper_tui.wire.client import SupervisorClient

AT_ONCE = 6
LONGEST_S = 60.0


async def main(home: str, asked: Path, told: Path) -> None:
    """Ask for all of them, several at a time."""
    supervisor = await SupervisorClient.connect(find_directories(home, {}))
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(name: str, workspace: str, command: str) -> tuple[str, dict[str, str]]:
        async with room:
            return name, await outcome(supervisor, workspace, command)

    attacks: dict[str, list[str]] = json.loads(asked.read_text())
    answers = dict(await asyncio.gather(*(ask(name, *attack) for name, attack in attacks.items())))
    told.write_text(json.dumps(answers))
    await supervisor.close()


async def outcome(supervisor: Any, workspace: str, command: str) -> dict[str, str]:
    """The state in which a call stays until a human decides, and all that an agent gets to see of it."""
    hello = SessionHello(name="attacker", root=workspace, environment=dict(os.environ))
    session = await supervisor.open_session(hello)
    spec = CommandSpec(command=Shell(text=command), cwd=workspace)
    request = CallRequest(session_id=session.id, tool="run_shell_command", arguments={"command": command}, spec=spec)
    call_id = await supervisor.submit(request)
    async with asyncio.timeout(LONGEST_S):
        while True:
            record = await supervisor.record(call_id)
            if isinstance(record.state, Waiting | Ended) and record.verdict is not None:
                break
            assert isinstance(record.state, Unjudged) or record.verdict is not None
            await asyncio.sleep(0.05)
    output = ""
    if isinstance(record.state, Ended):
        for stream in ("out", "err"):
            chunk = await supervisor.read_output(call_id, stream, 0, 1 << 20)
            output += chunk.data.decode(errors="replace")
    return {"state": record.state.kind, "verdict": record.verdict.kind, "output": output}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
