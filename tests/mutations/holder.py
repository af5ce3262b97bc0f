"""A program that takes as many connections of a supervisor's socket as it is given, and keeps them.

It is started with the socket, a file for how many it got, how many processes it forks, how many connections each of
them wants, and whether each connection's maker ends at once. Standard library only.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path


def main() -> None:
    """Fork, connect, count, keep."""
    address, counted, processes, each, hands_on = sys.argv[1:]
    told, tell = os.pipe()
    for _ in range(int(processes)):
        if not os.fork():
            kept = [one for _ in range(int(each)) if served(one := connected(address, hands_on=hands_on == "yes"))]
            os.write(tell, b"%d\n" % len(kept))
            signal.pause()
    got = 0
    with os.fdopen(told, "rb") as heard:
        for _ in range(int(processes)):
            got += int(heard.readline())
    unfinished = Path(counted).with_suffix(".part")
    unfinished.write_text(f"{got}\n")
    unfinished.rename(counted)
    signal.pause()


def connected(address: str, *, hands_on: bool) -> socket.socket:
    """A connection that this process made, or a child of its that has ended since."""
    connection = socket.socket(socket.AF_UNIX)
    if not hands_on:
        connection.connect(address)
    elif child := os.fork():
        os.waitpid(child, 0)
    else:
        connection.connect(address)
        os._exit(0)
    return connection


def served(connection: socket.socket) -> bool:
    """Whether the supervisor serves it."""
    try:
        connection.sendall(json.dumps({"door": "port", "version": 1}).encode() + b"\n")
        return bool(json.loads(connection.makefile("rb").readline()).get("ok"))
    except ConnectionError:
        return False


if __name__ == "__main__":
    main()
