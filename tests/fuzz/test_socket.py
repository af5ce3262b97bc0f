"""The supervisor's socket under random bytes, truncated frames, and every operation with invalid arguments."""

import json
import socket
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.profile import ATTEMPTS, fuzzed
from tests.fuzz.target import PORT, Target, exchanged, lines, until
from tests.fuzz.values import anything, of_schema, spoilt
from whisper_tui.wire.operations import OPERATIONS

pytestmark = pytest.mark.slow

FUZZED = sorted(OPERATIONS.keys() - {"shutdown"})


def is_said(content):
    """An answer, an item, or an error that says what is wrong and is no failure of the supervisor's own."""
    if "error" not in content:
        return "ok" in content or "item" in content
    error = content["error"]
    return error.keys() == {"kind", "message", "hint"} and error["message"] and "failed at" not in error["message"]


def test_raw_bytes_are_answered_or_end_the_connection(target: Target):
    @fuzzed(8)
    @given(sent=st.binary(max_size=300), greeted=st.booleans())
    @example(sent=b"\xff" * 5000 + b"\n", greeted=True)
    @example(sent=b"[" * 100_000 + b"\n", greeted=False)
    @example(sent=b"\n" * 1000, greeted=True)
    @example(sent=b'{"door":"port","door":"cellar"}\n', greeted=False)
    def attack(sent: bytes, greeted: bool) -> None:
        came = lines(target.exchange((PORT if greeted else b"") + sent))
        assert all(map(is_said, came))
        assert not greeted or came[0]["ok"] is True

    attack()


def test_any_json_is_answered_with_what_is_wrong(target: Target):
    @fuzzed(8)
    @given(contents=st.lists(anything() | spoilt(st.just({"id": 1, "op": "status", "args": {}})), max_size=6))
    def attack(contents: list[object]) -> None:
        sent = b"".join(json.dumps(content).encode() + b"\n" for content in contents)
        came = lines(target.exchange(PORT + sent))
        assert len(came) >= 1 + sum(not isinstance(content, dict) for content in contents)
        assert all(map(is_said, came))

    attack()


@pytest.mark.parametrize("name", FUZZED)
@pytest.mark.one_in(2)
def test_every_operation_answers_whatever_its_arguments_are(target: Target, name: str):
    arguments = of_schema(OPERATIONS[name].arguments.model_json_schema())

    @fuzzed(3)
    @given(given_now=st.lists(arguments | spoilt(arguments), min_size=3, max_size=6))
    def attack(given_now: list[object]) -> None:
        requests = [{"id": number, "op": name, "args": args} for number, args in enumerate(given_now)]
        sent = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
        came = lines(target.exchange(PORT + sent))
        assert all(map(is_said, came))
        # One that waits or follows is given up with its connection.
        assert OPERATIONS[name].patient or {answer.get("id") for answer in came[1:]} >= set(range(len(given_now)))

    attack()
    with target.asking() as human:
        human.ask("resume", by={"surface": "library"})


def test_frames_that_are_cut_and_merged_are_read_as_if_they_were_whole(target: Target):
    @fuzzed(8)
    @given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8), together=st.integers(1, 5))
    def attack(cuts: list[int], together: int) -> None:
        requests = b"".join(b'{"id": %d, "op": "status"}\n' % number for number in range(together))
        left, came = PORT + requests, b""
        with target.connect() as connection:
            for cut in cuts:
                connection.setblocking(True)
                connection.sendall(left[:cut])
                left = left[cut:]
            came = exchanged(connection, left or b"\n")
        assert {answer["id"] for answer in lines(came) if "id" in answer} == set(range(together))

    attack()


@pytest.mark.parametrize("version", [0, 3, -1, "1", None, [1], {}, 2**70, 1.5])
def test_another_version_is_reported_and_disconnected(target: Target, version: object):
    (answer,) = lines(target.exchange(json.dumps({"door": "port", "version": version}).encode() + b"\n"))
    assert "version" in answer["error"]["message"] and answer["error"]["hint"]


def test_connections_without_end_leave_room_for_a_client_that_behaves(own_target: Target):
    """All from one process: those that say nothing, half a hello, or nothing after it; and then many more."""
    before = own_target.descriptors()
    held: list[socket.socket] = []
    try:
        for number in range(200):
            held.append(own_target.connect())
            held[-1].sendall((b"", b'{"door":', b"{")[number % 3])
        while b"error" not in greeting(held, own_target):
            assert len(held) < 400
        for _ in range(ATTEMPTS):
            (answer,) = lines(own_target.exchange(b"no hello\n"))
            assert "half of the limit" in answer["error"]["message"] and answer["error"]["hint"]
        assert 200 <= own_target.descriptors() < 400
    finally:
        for connection in held:
            connection.close()
    until(lambda: own_target.descriptors() <= before + 10)


def greeting(held: list[socket.socket], target: Target) -> bytes:
    """Return the answer to one more connection."""
    held.append(target.connect())
    with suppress(BrokenPipeError):
        held[-1].sendall(PORT)
    return held[-1].recv(4096)
