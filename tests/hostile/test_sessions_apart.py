"""An answer to an agent holds nothing of another agent's session, whatever it asks and whichever id it names."""

import asyncio
import json

from tests.supervisor.conftest import Bench
from tests.transports.conftest import Human, bench, endpoint, human
from tests.transports.endpoint_server import EndpointServer

__all__ = ["bench", "endpoint", "human"]

SECRET = "only-the-first-agent-knows-this"
PRINTED = "hi\\n"
"""What every command of these tests prints, as JSON."""
HINTS = {"wait_s": 0, "timeout_ms": 0, "text": "x", "cmd": "true", "command": "true", "path": "/nowhere", "file": "x"}
"""What is filled in where an argument is no id; times are as short as they can be."""


def filled(schema: dict[str, object], id_: str) -> dict[str, object]:
    """Arguments for a tool, with an id wherever a text may be one."""
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    required = schema.get("required", [])
    assert isinstance(required, list)
    wanted = {name for name in properties if name in required or "id" in name or "ticket" in name or name == "wait_s"}
    return {name: HINTS.get(name, id_ if properties[name].get("type") == "string" else 0) for name in wanted}


async def test_no_tool_answers_with_data_of_another_session(
    endpoint: EndpointServer, human: Human, bench: Bench
) -> None:
    async with endpoint.client(name="first") as first, endpoint.lines() as second:
        asking = {"cmd": f"echo {SECRET}", "workdir": str(bench.workspace), "yield_time_ms": 0}
        call = asyncio.create_task(first.call_tool("ExecCommand", asking))
        await human.waiting()
        await bench.approve("1")
        bench.executor.spawn(await bench.ordered("1"))
        assert "1" in str((await asyncio.wait_for(call, 60)).structured_content)
        waits = asyncio.create_task(first.call_tool("execute_command", {"command": "echo", "args": [SECRET]}))
        await human.waiting("2")
        ticket = (await bench.record("2")).call.ticket or "2"
        ended = asyncio.create_task(first.call_tool("execute_command", {"command": "true"}))
        await human.approve_and_run("3")
        assert PRINTED in json.dumps((await asyncio.wait_for(ended, 60)).structured_content)

        assert SECRET in str((await first.call_tool("TaskList", {})).structured_content)

        await second.initialize("second")
        second.request("tools", "tools/list", {})
        listed = await second.receive_answer("tools")
        tools = {tool["name"]: tool["inputSchema"] for tool in listed["result"]["tools"]}
        asks = {"ExecCommand", "execute_command", "execute_command_line", "run_shell_command", "read_file"}
        assert {"TaskList", "TaskStatus", "TaskOutput", "wait"} <= set(tools)
        for name, schema in tools.items():
            for id_ in () if name in asks else ("1", "2", "3", "s1", ticket):
                second.call(f"{name} {id_}", name, filled(schema, id_))
                answer = json.dumps(await second.receive_answer(f"{name} {id_}"))
                assert SECRET not in answer, name
                assert PRINTED not in answer, name
        waits.cancel()
