"""The process at the other end of a connection, and its descent from a supervised command or an agent."""

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
from whisper_tui.system import process_marks
from whisper_tui.wire.rendezvous import INSIDE, peer_process

KEEPER_MODULE = b"whisper_tui.supervisor.keeper"
"""Part of the command line of every keeper."""

NO_AGENTS: Mapping[tuple[int, str], str] = MappingProxyType({})

Origin = Literal["command", "agent"]
"""The kind of ancestor that started a process, directly or not."""

_SO_PEERPIDFD = 77
"""Socket option of Linux 6.5: a pidfd of the peer, which a reused pid cannot be mistaken for."""
_MARKED = "it was asked from inside a supervised command (it bears the mark of one)"
_TRIES = 5
_DEEPEST = 1000


@dataclass(frozen=True)
class ProcessSeen:
    """The facts that the system gives about one process."""

    pid: int
    parent: int
    start: str
    """When it started, in the system's own form; with the pid, it names the process for ever."""
    marked: bool = False
    """True if its environment is that of a supervised command."""
    keeper: bool = False
    """True if its command line is that of a keeper."""
    descends_from: Origin | None = None
    """Whom it descends from by the mark that it has inherited, whatever became of its ancestors."""
    foreign: bool = False
    """True if it belongs to another user, so that little is known about it."""


Look = Callable[[int], ProcessSeen | None]
"""Finds a process by its pid. None: it is not there, or what matters cannot be seen."""


def ancestry(pid: int, look: Look) -> tuple[ProcessSeen, ...] | None:
    """Return the process and its ancestors, the process first. None: they cannot be determined."""
    # A parent that ends during the walk leaves its children to another process, so the walk begins again.
    for _ in range(_TRIES):
        line: list[ProcessSeen] = []
        following = pid
        while following > 0 and len(line) < _DEEPEST:
            seen = look(following)
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
    """Return the reason why a peer with these ancestors may not decide. None: it may (decision 18).

    `agents` are the agents that are or were connected, by pid and start.
    """
    if line is None or line[0].foreign:
        return "the process that asks cannot be looked at"
    for seen in line:
        if seen.pid in keepers or seen.keeper:
            return "it was asked from inside a supervised command"
        if seen.marked:
            return f"it was asked from inside a supervised command (its environment has {INSIDE})"
        if seen.descends_from == "command":
            return _MARKED
    # The agent's own process is left out: it runs its author's program, which may ask its user. The model acts through
    # what that process starts.
    for seen in line[1:]:
        if (agent := agents.get((seen.pid, seen.start))) is not None:
            return f"it was asked from inside the agent {agent}"
    if line[0].descends_from == "agent" and (line[0].pid, line[0].start) not in agents:
        return "it was asked by what an agent has started (it bears the mark of that)"
    return None


def why_supervised_here() -> str | None:
    """Return the reason why this process may not decide, as far as it can tell alone. None: it may."""
    line = ancestry(os.getpid(), look)
    if line is not None and (problem := why_supervised(line, ())) is not None:
        return problem
    return _MARKED if process_marks.is_supervised_here() else None


def supervised_call(line: tuple[ProcessSeen, ...] | None, keepers: Mapping[int, str]) -> str | None:
    """The call whose command has these descendants, by the pids of keepers. None: of none that is alive."""
    return next((keepers[seen.pid] for seen in line or () if seen.pid in keepers), None)


def origin_by_mark(pid: int) -> Origin | None:
    """Return the origin of a process by its mark alone, with one read of /proc."""
    if sys.platform != "linux":
        return None  # There are no marks.
    try:
        return process_marks.mark_in_limits((Path("/proc") / str(pid) / "limits").read_bytes())
    except OSError:
        # It has ended, and may have left its connection to a command: the strictest limit applies.
        return "command"


def look_linux(pid: int) -> ProcessSeen | None:
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
    # A process names itself, and its name may hold blanks and parentheses: the last one ends it.
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in {b"Z", b"X"}:
        return None
    return ProcessSeen(
        pid=pid,
        parent=int(fields[1]),
        start=fields[19].decode(),
        marked=any(entry.startswith(f"{INSIDE}=".encode()) for entry in environment.split(b"\0")),
        keeper=KEEPER_MODULE in command,
        descends_from=process_marks.mark_in_limits(limits),
        foreign=foreign,
    )


def _environment(directory: Path) -> bytes:
    """Return the environment of a process; empty where the system protects it."""
    try:
        return (directory / "environ").read_bytes()
    except PermissionError:
        return b""


def _hidden(pid: int) -> ProcessSeen | None:
    """Return a process that the system hides because it belongs to another user."""
    # With /proc mounted as hidepid=2 it looks as if it did not exist; kill(pid, 0) tells the two cases apart.
    try:
        os.kill(pid, 0)
    except PermissionError:
        return ProcessSeen(pid=pid, parent=0, start="", foreign=True)
    except OSError:
        return None
    return None


def look_ps(pid: int) -> ProcessSeen | None:
    """Ask `ps`, where there is no /proc; `-E` adds the environment of own processes to the command line."""
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


look: Look = look_linux if sys.platform == "linux" else look_ps
"""The `Look` of this system."""


def has_ended(connection: socket.socket) -> bool:
    """Return True if the process that made a connection is gone, so that its pid may have been reused."""
    if sys.platform != "linux":
        return False
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        # Linux before 6.5 has no such option; there only the start time shows a reused pid.
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
    line = ancestry(peer, look)
    return line is not None and not has_ended(connection) and any(seen.pid == pid for seen in line)


async def check_origin(connection: Any, hello: dict[str, Any]) -> None:
    """Check the agent's pid in a hello; drop it if it comes from another pid namespace.

    Raises `NotAllowed` if that process is no ancestor of the peer.
    """
    pid = hello.get("pid")
    if not isinstance(pid, int):
        return
    # In a container the number names another process here, or none.
    if await asyncio.to_thread(_counts_pids_otherwise, connection):
        hello["pid"] = None
    elif not await asyncio.to_thread(descends, connection, pid):
        raise NotAllowed(
            f"this connection says that process {pid} is its agent, and does not come from there",
            hint="Let the agent itself start whisper-tui mcp, or its hook",
        )


def _counts_pids_otherwise(connection: Any) -> bool:
    """True if the process at the other end lives in another pid namespace, as in a container."""
    peer, _ = peer_process(connection)
    try:
        return Path(f"/proc/{peer}/ns/pid").readlink() != Path(f"/proc/{os.getpid()}/ns/pid").readlink()
    except OSError:
        return False
