"""The role of phones at the socket: its own operations, nothing else, and for nobody whom an agent has started."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.mutations.conftest import Field, a_field
from tests.outside import outside_only
from tests.supervisor.phones.authenticator import Authenticator
from tests.supervisor.phones.conftest import DESK, ORIGIN, PhoneBench
from tests.wire.conftest import Raw
from whisper_tui.model.call import SessionHello
from whisper_tui.model.errors import InvalidRequest, UnknownPhone
from whisper_tui.model.phone import PhoneRole
from whisper_tui.model.protocol_version import VERSION
from whisper_tui.system.ancestry import read_process
from whisper_tui.wire.operations import OPERATIONS, PHONE_OPERATIONS
from whisper_tui.wire.phone_client import PhoneClient
from whisper_tui.wire.protocol import PHONE_ROLE, SOCKET
from whisper_tui.wire.server import Server, serve

pytestmark = outside_only

TAKE_THE_ROLE = """
import json, pathlib, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(json.dumps({"door": "phone", "version": 1}).encode() + b"\\n")
answer = pathlib.Path(sys.argv[2])
unfinished = answer.with_suffix(".part")
unfinished.write_bytes(connection.makefile("rb").readline())
unfinished.rename(answer)
"""


@pytest.fixture
async def server(bench: PhoneBench) -> AsyncIterator[Server]:
    made = await serve(bench.supervisor, bench.home, {}, refused=bench.supervisor.attempt_refused, phones=bench.phones)
    yield made
    await made.close()


@pytest.fixture
async def client(bench: PhoneBench, server: Server) -> AsyncIterator[PhoneClient]:
    made = await PhoneClient.connect(bench.home)
    yield made
    await made.close()


def test_the_role_has_exactly_the_operations_of_its_protocol() -> None:
    assert set(PHONE_OPERATIONS) == {name for name in vars(PhoneRole) if name.startswith("phone_")}
    assert all(operation.guard == "decides" for operation in PHONE_OPERATIONS.values())
    assert not set(PHONE_OPERATIONS) & set(OPERATIONS)


async def test_a_phone_asks_over_the_socket(bench: PhoneBench, client: PhoneClient, key: Authenticator) -> None:
    code = (await bench.phones.phone_pairing_open(ORIGIN)).code
    options = (await client.phone_pair_begin(code, "pixel")).options
    paired = await client.phone_pair(code, "pixel", key.attestation(options))
    await bench.phones.phone_confirm(paired.device.id, DESK, add=True)
    bench.now += 600
    token, call_id = paired.token, await bench.asked()
    assert (await client.phone_device(token)).confirmed
    calls = await client.phone_calls(token)
    assert [row.id for row in calls.rows] == [call_id]
    card = await client.phone_call(token, call_id)
    challenge = await client.phone_begin(token, call_id, "approve", card.seen)
    await client.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    await bench.ordered(call_id)
    assert await client.phone_wait(token, calls.revision) > calls.revision


async def test_nothing_but_its_own_operations_is_answered(bench: PhoneBench, server: Server) -> None:
    raw = await Raw.open(bench.home, hello=False)
    assert (await raw.request({"door": PHONE_ROLE, "version": VERSION}))["ok"] is True
    for number, name in enumerate(OPERATIONS):
        error = (await raw.request({"id": number, "op": name, "args": {}}))["error"]
        assert error["kind"] == "invalid_request" and f"there is no operation {name!r}" in error["message"]


async def test_the_api_answers_nothing_of_the_role(bench: PhoneBench, server: Server) -> None:
    raw = await Raw.open(bench.home)
    for number, name in enumerate(PHONE_OPERATIONS):
        error = (await raw.request({"id": number, "op": name, "args": {}}))["error"]
        assert error["kind"] == "invalid_request" and f"there is no operation {name!r}" in error["message"]


async def test_no_client_says_that_a_phone_has_decided(bench: PhoneBench, server: Server) -> None:
    call_id = await bench.asked()
    raw, seen = await Raw.open(bench.home), (await bench.record(call_id)).seen_digest()
    by = {"surface": "phone", "who": "pixel"}
    args = {"call_id": call_id, "decision": {"kind": "approve"}, "by": by, "seen": seen}
    error = (await raw.request({"id": 1, "op": "decide", "args": args}))["error"]
    assert error["kind"] == "invalid_request" and "only a signature" in error["message"]
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_wrong_input_is_an_error_with_a_sentence(client: PhoneClient) -> None:
    for call_id in ("x", "", "1" * 40, "../1"):
        with pytest.raises(InvalidRequest, match="call_id: string should match"):
            await client.phone_call("token", call_id)
    with pytest.raises(InvalidRequest, match="device"):
        await client.phone_calls("t" * 1000)
    with pytest.raises(InvalidRequest, match="decision"):
        await client.phone_begin("token", "1", "deny", "0" * 64)  # type: ignore[arg-type]
    with pytest.raises(UnknownPhone, match="this phone is not paired"):
        await client.phone_calls("token")
    with pytest.raises(UnknownPhone, match="this phone is not paired"):
        await client.phone_wait("token", 0)


@pytest.fixture
async def field(tmp_path: Path) -> AsyncIterator[Field]:
    async with a_field(tmp_path) as made:
        yield made


def role_taker(field: Field) -> tuple[list[str], Path]:
    answer = field.root / "answer"
    return [PYTHON, "-I", "-c", TAKE_THE_ROLE, str(Path(field.home.runtime) / SOCKET), str(answer)], answer


async def was_refused(field: Field, answer: Path) -> None:
    error = json.loads(await field.line_of(answer))["error"]
    assert error["kind"] == "not_allowed" and "was refused because the request comes from inside" in error["message"]
    assert [attempt.operation for attempt in field.board_refused] == ["phone_calls"]


async def test_a_supervised_command_does_not_get_the_role(field: Field) -> None:
    words, answer = role_taker(field)
    await field.approve(await field.ask(*words))
    await was_refused(field, answer)


@pytest.mark.skipif(sys.platform != "linux", reason="what a process inherits shows only on Linux")
async def test_what_an_agent_has_started_does_not_get_the_role(field: Field) -> None:
    words, answer = role_taker(field)
    agent = await asyncio.create_subprocess_exec(
        "sh", "-c", 'read go; "$@"; read end', "agent", *words, stdin=subprocess.PIPE, env=field.environment
    )
    try:
        hello = SessionHello(name="builder", root=str(field.root), pid=agent.pid, key="k1")
        await field.supervisor.open_session(hello)
        await field.until(lambda: any(pid == agent.pid for pid, _ in field.server._state.agents()))
        await field.until(lambda: read_process(agent.pid).descends_from == "agent")
        assert agent.stdin is not None
        agent.stdin.write(b"\n")
        await was_refused(field, answer)
    finally:
        agent.kill()
        await agent.wait()
