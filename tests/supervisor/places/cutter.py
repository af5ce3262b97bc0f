"""Copies between its input and output and a program, and ends both after some bytes: `cutter.py BYTES FILE PROGRAM…`.

The bytes of both directions count together, so a cut falls anywhere: in the greeting, an order, an answer. Each
cut adds a byte to the file.
"""

import os
import select
import subprocess
import sys


def main(left: int, noted: str, argv: list[str]) -> None:
    program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None and program.stdout is not None
    ways = {0: program.stdin.fileno(), program.stdout.fileno(): 1}
    while True:
        for source in select.select(list(ways), [], [])[0]:
            data = os.read(source, min(left, 1 << 16))
            if not data:
                return
            left -= len(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(ways[source], rest) :]
            if left <= 0:
                program.kill()
                with open(noted, "ab", buffering=0) as file:
                    file.write(b"x")
                return


if __name__ == "__main__":
    main(max(1, int(sys.argv[1])), sys.argv[2], sys.argv[3:])
