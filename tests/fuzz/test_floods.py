"""Floods of any input do not stay in the memory of the supervisor."""

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.fuzz.profile import FLOOD_BYTES
from tests.fuzz.target import PORT, Target, lines
from whisper_tui.wire.connection import MOST_WATCHES

pytestmark = pytest.mark.slow

LIMIT = 400 * 1024 * 1024
"""Bytes by which it may grow, however much is thrown."""
PIECE = 4 * 1024 * 1024
"""Bytes on one connection, about; fewer where each of them is much work."""


def lines_without_end(_target: Target) -> bytes:
    return b"x" * PIECE


def lines_of_nothing(_target: Target) -> bytes:
    return b"[]\n" * (PIECE // 1000)


def large_calls(target: Target) -> bytes:
    return b"".join(
        request(number, "submit", request=call(target, {"content": "é" * 250_000 + str(number)})) for number in range(2)
    )


def calls_of_many_small_things(target: Target) -> bytes:
    return b"".join(
        request(number, "submit", request=call(target, {"all": [{}] * 100_000 + [number]})) for number in range(1)
    )


def sessions(target: Target) -> bytes:
    hello = {"name": "n" * 900, "root": str(target.workspace), "environment": {"A": "x" * 100_000}}
    return b"".join(request(number, "open_session", hello=hello) for number in range(30))


def those_who_wait_and_give_up(_target: Target) -> bytes:
    return b"".join(
        request(number, "outcome", call_id="1") + b'{"cancel": %d}\n' % number for number in range(PIECE // 2000)
    )


def those_who_do_not_read(_target: Target) -> bytes:
    return b"".join(request(number, "watch") for number in range(PIECE // 2000))


def call(target: Target, arguments: object) -> object:
    command = {"kind": "function", "tool": "own", "arguments": arguments}
    spec = {"command": command, "cwd": str(target.workspace)}
    return {"session_id": "s1", "tool": "own", "arguments": arguments, "spec": spec}


def request(number: int, operation: str, **arguments: object) -> bytes:
    return json.dumps({"id": number, "op": operation, "args": arguments}).encode() + b"\n"


FLOODS: tuple[Callable[[Target], bytes], ...] = (
    lines_without_end,
    lines_of_nothing,
    large_calls,
    calls_of_many_small_things,
    sessions,
    those_who_wait_and_give_up,
    those_who_do_not_read,
)


def thrown(target: Target) -> Iterator[bytes]:
    """Pieces of every flood, and of the first one until it is enough."""
    size = 0
    for flood in FLOODS:
        for _ in range(FLOOD_BYTES // len(FLOODS) // PIECE):
            piece = PORT + flood(target)
            size += len(piece)
            yield piece
    while size < FLOOD_BYTES:
        size += PIECE
        yield PORT + FLOODS[0](target)


@pytest.fixture
def flooded(own_target: Target) -> Target:
    """One call waits, so that there is something to wait for."""
    with own_target.asking() as agent:
        agent.ask("open_session", hello={"name": "agent", "root": str(own_target.workspace)})
        agent.ask("submit", request=call(own_target, {}))
    return own_target


def test_memory_stays_bounded_while_everything_is_thrown_at_it(flooded: Target):
    with flooded.growing_at_most(LIMIT):
        for piece in thrown(flooded):
            came = lines(flooded.exchange(piece))
            assert came[0]["ok"] is True
            assert all("failed at" not in answer.get("error", {}).get("message", "") for answer in came)
        flooded.check()


def test_encoded_lines_and_not_events_are_queued_for_slow_watchers(flooded: Target):
    for flood in (large_calls, calls_of_many_small_things):
        for _ in range(2):
            flooded.exchange(PORT + flood(flooded))
    with flooded.growing_at_most(LIMIT // 4), flooded.connect() as watcher, flooded.asking() as somebody:
        watcher.sendall(PORT + b"".join(request(number, "watch") for number in range(MOST_WATCHES)))
        assert watcher.recv(1, socket.MSG_PEEK)
        for _ in range(10 * MOST_WATCHES):  # Each of them lets every watch go on as far as it can.
            somebody.ask("status")
    flooded.check()
