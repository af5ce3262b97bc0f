"""An agent with a shell of its own, whose hook is ours. What its killed hook did not answer it asks again."""

import asyncio
import json
import shlex

from tests.crash.client import Client, ClientGone
from tests.crash.field import AGAIN_S, PROGRAM, Field
from tests.crash.work import OF_ANY_SHELL, Work
from whisper_tui.transports.hook.exec_program import CANNOT


async def with_a_hook(field: Field, session: str) -> None:
    """Run one command after the other, as the hook says. A client that was killed goes on with the next one."""
    while not field.over.is_set():
        client = await Client.start(field, "hook client")
        while not field.over.is_set():
            work = field.numbers.next_of(OF_ANY_SHELL)
            try:
                await _carry_out(field, client, session, work)
            except ClientGone:
                # Nobody reads any more what the command prints, and nobody waits for its end.
                field.ended_by_agent.add(work.number)
                break
        await client.end()


async def _carry_out(field: Field, client: Client, session: str, work: Work) -> None:
    command = await _asked(field, client, session, work)
    if command is None:
        return
    code, out = await client.run("exec", tuple(shlex.split(command)))
    if client.last in field.killed_at:
        field.ended_by_agent.add(work.number)
    elif code >= 0 and code != CANNOT:
        field.told.result(work, code, out)


async def _asked(field: Field, client: Client, session: str, work: Work) -> str | None:
    """What the agent is to run instead. None: it was told no."""
    content = {
        "session_id": session,
        "cwd": str(field.workspace),
        "tool_name": "Bash",
        "tool_input": {"command": work.text(field.root)},
    }
    while True:
        code, out = await client.run(
            "hook", (*PROGRAM, "hook", "claude", "--home", str(field.root)), json.dumps(content)
        )
        if code == 0:
            decision = json.loads(out)["hookSpecificOutput"]
            if decision["permissionDecision"] == "deny":
                return None
            return str(decision["updatedInput"]["command"])
        await asyncio.sleep(AGAIN_S)
