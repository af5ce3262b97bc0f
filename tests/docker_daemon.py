"""A stand-in for the docker daemon: it notes what it is asked over its socket, and answers each request alike."""

import socket
import threading
from pathlib import Path

LIST = b"[]\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n" + LIST


class DockerDaemon:
    """Listens until it is closed. `asked`: all that came over each connection, until its head was complete."""

    def __init__(self, path: Path, answer: bytes = ANSWER) -> None:
        self.asked: list[bytes] = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                asked = b""
                while b"\r\n\r\n" not in asked and (piece := client.recv(65536)):
                    asked += piece
                self.asked.append(asked)
                try:
                    client.sendall(self._answer)
                except OSError:
                    continue
