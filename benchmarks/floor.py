"""The least that a command costs with the guarantees of whisper_tui: a loop that does nothing else, in Python.

Socket, two rows in SQLite of which the first is flushed, a directory with order, lock, claim, ending and mark of
completion, a process that outlives the supervisor, and a sandbox. No policy, no sessions, no events, no watchers.

Usage: python benchmarks/floor.py [ROUNDS]
"""

import fcntl
import json
import os
import select
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import median, quantile, table

from whisper_tui.supervisor.keeper.sandbox import Profile, Sandboxes
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications

COMMAND = ["bash", "-c", "true"]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
PAUSE_S = 0.03


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
            elif data := os.read(fd, 65536):
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
        directory = jobs.recv(65536).decode()
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
            lambda actions=actions, order=order: os.posix_spawn(
                "/bin/bash", order["argv"], ENVIRONMENT, file_actions=actions, setsid=True
            ),
        )
        os.close(out_in)
        os.close(err_in)
        capture({out: f"{directory}/out", err: f"{directory}/err"}, started.listener, profile)
        status = os.waitpid(started.pid, 0)[1]
        Path(directory, "exit.tmp").write_text(json.dumps({"code": os.waitstatus_to_exitcode(status)}))
        os.rename(f"{directory}/exit.tmp", f"{directory}/exit")
        os.rmdir(f"{directory}/tmp")
        Path(directory, "done").touch()
        os.write(news, b"!")
        os.close(lock)


def supervise(asked: socket.socket, place: Path) -> None:
    """Answer one request after the other; what a supervisor has to do for each."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told, news = os.pipe()
    sandboxes = Sandboxes()
    if not os.fork():
        ours.close()
        keep(theirs, news, sandboxes)
    db = sqlite3.connect(place / "floor.sqlite", isolation_level=None)
    db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE e (body TEXT)")
    log = os.open(place / "floor.sqlite-wal", os.O_RDWR)
    number = 0
    while line := asked.recv(65536):
        number += 1
        request, directory = json.loads(line), f"{place}/{number}.1"
        db.execute("INSERT INTO e VALUES (?)", (json.dumps(request),))
        os.fdatasync(log)
        os.mkdir(directory, 0o700)
        Path(directory, "spec").write_text(json.dumps({"argv": request["argv"], "cwd": str(place)}))
        ours.send(directory.encode())
        os.read(told, 1)
        ending = Path(directory, "exit").read_text()
        db.execute("INSERT INTO e VALUES (?)", (ending,))
        asked.send(ending.encode())
    os._exit(0)


def main(rounds: int) -> None:
    """Interleave both ways and print medians."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            ours.close()
            supervise(theirs, Path(directory))
        theirs.close()
        plain, least = [], []
        for number in range(rounds + 10):
            begin = time.perf_counter()
            ours.send(json.dumps({"argv": COMMAND}).encode())
            answer = json.loads(ours.recv(65536))
            took = time.perf_counter() - begin
            assert answer == {"code": 0}, answer
            time.sleep(PAUSE_S)
            begin = time.perf_counter()
            subprocess.run(COMMAND, capture_output=True, check=True)
            if number >= 10:
                plain.append((time.perf_counter() - begin) * 1000)
                least.append(took * 1000)
            time.sleep(PAUSE_S)
        ours.close()
        os.waitpid(pid, 0)
    middle, high = (median(plain), median(least)), (quantile(plain, 0.95), quantile(least, 0.95))
    row = ["`bash -c true`", *(f"{figure:.2f}" for pair in zip(middle, high, strict=True) for figure in pair)]
    head = ("command", "subprocess.run ms", "p95", "least ms", "p95", "ratio of medians", "ratio of p95")
    ratios = [f"{pair[1] / pair[0]:.2f} times" for pair in (middle, high)]
    table(f"The least that a command costs, {rounds} interleaved rounds", head, [[*row, *ratios]])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
