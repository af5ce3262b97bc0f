"""The least that commands cost with the guarantees of whisper_tui: a program that does nothing else, in Python.

Socket, two rows in SQLite of which the first is flushed (one flush for all requests that wait), a directory with order,
lock, claim, ending and mark of completion, for each command a process that outlives the supervisor, and a sandbox. No
policy, no sessions, no events, no watchers. For lists: a server that keeps rows compressed, as JSON, and a program that
reads them from a socket and prints them in columns.

Usage: python benchmarks/floor.py [ROUNDS]
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from measure import median, quantile, serial_popen_seconds, table

from whisper_tui.supervisor.keeper.sandbox import Profile, Sandboxes
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications

COMMAND = ["/bin/bash", "-c", "true"]
STAYS = ["/bin/sleep", "600"]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
PAUSE_S = 0.03
AT_ONCE = 200
WORKERS = 8
CROWD = 1000
BUFFER, MIB = 1 << 16, 1 << 20
LISTED, IN_BLOCK = 100_000, 250
FORKS = 20
LISTING = """
import json, socket, sys
with socket.socket(fileno=int(sys.argv[1])) as connection, connection.makefile("rb") as blocks:
    for block in blocks:
        rows = ["%-8.8s%-10.10s%-6.6s%-24.24s%-12.12s%-70.70s%s" % tuple(row) for row in json.loads(block)]
        sys.stdout.write("\\n".join(rows) + "\\n")
"""


def capture(streams: dict[int, str], listener: int, profile: Profile) -> None:
    """Save the output, and answer the notifications of the sandbox, until the command has closed its output."""
    poll, notifications = select.poll(), SeccompNotifications(listener, (*profile.write, os.devnull, "/dev/tty"))
    for fd in (*streams, listener):
        poll.register(fd, select.POLLIN)
    while streams:
        for fd, event in poll.poll():
            if fd == listener:
                if not (event & select.POLLIN and notifications.answer()):
                    poll.unregister(fd)
            elif data := os.read(fd, BUFFER):
                with Path(streams[fd]).open("ab", buffering=0) as file:
                    file.write(data)
            else:
                poll.unregister(fd)
                os.close(fd)
                del streams[fd]
    notifications.close()


def keep(jobs: socket.socket, news: int, sandboxes: Sandboxes) -> None:
    """Keep one command after the other; what a keeper has to do for each."""
    while True:
        sandboxes.prepare()
        directory = jobs.recv(BUFFER).decode()
        if not directory:
            os._exit(0)
        lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        order = json.loads(Path(directory, "spec").read_bytes())
        os.symlink("run", f"{directory}/claim")
        os.mkdir(f"{directory}/tmp")
        profile = Profile((order["cwd"],), (), (f"{directory}/tmp",), network=False, processes=False)
        (out, out_in), (err, err_in) = os.pipe(), os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, out_in, 1), (os.POSIX_SPAWN_DUP2, err_in, 2)]
        started = sandboxes.start(
            profile,
            lambda actions=actions, argv=order["argv"]: os.posix_spawn(
                argv[0], argv, ENVIRONMENT, file_actions=actions, setsid=True
            ),
        )
        os.close(out_in)
        os.close(err_in)
        if order["stays"]:
            Path(directory, "pid").write_text(json.dumps({"pid": started.pid, "keeper": os.getpid()}))
            os.write(news, f"{directory}/pid\n".encode())
        capture({out: f"{directory}/out", err: f"{directory}/err"}, started.listener, profile)
        status = os.waitpid(started.pid, 0)[1]
        Path(directory, "exit.tmp").write_text(json.dumps({"code": os.waitstatus_to_exitcode(status)}))
        os.rename(f"{directory}/exit.tmp", f"{directory}/exit")
        os.rmdir(f"{directory}/tmp")
        Path(directory, "done").touch()
        if not order["stays"]:
            os.write(news, f"{directory}/exit\n".encode())
        os.close(lock)


def fork_keepers(jobs: socket.socket, news: int, keepers: int) -> None:
    """Fork processes that keep commands, and wait for their ends."""
    sandboxes = Sandboxes()
    # The collector would write into all objects of each keeper.
    gc.disable()
    gc.freeze()
    for _ in range(keepers):
        if not os.fork():
            keep(jobs, news, sandboxes)
    jobs.close()
    for _ in range(keepers):
        os.wait()
    os._exit(0)


class Least:
    """A supervisor that does only what it has to do for each command."""

    def __init__(self, asked: socket.socket, place: Path, keepers: int) -> None:
        self._asked, self._place = asked, place
        self._jobs, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._told, news = os.pipe()
        self._parent = os.fork()
        if not self._parent:
            self._jobs.close()
            fork_keepers(theirs, news, keepers)
        theirs.close()
        self._db = sqlite3.connect(place / "floor.sqlite", isolation_level=None)
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE e (body TEXT)")
        self._log = os.open(place / "floor.sqlite-wal", os.O_RDWR)
        self._number = 0

    def serve(self) -> None:
        """Answer requests until nobody can ask any more."""
        poll, rest = select.poll(), b""
        poll.register(self._asked, select.POLLIN)
        poll.register(self._told, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._told:
                    self._answer(os.read(self._told, BUFFER))
                elif data := self._asked.recv(BUFFER):
                    *lines, rest = (rest + data).split(b"\n")
                    self._order([json.loads(line) for line in lines])
                else:
                    self._jobs.close()
                    os.waitpid(self._parent, 0)
                    os._exit(0)

    def _order(self, requests: list[dict[str, Any]]) -> None:
        for request in requests:
            self._db.execute("INSERT INTO e VALUES (?)", (json.dumps(request),))
        os.fdatasync(self._log)
        for request in requests:
            self._number += 1
            directory = f"{self._place}/{self._number}.1"
            os.mkdir(directory, 0o700)
            Path(directory, "spec").write_text(json.dumps({**request, "cwd": str(self._place)}))
            self._jobs.send(directory.encode())

    def _answer(self, news: bytes) -> None:
        for path in news.decode().splitlines():
            told = Path(path).read_text()
            self._db.execute("INSERT INTO e VALUES (?)", (told,))
            self._asked.sendall(told.encode() + b"\n")


@contextmanager
def supervised(keepers: int) -> Iterator[socket.socket]:
    """A connection to such a supervisor, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            ours.close()
            Least(theirs, Path(directory), keepers).serve()
        theirs.close()
        yield ours
        ours.close()
        os.waitpid(pid, 0)


