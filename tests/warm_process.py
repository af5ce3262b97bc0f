"""Processes of `whisper-tui` that start at once: forks of a process that has loaded everything.

An interpreter needs ten times as long to load the program as most commands take. A fork is a process of its own, with
its own directory, variables and standard streams, and so is the supervisor that it starts. Tests of the start itself
start interpreters: `tests/cli/test_loading.py`, `test_light_imports.py`, `test_standard_streams.py`.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

_FORKS = sys.platform == "linux"
"""Elsewhere interpreters are started: the sockets that tell of the processes are Linux's."""
_LONGEST = 1 << 20
_LOADS_LATER = ("whisper_tui.__main__", "whisper_tui.demo", "whisper_tui.integrations", "whisper_tui.tui")


class WarmProcess(subprocess.Popen[str]):
    """`python -m whisper_tui` with these words."""

    def __init__(self, words: Sequence[str], **how: Any) -> None:
        self._connection: socket.socket | None = None
        start = ["whisper-tui"] if _FORKS else [sys.executable, "-m", "whisper_tui"]
        super().__init__([*start, *words], text=True, **how)

    # What `subprocess` does for a child of its own, for a process whose parent reports its end.

    def _execute_child(self, args: Sequence[str], *how: Any) -> None:
        if _FORKS:
            self._connection = _start(self, _loaded_process(), args[1:], how)
        else:
            super()._execute_child(args, *how)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._connection is None:
            return super()._try_wait(flags)
        self._connection.setblocking(not flags & os.WNOHANG)
        try:
            status = int(self._connection.recv(20))
        except BlockingIOError:
            return 0, 0
        self._connection.close()
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self._connection is None:
            return super()._internal_poll(_deadstate)
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def warm_supervisors(name: str | None = None) -> Callable[..., None]:
    """Return how `subprocess.Popen` starts a program, if it forks supervisors from the loaded process."""
    from whisper_tui.system.own_program import own_program

    cold, own = subprocess.Popen._execute_child, own_program()

    def execute(self: "subprocess.Popen[Any]", args: Any, *how: Any) -> None:
        if _FORKS and isinstance(args, list) and args[: len(own) + 1] == [*own, "supervise"]:
            _start(self, name or _loaded_process(), args[len(own) :], how).close()
        else:
            cold(self, args, *how)

    return execute


def _start(process: Any, name: str, words: Sequence[str], how: Sequence[Any]) -> socket.socket:
    """Have a process started as the arguments of `_execute_child` say. Returns the connection that tells its end."""
    kept, cwd, env, ends = how[3], how[4], how[5], how[9:15]
    streams = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
    asked = {
        "words": [os.fspath(word) for word in words],
        "cwd": os.fspath(cwd or Path.cwd()),
        "env": {**(os.environ if env is None else env)},
        "kept": [*kept],
        "session": "supervise" in words[:1],
    }
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
    connection.connect(name)
    socket.send_fds(connection, [json.dumps(asked).encode(errors="surrogateescape")], [*streams, *kept])
    process.pid = int(connection.recv(20))
    process._child_created = True
    process._close_pipe_fds(*ends)
    return connection


@cache
def _loaded_process() -> str:
    """Start the process that loads everything, which ends with this one. Returns the name of its socket."""
    name = f"\0whisper-tui-tests-{os.getpid()}"
    loaded = subprocess.Popen([sys.executable, __file__, name[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert loaded.stdout is not None and loaded.stdout.readline() == b"ready\n"
    atexit.register(loaded.communicate)
    return name


# In the loaded process


def _serve(name: str) -> None:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(name)
    listening.listen(64)
    os.write(1, b"ready\n")
    importlib.import_module("whisper_tui.cli.dispatch")
    for module in pkgutil.walk_packages(importlib.import_module("whisper_tui").__path__, "whisper_tui."):
        if not module.name.startswith(_LOADS_LATER):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    subprocess.Popen._execute_child = warm_supervisors(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listening, 0], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _attend(connection)
        connection.close()


def _attend(connection: socket.socket) -> NoReturn:
    """Start the process that is asked for, and tell its end."""
    text, fds, _, _ = socket.recv_fds(connection, _LONGEST, 16)
    asked = json.loads(text.decode(errors="surrogateescape"))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _become(asked, fds)
    for fd in fds:
        os.close(fd)
    with suppress(BrokenPipeError):
        connection.send(b"%d" % pid)
        _, status = os.waitpid(pid, 0)
        connection.send(b"%d" % status)
    os._exit(0)


def _become(asked: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Be `whisper-tui` in this process, to its end."""
    # First away from the numbers that they get.
    wanted = [0, 1, 2, *asked["kept"]]
    moved = [os.dup2(fd, 100 + number) for number, fd in enumerate(fds)]
    os.closerange(3, 100)
    for fd, number in zip(moved, wanted, strict=True):
        os.dup2(fd, number)
    os.closerange(100, 100 + len(moved))
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    from whisper_tui.cli import main

    sys.argv = ["whisper-tui", *asked["words"]]
    try:
        code: object = main()
    except SystemExit as ending:
        code = ending.code
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    # To take down what was loaded takes as long again.
    os._exit(code if isinstance(code, int) else bool(code))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    _serve(f"\0{sys.argv[1]}")
