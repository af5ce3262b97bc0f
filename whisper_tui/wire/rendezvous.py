"""Reaching the supervisor, and starting one if none runs: standard library only, for programs that start often."""

import errno
import fcntl
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from whisper_tui.model.errors import AlreadyRunning, NotAllowed, Unavailable, WhisperError, error_from
from whisper_tui.model.home import Home
from whisper_tui.supervisor.keeper import mark
from whisper_tui.supervisor.state_directory import is_locked, prepare
from whisper_tui.wire.protocol import SOCKET

PATIENCE_S = 60.0
"""Seconds that a new supervisor has to take everything back and answer."""

LOG = "supervisor.log"
"""Name of the file in the state directory that takes what the supervisor has to say."""

START_LOCK = "start.lock"
"""Name of the file in the runtime directory that whoever starts a supervisor holds locked."""

HELD = "held"
"""Name of the file in the state directory that is there while only a human may start a supervisor."""

INSIDE = "WHISPER_TUI_CALL_ID"
"""Set in the environment of every supervised command."""

_LONGEST_ADDRESS = 103
_POLL_S = 0.05
_LOG_ROTATED_AT = 4 * 1024 * 1024


@contextmanager
def socket_address(directory: PurePath) -> Iterator[str]:
    """A path of the socket in a directory that is short enough for the system. Raises `Unavailable`, `OSError`."""
    path = directory / SOCKET
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    if not Path("/proc/self/fd").is_dir():
        raise Unavailable(f"the path of the socket is too long for this system: {path}", hint="Choose a shorter --home")
    directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory_fd}/{SOCKET}"
    finally:
        os.close(directory_fd)


