"""A sandboxed command gets the lists of the docker daemon, and reaches neither it nor any other socket."""

import errno
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.docker_daemon import ANSWER, DockerDaemon
from tests.interpreter import PYTHON
from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.ending import Exited
from whisper_tui.model.run import NO_LIMITS, Limits
from whisper_tui.supervisor.keeper import docker_lists
from whisper_tui.supervisor.keeper.docker_lists import DockerLists
from whisper_tui.supervisor.runs.executor import HasEnded, SandboxProfile
from whisper_tui.system.confinement import probe

needs_sandbox = pytest.mark.skipif(bool(probe().problem), reason=f"no sandbox here: {probe().problem}")
PATIENCE_S = 45.0


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DockerDaemon]:
    made = DockerDaemon(tmp_path / "d.sock")
    yield made
    made.close()


def answer_to(lists: DockerLists, *sent: bytes) -> bytes:
    """Send something over a new connection, and return all that is answered."""
    found = b""
    with lists.connection() as client:
        client.settimeout(PATIENCE_S)
        for each in sent:
            client.sendall(each)
        try:
            while piece := client.recv(65536):
                found += piece
        except ConnectionResetError:
            pass  # It was closed before it had read all.
    return found


def request(first: str, *lines: str, body: bytes = b"") -> bytes:
    return "\r\n".join((first, "Host: x", *lines, "", "")).encode() + body


def passed_on(first: str) -> bytes:
    return f"{first}\r\nHost: docker\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    "first",
    [
        "HEAD /_ping HTTP/1.1",
        "GET /v1.50/containers/json?all=1&filters=%7B%22name%22%3A%7B%22x%22%3Atrue%7D%7D HTTP/1.1",
        "GET /images/json HTTP/1.1",
        "GET /v1.50/volumes HTTP/1.1",
        "GET /v1.50/networks HTTP/1.1",
        "GET /version HTTP/1.1",
        "GET /v1.24/info HTTP/1.1",
    ],
)
def test_a_request_for_a_list_is_made_anew_without_anything_else(
    first: str, daemon: DockerDaemon, tmp_path: Path
) -> None:
    sent = request(first, "X-Registry-Auth: secret", "Upgrade: tcp", "Connection: Upgrade, keep-alive")
    assert answer_to(DockerLists(str(tmp_path / "d.sock")), sent) == ANSWER
    assert daemon.asked == [passed_on(first)]


@pytest.mark.parametrize(
    "first",
    [
        "POST /v1.50/containers/create HTTP/1.1",
        "DELETE /v1.50/containers/x HTTP/1.1",
        "POST /v1.50/containers/json HTTP/1.1",
        "GET /v1.50/containers/x/json HTTP/1.1",
        "GET /v1.50/containers/x/logs?stdout=1 HTTP/1.1",
        "GET /v1.50/containers/x/archive?path=/ HTTP/1.1",
        "GET /v1.50/containers/json/../x/export HTTP/1.1",
        "GET /v1.50/containers/json%2f..%2fx/export HTTP/1.1",
        "GET //containers/json HTTP/1.1",
        "GET /v1.50/secrets HTTP/1.1",
        "GET /v1.50/volumes/x HTTP/1.1",
        "GET http://x/info HTTP/1.1",
        "GET /info",
        "GET /info HTTP/1.1 HTTP/1.1",
        "GET /info?a b HTTP/1.1",
        "GET /info?a\nX: y HTTP/1.1",
        "GET /info?a\rX: y HTTP/1.1",
        "GET  /info HTTP/1.1",
        " GET /info HTTP/1.1",
        "get /info HTTP/1.1",
        "\x00\x00\x00\x02",
    ],
)
def test_any_other_request_is_refused(first: str, daemon: DockerDaemon, tmp_path: Path) -> None:
    answer = answer_to(DockerLists(str(tmp_path / "d.sock")), request(first))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'{"message": "permission denied: ' in answer
    assert not daemon.asked


KILL = request("POST /v1.50/containers/x/kill HTTP/1.1")


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (f"Content-Length: {len(KILL)}",),
        ("Content-Length: 0", f"Content-Length: {len(KILL)}"),
        ("Transfer-Encoding: chunked",),
        ("Transfer-Encoding : chunked", "Content-Length: 0"),
    ],
)
def test_what_follows_a_request_is_not_passed_on(lines: tuple[str, ...], daemon: DockerDaemon, tmp_path: Path) -> None:
    first = "GET /v1.50/containers/json HTTP/1.1"
    lists = DockerLists(str(tmp_path / "d.sock"))
    answer_to(lists, request(first, *lines, body=KILL))
    answer_to(lists, request(first, *lines, body=b"0\r\n\r\n" + KILL))
    assert daemon.asked == [passed_on(first)] * 2


