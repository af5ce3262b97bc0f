"""Reaching the supervisor, and starting one if none runs: standard library only, for programs that start often."""

import errno
import fcntl
import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from whisper_tui.model.errors import AlreadyRunning, NotAllowed, Unavailable, WhisperError, error_from
from whisper_tui.system import processes
from whisper_tui.system.own_program import own_program
from whisper_tui.system.state_directory import Directories, is_locked, prepare
from whisper_tui.wire.protocol import SOCKET

PATIENCE_S = 60.0
"""Seconds that a new supervisor has to recover its runs and answer."""

LOG = "supervisor.log"
"""Name of the supervisor's log file in the state directory."""

START_LOCK = "start.lock"
"""Name of the file in the runtime directory that is locked while a supervisor is being started."""

HELD = "held"
"""Name of the file in the state directory that exists while only a human may start a supervisor."""

_FOR_AGENTS = re.compile(rb"agents(?: (-?[0-9]+)\n)?")
"""Content of that file if only agents are held: what has a mark, and a lower limit than the program that wrote it had.
Everything else, such as a note that could not be written to its end, holds everybody. In any case whisper-tui and
whisper-tui restart remove the file."""

# macOS allows 104 bytes for the path of a socket, with the final null. Linux allows 108.
_LONGEST_ADDRESS = 103
_POLL_S = 0.05
_LOG_ROTATED_AT = 4 * 1024 * 1024


@contextmanager
def socket_address(directory: PurePath) -> Iterator[str]:
    """Return a path of the socket that is short enough for the system. Raises `Unavailable` and `OSError`."""
    path = directory / SOCKET
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    if not Path("/proc/self/fd").is_dir():
        raise Unavailable(f"the path of the socket is too long for this system: {path}", hint="Choose a shorter --home")
    # A deep --home exceeds the limit of socket addresses. Through /proc the same directory has a short path.
    directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory_fd}/{SOCKET}"
    finally:
        os.close(directory_fd)


def connect(home: Directories, *, timeout_s: float = 10.0) -> socket.socket | None:
    """Connect to the running supervisor. None: none runs. Raises `Unavailable`."""
    _check_processes()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        with socket_address(home.runtime) as address:
            _connect_until(connection, address, time.monotonic() + timeout_s)
        _check_owner(connection, home)
        _check_origin(connection, home)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError, ProcessLookupError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise Unavailable(
            f"the supervisor's socket in {home.runtime} cannot be used: {error.strerror or error}",
            hint="Check its permissions, or choose another --home",
        ) from error
    except WhisperError:
        connection.close()
        raise
    return connection


def reach(
    home: Directories,
    starting: Callable[[], None] = lambda: None,
    *,
    patience_s: float = PATIENCE_S,
    for_agent: bool = False,
) -> socket.socket:
    """Connect to the supervisor, and start one if none runs. Raises `WhisperError`.

    `for_agent`: an agent asks. It may not start one that a human has stopped. `starting` is called before a start.
    """
    deadline = time.monotonic() + patience_s
    connection = connect(home)
    if connection is not None:
        return connection
    _check_outside(home)
    _check_held(home, for_agent=for_agent)
    prepare(home)
    starting()
    while True:
        # Many clients may start at once. One gets the lock and starts it, and the others find it running.
        with start_lock(home, deadline):
            connection = connect(home)
            if connection is None:
                with suppress(AlreadyRunning):  # another one is just as good
                    _start(home, deadline)
                connection = connect(home)
        if connection is not None:
            return connection
        _check_time(home, deadline)
        time.sleep(_POLL_S)


def replace(home: Directories, *, patience_s: float = PATIENCE_S) -> None:
    """Start a supervisor of this version, which takes over from the running one. Commands keep running.

    Raises `WhisperError`.
    """
    deadline = time.monotonic() + patience_s
    _check_outside(home)
    prepare(home)
    with start_lock(home, deadline):
        _start(home, deadline, "--replace")


def for_agents() -> bytes:
    """Return the content for `hold` that holds agents: theirs, not the program that writes it."""
    return b"agents %d\n" % processes.inherited_limit()


