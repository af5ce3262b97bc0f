"""The program of an agent's client, in the standard library alone: `client_program.py` is killed with what it knows.

It starts what it is told to on its standard input, one JSON object a line. `{"words": […], "input": "…"}`: a program
that is waited for; the answers are its pid, then its exit code and its output. `{"words": […], "stays": true}`: a
server, whose pid is answered; every later line is passed on to it, and every line of it is the answer.
"""

import base64
import json
import os
import subprocess
import sys
import threading
from typing import IO


def main() -> None:
    for line in sys.stdin.buffer:
        order = json.loads(line)
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            order["words"],
            stdin=pipe if "input" in order or "stays" in order else subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
        )
        say({"pid": process.pid})
        if "stays" in order:
            return converse(process)
        out, _ = process.communicate(order["input"].encode() if "input" in order else None)
        say({"code": process.returncode, "out": base64.b64encode(out).decode()})


def converse(server: "subprocess.Popen[bytes]") -> None:
    """Pass lines on in both directions until one end is closed."""
    assert server.stdin is not None and server.stdout is not None
    threading.Thread(target=pass_on, args=(server.stdin,), daemon=True).start()
    for line in server.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    server.wait()
    # Nobody reads what this process would still say, and the thread below holds the standard input.
    os._exit(0)


def pass_on(to: IO[bytes]) -> None:
    try:
        for line in sys.stdin.buffer:
            to.write(line)
            to.flush()
        to.close()
    except OSError:
        pass  # The server was killed.


def say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
