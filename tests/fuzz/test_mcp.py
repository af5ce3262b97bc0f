"""The MCP endpoint and its relay under malformed JSON-RPC."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.profile import fuzzed
from tests.fuzz.target import Target, lines
from tests.fuzz.values import anything, of_schema, spoilt, texts

pytestmark = pytest.mark.slow

IDS = st.none() | st.booleans() | st.integers() | st.floats() | texts() | st.just([1]) | st.just({}) | st.just(10**400)
METHODS = st.sampled_from(
    [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "prompts/get",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/whisper-tui/goodbye",
        "rpc.discover",
        "",
    ]
)
OPENING = {
    "jsonrpc": "2.0",
    "id": "opening",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}},
}
STARTED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": "the end", "method": "ping"}


def messages() -> st.SearchStrategy[Any]:
    right = st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0"), "method": METHODS},
        optional={"id": IDS, "params": st.dictionaries(texts(), anything(4), max_size=3)},
    )
    return right | spoilt(right) | anything() | st.lists(right, max_size=3)


def hello(target: Target, **changes: object) -> bytes:
    session = {"name": "fuzz", "root": str(target.workspace), "environment": {}}
    return json.dumps({"door": "mcp", "version": 1, "wait_s": 0.05, "session": session, **changes}).encode() + b"\n"


def said(contents: list[object]) -> bytes:
    return b"".join(json.dumps(content).encode() + b"\n" for content in contents)


def conversation(target: Target, sent: bytes) -> list[dict[str, Any]]:
    """Return the answers up to that to a last ping."""
    whole = hello(target) + said([OPENING, STARTED]) + sent + b"\n" + said([PING])
    came = lines(
        target.exchange(whole, half_close=False, enough=lambda came: b'"the end"' in came and came[-1:] == b"\n")
    )
    assert came[0]["ok"] is True
    assert all(answer["jsonrpc"] == "2.0" and answer.keys() & {"result", "error", "method"} for answer in came[1:])
    return came[1:]


def test_any_message_is_answered_and_the_next_one_too(target: Target):
    @fuzzed(6)
    @given(contents=st.lists(messages(), max_size=6))
    def attack(contents: list[object]) -> None:
        conversation(target, said(contents))

    attack()


RAW = (
    b"[" * 100_000 + b"]" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\ud800", "arguments": {}}}',
    b'{"jsonrpc": "2.0", "id": "\\udfff", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping", "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "\\u0000"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\x00',
    b"\x00\xff\xfe",
    b"{}",
    b"[]",
)


@pytest.mark.parametrize("line", RAW, ids=range(len(RAW)))
def test_an_invalid_line_is_refused_and_the_connection_stays_open(target: Target, line: bytes):
    assert conversation(target, line)


def test_raw_lines_are_refused_and_the_connection_stays_open(target: Target):
    @fuzzed(6)
    @given(sent=st.binary(max_size=200))
    @example(sent=b"\n\r\n\t\n")
    def attack(sent: bytes) -> None:
        conversation(target, sent)

    attack()


def test_every_tool_answers_whatever_its_arguments_are(target: Target):
    listed = conversation(target, said([{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]))
    tools = next(answer["result"]["tools"] for answer in listed if answer.get("id") == 1)
    choices = st.sampled_from(tools).flatmap(
        lambda tool: st.tuples(
            st.just(tool["name"]), of_schema(tool["inputSchema"]) | spoilt(of_schema(tool["inputSchema"]))
        )
    )

    @fuzzed(5)
    @given(calls=st.lists(choices, min_size=3, max_size=6))
    def attack(calls: list[tuple[str, object]]) -> None:
        sent = [
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ]
        came = conversation(target, said(list(sent)))
        assert "Internal" not in json.dumps(came)

    attack()


def test_a_hello_of_any_shape_is_answered_or_ends_the_connection(target: Target):
    right = json.loads(hello(target))

    @fuzzed(6)
    @given(spoilt_hello=spoilt(st.just(right)))
    @example(spoilt_hello={**right, "session": {"name": "a", "root": "/" + "x" * 4000}})
    @example(spoilt_hello={**right, "wait_s": float("nan")})
    def attack(spoilt_hello: object) -> None:
        for answer in lines(target.exchange(json.dumps(spoilt_hello).encode() + b"\n"))[:1]:
            assert answer.get("ok") is True or answer["error"]["message"]

    attack()


def test_the_relay_passes_on_what_it_does_not_understand_and_lives(target: Target):
    words = [sys.executable, "-m", "whisper_tui", "mcp", "--home", str(target.root)]
    sent = said([OPENING, STARTED]) + b"\n".join(RAW) + b"\n" + said([PING])
    relay = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=target.workspace
    )
    assert relay.stdin is not None and relay.stdout is not None and relay.stderr is not None
    relay.stdin.write(sent)
    relay.stdin.flush()
    came = b""
    while b'"the end"' not in came:
        line = relay.stdout.readline()
        assert line, relay.stderr.read()
        came += line
    relay.stdin.close()
    assert relay.wait(60) == 0
    assert b"Traceback" not in relay.stderr.read()
    for pipe in (relay.stdout, relay.stderr):
        pipe.close()
