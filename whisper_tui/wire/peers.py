"""The process at the other end of a connection: is it a descendant of a supervised command or an agent?"""

import asyncio
import errno
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from whisper_tui.model.errors import NotAllowed
from whisper_tui.system import processes
from whisper_tui.wire.rendezvous import INSIDE, peer_process

KEEPER_MODULE = b"whisper_tui.supervisor.keeper"
"""Part of the command line of every keeper."""

NO_AGENTS: Mapping[tuple[int, str], str] = MappingProxyType({})

Origin = Literal["command", "agent"]
"""The kind of ancestor that started a process, directly or not."""

_SO_PEERPIDFD = 77
"""Socket option of Linux 6.5: a pidfd of the peer, which cannot be confused with a reused pid."""
_MARK_FOUND = "the request comes from inside a supervised command (its process has the mark)"
_TRIES = 5
_MOST_ANCESTORS = 1000


@dataclass(frozen=True)
class ProcessSeen:
    """The system's information about one process."""

    pid: int
    parent: int
    start: str
    """Its start time in the system's format. Together with the pid it identifies the process for ever."""
    marked: bool = False
    """True if its environment is that of a supervised command."""
    keeper: bool = False
    """True if its command line is that of a keeper."""
    descends_from: Origin | None = None
    """Its origin according to its inherited mark, even if its ancestors have ended."""
    foreign: bool = False
    """True if it belongs to another user. Then little is known about it."""


ReadProcess = Callable[[int], ProcessSeen | None]
"""Reads a process by its pid. None: it does not exist, or its relevant facts are hidden."""


def ancestry(pid: int, read_process: ReadProcess) -> tuple[ProcessSeen, ...] | None:
    """Return the process and its ancestors, the process first. None: they cannot be determined."""
    # If a parent ends during the walk, its children get another parent, so the walk restarts.
    for _ in range(_TRIES):
        line: list[ProcessSeen] = []
        following = pid
        while following > 0 and len(line) < _MOST_ANCESTORS:
            seen = read_process(following)
            if seen is None:
                break
            line.append(seen)
            following = seen.parent
        if line and following == 0:
            return tuple(line)
    return None


def why_supervised(
    line: tuple[ProcessSeen, ...] | None, keepers: Collection[int], agents: Mapping[tuple[int, str], str] = NO_AGENTS
) -> str | None:
    """Return why a peer with these ancestors may not decide. None: it may (decision 13).

    `agents` are the agents that are or were connected, by pid and start.
    """
    if line is None or line[0].foreign:
        return "the requesting process cannot be examined"
    for seen in line:
        if seen.pid in keepers or seen.keeper:
            return "the request comes from inside a supervised command"
        if seen.marked:
            return f"the request comes from inside a supervised command (its environment has {INSIDE})"
        if seen.descends_from == "command":
            return _MARK_FOUND
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


def supervised_call(line: tuple[ProcessSeen, ...] | None, keepers: Mapping[int, str]) -> str | None:
    """Return the call to which this line of ancestors belongs, by the pids of keepers. None: to none that is alive."""
    return next((keepers[seen.pid] for seen in line or () if seen.pid in keepers), None)


def origin_by_mark(pid: int) -> Origin | None:
    """Return the origin of a process by its mark alone, with one read of /proc."""
    if sys.platform != "linux":
        return None  # This system has no marks.
    try:
        return processes.mark_in_limits((Path("/proc") / str(pid) / "limits").read_bytes())
    except OSError:
        # It has ended, and a command may have its connection now. So the strictest limit applies.
        return "command"


def read_process_linux(pid: int) -> ProcessSeen | None:
    """Read a process from /proc. None for a zombie as well."""
    directory = Path("/proc") / str(pid)
    try:
        status = (directory / "stat").read_bytes()
        foreign = directory.stat().st_uid != os.geteuid()
        command = (directory / "cmdline").read_bytes()
        environment = _environment(directory)
        limits = (directory / "limits").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return _hidden(pid)
    except OSError:
        return None
    # A process chooses its name, which may contain spaces and parentheses. The last parenthesis ends it.
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in {b"Z", b"X"}:
        return None
    return ProcessSeen(
        pid=pid,
        parent=int(fields[1]),
        start=fields[19].decode(),
        marked=any(entry.startswith(f"{INSIDE}=".encode()) for entry in environment.split(b"\0")),
        keeper=KEEPER_MODULE in command,
        descends_from=processes.mark_in_limits(limits),
        foreign=foreign,
    )


def _environment(directory: Path) -> bytes:
    """Return the environment of a process. Empty: the system protects it."""
    try:
        return (directory / "environ").read_bytes()
    except PermissionError:
        return b""


def _hidden(pid: int) -> ProcessSeen | None:
    """Return a process that the system hides because it belongs to another user."""
    # With /proc mounted as hidepid=2 it seems not to exist. kill(pid, 0) distinguishes the two cases.
    try:
        os.kill(pid, 0)
    except PermissionError:
        return ProcessSeen(pid=pid, parent=0, start="", foreign=True)
    except OSError:
        return None
    return None


def read_process_ps(pid: int) -> ProcessSeen | None:
    """Read a process with `ps` if there is no /proc. `-E` adds the environment of own processes to the command line."""
    columns = ("ppid=", "uid=", "lstart=")
    told = _ps(pid, *(part for column in columns for part in ("-o", column)))
    command = _ps(pid, "-E", "-ww", "-o", "command=")
    return parse_ps(pid, os.geteuid(), told, command)


def _ps(pid: int, *options: str) -> bytes:
    command = ["/bin/ps", "-p", str(pid), *options]
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True).stdout.strip()


def parse_ps(pid: int, uid: int, told: bytes, command: bytes) -> ProcessSeen | None:
    """Parse two answers of `ps`: parent, user and start; command line and environment."""
    words = told.split()
    if len(words) < 3 or not command:
        return None
    return ProcessSeen(
        pid=pid,
        parent=int(words[0]),
        start=b" ".join(words[2:]).decode(errors="replace"),
        marked=f" {INSIDE}=".encode() in command,
        keeper=KEEPER_MODULE in command,
        foreign=int(words[1]) != uid,
    )


read_process: ReadProcess = read_process_linux if sys.platform == "linux" else read_process_ps
"""The `Look` of this system."""


def has_ended(connection: socket.socket) -> bool:
    """Return True if the process that made a connection is gone, so that its pid may have been reused."""
    if sys.platform != "linux":
        return False
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        # Linux before 6.5 has no such option. There only the start time shows a reused pid.
        return error.errno != errno.ENOPROTOOPT
    try:
        ended = select.poll()
        ended.register(peer, select.POLLIN)
        return bool(ended.poll(0))
    finally:
        os.close(peer)


def descends(connection: Any, pid: int) -> bool:
    """True if the process at the other end of a socket is, or descends from, the process with this pid."""
    peer, _ = peer_process(connection)
    line = ancestry(peer, read_process)
    return line is not None and not has_ended(connection) and any(seen.pid == pid for seen in line)


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
