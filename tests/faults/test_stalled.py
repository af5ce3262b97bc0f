"""A client reads nothing of what it is sent."""

import asyncio
import json
import socket

import pytest

from tests.faults.instance import PATIENCE_S, Instance
from tests.outside import outside_only
from whisper_tui.model.protocol_version import VERSION
from whisper_tui.wire.rendezvous import connect


def stalled(instance: Instance, *requests: dict[str, object]) -> socket.socket:
    """A connection on which much is asked and nothing is read."""
    connection = connect(instance.home)
    assert connection is not None
    connection.setblocking(False)
    lines = [{"door": "port", "version": VERSION}, *requests]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    connection.send(data)
    return connection


@outside_only
@pytest.mark.slow
async def test_clients_that_stall_hold_up_nobody_else(instance: Instance) -> None:
    record = await instance.run("touch ran; seq 1 200000")
    reads = [
        {
            "id": number,
            "op": "read_output",
            "args": {"call_id": record.id, "stream": "out", "offset": 0, "limit": 1 << 20},
        }
        for number in range(20)
    ]
    watch = {"id": 1, "op": "watch", "args": {"after": 0}}
    with stalled(instance, *reads), stalled(instance, watch), stalled(instance, watch):
        for _ in range(5):
            await instance.works_again()
        status = await asyncio.wait_for(instance.door.status(), PATIENCE_S)
    assert status.problem is None
