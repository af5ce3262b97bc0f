"""Codex's environment on another machine: ssh starts it there, and what waits there outlives the connection."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.outside import outside_only
from tests.transports.codex_environment.conftest import ExecutorPlace, encoded
from tests.transports.test_end_to_end import PATIENCE_S

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
HAS_SSH = SSHD is not None and shutil.which("ssh") is not None
pytestmark = [outside_only, pytest.mark.slow, pytest.mark.skipif(not HAS_SSH, reason="ssh or its server is missing")]

SERVER = """ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
"""


def key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


@pytest.fixture
async def ssh(tmp_path: Path, place: ExecutorPlace) -> AsyncIterator[list[str]]:
    """The words with which ssh reaches a server on the loopback interface, which knows one key."""
    # A session of ssh from this machine to itself may start no supervisor (decision 31).
    await place.run("restart")
    directory = tmp_path / "ssh"
    directory.mkdir(mode=0o700)
    key(directory / "host")
    key(directory / "user")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (directory / "server").write_text(SERVER.format(port=port, directory=directory))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    words = [str(SSHD), "-D", "-E", str(directory / "log"), "-f", str(directory / "server")]
    server = await asyncio.create_subprocess_exec(*words, stdin=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert server.returncode is None, (directory / "log").read_text()
                await asyncio.sleep(0.05)
        options = [
            "StrictHostKeyChecking=no",
            f"UserKnownHostsFile={directory}/known",
            "BatchMode=yes",
            "LogLevel=ERROR",
        ]
        given = [word for option in options for word in ("-o", option)]
        yield ["ssh", "-F", "none", "-i", str(directory / "user"), *given, "-p", str(port), "127.0.0.1"]
    finally:
        server.terminate()
        await server.wait()


async def test_commands_and_typed_input_are_asked_on_the_other_machine(place, ssh):
    async with place.codex(through=ssh) as codex:
        await codex.start("approved", 'test -n "$SSH_CONNECTION" && echo over there')
        await place.run("approve", await place.waiting())
        assert await codex.closed("approved") == 0
        assert codex.output("approved") == "over there\n"
        await codex.start("denied", "touch ran")
        await place.run("deny", await place.waiting(), "--reason", "Use `make test`.")
        assert await codex.closed("denied") == 126
        assert "Use `make test`." in codex.output("denied")
        await codex.start("typed", "read line; echo got $line", tty=True)
        await place.run("approve", await place.waiting())
        request = await codex.send("process/write", {"processId": "typed", "chunk": encoded("words\n"), "writeId": "1"})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["tool"] == "write_stdin" and not codex.has_answer(request)
        await place.run("approve", row["id"])
        assert await codex.closed("typed") == 0
        assert "got words" in codex.output("typed")
    assert not (place.workspace / "ran").exists()


async def test_a_lost_connection_ends_nothing_and_the_next_one_continues(place, ssh):
    async with place.codex(through=ssh) as first:
        await first.start("runs", "until test -e go; do sleep 0.1; done; echo went on")
        await place.run("approve", await place.waiting())
        await place.call(lambda row: row["state"] == "running")
        await first.start("waits", "echo waited")
        waiting = await place.waiting()
        (connection,) = (each for each in psutil.Process(first.process.pid).children() if each.name() == "ssh")
        connection.send_signal(signal.SIGKILL)
        await first.until(lambda line: line.get("method") == "the end")
    await place.call(lambda row: row["id"] == waiting and row["agent_gave_up"] is not None)
    async with place.codex(through=ssh, resume=first.session_id) as second:
        assert second.session_id == first.session_id
        (place.workspace / "go").touch()
        assert await second.closed("runs") == 0
        await place.run("approve", waiting)
        assert await second.closed("waits") == 0
        assert (second.output("runs"), second.output("waits")) == ("went on\n", "waited\n")