def connect(home: Home, *, timeout_s: float = 10.0) -> socket.socket | None:
    """A connection to the supervisor that runs. None: none runs. Raises `Unavailable`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        with socket_address(home.runtime) as address:
            _dial(connection, address, time.monotonic() + timeout_s)
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


def reach(home: Home, *, patience_s: float = PATIENCE_S) -> socket.socket:
    """A connection to the supervisor, which is started if none runs. Raises `WhisperError`.

    However many ask at once, one of them starts it and the others wait.
    """
    deadline = time.monotonic() + patience_s
    connection = connect(home)
    if connection is not None:
        return connection
    _check_outside(home)
    _check_held(home)
    prepare(home)
    while True:
        with turn(home, deadline):
            connection = connect(home)
            if connection is None:
                with suppress(AlreadyRunning):  # another one's being there is as good
                    _start(home, deadline)
                connection = connect(home)
        if connection is not None:
            return connection
        _check_time(home, deadline)
        time.sleep(_POLL_S)


def replace(home: Home, *, patience_s: float = PATIENCE_S) -> None:
    """Have a supervisor of this program's version take over from the one that runs, or start one. What runs goes on.

    Nobody else starts one meanwhile. Raises `WhisperError`.
    """
    deadline = time.monotonic() + patience_s
    _check_outside(home)
    prepare(home)
    with turn(home, deadline):
        _start(home, deadline, "--replace")


def hold(home: Home) -> None:
    """Have no agent and no script start a supervisor until a human does. Raises `WhisperError`."""
    prepare(home)
    (Path(home.state) / HELD).touch(mode=0o600)


def release(home: Home) -> None:
    """A human starts it, or nothing was stopped: whoever needs a supervisor may start one again."""
    (Path(home.state) / HELD).unlink(missing_ok=True)


def _check_held(home: Home) -> None:
    if (Path(home.state) / HELD).exists():
        raise Unavailable(
            "the supervisor was stopped, and stays so until a human starts it",
            hint="whisper-tui restart starts it, and so does opening the cockpit",
        )


def was_stopped(home: Home) -> bool:
    """Whether a supervisor that is gone went in order, and nobody is starting another one.

    One that crashed has left its socket behind; one that another takes over from goes while that one is being started.
    """
    return not is_locked(home.runtime / START_LOCK) and not (Path(home.runtime) / SOCKET).exists()


def choice_of(home: Home) -> list[str]:
    """The options that make a subcommand use exactly these directories."""
    root = home.config.parent
    if tuple(home) == (root / "config", root / "state", root / "run"):
        return ["--home", str(root)]
    return ["--directories", *map(str, home)]


def peer_process(connection: socket.socket) -> tuple[int, int]:
    """Pid (0 where it cannot be known) and uid of the process at the other end. Raises `OSError`."""
    if sys.platform == "linux":
        pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid, uid
    local, peer_credentials, peer_pid = 0, 1, 2  # SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID of macOS
    uid = struct.unpack_from("2I", connection.getsockopt(local, peer_credentials, 76))[1]
    pid = struct.unpack("i", connection.getsockopt(local, peer_pid, 4))[0]
    return pid, uid


def _dial(connection: socket.socket, address: str, deadline: float) -> None:
    """Connect, waiting while more programs want to than the system lets queue. Raises `OSError`."""
    while True:
        try:
            return connection.connect(address)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)


def _check_owner(connection: socket.socket, home: Home) -> None:
    _, uid = peer_process(connection)
    if uid != os.geteuid():
        raise Unavailable(
            f"the supervisor in {home.runtime} belongs to another user (uid {uid})",
            hint="Choose a directory of your own with --home",
        )


def _check_outside(home: Home) -> None:
    if os.environ.get(INSIDE):
        raise NotAllowed(
            f"no supervisor was started for {home.state}: a supervised command may not do that",
            hint="Start whisper-tui outside",
        )


def _check_origin(connection: socket.socket, home: Home) -> None:
    """A supervised command may move the socket away and listen in its place: it bears the mark of one.

    Raises `Unavailable`, and `ProcessLookupError` where whoever listened is gone by now.
    """
    if sys.platform != "linux":
        return
    pid, _ = peer_process(connection)
    try:
        limits = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError as error:
        raise ProcessLookupError(errno.ESRCH, "who listens at the socket is gone") from error
    if mark.shown_by(limits) == "command":
        raise Unavailable(
            f"pid {pid} listens at the supervisor's socket in {home.runtime}, and it is no supervisor: a supervised "
            "command has started it",
            hint="Look at it with ps, end it, then try again: the supervisor makes its socket again within seconds",
        )


@contextmanager
def turn(home: Home, deadline: float) -> Iterator[None]:
    """Only one starter at a time. `deadline`: monotonic seconds. Raises `Unavailable`."""
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


def _check_time(home: Home, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unavailable(
            f"the supervisor for {home.state} did not answer in time",
            hint=f"{home.state / LOG} says what it is doing",
        )


def _start(home: Home, deadline: float, *options: str) -> None:
    """Start a supervisor and wait for its word that it is ready. Raises `WhisperError`."""
    import subprocess

    log_path = Path(home.state) / LOG
    told, tell = os.pipe()
    with os.fdopen(told, "rb") as report, _open_log(log_path) as log:
        began = log.tell()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "whisper_tui", "supervise", *choice_of(home), *options, "--tell", str(tell)],
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
        why = answer.get("error") or _last_words(log_path, began)
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


def _read_report(report: int, home: Home, deadline: float) -> dict[str, Any]:
    """The one line in which a new supervisor says that it is ready or why not; empty when it died silently."""
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


def _last_words(log_path: Path, began: int) -> dict[str, str]:
    with log_path.open("rb") as log:
        log.seek(began)
        lines = log.read(1 << 20).decode(errors="replace").strip().splitlines()[-3:]
    words = " / ".join(line.strip() for line in lines) or "it said nothing"
    return {
        "kind": "unavailable",
        "message": f"the supervisor ended while it started: {words}",
        "hint": f"{log_path} may say more",
    }
