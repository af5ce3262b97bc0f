"""The link to the process from which keepers are forked: started, fed with jobs, replaced when it is gone."""

import asyncio
import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import whisper_tui
from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.keeper.job import pack
from whisper_tui.supervisor.keeper.rehearsal import REHEARSALS

LOG = "keepers.log"
"""Beside the attempts: what a keeper says when it fails."""
SOCKET = socket.SOCK_DGRAM if sys.platform == "darwin" else socket.SOCK_SEQPACKET
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from whisper_tui.supervisor.keeper.zygote import main
main(int(sys.argv[2]), sys.argv[3])
"""


class Keepers:
    """Hands out jobs to keepers that wait for them. Busy keepers outlive this, and its process."""

    def __init__(self, runs_directory: Path) -> None:
        self._runs = runs_directory
        self._zygote: subprocess.Popen[bytes] | None = None
        self._jobs: socket.socket | None = None
        self._sending = asyncio.Lock()

    def open(self) -> None:
        """Start the parent of the keepers. Raises `Unavailable`."""
        shutil.rmtree(self._runs / REHEARSALS, ignore_errors=True)
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, SOCKET)
            with theirs, os.fdopen(_open_log(self._runs / LOG), "ab") as log:
                self._zygote = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-X",
                        "utf8",
                        "-c",
                        _PROGRAM,
                        _parent_of_package(),
                        str(theirs.fileno()),
                        str(self._runs.resolve()),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except OSError as error:
            message = f"the process that starts commands cannot be started: {error.strerror}"
            raise Unavailable(message, hint="Check free memory, free disk and the limit of open files.") from None
        ours.setblocking(False)
        self._jobs = ours

    @property
    def alive(self) -> bool:
        """Whether new keepers can be forked."""
        return self._zygote is not None and self._zygote.poll() is None

    def replace(self) -> None:
        """Start another parent of keepers in place of one that is gone."""
        self._let_go()
        self.open()

    async def send(self, directory: str, environment: dict[str, str]) -> None:
        """Have a keeper run the attempt in a directory. Raises `Unavailable` or `OSError` if nobody was asked."""
        message = pack(directory, environment)
        async with self._sending:
            try:
                await self._send(message)
            except OSError as error:
                if error.errno not in {errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF}:
                    told = f"the keepers cannot be asked: {error.strerror}"
                    raise Unavailable(told, hint="Try again.") from None
                self.replace()
                await self._send(message)

    async def close(self) -> None:
        """Let waiting keepers and their parent go. It has nothing to finish, and may be slow to hear: it is killed."""
        zygote = self._zygote
        self._let_go()
        if zygote is not None:
            zygote.kill()
            await asyncio.to_thread(zygote.wait)

    async def _send(self, message: bytes) -> None:
        if self._jobs is None:
            raise Unavailable("the executor is closed")
        await asyncio.get_running_loop().sock_sendall(self._jobs, message)

    def _let_go(self) -> None:
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        if self._zygote is not None and self._zygote.stdin is not None:
            self._zygote.stdin.close()
        self._zygote = None


def _parent_of_package() -> str:
    return str(Path(whisper_tui.__file__).resolve().parent.parent)


def _open_log(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
