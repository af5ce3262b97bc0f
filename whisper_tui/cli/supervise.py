"""`supervise`: the supervisor itself, in the foreground, or detached for whoever started it."""

import json
import os
import sys
import time
from contextlib import ExitStack

from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home
from whisper_tui.supervisor.state_directory import prepare
from whisper_tui.wire.rendezvous import PATIENCE_S, turn


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "supervise",
        "run the supervisor in the foreground; other subcommands start it by themselves",
        _supervise,
        details="SIGTERM and Ctrl-C stop it; commands go on under their keepers and are taken back at the next start.",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="take over from a supervisor that runs: it steps down, and what it runs goes on",
    )
    parser.add_argument(
        "--tell",
        type=int,
        metavar="FD",
        help="detach, and say on this file descriptor when it is ready or why it is not (for programs that start it)",
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
    """Whoever started this process and waits to hear of it. None may be there."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._turn = ExitStack()

    def detach(self) -> None:
        """Become nobody's child, so that whoever ends the starter's processes does not find this one."""
        if self._fd is None:
            return
        os.set_inheritable(self._fd, False)
        if os.fork():
            os._exit(0)
        os.setsid()

    def take_turn(self, home: Home) -> None:
        """Let nobody else start one until this one is ready; a starter has seen to that already."""
        if self._fd is None:
            prepare(home)
            self._turn.enter_context(turn(home, time.monotonic() + PATIENCE_S))

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
            sys.stderr.write(f"whisper-tui: nobody waits for this supervisor any more ({error.strerror})\n")
        os.close(fd)
