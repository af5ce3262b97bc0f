"""Nothing that a supervisor leaves on the disk can be read, changed or connected to by another user."""

import asyncio
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutations.conftest import HUMAN, Field
from tests.outside import outside_only
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.transports.mcp.http_site import token_in
from whisper_tui.wire.protocol import SOCKET

NOBODY = 65_534


def open_to_others(directory: Path) -> list[str]:
    """What below a directory, itself included, gives any right to group or others."""
    found = []
    for path in (directory, *directory.rglob("*")):
        # A keeper that warms up removes its files again.
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & 0o077:
                found.append(str(path))
    return found


async def busy_day(field: Field) -> None:
    """Commands of every kind: with a terminal, with input, with large surroundings, ended, left behind and waiting."""
    surroundings = {"LARGE": "x" * 100_000, "PATH": os.environ["PATH"]}
    hello = SessionHello(name="agent", root=str(field.root), environment=surroundings)
    session = await field.supervisor.open_session(hello)
    for spec in (
        CommandSpec(command=Shell(text="echo out; echo err >&2"), cwd=str(field.root)),
        CommandSpec(command=Shell(text="read line"), cwd=str(field.root), accepts_input=True),
        CommandSpec(command=Shell(text="sleep 300 & sleep 300"), cwd=str(field.root), tty=True),
    ):
        request = CallRequest(session_id=session.id, tool="t", arguments={}, spec=spec, description="")
        call = await field.supervisor.submit(request)
        await field.approve(call)
        await asyncio.wait_for(field.supervisor.started(call), 60)
    await field.supervisor.pause(HUMAN)
    await field.supervisor.resume(HUMAN)
    await field.ask("true")
    token_in(field.home.state)


async def test_files_and_directories_are_the_users_alone_whatever_the_mask(field: Field):
    before = os.umask(0)
    try:
        await busy_day(field)
        assert open_to_others(field.home.state) == []
        assert open_to_others(field.home.runtime) == []
    finally:
        os.umask(before)


def heard_by_another_user(address: str) -> bytes:
    """What somebody else is answered at a socket, or what went wrong."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(address)
            os.write(tell, connection.recv(4096))
        except OSError as error:
            os.write(tell, str(error).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as heard:
        answer = heard.read()
    os.waitpid(child, 0)
    return answer


@outside_only
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_is_turned_away_even_where_the_directory_lets_them_in(field: Field):
    field.home.runtime.chmod(0o755)
    (field.home.runtime / SOCKET).chmod(0o666)
    directory = os.open(field.home.runtime, os.O_RDONLY)
    try:
        answer = await asyncio.wait_for(
            asyncio.to_thread(heard_by_another_user, f"/proc/self/fd/{directory}/{SOCKET}"), 60
        )
    finally:
        os.close(directory)
    assert b"not_allowed" in answer and b"you are uid 65534" in answer
