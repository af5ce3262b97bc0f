"""`supervise`: the supervisor itself, in the foreground, or detached for whoever started it."""

import json
import os
import sys
import time
from contextlib import ExitStack

from whisper_tui.cli.subcommand import Options, Subcommands, home_of
from whisper_tui.model.errors import WhisperError
from whisper_tui.system.state_directory import Directories, prepare
from whisper_tui.wire.rendezvous import PATIENCE_S, start_lock


def add_supervise(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "supervise",
        "run the supervisor in the foreground; other subcommands start it automatically",
        _supervise,
        details="SIGTERM and Ctrl-C stop it; commands keep running, and the next supervisor takes them over.",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="take over from a running supervisor; commands keep running",
    )
    parser.add_argument(
        "--tell",
        type=int,
        metavar="FD",
        help="detach, and report on this file descriptor when it is ready or why it failed (for starters)",
    )


def _supervise(options: Options) -> int:
    home = home_of(options)
    starter = _Starter(options.tell)
    starter.detach()
    try:
        from whisper_tui.cli.compose import supervise

        if options.replace:
            starter.take_turn(home)
        supervise(home, starter.ready, take_over=options.replace)
    except WhisperError as error:
        starter.failed(error)
        raise
    sys.stderr.flush()
    # All is written. Tearing the interpreter down would take as long again as the stop did.
    os._exit(0)


class _Starter:
    """The process that started this one and waits for its report, if there is one."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._turn = ExitStack()

    def detach(self) -> None:
        """Detach from the starter's processes and session."""
        if self._fd is None:
            return
        # Agents kill the process tree of a command or a hook; the supervisor must not be in it.
        os.set_inheritable(self._fd, False)
        if os.fork():
            os._exit(0)
        os.setsid()

    def take_turn(self, home: Directories) -> None:
        """Take the start lock until this one is ready. A starter holds it already."""
        if self._fd is None:
            prepare(home)
            self._turn.enter_context(start_lock(home, time.monotonic() + PATIENCE_S))

    def ready(self) -> None:
        """Say that the socket answers."""
        self._turn.close()
        self._tell({"ready": True, "pid": os.getpid()})

    def failed(self, error: WhisperError) -> None:
        """Say why there will be no supervisor."""
        self._tell({"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})

    def _tell(self, content: dict[str, object]) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.write(fd, json.dumps(content).encode() + b"\n")
        except OSError as error:
            sys.stderr.write(
                f"whisper-tui: the program that started this supervisor no longer waits for it ({error.strerror})\n"
            )
        os.close(fd)
