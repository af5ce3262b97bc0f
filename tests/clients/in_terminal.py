"""A client in a terminal, and a user who agrees to everything that it asks, until it has shown a last sentence."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
from pathlib import Path

READ = 1 << 16
STEP_S = 0.05


def main(asked: Path, last: str, *words: str) -> None:
    """Run a client. It appends a line to the file `asked` whenever it asks its user."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, {**os.environ, "TERM": "xterm-256color"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    shown = b""
    try:
        while last.encode() not in shown:
            if select.select([terminal], [], [], STEP_S)[0]:
                shown += os.read(terminal, READ)
            elif asked.exists():
                # The dialog comes a moment after the line. Without a dialog, the key has no effect.
                os.write(terminal, b"\r")
    except OSError:
        sys.stdout.write("the client has ended\n")
    finally:
        sys.stdout.write(shown[-2000:].decode(errors="replace"))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
