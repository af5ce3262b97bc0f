"""A session of the ssh server decides only if it comes from another machine (decision 31)."""

import asyncio
import os
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

import whisper_tui
from tests.outside import outside_only
from tests.rows import each_row
from tests.ssh_server import loopback_server, needs_sshd, other_machine
from tests.wire.conftest import waiting_call
from whisper_tui.system.ancestry import ProcessSeen, is_ssh_server, parse_ps
from whisper_tui.wire.peers import TcpConnection, TcpEnd, established, why_refused_over_ssh

US, NOBODY = os.geteuid(), os.geteuid() + 1
DESK, HOST, LOOPBACK = ip_address("192.0.2.7"), ip_address("192.0.2.1"), ip_address("127.0.0.1")
SESSION = "192.0.2.7 50000 192.0.2.1 22"
COMES_IN = TcpConnection(TcpEnd(HOST, 22), TcpEnd(DESK, 50000), NOBODY)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's table shows only on Linux")


def below_sshd(told: str) -> tuple[ProcessSeen, ...]:
    """A peer whose shell was started by an ssh server."""
    return (
        ProcessSeen(pid=13, parent=12, start="4"),
        ProcessSeen(pid=12, parent=11, start="3", ssh_connection=told),
        ProcessSeen(pid=11, parent=1, start="2", foreign=True, ssh_server=True),
        ProcessSeen(pid=1, parent=0, start="0", foreign=True),
    )


def to_itself(uid: int, address=LOOPBACK) -> tuple[TcpConnection, ...]:
    """Both ends of a connection to our own server."""
    client, server = TcpEnd(address, 40000), TcpEnd(address, 22)
    return TcpConnection(client, server, uid), TcpConnection(server, client, 0)


def test_a_session_from_another_machine_may_decide():
    assert why_refused_over_ssh(below_sshd(SESSION), [COMES_IN]) is None


def test_a_session_may_not_decide_while_a_connection_of_ours_leads_to_the_same_server():
    for address in (LOOPBACK, HOST):
        assert "to itself" in why_refused_over_ssh(below_sshd(SESSION), [COMES_IN, *to_itself(US, address)])
    assert why_refused_over_ssh(below_sshd(SESSION), [COMES_IN, *to_itself(NOBODY)]) is None


def test_a_session_may_not_decide_while_we_are_connected_by_ssh_to_where_it_comes_from():
    back = TcpConnection(TcpEnd(HOST, 40000), TcpEnd(DESK, 22), US)
    assert "192.0.2.7" in why_refused_over_ssh(below_sshd(SESSION), [COMES_IN, back])
    elsewhere = TcpConnection(TcpEnd(HOST, 40000), TcpEnd(DESK, 443), US)
    assert why_refused_over_ssh(below_sshd(SESSION), [COMES_IN, elsewhere]) is None


@each_row("told", ["", "x", "UNKNOWN 65535 UNKNOWN 65535", "192.0.2.7 50000 192.0.2.1 many"])
def test_a_session_that_does_not_say_where_it_comes_from_may_not_decide(told):
    assert "does not say" in why_refused_over_ssh(below_sshd(told), [COMES_IN])


@linux_only
def test_a_session_that_names_a_connection_which_the_kernel_does_not_know_may_not_decide():
    assert "not open" in why_refused_over_ssh(below_sshd("192.0.2.8 50000 192.0.2.1 22"), [COMES_IN])
    assert "not open" in why_refused_over_ssh(below_sshd(SESSION))


def test_the_ssh_server_itself_may_not_decide_for_a_forwarded_socket():
    assert "forwards" in why_refused_over_ssh(below_sshd(SESSION)[2:], [COMES_IN])


def test_what_outlives_its_session_may_decide_unless_that_came_from_this_machine():
    tmux = (ProcessSeen(pid=13, parent=1, start="4", ssh_connection=SESSION),)
    assert why_refused_over_ssh(tmux) is None
    for told in ("127.0.0.1 1 127.0.0.1 22", "::1 1 ::1 22", "192.0.2.1 1 192.0.2.1 22", "::ffff:127.0.0.1 1 ::1 2"):
        assert "to itself" in why_refused_over_ssh((ProcessSeen(pid=13, parent=1, start="4", ssh_connection=told),))


def test_servers_are_known_by_their_command_line():
    for command in (b"sshd: user@pts/1", b"sshd-session: user [priv]", b"/usr/sbin/sshd\0-D\0", b"dropbear\0-R\0"):
        assert is_ssh_server(command)
    for command in (b"ssh\0sshd\0", b"/usr/bin/sshdiff\0", b"bash\0", b""):
        assert not is_ssh_server(command)
    seen = parse_ps(77, 1, b"1 1 ?? Sat Nov 21 00:42:01 2026", b"sh SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22 PATH=/bin")
    assert seen.ssh_connection == "1.2.3.4 5 6.7.8.9 22"


@linux_only
async def test_the_kernels_table_shows_both_ends_of_a_connection_of_ours():
    done = asyncio.Event()

    async def hold(_reader, writer):
        await done.wait()
        writer.close()

    for address in ("127.0.0.1", "::1"):
        try:
            server = await asyncio.start_server(hold, address, 0)
        except OSError:
            continue  # This machine has no IPv6.
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(address, port)
        ours = [seen for seen in established() if seen.remote == TcpEnd(ip_address(address), port)]
        assert [(seen.local.port, seen.uid) for seen in ours] == [(writer.get_extra_info("sockname")[1], US)]
        writer.close()
        server.close()
    done.set()


def tui(home: Path, *words: str) -> tuple[str, ...]:
    """The command line of a subcommand, for a shell with any environment."""
    source = f"PYTHONPATH={Path(whisper_tui.__file__).parent.parent}"
    return ("env", source, sys.executable, "-m", "whisper_tui", words[0], "--home", str(home), *words[1:])


async def told_by(*words: str) -> str:
    """Everything that a program prints."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    program = await asyncio.create_subprocess_exec(*words, stdin=null, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    told, _ = await asyncio.wait_for(program.communicate(), 60)
    return told.decode()


@linux_only
@needs_sshd
@outside_only
@pytest.mark.parametrize("before", [(), ("setsid", "-w"), ("env", "-i"), ("env", f"SSH_CONNECTION={SESSION}")], ids=str)
async def test_nobody_decides_through_ssh_to_the_same_machine(before, server, supervisor, home, tmp_path):
    call_id = await waiting_call(supervisor, tmp_path, "true")
    with loopback_server(tmp_path / "sshd") as ssh:
        told = await told_by(*ssh.command(*before, *tui(tmp_path, "approve", call_id)))
    assert "was refused because the request comes" in told
    assert (await supervisor.record(call_id)).state.kind == "waiting"


@linux_only
@needs_sshd
@outside_only
async def test_a_human_decides_over_ssh_from_another_machine(tmp_path):
    with other_machine(tmp_path / "sshd") as (ssh, inside):
        # The supervisor sees the connections of the machine that it runs on.
        call = tui(tmp_path, "call", "run_shell_command", '{"command": "touch here"}')
        agent = asyncio.create_task(told_by(*inside, "env", "-C", str(tmp_path), *call))
        try:
            async with asyncio.timeout(60):
                while "waiting" not in await told_by(*inside, *tui(tmp_path, "list")):
                    await asyncio.sleep(0.1)
            assert "Approved 1" in await told_by(*ssh.command(*tui(tmp_path, "approve", "1")))
            assert '"exitCode": 0' in await agent
        finally:
            agent.cancel()
            await told_by(*inside, *tui(tmp_path, "stop"))
