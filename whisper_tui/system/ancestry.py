"""The ancestors of a process, as the system shows them: those of a peer, here or at a place. Standard library only."""

import errno
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whisper_tui.system import processes
from whisper_tui.system.processes import INSIDE

KEEPER_MODULE = b"whisper_tui.supervisor.keeper"
"""Part of the command line of every keeper."""

Origin = Literal["command", "agent", "supervisor"]
"""The kind of ancestor that started a process, directly or not."""

_SO_PEERPIDFD = 77
"""Socket option of Linux 6.5: a pidfd of the peer, which cannot be confused with a reused pid."""
_SSH_CONNECTION = b"SSH_CONNECTION"
_SSH_CONNECTION_IN_PS = re.compile(rb" SSH_CONNECTION=(\S+ \d+ \S+ \d+)(?= |\Z)")
_SSH_SERVER = re.compile(rb"(?:\S*/)?(?:sshd(?:-session|-auth)?|dropbear)(?::|\s|\0|\Z)")
_MAIN_FILE = b"/whisper_tui/__main__.py"
_FIRST_WORDS = 10
"""Words of a command line among which the subcommand of whisper-tui is."""
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
    supervisor: bool = False
    """True if its command line is that of a supervisor."""
    descends_from: Origin | None = None
    """Its origin according to its inherited mark, even if its ancestors have ended."""
    foreign: bool = False
    """True if it belongs to another user. Then little is known about it."""
    ssh_server: bool = False
    """True if its command line is that of an ssh server or of a session of one."""
    ssh_connection: str = ""
    """`SSH_CONNECTION` in its environment: the ends of the connection of its session. Empty: it has none."""
    has_terminal: bool = False
    """True if it has a controlling terminal."""
    adopts: bool = False
    """True if it is the init process of the system or of a user, whose children orphans become."""


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


@dataclass(frozen=True)
class PeerThere:
    """A process at a place that connects as an agent, as the host process there has seen it."""

    place: str
    pid: int
    program: str
    """Its command line."""
    line: tuple[ProcessSeen, ...] | None
    """It and its ancestors. None: they cannot be determined."""
    key: str
    """Names this very process for ever. Empty: it is not known."""


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
    variables = dict(entry.partition(b"=")[::2] for entry in reversed(environment.split(b"\0")))
    return ProcessSeen(
        pid=pid,
        parent=int(fields[1]),
        start=fields[19].decode(),
        marked=INSIDE.encode() in variables,
        keeper=KEEPER_MODULE in command,
        supervisor=is_supervisor(command),
        descends_from=processes.mark_in_limits(limits),
        foreign=foreign,
        ssh_server=is_ssh_server(command),
        ssh_connection=variables.get(_SSH_CONNECTION, b"").decode(errors="replace"),
        has_terminal=fields[4] != b"0",
        adopts=_adopts(pid, command),
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
    columns = ("ppid=", "uid=", "tty=", "lstart=")
    told = _ps(pid, *(part for column in columns for part in ("-o", column)))
    command = _ps(pid, "-E", "-ww", "-o", "command=")
    return parse_ps(pid, os.geteuid(), told, command)


def _ps(pid: int, *options: str) -> bytes:
    command = ["/bin/ps", "-p", str(pid), *options]
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True).stdout.strip()


def parse_ps(pid: int, uid: int, told: bytes, command: bytes) -> ProcessSeen | None:
    """Parse two answers of `ps`: parent, user, terminal and start; command line and environment."""
    words = told.split()
    if len(words) < 4 or not command:
        return None
    return ProcessSeen(
        pid=pid,
        parent=int(words[0]),
        start=b" ".join(words[3:]).decode(errors="replace"),
        marked=f" {INSIDE}=".encode() in command,
        keeper=KEEPER_MODULE in command,
        supervisor=is_supervisor(command),
        foreign=int(words[1]) != uid,
        ssh_server=is_ssh_server(command),
        ssh_connection=b"".join(_SSH_CONNECTION_IN_PS.findall(command)[:1]).decode(),
        has_terminal=words[2].strip(b"?-") != b"",
        adopts=_adopts(pid, command),
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


def is_supervisor(command: bytes) -> bool:
    """True if a command line is that of a supervisor."""
    words = re.split(rb"[ \0]", command, maxsplit=_FIRST_WORDS)[:_FIRST_WORDS]
    named = [word.rpartition(b"/")[2] for word in words]
    for at, word in enumerate(named):
        is_main = words[at].endswith(_MAIN_FILE) or (word == b"whisper_tui" and words[at - 1] == b"-m")
        if is_main or (word == b"whisper-tui" and at <= 1):
            return b"supervise" in words[at + 1 :]
    return False


def _adopts(pid: int, command: bytes) -> bool:
    return pid == 1 or re.split(rb"[ \0]", command, maxsplit=1)[0].rpartition(b"/")[2] == b"systemd"


def is_ssh_server(command: bytes) -> bool:
    """True if a command line is that of an ssh server or of one of its sessions."""
    return _SSH_SERVER.match(command) is not None
