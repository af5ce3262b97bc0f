"""A program that tries everything that decides, at a supervisor's socket, and writes down what it was answered.

It is started with the socket, a file for the answers, how it hides, and the requests as JSON. Standard library only.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork")


def main() -> None:
    """Hide, ask, write down."""
    address, answers, way, requests = sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
    WAYS[way]()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    told = connection.makefile("rb")
    ask(connection, {"door": "port", "version": 1})
    told.readline()
    heard = {}
    for number, (operation, args) in enumerate(requests):
        ask(connection, {"id": number, "op": operation, "args": args})
        heard[operation] = json.loads(told.readline())
    unfinished = answers.with_suffix(".part")
    unfinished.write_text(json.dumps(heard) + "\n")
    unfinished.rename(answers)


def ask(connection: socket.socket, request: object) -> None:
    """One line of the protocol."""
    connection.sendall(json.dumps(request).encode() + b"\n")


def lead_session() -> None:
    """Go on in a child that leads a session of its own; the parent stays."""
    if child := os.fork():
        os.waitpid(child, 0)
        os._exit(0)
    os.setsid()


def become_orphan() -> None:
    """Fork, and go on in the child once its parent is gone."""
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.005)


def double_fork() -> None:
    """As daemons do: fork, lead a session, fork."""
    become_orphan()
    os.setsid()
    become_orphan()


def start_anew(environment: dict[str, str]) -> None:
    """Become a new program with another environment, which does no more hiding."""
    words = [sys.executable, "-I", __file__, *sys.argv[1:3], "as it is", sys.argv[4]]
    os.execve(sys.executable, words, environment)


def kill_keeper() -> None:
    """End the process that stands by this command, and be handed on to whoever takes orphans."""
    keeper = os.getppid()
    os.kill(keeper, signal.SIGKILL)
    while os.getppid() == keeper:
        time.sleep(0.005)


def lose_everything() -> None:
    """No keeper, no ancestor of its own, no session, and nothing in the environment."""
    kill_keeper()
    double_fork()
    start_anew({})


def wait_for_the_end() -> None:
    """As a job for later does: the command that started it has long been answered."""
    become_orphan()
    time.sleep(0.3)
    os.setsid()


def in_new_namespaces() -> None:
    """Another program below `unshare`, as the first process of a new pid namespace."""
    words = [sys.executable, "-I", __file__, *sys.argv[1:3], "as it is", sys.argv[4]]
    os._exit(
        subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", *words], check=False).returncode
    )


def hand_on_the_connection() -> None:
    """Connect, pass the connection to another process by a message, and end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    if not os.fork():
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(sys.argv[1])
        socket.send_fds(theirs, [b"x"], [connection.fileno()])
        os._exit(0)
    _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
    os.wait()
    given = socket.socket(fileno=fd)
    socket.socket = lambda *_: _Given(given)  # type: ignore[assignment,misc,return-value]


class _Given:
    """A connection that is there already."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def connect(self, _address: str) -> None:
        """Nothing is left to do."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


WAYS = {
    "as it is": lambda: None,
    "in a new session": lead_session,
    "deaf to hang-ups": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    "orphaned": become_orphan,
    "double forked": double_fork,
    "with an empty environment": lambda: start_anew({}),
    "left behind, later": wait_for_the_end,
    "its keeper killed": kill_keeper,
    "its keeper killed, double forked, with an empty environment": lose_everything,
    "in new namespaces": in_new_namespaces,
    "with a connection that it was handed": hand_on_the_connection,
}

if __name__ == "__main__":
    main()
