"""The program of `tests.agent_process`, in the standard library alone, for it starts once for every program.

`agent_program.py PLACE` is the agent: it starts programs for whoever connects, until its standard input ends.
`agent_program.py PLACE WORDS...` stands in for one program that the agent starts: its standard streams, directory and
environment are the program's, signals to it are signals to the program, and it ends as the program does.
"""

import json
import os
import signal
import socket
import sys

PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
NOT_STARTED = 127


def be_the_agent(place: str) -> None:
    import threading

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        threading.Thread(target=_accept, args=(listening,), daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)


def _accept(listening: socket.socket) -> None:
    import threading

    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_start, args=(connection,), daemon=True).start()


def _start(connection: socket.socket) -> None:
    """Start what the other end asks for. When the other end is killed, so is the program."""
    import subprocess
    import threading

    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    words, directory, environment = json.loads(_read(connection, int.from_bytes(length, "big")))
    stdin, stdout, stderr = streams
    with connection:
        try:
            process = subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory, env=environment)
        except OSError:
            return connection.sendall(b"%d" % NOT_STARTED)
        finally:
            for stream in streams:
                os.close(stream)
        telling = threading.Thread(target=_tell_the_end, args=(connection, process), daemon=True)
        telling.start()
        while number := _heard(connection):
            process.send_signal(number)
        process.kill()
        telling.join()


def _heard(connection: socket.socket) -> int:
    try:
        return int.from_bytes(connection.recv(1), "big")
    except OSError:
        return 0


def _tell_the_end(connection: socket.socket, process: "subprocess.Popen[bytes]") -> None:  # noqa: F821
    code = process.wait()
    try:
        connection.sendall(b"%d" % code)
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # The other end was killed.


def _read(connection: socket.socket, length: int) -> bytes:
    held = b""
    while len(held) < length:
        held += connection.recv(length - len(held))
    return held


def stand_in(place: str, words: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(place)
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
        for number in PASSED_ON:
            signal.signal(number, lambda number, _frame: agent.sendall(bytes([number])))
        request = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(agent, [len(request).to_bytes(8, "big")], [0, 1, 2])
        agent.sendall(request)
        # A pipe is to end when the program closes it, though this process is still there.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        code = int(agent.recv(16) or NOT_STARTED)
    if code < 0:
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(stand_in(sys.argv[1], sys.argv[2:]))
    be_the_agent(sys.argv[1])
