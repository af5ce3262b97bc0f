"""MCP over HTTP under malformed requests: without the token nothing is disclosed, and it keeps serving."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.profile import fuzzed
from tests.fuzz.target import Target, exchanged
from tests.fuzz.test_mcp import OPENING, RAW, messages
from whisper_tui.transports.mcp.http_site import LARGEST

pytestmark = pytest.mark.slow

NAMES = ("Host", "Origin", "Authorization", "Content-Type", "Accept", "Mcp-Session-Id", "Transfer-Encoding", "X")


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    process: "subprocess.Popen[str]"
    port: int
    token: str
    log: str

    def exchange(self, sent: bytes) -> bytes:
        """Send bytes on a new connection, and return all that comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            return exchanged(connection, sent, half_close=False)

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
        """Status and the rest of the answer to one request."""
        known = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Connection": "close",
            "Content-Length": str(len(body)),
            **headers,
        }
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in known.items())
        return status_of(self.exchange(head.encode("latin-1", "replace") + b"\r\n" + body))

    def check(self) -> None:
        """It serves an agent that behaves, and has met nothing that it did not expect."""
        status, answer = self.request("POST", "/mcp", {}, json.dumps(OPENING).encode())
        assert status == 200 and b"mcp-session-id" in answer.lower()
        session = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"mcp-session-id"))
        assert self.request("DELETE", "/mcp", {"Mcp-Session-Id": session.split(b": ")[1].decode()})[0] == 204
        assert self.process.poll() is None
        with open(self.log) as log:
            assert "Traceback" not in log.read()


def status_of(came: bytes) -> tuple[int, bytes]:
    assert came.startswith(b"HTTP/1.1 "), came[:200]
    return int(came[9:12]), came


@pytest.fixture(scope="module")
def served(_attacked: Target) -> Iterator[Served]:
    log = str(_attacked.root / "http-log")
    words = [sys.executable, "-m", "whisper_tui", "mcp", "--http", "--port", "0", "--home", str(_attacked.root)]
    with open(log, "w") as errors:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, cwd=_attacked.workspace
        )
    assert process.stdout is not None
    port = int(process.stdout.readline().rpartition(":")[2].partition("/")[0])
    made = Served(process, port, (_attacked.root / "state" / "http-token").read_text().strip(), log)
    yield made
    made.check()
    process.terminate()
    process.wait(60)
    process.stdout.close()


header_values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)


def test_no_request_without_the_token_is_let_in(target: Target, served: Served):
    @fuzzed(12)
    @given(
        method=st.sampled_from(["GET", "POST", "DELETE", "PUT", "OPTIONS", "HEAD", "TRACE", "PATCH", "X"]),
        path=st.sampled_from(["/mcp", "/hook/claude", "/", "/mcp/", "//mcp", "/%6dcp", "/mcp?token=x", "/hook/codex"]),
        headers=st.dictionaries(
            st.sampled_from([name for name in NAMES if name != "Transfer-Encoding"]), header_values
        ),
    )
    @example(method="POST", path="/mcp", headers={"Authorization": "Bearer"})
    @example(method="OPTIONS", path="/mcp", headers={"Origin": "http://evil.example"})
    @example(method="POST", path="/mcp", headers={"Host": "evil.example"})
    def attack(method: str, path: str, headers: dict[str, str]) -> None:
        status, answer = served.request(method, path, {"Authorization": "Bearer wrong", **headers})
        assert 400 <= status < 500
        assert b"access-control-allow-origin" not in answer.lower()

    attack()
    served.check()


def test_any_body_with_the_token_is_answered(target: Target, served: Served):
    @fuzzed(12)
    @given(content=messages(), path=st.sampled_from(["/mcp", "/hook/claude?deadline=0.05"]))
    def attack(content: object, path: str) -> None:
        status, _ = served.request("POST", path, {}, json.dumps(content).encode())
        assert status < 500

    attack()
    for line in RAW:
        assert served.request("POST", "/mcp", {}, line)[0] == 400
    served.check()


@pytest.mark.parametrize("deadline", ["nan", "inf", "-1", "0", "1e400", "x", "9" * 5000, "%00"])
def test_a_deadline_of_a_hook_that_never_comes_is_refused(target: Target, served: Served, deadline: str):
    assert served.request("POST", f"/hook/claude?deadline={deadline}", {}, b"{}")[0] == 400


def test_raw_bytes_are_refused_or_end_the_connection(target: Target, served: Served):
    @fuzzed(12)
    @given(sent=st.binary(min_size=1, max_size=200))
    @example(sent=b"GET / HTTP/9.9\r\n\r\n")
    @example(sent=b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n")
    @example(sent=b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    def attack(sent: bytes) -> None:
        came = served.exchange(sent + b"\r\n\r\n" + b"\x00" * 70_000)
        assert came == b"" or 400 <= status_of(came)[0] < 500

    attack()
    served.check()


def test_a_body_without_end_is_refused_before_it_is_held_whole(target: Target, served: Served):
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    assert status_of(served.exchange(head.encode() + chunk * (LARGEST // (1 << 20) + 3)))[0] == 413
    served.check()
