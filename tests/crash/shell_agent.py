"""An agent with a shell of its own, whose hook is ours. What its killed hook did not answer it asks again."""

import asyncio
import json
import shlex
from contextlib import suppress

from tests.crash.field import AGAIN_S, PROGRAM, Field
from tests.crash.work import OF_ANY_SHELL, Work
from whisper_tui.transports.hook.exec_program import CANNOT


async def with_a_hook(field: Field) -> None:
    """Run one command after the other, as the hook says."""
    while not field.over.is_set():
        work = field.numbers.next_of(OF_ANY_SHELL)
        command = await _asked(field, work)
        if command is None:
            continue
        process = await field.start("exec", *shlex.split(command), stdin=asyncio.subprocess.DEVNULL)
        out, _ = await process.communicate()
        field.forget("exec", process)
        if process.pid in field.killed_at:
            field.ended_by_agent.add(work.number)
        elif process.returncode is not None and process.returncode >= 0 and process.returncode != CANNOT:
            field.told.result(work, process.returncode, out)


async def _asked(field: Field, work: Work) -> str | None:
    """What the agent is to run instead. None: it was told no."""
    content = {
        "session_id": "crash",
        "cwd": str(field.workspace),
        "tool_name": "Bash",
        "tool_input": {"command": work.text(field.root)},
    }
    while True:
        process = await field.start("hook", *PROGRAM, "hook", "claude", "--home", str(field.root))
        with suppress(ConnectionError):
            out, _ = await process.communicate(json.dumps(content).encode())
        field.forget("hook", process)
        if process.returncode == 0:
            decision = json.loads(out)["hookSpecificOutput"]
            if decision["permissionDecision"] == "deny":
                return None
            return str(decision["updatedInput"]["command"])
        await asyncio.sleep(AGAIN_S)
