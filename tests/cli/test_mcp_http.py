"""`mcp --http`: the address, the token, an agent and a hook over HTTP with a supervisor of its own."""

import json
import os
import re
import signal
import stat
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.cli.conftest import ANSWER_S, Instance


class Served:
    """The addresses, and requests to them."""

    def __init__(self, instance: Instance) -> None:
        self.process = instance.start("mcp", "--http", "--port", "0")
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(3)]
        self.mcp, self.hook = (re.findall(r"http://\S+", line)[0] for line in lines[:2])
        self.token = instance.run("mcp", "--http", "--show-token").stdout.strip()

    def post(self, url: str, content: Any, **headers: str) -> tuple[int, str, dict[str, str]]:
        known = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        request = urllib.request.Request(url, json.dumps(content).encode(), known | headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)


@pytest.fixture
def served(instance: Instance) -> Iterator[Served]:
    made = Served(instance)
    yield made
    if made.process.poll() is None:
        made.process.send_signal(signal.SIGINT)
        made.process.communicate(timeout=ANSWER_S)


@pytest.mark.slow
def test_an_agent_comes_over_http_and_its_call_waits_like_any_other(instance: Instance, served: Served) -> None:
    assert stat.S_IMODE((instance.root / "state" / "http-token").stat().st_mode) == 0o600
    assert served.post(served.mcp, {}, Authorization="Bearer wrong")[0] == 401
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "an agent", "version": "1"}}
    status, _, headers = served.post(served.mcp, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    assert status == 200
    session = {"Mcp-Session-Id": headers["mcp-session-id"]}
    answers: list[tuple[int, str, dict[str, str]]] = []
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "execute_command", "arguments": {"command": "echo", "args": ["hi"]}},
    }
    waits = threading.Thread(target=lambda: answers.append(served.post(served.mcp, call, **session)))
    waits.start()
    (row,) = instance.until(lambda: instance.seen("list"))
    assert row["state"] == "waiting"
    instance.run("approve", row["id"])
    waits.join(ANSWER_S)
    assert json.loads(answers[0][1].rpartition("data: ")[2])["result"]["structuredContent"]["stdout"] == "hi\n"
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(ANSWER_S) == 0
    assert instance.rows("show", row["id"])["session"] == "workspace (an agent)"


def test_a_hook_over_http_is_denied_by_a_human_and_an_approved_one_runs(instance: Instance, served: Served) -> None:
    asked = {
        "session_id": "s",
        "cwd": str(instance.workspace),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo over http"},
        "tool_use_id": "t1",
    }
    answers: list[tuple[int, str, dict[str, str]]] = []

    def ask() -> None:
        answers.append(served.post(served.hook, asked))

    def decided(*words: str) -> dict[str, Any]:
        waits = threading.Thread(target=ask)
        waits.start()
        (row,) = instance.until(lambda: [row for row in instance.seen("list") if row["state"] == "waiting"])
        instance.run(words[0], row["id"], *words[1:])
        waits.join(ANSWER_S)
        answer: dict[str, Any] = json.loads(answers[-1][1])["hookSpecificOutput"]
        return answer

    denied = decided("deny", "--reason", "not like this")
    assert denied["permissionDecision"] == "deny" and "not like this" in denied["permissionDecisionReason"]
    asked["tool_use_id"] = "t2"
    allowed = decided("approve")
    assert allowed["permissionDecision"] == "allow"
    ran = subprocess.run(
        ["/bin/sh", "-c", allowed["updatedInput"]["command"]],
        cwd=instance.workspace,
        env={name: value for name, value in os.environ.items() if name != "WHISPER_TUI_HOME"},
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("over http\n", 0), ran.stderr


def test_it_listens_on_loopback_alone(served: Served) -> None:
    listening = [c for c in psutil.Process(served.process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening] == ["127.0.0.1"]


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_sentence(instance: Instance, served: Served) -> None:
    port = served.mcp.split(":")[2].partition("/")[0]
    answer = instance.run("mcp", "--http", "--port", port)
    assert answer.returncode == 3
    assert f"Port {port} of 127.0.0.1 cannot be listened on" in answer.stderr
    assert instance.run("mcp", "--http", "--port", "70000").returncode == 2


@pytest.mark.slow
def test_the_end_of_the_server_leaves_what_waits_waiting_and_marked(instance: Instance, served: Served) -> None:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "an agent", "version": "1"}}
    _, _, headers = served.post(served.mcp, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "execute_command", "arguments": {"command": "true"}},
    }
    waits = threading.Thread(
        target=lambda: served.post(served.mcp, call, **{"Mcp-Session-Id": headers["mcp-session-id"]})
    )
    waits.start()
    (row,) = instance.until(lambda: instance.seen("list"))
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(ANSWER_S) == 0
    waits.join(ANSWER_S)
    instance.until(lambda: instance.seen("show", call_id=row["id"])[0]["agent_gave_up"])
    assert instance.rows("show", row["id"])["state"] == "waiting"