def hold(home: Directories, content: bytes = b"") -> None:
    """Let only `whisper-tui` and `whisper-tui restart` start a supervisor; see `for_agents`. Raises `WhisperError`."""
    prepare(home)
    with os.fdopen(os.open(Path(home.state) / HELD, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def held(home: Directories) -> bytes | None:
    """Return the content of the file that prevents a start. None: there is none."""
    try:
        return (Path(home.state) / HELD).read_bytes()
    except OSError:
        return None


def release(home: Directories) -> None:
    """Allow every program to start a supervisor again."""
    (Path(home.state) / HELD).unlink(missing_ok=True)


def _check_held(home: Directories, *, for_agent: bool) -> None:
    content = held(home)
    if content is None:
        return
    agents = _FOR_AGENTS.fullmatch(content)
    # An agent may also run a human's subcommand in its own shell. The mark of agents shows that. Where the human's own
    # terminal has one, because an agent of another supervisor has started it, only a further one does.
    if agents is None or for_agent or processes.is_marked_below(int(agents[1] or processes.NO_LIMIT)):
        raise Unavailable(
            "the supervisor was stopped, and stays stopped until a human starts it",
            hint="Start it with whisper-tui restart, or open the cockpit",
        )


def stopped_on_purpose(home: Directories) -> bool:
    """Return True if the last supervisor was stopped on purpose and no other one is being started."""
    # A crashed one leaves its socket behind. During a takeover, the starter of the new one holds the lock.
    return not is_locked(home.runtime / START_LOCK) and not (Path(home.runtime) / SOCKET).exists()


def home_options(home: Directories) -> list[str]:
    """Return the options with which a subcommand uses these directories."""
    root = home.config.parent
    if tuple(home) == (root / "config", root / "state", root / "run"):
        return ["--home", str(root)]
    return ["--directories", *map(str, home)]


def _connect_until(connection: socket.socket, address: str, deadline: float) -> None:
    """Connect, and retry until the deadline while the listen queue is full. Raises `OSError`."""
    while True:
        try:
            return connection.connect(address)
        except BlockingIOError:  # If the backlog of a local socket is full, Linux answers EAGAIN instead of waiting.
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)


def _check_owner(connection: socket.socket, home: Directories) -> None:
    _, uid = processes.peer_process(connection)
    if uid != os.geteuid():
        raise Unavailable(
            f"the supervisor in {home.runtime} belongs to another user (uid {uid})",
            hint="Choose a directory of your own with --home",
        )


PROCESSES = "/proc/self"
"""Without it nobody can tell which process is at the other end of a socket, nor which ones are alive."""


def _check_processes() -> None:
    if sys.platform == "linux" and not os.path.exists(PROCESSES):  # noqa: PTH110 (as quickly as possible)
        raise Unavailable("/proc is not mounted, and whisper_tui needs it", hint="mount -t proc proc /proc, as root")


def _check_outside(home: Directories) -> None:
    if os.environ.get(processes.INSIDE):
        raise NotAllowed(
            f"no supervisor was started for {home.state}: a supervised command may not do that",
            hint="Start whisper-tui outside",
        )


def _check_origin(connection: socket.socket, home: Directories) -> None:
    """Check that the peer is not a supervised command.

    Raises `Unavailable`, and `ProcessLookupError` if the peer has ended.
    """
    if sys.platform != "linux":
        return
    # A command runs as the same user, so it can replace the socket and listen there. Its mark shows that.
    pid, _ = processes.peer_process(connection)
    try:
        limits = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError as error:
        raise ProcessLookupError(errno.ESRCH, "the process that listens at the socket is gone") from error
    if processes.may_be_of_command(limits):
        raise Unavailable(
            f"pid {pid} listens at the supervisor's socket in {home.runtime}, but is not a supervisor: a supervised "
            "command has started it",
            hint="Check it with ps, end it, then try again: the supervisor recreates its socket within seconds",
        )


@contextmanager
def start_lock(home: Directories, deadline: float) -> Iterator[None]:
    """Hold the start lock. `deadline` is in monotonic seconds. Raises `Unavailable`."""
    lock = os.open(home.runtime / START_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                    raise Unavailable(f"{home.runtime}/{START_LOCK} cannot be locked: {error.strerror}") from error
            _check_time(home, deadline)
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _check_time(home: Directories, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unavailable(
            f"the supervisor for {home.state} did not answer in time",
            hint=f"See {home.state / LOG}",
        )


def _start(home: Directories, deadline: float, *options: str) -> None:
    """Start a supervisor and wait until it reports that it is ready. Raises `WhisperError`."""
    import subprocess

    log_path = Path(home.state) / LOG
    told, tell = os.pipe()
    with os.fdopen(told, "rb") as report, _open_log(log_path) as log:
        began = log.tell()
        try:
            # In "/", so that it keeps no file system busy, and in a new session, so that no terminal ends it.
            process = subprocess.Popen(
                [*own_program(), "supervise", *home_options(home), *options, "--tell", str(tell)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=(tell,),
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"the supervisor cannot be started: {error}") from error
        finally:
            os.close(tell)
        answer = _read_report(report.fileno(), home, deadline)
        process.wait()
        if answer.get("ready"):
            return
        why = answer.get("error") or _last_log_lines(log_path, began)
    raise error_from(why["kind"], why["message"], why["hint"])


def _open_log(path: Path) -> BinaryIO:
    try:
        with suppress(FileNotFoundError):
            if path.stat().st_size > _LOG_ROTATED_AT:
                path.replace(f"{path}.1")
        log = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab")
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}", hint="Check free disk space and permissions"
        ) from error
    log.seek(0, os.SEEK_END)
    return log


def _read_report(report: int, home: Directories, deadline: float) -> dict[str, Any]:
    """Read the line in which a new supervisor reports that it is ready, or why not. Empty: it died silently."""
    import select

    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([report], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            _check_time(home, 0.0)
        piece = os.read(report, 65536)
        if not piece:
            return {}
        line += piece
    answer = json.loads(line)
    return answer if isinstance(answer, dict) else {}


def _last_log_lines(log_path: Path, began: int) -> dict[str, str]:
    with log_path.open("rb") as log:
        log.seek(began)
        lines = log.read(1 << 20).decode(errors="replace").strip().splitlines()[-3:]
    words = " / ".join(line.strip() for line in lines) or "its log is empty"
    return {
        "kind": "unavailable",
        "message": f"the supervisor ended while it started: {words}",
        "hint": f"See {log_path}",
    }
