"""The start of the guardian by whoever orders runs: its interpreter, its job socket, its lifeline and its log."""

import os
import socket
import subprocess
import sys

from whisper_tui.system import run_files

LOG = "keepers.log"
"""File beside the attempts: the error messages of keepers."""
SOCKET = socket.SOCK_DGRAM if sys.platform == "darwin" else socket.SOCK_SEQPACKET
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from whisper_tui.supervisor.keeper.guardian import main
main(int(sys.argv[2]), sys.argv[3], previews=sys.argv[4:] == ["previews"])
"""


def start_guardian(
    runs: str, package: str, *, previews: bool = False
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start the guardian of a runs directory, and return it and the socket for jobs. Raises `OSError`.

    `package`: the directory or the archive in which `whisper_tui` is found. `previews`: it has what previews need, and
    the guardian loads that for all its keepers. Its standard output carries no data: it ends once neither the guardian
    nor a keeper without a job still writes below `runs`.
    """
    run_files.remove_tree(os.path.join(runs, run_files.WARM_UP))
    ours, theirs = socket.socketpair(socket.AF_UNIX, SOCKET)
    loads = ["previews"] if previews else []
    try:
        with theirs, os.fdopen(_open_log(os.path.join(runs, LOG)), "ab") as log:
            guardian = subprocess.Popen(
                # Isolated and without site-packages: the keepers only need the standard library, and neither the
                # environment nor a file of the user may add code to them.
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, package, str(theirs.fileno()), runs, *loads],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
    except OSError:
        ours.close()
        raise
    ours.setblocking(False)
    return guardian, ours


def _open_log(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
