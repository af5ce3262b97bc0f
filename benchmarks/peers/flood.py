"""A command that prints so many bytes a second at most, and notes in a file how many it has printed.

Usage: python flood.py COUNTER BYTES_A_SECOND
"""

import os
import struct
import sys
import time

LINE = b"\x1b[32mok\x1b[0m  compiled a module, \x1b[33mnothing\x1b[0m to report about it at all\n"
_PARTS = 100


def main(counter: str, rate: float) -> None:
    """Print until somebody ends it."""
    file = os.open(counter, os.O_RDWR | os.O_CREAT)
    part = LINE * int(rate / _PARTS / len(LINE))
    printed, due = 0, time.monotonic()
    while True:
        left = memoryview(part)
        while left:
            left = left[os.write(1, left) :]
        printed += len(part)
        os.pwrite(file, struct.pack("q", printed), 0)
        due += 1 / _PARTS
        time.sleep(max(0, due - time.monotonic()))
        due = max(due, time.monotonic())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
