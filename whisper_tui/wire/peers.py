"""Who is at the other end of a connection, and whether it descends from a supervised command or from an agent.

A command that an agent proposed must never approve anything. It runs as the same user, so its uid says nothing:
its ancestors do, because a keeper adopts whatever its command leaves behind, and so does its environment. A command
that has killed its keeper and cleared its environment still bears the mark that nobody can take off.
"""

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

from whisper_tui.supervisor.keeper import mark
from whisper_tui.wire.rendezvous import INSIDE, peer_process

KEEPER_MODULE = b"whisper_tui.supervisor.keeper"
"""Part of the command line of every keeper."""

NO_AGENTS: Mapping[tuple[int, str], str] = MappingProxyType({})

Origin = Literal["command", "agent"]
"""Who has started a process, at whatever remove."""

_SO_PEERPIDFD = 77
"""A descriptor of the process that connected, which no later process can be mistaken for."""
_MARKED = "it was asked from inside a supervised command (it bears the mark of one)"
_TRIES = 5
_DEEPEST = 1000


@dataclass(frozen=True)
class ProcessSeen:
    """What the system says about one process."""

    pid: int
    parent: int
    start: str
    """When it started, in the system's own form; with the pid, it names the process for ever."""
    marked: bool = False
    """Whether its environment is that of a supervised command."""
    keeper: bool = False
    """Whether it is a keeper by its command line."""
    descends_from: Origin | None = None
    """Whom it descends from by the mark that it has inherited, whatever became of its ancestors."""
    foreign: bool = False
    """Whether it belongs to another user, so that little is known about it."""


Look = Callable[[int], ProcessSeen | None]
"""Finds a process by its pid. None: it is not there, or what matters cannot be seen."""


def ancestry(pid: int, look: Look) -> tuple[ProcessSeen, ...] | None:
    """The process and its ancestors, the process first. None: they cannot be told.

    A parent that ends while we look hands its children on, so the walk begins again.
    """
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
    """Why a peer with these ancestors may not decide. None: it may.

    `agents` are those that are connected, by pid and start. What an agent's model does, it does through what the
    agent starts; the agent's own process runs its author's program, which may be one that asks its user.
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
    for seen in line[1:]:
        if (agent := agents.get((seen.pid, seen.start))) is not None:
            return f"it was asked from inside the agent {agent}"
    if line[0].descends_from == "agent" and (line[0].pid, line[0].start) not in agents:
        return "it was asked by what an agent has started (it bears the mark of that)"
    return None


def why_supervised_here() -> str | None:
    """Why this very process may not decide, as far as it can tell without the supervisor. None: it may."""
    line = ancestry(os.getpid(), look)
    if line is not None and (problem := why_supervised(line, ())) is not None:
        return problem
    return _MARKED if mark.is_borne_here() else None


def supervised_call(line: tuple[ProcessSeen, ...] | None, keepers: Mapping[int, str]) -> str | None:
    """The call whose command has these descendants, by the pids of keepers. None: of none that is alive."""
    return next((keepers[seen.pid] for seen in line or () if seen.pid in keepers), None)


def origin_by_mark(pid: int) -> Origin | None:
    """Who has started a process, by its mark alone: that is one look, quick enough for everybody who connects.

    A process that is not there any more counts as a command's, for it may have left its connection to one. Where
    there are no marks, nobody has one.
    """
    if sys.platform != "linux":
        return None
    try:
        return mark.shown_by((Path("/proc") / str(pid) / "limits").read_bytes())
    except OSError:
        return "command"


def look_linux(pid: int) -> ProcessSeen | None:
    """Read /proc. A process that has ended, even if it is not yet reaped, is not there."""
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
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in {b"Z", b"X"}:
        return None
    return ProcessSeen(
        pid=pid,
        parent=int(fields[1]),
        start=fields[19].decode(),
        marked=any(entry.startswith(f"{INSIDE}=".encode()) for entry in environment.split(b"\0")),
        keeper=KEEPER_MODULE in command,
        descends_from=mark.shown_by(limits),
        foreign=foreign,
    )


def _environment(directory: Path) -> bytes:
    """Empty where the system protects it, as it does with processes of others: their ancestors still tell."""
    try:
        return (directory / "environ").read_bytes()
    except PermissionError:
        return b""


def _hidden(pid: int) -> ProcessSeen | None:
    """A process of another user on a system that hides those: the line of what can be known ends there."""
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
    """What two answers of `ps` say: parent, user and start; command line and environment."""
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
"""How this system shows a process."""


def has_ended(connection: socket.socket) -> bool:
    """Whether the process that made a connection is gone, so that its pid may be another's by now.

    Linux before 6.5 cannot tell: there a start time that has changed is all that shows it.
    """
    if sys.platform != "linux":
        return False
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno != errno.ENOPROTOOPT
    try:
        ended = select.poll()
        ended.register(peer, select.POLLIN)
        return bool(ended.poll(0))
    finally:
        os.close(peer)


def descends(connection: Any, pid: int) -> bool:
    """Whether the process at the other end of a socket is, or descends from, the process with this pid."""
    peer, _ = peer_process(connection)
    line = ancestry(peer, look)
    return line is not None and not has_ended(connection) and any(seen.pid == pid for seen in line)
