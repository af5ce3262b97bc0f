"""The scripted model as an HTTP service on the loopback."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.clients.model.dialect import Dialect
from tests.clients.model.script import Answer, Part, Say, Turn, answer_to, call_id, turn_due

AFTER_THE_SCRIPT = Say("The script is over.")
POLL_S = 0.02
SUB_AGENT = "You are the sub-agent of the tests."
"""The beginning of a sub-agent's prompt. Its model says one sentence, and is not part of the conversation."""


class ScriptedModel:
    """Takes the turns of a script, one for each result that it is shown; use as a context manager.

    Which turn is due is read from the request itself, so a request that a client repeats gets the same turn again.
    """

    def __init__(
        self, dialect: Dialect, turns: Sequence[Turn], is_time: Callable[[int], bool] = lambda index: True
    ) -> None:
        """`is_time`: whether the turn with this index may be taken. Until then, the model thinks."""
        self.dialect = dialect
        self.turns = tuple(turns)
        self._is_time = is_time
        self._closed = False
        self.requests: list[dict[str, Any]] = []
        """The bodies in which the model was asked to go on, oldest first."""
        self.others: list[str] = []
        """The first lines of all other requests."""

    def __enter__(self) -> Self:
        model = self

        class Handler(_Handler):
            service = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="scripted model", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def conversation(self) -> list[Part]:
        """The longest conversation that the model was shown."""
        return max((self.dialect.conversation(body) for body in self.requests), key=len, default=[])

    def answer(self, index: int) -> Answer | None:
        """What the model was told after the call of this turn. None: nothing yet."""
        return answer_to(self.conversation(), index)

    def take_turn(self, body: dict[str, Any]) -> tuple[Turn, str]:
        """The turn that is due in this conversation, and the id for its call."""
        if not self.dialect.offers_tools(body):
            return Say("A title"), call_id(0)
        parts = self.dialect.conversation(body)
        if any(part.kind == "text" and SUB_AGENT in part.text for part in parts):
            return Say("The sub-agent is done."), call_id(0)
        self.requests.append(body)
        due = turn_due(parts)
        while not self._is_time(due) and not self._closed:
            time.sleep(POLL_S)
        return (self.turns[due] if due < len(self.turns) else AFTER_THE_SCRIPT), call_id(due)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request for each connection."""

    service: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """A turn of the model, or something beside it."""
        body = self._body()
        if self.service.dialect.speaks(self.path.partition("?")[0]):
            turn, identity = self.service.take_turn(body)
            self._begin("text/event-stream")
            for piece in self.service.dialect.stream(turn, identity):
                self.wfile.write(piece)
        else:
            self._answer_aside()

    def do_GET(self) -> None:
        """Something beside the model's turns."""
        self._answer_aside()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""

    def _answer_aside(self) -> None:
        self.service.others.append(self.requestline)
        self._begin("application/json")
        self.wfile.write(json.dumps(self.service.dialect.aside()).encode())

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()

    def _body(self) -> dict[str, Any]:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(data or b"{}")
        return body if isinstance(body, dict) else {"value": body}
