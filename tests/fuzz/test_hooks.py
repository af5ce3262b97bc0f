"""No hook input is an approval, and `exec` does not bypass one."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.profile import fuzzed
from tests.fuzz.target import Target, lines
from tests.fuzz.values import anything, spoilt, texts
from whisper_tui.agents.known_clients import KNOWN, profiles
from whisper_tui.transports.hook.exec_program import frame

pytestmark = pytest.mark.slow

HOOK_FORMATS = {profile.name: profile.hook for profile in profiles()}
TOOLS = {name: client.shell_tool for name, client in HOOK_FORMATS.items()}


def asked(name: str, command: str = "rm precious") -> dict[str, Any]:
    """Return the input of a client's hook before a command."""
    event = {"event" if name == "crush" else "hook_event_name": HOOK_FORMATS[name].event}
    return {
        **event,
        "tool_name": TOOLS[name],
        "tool_input": {"command": command},
        "cwd": "/tmp",
        "session_id": "fuzz",
        "call_id": None,
    }


def hello(client: str, said: str, **changes: object) -> bytes:
    content = {
        "door": "hook",
        "version": 1,
        "client": client,
        "input": said,
        "nonce": "n",
        "launcher": ["whisper-tui"],
        "deadline_s": 0.02,
    }
    return json.dumps({**content, **changes}).encode() + b"\n"


def answered(target: Target, sent: bytes) -> tuple[int, str, str]:
    """Exit code and both texts."""
    came = target.exchange(sent, half_close=False)
    if came.startswith(b"{"):
        (content,) = lines(came)
        return 2, "", content["error"]["message"]
    head, _, rest = came.partition(b"\n")
    code, out, err = map(int, head.split())
    assert len(rest) == out + err
    return code, rest[:out].decode(), rest[out:].decode()


def is_about_something_else(name: str, content: object) -> bool:
    """True if the words are a well-formed question about a tool, or a moment, that is not ours."""
    if not isinstance(content, dict):
        return False
    event = content.get("event" if name == "crush" else "hook_event_name", HOOK_FORMATS[name].event)
    tool = content.get("tool_name")
    return isinstance(event, str) and (
        event != HOOK_FORMATS[name].event or (isinstance(tool, str) and tool != TOOLS[name])
    )


def refuses(name: str, content: object, code: int, out: str, err: str) -> bool:
    if code:
        return code == 2 and bool(err) and not out
    if not out:
        return is_about_something_else(name, content)
    decision = json.loads(out)
    assert '"allow"' not in out
    return "deny" in json.dumps(decision)


@pytest.mark.parametrize("name", sorted(HOOK_FORMATS))
def test_no_input_of_a_hook_is_an_approval(target: Target, name: str):
    right = asked(name)

    @fuzzed(8)
    @given(content=spoilt(st.just(right)) | anything() | st.just(right), raw=texts())
    @example(content={**right, "tool_input": {"command": "ls", "description": [[[]]]}}, raw="")
    @example(content={**right, "cwd": "/\x00"}, raw="[" * 100_000)
    @example(content={**right, "session_id": "s" * 5000, "cwd": "/" + "x" * 5000}, raw='{"tool_name":')
    @example(content={**right, "hook_event_name": 5, "event": 5}, raw="\x00")
    def attack(content: object, raw: str) -> None:
        assert refuses(name, content, *answered(target, hello(name, json.dumps(content))))
        assert refuses(name, None, *answered(target, hello(name, raw)))

    attack()


@pytest.mark.parametrize(
    "deadline", ["NaN", "Infinity", "-Infinity", "-1", "0", "1e400", '"soon"', "null", "[]", "9" * 400]
)
def test_a_deadline_that_never_comes_is_refused_at_once(target: Target, deadline: str):
    sent = hello("claude", json.dumps(asked("claude")), deadline_s="?").replace(b'"?"', deadline.encode())
    code, out, err = answered(target, sent)
    assert (code, out) == (2, "") and err