def ask(connection: socket.socket, argv: list[str], count: int, *, stays: bool = False) -> list[dict[str, int]]:
    """Send so many requests at once, and return the answers: of a command that stays, once it runs."""
    line = json.dumps({"argv": argv, "stays": stays}).encode() + b"\n"
    connection.sendall(line * count)
    data = b""
    while data.count(b"\n") < count:
        data += connection.recv(BUFFER)
    return [json.loads(each) for each in data.splitlines()]


def one_by_one(rounds: int) -> list[str]:
    """Medians of interleaved rounds, in milliseconds, and their ratios."""
    plain, least = [], []
    with supervised(1) as connection:
        for number in range(rounds + 10):
            begin = time.perf_counter()
            answers = ask(connection, COMMAND, 1)
            took = time.perf_counter() - begin
            assert answers == [{"code": 0}], answers
            time.sleep(PAUSE_S)
            begin = time.perf_counter()
            subprocess.run(COMMAND, capture_output=True, check=True)
            if number >= 10:
                plain.append((time.perf_counter() - begin) * 1000)
                least.append(took * 1000)
            time.sleep(PAUSE_S)
    middle, high = (median(plain), median(least)), (quantile(plain, 0.95), quantile(least, 0.95))
    figures = [f"{figure:.2f}" for pair in zip(middle, high, strict=True) for figure in pair]
    return ["`bash -c true`", *figures, *(f"{pair[1] / pair[0]:.2f} times" for pair in (middle, high))]


def at_once() -> float:
    """Commands a second when many are asked for together."""
    with supervised(WORKERS) as connection:
        ask(connection, COMMAND, WORKERS)
        begin = time.perf_counter()
        answers = ask(connection, COMMAND, AT_ONCE)
        took = time.perf_counter() - begin
    assert answers == [{"code": 0}] * AT_ONCE, answers
    return AT_ONCE / took


def crowd() -> list[list[str]]:
    """How soon many commands run, and the memory of each of their keepers."""
    plain = serial_popen_seconds(STAYS, CROWD)
    begin = time.perf_counter()
    with supervised(CROWD) as connection:
        answers = ask(connection, STAYS, CROWD, stays=True)
        least = time.perf_counter() - begin
        memory = median([psutil.Process(each["keeper"]).memory_full_info().uss / MIB for each in answers])
        for each in answers:
            os.kill(each["pid"], signal.SIGKILL)
    return [
        ["subprocess.Popen", f"{plain:.2f}", "1.00 times", "0.00"],
        ["least", f"{least:.2f}", f"{least / plain:.2f} times", f"{memory:.2f}"],
        ["a fork that does nothing", "", "", f"{fork_mib():.2f}"],
    ]


def fork_mib() -> float:
    """Private memory of a fork that has the modules of a keeper loaded, and waits."""
    children = []
    for _ in range(FORKS):
        pid = os.fork()
        if not pid:
            signal.pause()
        children.append(pid)
    memory = median([psutil.Process(pid).memory_full_info().uss / MIB for pid in children])
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return memory


def call_row(number: int) -> list[str]:
    """What a list says about one waiting call."""
    text = f"make part{number} && ./deploy.sh --stage part{number} 2>&1 | tee part{number}.log"
    return [str(number), "waiting", "3s", "network", f"agent {number % 10}", text, f"Build part {number}"]


def rows_a_second() -> float:
    """Rows a second, from the first on, that a program prints while a server only decompresses and sends them."""
    parts = ([call_row(number) for number in range(at, at + IN_BLOCK)] for at in range(0, LISTED, IN_BLOCK))
    blocks = [zlib.compress(json.dumps(rows).encode()) for rows in parts]
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        for block in blocks:
            theirs.sendall(zlib.decompress(block) + b"\n")
        os._exit(0)
    theirs.close()
    argv = [sys.executable, "-I", "-S", "-c", LISTING, str(ours.fileno())]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=[ours.fileno()]) as listing:
        assert listing.stdout is not None
        listing.stdout.readline()
        begin = time.perf_counter()
        count = sum(1 for _ in listing.stdout)
        took = time.perf_counter() - begin
    ours.close()
    os.waitpid(pid, 0)
    assert count == LISTED - 1, count
    return count / took


def main(rounds: int) -> None:
    """Print the tables."""
    head = ("command", "subprocess.run ms", "p95", "least ms", "p95", "ratio of medians", "ratio of p95")
    row, rate, rows = one_by_one(rounds), at_once(), crowd()
    table(f"The least that a command costs, {rounds} interleaved rounds", head, [row])
    print(f"\n{AT_ONCE} at once on {WORKERS} workers: {rate:.0f} commands a second.\n")
    table(f"{CROWD:,} commands at once", ("way", "all run after s", "ratio", "private MiB each"), rows)
    print(f"\nA list of {LISTED:,} calls: {median([rows_a_second() for _ in range(5)]):,.0f} rows a second.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
