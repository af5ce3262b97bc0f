"""The process at the other end of a connection: did a supervised command, an agent or ssh from here start it?"""

import asyncio
import ipaddress
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from whisper_tui.model.errors import NotAllowed
from whisper_tui.system import processes
from whisper_tui.system.ancestry import ProcessSeen, ancestry, has_ended, read_process
from whisper_tui.system.processes import INSIDE, peer_process

NO_AGENTS: Mapping[tuple[int, str], str] = MappingProxyType({})

UNKNOWN = "the requesting process cannot be examined"
_MARK_FOUND = "the request comes from inside a supervised command (its process has the mark)"


_STARTED_BY_SUPERVISOR = "the request comes from a process that a supervisor has started for itself"


def why_supervised(
    line: tuple[ProcessSeen, ...] | None, keepers: Collection[int], agents: Mapping[tuple[int, str], str] = NO_AGENTS
) -> str | None:
    """Return why a peer with these ancestors may not decide. None: it may (decision 13).

    `agents` are the agents that are or were connected, by pid and start.
    """
    if line is None or line[0].foreign:
        return UNKNOWN
    return _why_descendant(line, keepers, agents) or why_refused_over_ssh(line)


def why_from_command(line: tuple[ProcessSeen, ...] | None, keepers: Collection[int]) -> str | None:
    """Return why a peer with these ancestors counts as a part of a supervised command. None: it is none."""
    if not line or line[0].foreign:
        return UNKNOWN
    for seen in line:
        if seen.pid in keepers or seen.keeper:
            return "the request comes from inside a supervised command"
        if seen.marked:
            return f"the request comes from inside a supervised command (its environment has {INSIDE})"
        if seen.descends_from == "command":
            return _MARK_FOUND
    # A supervisor itself may ask: one that takes the place of another stops that.
    if line[0].descends_from == "supervisor" or any(seen.supervisor for seen in line[1:]):
        return _STARTED_BY_SUPERVISOR
    return None


def _why_descendant(
    line: tuple[ProcessSeen, ...], keepers: Collection[int], agents: Mapping[tuple[int, str], str]
) -> str | None:
    if (problem := why_from_command(line, keepers)) is not None:
        return problem
    # The agent's own process is exempt: it runs its author's program, which may ask its user. The model acts through
    # processes that it starts.
    for seen in line[1:]:
        if (agent := agents.get((seen.pid, seen.start))) is not None:
            return f"the request comes from inside the agent {agent}"
    if line[0].descends_from == "agent" and (line[0].pid, line[0].start) not in agents:
        return "the request comes from a process that an agent started (it has the mark)"
    return None


def why_supervised_here() -> str | None:
    """Return why this process may not decide, as far as it can find out itself. None: it may."""
    line = ancestry(os.getpid(), read_process)
    if line is not None and (problem := why_supervised(line, ())) is not None:
        return problem
    return _MARK_FOUND if processes.is_supervised_here() else None


def is_refused_for_ever_here() -> bool:
    """True if this process may never decide, and not only as long as some connection is open."""
    line = ancestry(os.getpid(), read_process)
    return processes.is_supervised_here() or (line is not None and _why_descendant(line, (), NO_AGENTS) is not None)


def supervised_call(line: tuple[ProcessSeen, ...] | None, keepers: Mapping[int, str]) -> str | None:
    """Return the call to which this line of ancestors belongs, by the pids of keepers. None: to none that is alive."""
    return next((keepers[seen.pid] for seen in line or () if seen.pid in keepers), None)


def descends(connection: Any, pid: int) -> bool:
    """True if the process at the other end of a socket is, or descends from, the process with this pid."""
    peer, _ = peer_process(connection)
    line = ancestry(peer, read_process)
    return line is not None and not has_ended(connection) and any(seen.pid == pid for seen in line)


def starter_words(connection: Any) -> tuple[str, ...]:
    """Return the command line of the process that started the one at the other end. Empty: it cannot be read."""
    pid, _ = peer_process(connection)
    seen = read_process(pid)
    try:
        line = (Path("/proc") / str(seen.parent) / "cmdline").read_bytes() if seen is not None else b""
    except OSError:
        return ()
    return tuple(os.fsdecode(line).split("\0")[:-1])


async def check_origin(connection: Any, hello: dict[str, Any]) -> None:
    """Check the agent's pid in a hello. Drop it if the peer is in another pid namespace.

    Raises `NotAllowed` if that process is not an ancestor of the peer.
    """
    pid = hello.get("pid")
    if not isinstance(pid, int):
        return
    # The pid of a process in a container belongs to another process here, or to none.
    if await asyncio.to_thread(_in_other_pid_namespace, connection):
        hello["pid"] = None
    elif not await asyncio.to_thread(descends, connection, pid):
        raise NotAllowed(
            f"this connection names process {pid} as its agent, but does not descend from it",
            hint="Let the agent itself start whisper-tui mcp, or its hook",
        )


