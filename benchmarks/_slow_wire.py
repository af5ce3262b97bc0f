"""A network between a cockpit and a machine: runs a command, and delays what passes in each direction as TCP would.

TCP hides lost packets: what a program sees of them is that bytes come later, all later ones after them, and that fewer
are on the way at once. So this is a model of the sender, for a kernel that cannot lose packets itself (netem):

* A segment of 1,448 bytes is lost with the given probability, and so is each repetition of it.
* If three segments follow it, its loss is noticed after one round trip. At the end of what is sent, the sender probes
  after two, and doubles that with each further loss.
* The window begins with 10 segments, doubles with each round trip up to the first loss, falls to 0.7 of its size with
  each loss, and then grows by one segment for each round trip.

Left out, so that real networks are slower: the handshakes, lost acknowledgements, full queues on the way, and two
losses in one window. Arguments: milliseconds of delay in each direction; percent of the segments that are lost; a file,
while which exists nothing passes; the command.
"""

import heapq
import os
import random
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

PIECE = 1 << 16
POLL_S = 0.005
SEGMENT = 1448
FIRST_WINDOW, LEAST_WINDOW = 10.0, 2.0
AFTER_LOSS = 0.7
FOLLOWERS = 3
"""Segments behind a lost one whose acknowledgements show that it is lost."""


class Sender:
    """When each segment of one direction arrives."""

    def __init__(self, delay_s: float, loss: float, seed: int) -> None:
        self._delay_s, self._loss = delay_s, loss
        self._random = random.Random(seed)
        self._window, self._until_loss = FIRST_WINDOW, float("inf")
        self._acknowledged: list[float] = []
        """When the segments that are on the way will be acknowledged, a heap."""
        self._arrived = 0.0

    def send(self, now: float, followers: int) -> tuple[float, float]:
        """Return when the next segment leaves, and when it arrives. `followers`: segments that wait behind it."""
        while self._acknowledged and (self._acknowledged[0] <= now or len(self._acknowledged) >= int(self._window)):
            now = max(now, heapq.heappop(self._acknowledged))
            self._window += 1.0 if self._window < self._until_loss else 1.0 / self._window
        sent, round_trip = now, 2 * self._delay_s
        patience = round_trip if followers >= FOLLOWERS else 2 * round_trip
        while self._random.random() < self._loss:
            sent += patience
            patience *= 2
            self._window = self._until_loss = max(LEAST_WINDOW, self._window * AFTER_LOSS)
        heapq.heappush(self._acknowledged, sent + round_trip)
        self._arrived = max(self._arrived, sent + self._delay_s)
        return now, self._arrived


def pass_on(source: int, target: int, sender: Sender, stalled: Path) -> None:
    """Copy bytes until the source ends, each when it has arrived."""
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
        for at in range(0, max(1, len(piece)), SEGMENT):
            leaves, arrives = sender.send(time.monotonic(), (len(piece) - at - 1) // SEGMENT)
            pieces.append((arrives, piece[at : at + SEGMENT]))
            more.set()
            # What does not fit into the window waits in the program that sends it, as behind a full socket.
            time.sleep(max(0.0, leaves - time.monotonic()))
    thread.join()


def main() -> None:
    """Run the command behind the network."""
    delay_s, loss, stalled = float(sys.argv[1]) / 1000, float(sys.argv[2]) / 100, Path(sys.argv[3])
    far = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert far.stdin is not None and far.stdout is not None
    to, back = (Sender(delay_s, loss, seed) for seed in (1, 2))
    there = threading.Thread(target=pass_on, args=(0, os.dup(far.stdin.fileno()), to, stalled), daemon=True)
    far.stdin.close()
    there.start()
    pass_on(far.stdout.fileno(), 1, back, stalled)


if __name__ == "__main__":
    main()
