"""What commands and agents have started cannot take all connections: the human's cockpit and programs get in."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.mutations.conftest import Field
from tests.outside import outside_only
from whisper_tui.model.call import SessionHello
from whisper_tui.system.ancestry import read_process
from whisper_tui.wire.light_client import LightClient
from whisper_tui.wire.protocol import SOCKET
from whisper_tui.wire.rendezvous import connect
from whisper_tui.wire.server import ConnectionLimits

HOLDER = str(Path(__file__).with_name("holder.py"))
PLACES, PROCESSES, EACH = 16, 4, 6
pytestmark = [outside_only, pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")]


@pytest.fixture
def holder(field: Field) -> list[str]:
    """The words of a program that wants more connections than there are, none of its processes half of them."""
    assert EACH < PLACES // 2 and PROCESSES * EACH > PLACES
    field.server._places = ConnectionLimits(PLACES)
    address, counted = str(field.home.runtime / SOCKET), str(field.root / "counted")
    return [PYTHON, "-I", HOLDER, address, counted, str(PROCESSES), str(EACH)]


async def human_is_served(field: Field) -> bool:
    """Whether somebody who comes now is answered."""

    def ask() -> bool:
        connection = connect(field.home)
        assert connection is not None
        client = LightClient(connection)
        try:
            return bool(client.ask("status"))
        finally:
            client.close()

    return await asyncio.to_thread(ask)


@pytest.mark.parametrize("hands_on", ["no", "yes"])
async def test_a_forking_command_gets_a_quarter_and_the_human_gets_in(field: Field, holder: list[str], hands_on: str):
    await field.runs(*holder, hands_on)
    assert await field.line_of(field.root / "counted") == f"{PLACES // 4}\n"
    assert await human_is_served(field)


async def test_processes_of_an_agent_get_half_and_the_human_gets_in(field: Field, holder: list[str]):
    agent = await asyncio.create_subprocess_exec(
        "sh", "-c", 'read go; "$@" & read end; kill 0', "agent", *holder, "no",
        stdin=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert agent.stdin is not None
    try:
        await field.supervisor.open_session(SessionHello(name="a", root=str(field.root), pid=agent.pid, key="k"))
        await field.until(lambda: (seen := read_process(agent.pid)) is not None and seen.descends_from == "agent")
        agent.stdin.write(b"\n")
        assert await field.line_of(field.root / "counted") == f"{PLACES // 2}\n"
        assert await human_is_served(field)
    finally:
        agent.stdin.close()
        await agent.wait()