def test_a_daemon_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_lists, "ANSWER_S", 0.05)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "d.sock"))
        silent.listen()
        answer = answer_to(DockerLists(str(tmp_path / "d.sock")), request("GET /info HTTP/1.1"))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"the docker daemon does not answer: timed out" in answer


def test_a_missing_daemon_is_said(tmp_path: Path) -> None:
    answer = answer_to(DockerLists(str(tmp_path / "d.sock")), request("GET /info HTTP/1.1"))
    assert b"the docker daemon does not answer: [Errno 2] No such file or directory" in answer


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_lists, "_MOST_BYTES", 200_000)
    daemon = DockerDaemon(tmp_path / "d.sock", ANSWER * 10_000)
    answer = answer_to(DockerLists(str(tmp_path / "d.sock")), request("GET /info HTTP/1.1"))
    daemon.close()
    assert answer == (ANSWER * 10_000)[:200_000]


def test_an_endless_or_slow_request_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_lists, "REQUEST_S", 0.05)
    lists = DockerLists(str(tmp_path / "d.sock"))
    assert answer_to(lists, b"GET /info HTTP/1.1\r\n") == b""
    with lists.connection() as client, pytest.raises((BrokenPipeError, ConnectionResetError)):
        while True:
            client.sendall(b"GET /info HTTP/1.1\r\n" * 1000)


def test_connections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_lists, "REQUEST_S", PATIENCE_S)
    lists = DockerLists(str(tmp_path / "d.sock"))
    held = [lists.connection() for _ in range(8)]
    with pytest.raises(OSError) as refused:
        lists.connection()
    assert refused.value.errno == errno.EMFILE
    for each in held:
        each.close()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(tmp_path)
    await made.open()
    yield made
    await made.close()


CLIENT = """
import array, errno, os, socket, sys
own, other = sys.argv[1:]
def tried(work):
    try:
        return work()
    except OSError as error:
        return errno.errorcode[error.errno]
def asks(path, text):
    with socket.socket(socket.AF_UNIX) as made:
        print(tried(lambda: made.connect(path)), end=" ")
        made.sendall(text + b"\\r\\nHost: x\\r\\n\\r\\n")
        print(made.recv(100).split(b"\\r\\n")[0].decode())
asks(own, b"GET /info HTTP/1.1")
asks(own, b"POST /containers/create HTTP/1.1")
asks(other, b"GET /info HTTP/1.1")
for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
    print(tried(lambda: socket.socket(socket.AF_UNIX, kind)))
print(tried(lambda: socket.socket(socket.AF_INET)))
with socket.socket(socket.AF_UNIX) as made:
    print(tried(made.listen), tried(lambda: made.sendto(b"x", other)))
    print(os.get_inheritable(made.fileno()), made.gettimeout())
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as made:
    print(tried(lambda: made.recv(1)))
"""


@needs_sandbox
@pytest.mark.parametrize("limits", [NO_LIMITS, Limits(cpu_s=600)], ids=["without limits", "with limits"])
async def test_no_socket_of_a_sandboxed_command_leads_elsewhere(
    limits: Limits, engine: Engine, daemon: DockerDaemon, tmp_path: Path
) -> None:
    other = DockerDaemon(tmp_path / "other.sock")
    (engine.workspace / "client.py").write_text(CLIENT)
    sandbox = SandboxProfile(read=("/",), execute=("/",), docker=str(tmp_path / "d.sock"))
    text = f"{PYTHON} -I -S client.py {tmp_path}/d.sock {tmp_path}/other.sock"
    key = await engine.run(text, sandbox=sandbox, limits=limits)
    ended = await engine.seen(key, HasEnded)
    other.close()
    assert (ended.ending, engine.err(key)) == (Exited(code=0), b"")
    assert engine.out(key).decode().splitlines() == [
        "EISCONN HTTP/1.1 200 OK",
        "EISCONN HTTP/1.1 403 Forbidden",
        "EISCONN HTTP/1.1 200 OK",
        *["EACCES"] * 4,
        "EINVAL EISCONN",
        "False None",
        "EAGAIN",
    ]
    assert daemon.asked == [passed_on("GET /info HTTP/1.1")] * 2
    assert not other.asked


@needs_sandbox
async def test_without_the_lists_there_is_no_local_socket(engine: Engine, daemon: DockerDaemon, tmp_path: Path) -> None:
    (engine.workspace / "client.py").write_text(CLIENT)
    sandbox = SandboxProfile(read=("/",), execute=("/",))
    key = await engine.run(f"{PYTHON} -I -S client.py {tmp_path}/d.sock x", sandbox=sandbox)
    ended = await engine.seen(key, HasEnded)
    assert ended.ending == Exited(code=1)
    assert b"Permission denied" in engine.err(key)
    assert not daemon.asked
