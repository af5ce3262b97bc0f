"""A network between a cockpit and a machine: runs a command, and delays what passes in each direction.

Arguments: milliseconds of delay in each direction; a file, while which exists nothing passes; the command.
"""

import os
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

PIECE = 1 << 16
POLL_S = 0.005


def pass_on(source: int, target: int, delay_s: float, stalled: Path) -> None:
    """Copy bytes until the source ends, each of them so much later."""
    pieces: deque[tuple[float, bytes]] = deque()
    more = threading.Event()

    def deliver() -> None:
        while True:
            while not pieces:
                more.wait()
                more.clear()
            due, piece = pieces.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            while stalled.exists():
                time.sleep(POLL_S)
            if not piece:
                os.close(target)
                return
            while piece:
                piece = piece[os.write(target, piece) :]

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    piece = b"-"
    while piece:
        piece = os.read(source, PIECE)
        pieces.append((time.monotonic() + delay_s, piece))
        more.set()
    thread.join()


def main() -> None:
    """Run the command behind the network."""
    delay_s, stalled = float(sys.argv[1]) / 1000, Path(sys.argv[2])
    far = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert far.stdin is not None and far.stdout is not None
    there = threading.Thread(target=pass_on, args=(0, os.dup(far.stdin.fileno()), delay_s, stalled), daemon=True)
    far.stdin.close()
    there.start()
    pass_on(far.stdout.fileno(), 1, delay_s, stalled)


main()
