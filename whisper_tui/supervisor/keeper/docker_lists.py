"""The lists of the local docker daemon, for a sandboxed command: all that it can get of it (decision 29).

The command never reaches the daemon's socket. A request is read up to its first line; if that asks for a list, a new
request is made of it, and nothing else of what the command has sent is passed on: no header, no body, no second
request. One connection is one request.
"""

import _thread
import errno
import json
import re
import socket
import time
from contextlib import suppress

_LIST = re.compile(
    rb"(?:GET|HEAD) (?:/v\d+\.\d+)?/(?:_ping|version|info|containers/json|images/json|volumes|networks)"
    rb"(?:\?[!-~]*)? HTTP/1\.1"
)
"""The first lines of requests for lists. Others change something, or show more: `inspect` shows environments."""
_LONGEST_REQUEST = 16_384
_MOST_BYTES = 16 * 1024 * 1024
"""Bytes of an answer; the rest of a longer one is cut off, of which the client complains."""
_PIECE = 65_536
REQUEST_S, ANSWER_S = 5.0, 30.0
"""Seconds for a whole request, and for a whole answer."""
_MOST_CONNECTIONS = 8
_REFUSED = "permission denied: the sandbox of this command passes on requests for lists only"
"""In words that the report of a sandbox's refusals looks for."""


class DockerLists:
    """Gives out connections to the lists of one daemon."""

    def __init__(self, path: str) -> None:
        """`path`: the daemon's socket."""
        self._path = path
        self._clients: set[socket.socket] = set()

    def connection(self) -> socket.socket:
        """Return a connected socket for the command. Raises `OSError`."""
        if len(self._clients) >= _MOST_CONNECTIONS:
            raise OSError(errno.EMFILE, "too many connections")
        ours, theirs = socket.socketpair()
        self._clients.add(ours)
        _thread.start_new_thread(self._serve, (ours,))
        return theirs

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                self._answer(client)
        finally:
            self._clients.discard(client)

    def _answer(self, client: socket.socket) -> None:
        """Answer one request."""
        line = _first_line(client)
        if not line:
            return
        if not _LIST.fullmatch(line):
            _say(client, "403 Forbidden", _REFUSED)
            return
        end, left = time.monotonic() + ANSWER_S, _MOST_BYTES
        with socket.socket(socket.AF_UNIX) as daemon:
            try:
                daemon.settimeout(ANSWER_S)
                daemon.connect(self._path)
                daemon.sendall(line + b"\r\nHost: docker\r\nConnection: close\r\n\r\n")
                piece = daemon.recv(_PIECE)
            except OSError as error:
                _say(client, "502 Bad Gateway", f"the docker daemon does not answer: {error}")
                return
            while piece:
                client.settimeout(max(0.001, end - time.monotonic()))
                client.sendall(piece)
                left -= len(piece)
                daemon.settimeout(max(0.001, end - time.monotonic()))
                piece = daemon.recv(min(_PIECE, left)) if left else b""


def _first_line(client: socket.socket) -> bytes:
    """Return the first line of a request once its head is complete. Empty: it is none."""
    end, head = time.monotonic() + REQUEST_S, b""
    while b"\r\n\r\n" not in head:
        client.settimeout(max(0.001, end - time.monotonic()))
        piece = client.recv(_LONGEST_REQUEST)
        head += piece
        if not piece or len(head) > _LONGEST_REQUEST:
            return b""
    return head.partition(b"\r\n")[0]


def _say(client: socket.socket, status: str, sentence: str) -> None:
    """Answer as the daemon does about an error, so that its clients show the sentence."""
    body = json.dumps({"message": sentence})
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
    client.sendall(f"{head}\r\n\r\n{body}".encode())
