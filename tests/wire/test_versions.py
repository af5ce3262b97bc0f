"""Programs and supervisors of different versions: they agree on a protocol, or say plainly that they cannot."""

import asyncio
import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.rows import each_row
from tests.wire.conftest import Raw
from tests.wire.shape import shape
from whisper_tui.model.errors import OtherVersion
from whisper_tui.model.protocol_version import HELLO_VERSIONS, OLDEST, VERSION
from whisper_tui.policy.view import may_change_directory
from whisper_tui.tools import standard_registry
from whisper_tui.transports.hook.exec_endpoint import ExecEndpoint, ShellDirectory
from whisper_tui.transports.hook.hook_endpoint import HookEndpoint
from whisper_tui.transports.hook.what_ran import WhatRan
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint
from whisper_tui.transports.shell_call import ShellCallEndpoint
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.light_client import light_client
from whisper_tui.wire.peers import descends, starter_words
from whisper_tui.wire.protocol import SOCKET, greeting, hello
from whisper_tui.wire.rendezvous import START_LOCK, stopped_on_purpose
from whisper_tui.wire.server import serve


def test_both_ends_of_one_version_agree():
    assert greeting(hello())["version"] == VERSION


def test_a_newer_program_that_still_speaks_this_version_is_answered_in_it():
    assert greeting({"version": VERSION + 3, "oldest": OLDEST})["version"] == VERSION


@each_row(
    ("said", "advice"),
    [
        ({"version": VERSION + 2, "oldest": VERSION + 1, "program": "9.1"}, "Run whisper-tui restart"),
        ({"version": OLDEST - 1}, "Start it again as it is installed now"),
        ({"version": "two"}, "Start it again"),
        ({}, "Start it again"),
    ],
)
def test_a_program_that_cannot_be_understood_is_told_both_versions_and_what_to_do(said, advice):
    with pytest.raises(OtherVersion, match=r"whisper_tui .*, pid") as refused:
        greeting(said)
    assert repr(said.get("version")) in refused.value.message and advice in refused.value.hint
    assert str(said.get("program", "")) in refused.value.message


async def test_an_operation_that_an_older_supervisor_lacks_is_answered_with_how_to_hand_over(server, home):
    def ask() -> None:
        with light_client(home, start=False) as supervisor:
            supervisor.ask("an_operation_of_tomorrow")

    with pytest.raises(OtherVersion, match="older than this program") as refused:
        await asyncio.to_thread(ask)
    assert "whisper-tui restart" in refused.value.hint


async def test_an_older_program_is_refused_in_words_at_the_socket(server, home):
    raw = await Raw.open(home, hello=False)
    answer = await raw.request({"door": "port", "version": OLDEST - 1})
    assert answer["error"]["kind"] == "other_version" and "running commands continue" in answer["error"]["hint"]
    assert await raw.is_closed()


@pytest.fixture
def answered(home) -> Iterator[Callable[[object], None]]:
    """A supervisor of another version, as far as its first line goes."""
    Path(home.runtime).mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(Path(home.runtime) / SOCKET))
    listening.listen()
    threads: list[threading.Thread] = []

    def serve(answer: object) -> None:
        def run() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                lines.readline()
                connection.sendall(json.dumps(answer).encode() + b"\n")
                lines.readline()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield serve
    for thread in threads:
        thread.join(30)
    listening.close()


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"kind": "other_version", "message": "no", "hint": "Run whisper-tui restart"}},
        {"ok": True, "version": VERSION + 1, "supervisor": "9.1", "pid": 7},
        {"ok": True, "version": OLDEST - 1, "supervisor": "0.0", "pid": 7},
    ],
)
class TestASupervisorOfAnotherVersion:
    def test_commands_say_how_to_hand_over(self, home, answered, answer):
        answered(answer)
        with pytest.raises(OtherVersion) as refused, light_client(home, start=False):
            pass
        assert "whisper-tui restart" in refused.value.hint

    async def test_the_cockpits_client_says_how_to_hand_over(self, home, answered, answer):
        answered(answer)
        with pytest.raises(OtherVersion) as refused:
            await SupervisorClient.connect(home, start=False)
        assert "whisper-tui restart" in refused.value.hint


def test_a_supervisor_from_which_another_takes_over_was_not_stopped(home):
    Path(home.runtime).mkdir()
    assert stopped_on_purpose(home)
    lock = os.open(Path(home.runtime) / START_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert not stopped_on_purpose(home)
    os.close(lock)
    assert stopped_on_purpose(home)


def test_messages_have_the_shape_of_their_version():
    """Else two programs that say the same number do not understand each other."""
    noted = json.loads((Path(__file__).parent / "shape.json").read_text())
    assert shape() == noted, (
        f"What is sent has changed. If a release speaks version {VERSION}, raise `protocol_version.VERSION`. Then "
        "note the new shape: python -m tests.wire.shape > tests/wire/shape.json"
    )


@pytest.mark.parametrize(("door", "what"), [("hook", "hook"), ("exec", "exec"), ("mcp", "relay"), ("call", "call")])
async def test_what_an_agent_started_before_an_upgrade_is_told_what_a_human_has_to_do(supervisor, home, door, what):
    async with listening_with_all(supervisor, home):
        raw = await Raw.open(home, hello=False)
        raw.send({"door": door, "version": 9})
        told = (await raw.reader.read()).decode()
        assert f"this {what} speaks version 9" in told.replace("\n", " ") and "run whisper-tui restart" in told
        assert json.loads(told)["error"]["kind"] == "other_version"
        assert supervisor.board.sessions == {}
        raw.writer.close()


@pytest.mark.parametrize(
    ("door", "version"), [("hook", 1), ("exec", 1), ("mcp", 1), ("call", 1), ("call", 2), ("port", 1), ("port", 2)]
)
async def test_programs_of_released_versions_are_still_understood(supervisor, home, door, version):
    """What is wrong about their first line is something else than its version."""
    async with listening_with_all(supervisor, home):
        raw = await Raw.open(home, hello=False)
        raw.send({"door": door, "version": version})
        told = (await raw.reader.readline() if door == "port" else await raw.reader.read()).decode()
        assert '"ok":true' in told if door == "port" else ("is wrong" in told and "version" not in told)
        raw.writer.close()


def test_programs_say_no_higher_version_than_their_lines_need():
    """Else they could not be used until the supervisor, too, is of the installed version."""
    assert HELLO_VERSIONS == {"hook": 1, "exec": 1, "gate": 1, "mcp": 1, "call": 2, "executor": 1}
    assert all(OLDEST <= version <= VERSION for version in HELLO_VERSIONS.values())


@asynccontextmanager
async def listening_with_all(supervisor, home):
    last = supervisor.queries.last_directory
    shell_directory = ShellDirectory(Path(home.runtime) / "directories", last, may_change_directory)
    what_ran = WhatRan(supervisor, supervisor.raise_alarm)
    endpoints = {
        "hook": HookEndpoint(supervisor, shell_directory, what_ran),
        "exec": ExecEndpoint(supervisor, descends, starter_words, lambda _: None, shell_directory, what_ran=what_ran),
        "mcp": McpEndpoint(supervisor),
        "call": ShellCallEndpoint(supervisor, standard_registry),
    }
    listening = await serve(supervisor, home, endpoints)
    yield
    await listening.close()