def _in_other_pid_namespace(connection: Any) -> bool:
    """True if the process at the other end is in another pid namespace, for example in a container."""
    peer, _ = peer_process(connection)
    try:
        return Path(f"/proc/{peer}/ns/pid").readlink() != Path(f"/proc/{os.getpid()}/ns/pid").readlink()
    except OSError:
        return False


_TCP_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = b"01"
SSH_PORT = 22
FROM_HERE = "the request comes through an ssh connection from this machine to itself"
"""The objection to a session whose client may be anything that runs here."""


class TcpEnd(NamedTuple):
    """One end of a TCP connection."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int


@dataclass(frozen=True)
class TcpConnection:
    """One established connection, from the end of which the kernel told."""

    local: TcpEnd
    remote: TcpEnd
    uid: int
    """The user who opened this end."""


def why_refused_over_ssh(
    line: tuple[ProcessSeen, ...], connections: Collection[TcpConnection] | None = None
) -> str | None:
    """Return why a peer with these ancestors, the peer first, may not decide over ssh. None: it may (decision 31).

    `connections`: those of this machine. None: they are read if they matter.
    """
    at = next((index for index, seen in enumerate(line) if seen.ssh_server), None)
    if at is None:
        return _why_refused_left_behind(line)
    if at == 0:
        return "the request comes through a socket that ssh forwards, so nothing shows which program asks"
    client, server = _ends_of_ssh(line[at - 1].ssh_connection)
    if client is None or server is None:
        return "the request comes from a session of the ssh server that does not say where it comes from"
    if connections is None:
        if sys.platform != "linux":
            # Without the kernel's table only the session itself tells.
            return FROM_HERE if _is_same_machine(client, server) else None
        connections = tuple(established())
    return _why_refused(client, server, connections)


def ssh_client(line: tuple[ProcessSeen, ...]) -> str:
    """Return the address from which a peer with these ancestors has come by ssh. Empty: from none, or it is unknown."""
    at = next((index for index, seen in enumerate(line) if seen.ssh_server), 0)
    client, _ = _ends_of_ssh(line[at - 1].ssh_connection) if at else (None, None)
    return str(client.address) if client is not None else ""


def _why_refused(client: TcpEnd, server: TcpEnd, connections: Collection[TcpConnection]) -> str | None:
    ends = {(seen.local, seen.remote) for seen in connections}
    # A command may have changed the variable, so its word counts only where the kernel confirms it.
    if (server, client) not in ends:
        return "the request comes from a session of the ssh server whose connection is not open on this machine"
    for seen in connections:
        if seen.uid != os.geteuid():
            continue
        # Whose session has which connection cannot be told: all of them are refused while one leads back here.
        if seen.remote.port == server.port and (seen.remote, seen.local) in ends:
            return FROM_HERE
        if seen.remote.address == client.address and seen.remote.port in {SSH_PORT, server.port}:
            return (
                f"the request comes by ssh from {client.address}, to which an ssh connection from this machine is open"
            )
    return None


def _why_refused_left_behind(line: tuple[ProcessSeen, ...]) -> str | None:
    """Return why a peer may not decide whose session of the ssh server has ended, like one in tmux. None: it may."""
    for seen in line:
        client, server = _ends_of_ssh(seen.ssh_connection)
        if client is not None and server is not None and _is_same_machine(client, server):
            return FROM_HERE
    return None


def _is_same_machine(client: TcpEnd, server: TcpEnd) -> bool:
    return client.address.is_loopback or client.address == server.address


def _ends_of_ssh(told: str) -> tuple[TcpEnd | None, TcpEnd | None]:
    """Return the client's and the server's end from `SSH_CONNECTION`. None: it does not tell them."""
    words = told.split()
    if len(words) != 4:
        return None, None
    return _endpoint(words[0], words[1]), _endpoint(words[2], words[3])


def _endpoint(address: str, port: str) -> TcpEnd | None:
    try:
        # The table of connections shows no scope.
        return TcpEnd(_plain(ipaddress.ip_address(address.partition("%")[0])), int(port))
    except ValueError:
        return None


def _plain(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return getattr(address, "ipv4_mapped", None) or address


def established() -> Iterator[TcpConnection]:
    """Yield the established connections of this machine, from the kernel's tables."""
    for table in _TCP_TABLES:
        try:
            rows = Path(table).read_bytes().splitlines()[1:]
        except FileNotFoundError:  # A kernel without IPv6 has no second table.
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _ESTABLISHED:
                yield TcpConnection(_endpoint_in_table(fields[1]), _endpoint_in_table(fields[2]), int(fields[7]))


def _endpoint_in_table(text: bytes) -> TcpEnd:
    address, _, port = text.partition(b":")
    # The kernel prints each 32 bits of an address as one number in the byte order of the machine.
    words = [int(address[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(address), 8)]
    return TcpEnd(_plain(ipaddress.ip_address(b"".join(words))), int(port, 16))
