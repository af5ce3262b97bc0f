"""Where keepers wait for jobs: each job wakes one of them, on Linux always the same one while it is free."""

import select
import socket

from whisper_tui.supervisor.keeper.job import LONGEST_MESSAGE

LIFELINE = 0
"""Standard input: a pipe that ends when the supervisor is gone."""


class Jobs:
    """The socket on which jobs arrive, as one keeper sees it. Made in the keeper: what is waited with is its own.

    Who waits in a line is served in turns, and so everybody's memory is cold when its turn comes. Of those who wait
    exclusively, Linux wakes the first that has registered and is free, and commands in a row find a warm keeper.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._watch: select.epoll | None = None
        if connection.type == socket.SOCK_SEQPACKET:
            self._watch = select.epoll()
            self._watch.register(connection, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    @property
    def closed(self) -> bool:
        """Whether no more jobs are taken."""
        return self._connection.fileno() < 0

    def close(self) -> None:
        """Take no more jobs."""
        if self._watch is not None:
            self._watch.close()
        self._connection.close()

    def next(self, longest_s: float | None) -> bytes:
        """The next job; empty when none comes any more: the supervisor is gone, or so many seconds are over."""
        while self._has_come(longest_s):
            try:
                return self._connection.recv(LONGEST_MESSAGE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue  # Another keeper was quicker.
        return b""

    def _has_come(self, longest_s: float | None) -> bool:
        if self._watch is not None:
            return bool(self._watch.poll(longest_s))
        # A socket of whole messages that knows no end: the lifeline tells when the supervisor is gone.
        poll = select.poll()
        poll.register(LIFELINE, 0)
        poll.register(self._connection, select.POLLIN)
        ready = dict(poll.poll(None if longest_s is None else longest_s * 1000))
        return self._connection.fileno() in ready


def is_waiting(connection: socket.socket) -> bool:
    """Whether a job is there already."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