def test_a_hello_of_a_hook_of_any_shape_is_refused(target: Target):
    right = json.loads(hello("claude", json.dumps(asked("claude"))))

    @fuzzed(8)
    @given(content=spoilt(st.just(right)))
    @example(content={**right, "pid": 2**70})
    @example(content={**right, "environment": {"A\x00": "\x00", "CLAUDE_PROJECT_DIR": "/" + "x" * 5000}})
    def attack(content: object) -> None:
        if isinstance(content, dict):
            content["pid"] = content.get("pid") if isinstance(content.get("pid"), int) else None
            content["deadline_s"] = 0.02  # One that is far away is waited for, as it should be.
        code, out, err = answered(target, json.dumps(content).encode() + b"\n")
        assert err if code else '"allow"' not in out

    attack()


@pytest.mark.parametrize(
    ("client", "given_words"),
    [
        *((client, b"") for client in sorted(KNOWN)),
        ("claude", b"\xff\xfe\x00"),
        ("codex", b"[" * 100_000),
        ("gemini", b"x" * (3 << 20)),
        ("crush", b'{"tool_name": "bash"}'),
    ],
    ids=[*sorted(KNOWN), "no text", "deep", "long", "half"],
)
def test_the_program_of_a_hook_refuses_what_it_cannot_understand(target: Target, client: str, given_words: bytes):
    words = [sys.executable, "-m", "whisper_tui", "hook", client, "--deadline", "20", "--home", str(target.root)]
    ran = subprocess.run(words, input=given_words, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 2 and ran.stdout == b""
    assert ran.stderr and b"Traceback" not in ran.stderr


def test_a_hello_of_exec_of_any_shape_starts_nothing(target: Target):
    right = {"door": "exec", "version": 1, "ticket": "1-abc", "by": "b" * 24, "cwd": "/tmp", "stdin": False}

    @fuzzed(8)
    @given(content=spoilt(st.just(right)) | st.just(right))
    @example(content={**right, "cwd": "/\x00"})
    @example(content={**right, "out": -5, "err": 2**70})
    def attack(content: object) -> None:
        came = target.exchange(json.dumps(content).encode() + b"\n", half_close=False, enough=bool)
        if isinstance(content, dict) and content.get("door") == "exec":
            assert lines(came)[0]["error"]["message"]

    attack()


def test_pieces_of_any_shape_end_the_run_of_a_ticket_and_nothing_else(target: Target):
    @fuzzed(2)
    @given(sent=st.binary(max_size=60) | st.builds(frame, st.sampled_from([b"i", b"s", b"z", b"q"]), st.binary()))
    @example(sent=b"s\xff\xff\xff\xff")
    @example(sent=frame(b"s", b"\x00") + frame(b"s", b"\xff"))
    def attack(sent: bytes) -> None:
        ticket = approved(target, f"cat; # {sent.hex()}")
        opening = {"door": "exec", "version": 1, "ticket": ticket, "by": "b" * 24, "cwd": "/tmp", "stdin": True}
        target.exchange(json.dumps(opening).encode() + b"\n" + sent)
        with target.asking() as somebody:
            assert somebody.ask("outcome", call_id=ticket.partition("-")[0])["state"]["kind"] == "ended"

    attack()


def approved(target: Target, command: str) -> str:
    """The ticket of a command that a human has approved."""
    answered(target, hello("codex", json.dumps(asked("codex", command)), nonce=command))
    with target.asking() as human:
        row = next(row for row in human.ask("rows", kind="list") if row["command"] == command)
        record = human.ask("record", call_id=row["id"])
        seen = digest_of(record)
        by = {"surface": "library", "who": "fuzz"}
        human.ask("decide", call_id=row["id"], decision={"kind": "approve"}, by=by, seen=seen)
    return f"{row['id']}-{record['call']['ticket']}"


def digest_of(record: dict[str, Any]) -> str:
    from whisper_tui.model.state import CallRecord

    return CallRecord.model_validate(record).seen_digest()
