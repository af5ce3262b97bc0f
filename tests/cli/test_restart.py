"""Handing over to a supervisor of another version, as people do it: nothing is lost, and nothing runs twice."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from tests.cli.conftest import PROGRAM
from tests.outside import outside_only
from whisper_tui.system.processes import NO_LIMIT, is_marked_below, peer_process
from whisper_tui.system.state_directory import is_occupied
from whisper_tui.wire.rendezvous import HELD, connect

pytestmark = outside_only

OLDER = """
import sys
from whisper_tui.wire import protocol
protocol.VERSION = protocol.OLDEST = 0
from whisper_tui.cli import main
sys.exit(main(["supervise", "--home", sys.argv[1]]))
"""
"""A supervisor that speaks an older protocol than everybody else here."""
RUN = "echo {0} >> ran; echo begun {0}; while [ ! -e go ]; do sleep 0.05; done; echo ended {0}"


def pid_of(instance) -> int:
    connection = connect(instance.home)
    assert connection is not None
    with connection:
        return peer_process(connection)[0]


def lines(instance) -> list[str]:
    ran = instance.workspace / "ran"
    return ran.read_text().splitlines() if ran.exists() else []


@pytest.mark.slow
def test_runs_and_waiting_calls_survive_a_takeover(instance):
    first = instance.call("run_shell_command", command=RUN.format("one"))
    assert instance.run("approve", "1").returncode == 0
    instance.until(lambda: lines(instance) == ["one"])
    second = instance.call("run_shell_command", command=RUN.format("two"))
    before = pid_of(instance)
    handed_over = instance.run("restart")
    assert (handed_over.returncode, handed_over.stderr) == (0, "")
    assert pid_of(instance) != before and f"pid {pid_of(instance)}" in handed_over.stdout
    assert instance.run("approve", "2").returncode == 0
    instance.until(lambda: lines(instance) == ["one", "two"])
    (instance.workspace / "go").touch()
    for process, name in ((first, "one"), (second, "two")):
        out, err = process.communicate(timeout=60)
        assert (process.returncode, f"begun {name}" in out, f"ended {name}" in out, err) == (0, True, True, "")
    assert lines(instance) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("restart",), ("supervise", "--replace")], ids=" ".join)
def test_a_supervisor_that_is_not_understood_steps_down_for_one_that_is(instance, words):
    older = subprocess.Popen([sys.executable, "-c", OLDER, str(instance.root)], stderr=subprocess.PIPE, text=True)
    instance.until(lambda: connect(instance.home))
    refused = instance.run("list")
    assert refused.returncode == 3 and "whisper-tui restart" in refused.stderr
    assert f"pid {older.pid}) speaks version 0" in refused.stderr
    instance.start(*words)
    assert older.wait(60) == 0 and older.stderr is not None
    older.stderr.close()
    assert instance.until(lambda: instance.run("status").returncode == 0)
    assert pid_of(instance) != older.pid


@pytest.mark.slow
def test_a_supervisor_continues_if_the_takeover_is_impossible(instance):
    assert instance.run("restart").returncode == 0
    before = pid_of(instance)
    with sqlite3.connect(instance.root / "state" / "journal.sqlite") as journal:
        journal.execute("PRAGMA user_version = 99")
    refused = instance.run("restart")
    assert refused.returncode == 3 and "of a newer whisper_tui" in refused.stderr
    assert pid_of(instance) == before
    (instance.root / "config" / "config.toml").write_text("[supervisor]\nworker = 1\n")
    assert "'worker'" in instance.run("restart").stderr
    assert pid_of(instance) == before and os.path.exists(f"/proc/{before}")


@pytest.mark.slow
@outside_only
def test_a_stop_names_the_connected_agents_and_lasts_until_a_human_starts_the_supervisor(instance, agent_process):
    def as_agent(*words):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = agent_process.starts(*PROGRAM, *words, "--home", str(instance.root))
        return subprocess.Popen(command, **pipes)

    agent = as_agent("mcp", "--session", "the builder")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert "result" in asked(agent, 1, "initialize", hello)
    # The relay answers that by itself, before the supervisor has started.
    assert asked(agent, 9, "ping", {})["result"] == {}
    assert instance.rows("status")["agents"] == 1
    stopped = instance.run("stop").stdout
    assert "It stays stopped until you start it" in stopped
    assert "Calls of 1 connected agent are refused until then: the builder" in stopped
    until_a_human = "was stopped, and stays stopped until a human starts it"
    assert until_a_human in asked(agent, 2, "tools/list", {})["error"]["message"]
    called = instance.run("call", "run_shell_command", '{"command": "true"}')
    assert called.returncode == 3 and until_a_human in called.stderr
    hook = as_agent("hook", "claude")
    command = {"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_input": {"command": "true"}}
    out, err = hook.communicate(json.dumps(command), timeout=90)
    assert (hook.returncode, out) == (2, "") and until_a_human in err
    library = "import asyncio, sys; from whisper_tui import connect\n"
    library += "async def main():\n async with connect('a', home=sys.argv[1]): pass\nasyncio.run(main())"
    words = [sys.executable, "-c", library, str(instance.root)]
    joined = subprocess.run(words, capture_output=True, check=False, text=True, timeout=90)
    assert joined.returncode == 1 and until_a_human in joined.stderr
    assert not is_occupied(instance.home.state)
    assert instance.run("stop").returncode == 3
    assert instance.run("list").returncode == 0
    assert "result" in asked(agent, 3, "tools/list", {})
    agent.communicate(timeout=90)


def asked(agent, number, method, params):
    """The answer to a request over MCP."""
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    agent.stdin.flush()
    while True:
        answer = json.loads(agent.stdout.readline())
        if answer.get("id") == number:
            return answer


@pytest.mark.slow
@outside_only
def test_a_held_stop_lasts_until_a_human_starts_the_supervisor(instance):
    instance.run("restart")
    assert "stays stopped until you start it" in instance.run("stop", "--hold").stdout
    for words in (("list",), ("call", "run_shell_command", '{"command": "true"}')):
        refused = instance.run(*words)
        assert refused.returncode == 3
        assert "stays stopped until a human starts it" in refused.stderr
    assert not is_occupied(instance.home.state)
    assert instance.run("restart").returncode == 0
    assert instance.run("stop").returncode == 0
    assert instance.run("list").returncode == 0


MARKED = """
import os, sys
from whisper_tui.system import processes
getattr(processes, sys.argv[1])(*map(int, sys.argv[2:3]))
os.execv(sys.argv[3], sys.argv[3:])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")
@outside_only
@pytest.mark.parametrize("mark", ["mark_agent", "mark_supervised"])
@pytest.mark.few(1)
def test_a_command_of_a_human_in_the_shell_of_an_agent_starts_no_supervisor_that_was_stopped(instance, mark):
    instance.run("restart")
    instance.run("stop")
    words = [sys.executable, "-c", MARKED, mark, "0", *PROGRAM, "list", "--home", str(instance.root)]
    refused = subprocess.run(words, capture_output=True, check=False, text=True, timeout=90)
    assert refused.returncode == 3 and "stays stopped until a human starts it" in refused.stderr
    assert not is_occupied(instance.home.state)
    assert instance.run("list").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"agents 86", b"agents", b"agents 0\n"])
@pytest.mark.few(1)
def test_a_note_that_was_not_written_to_its_end_holds_everybody_and_one_of_an_older_version_agents(instance, content):
    instance.run("restart")
    instance.run("stop")
    (instance.home.state / HELD).write_bytes(content)
    refused = instance.run("list").returncode == 3
    assert refused == (content in {b"", b"agents 86"} or (content == b"agents" and is_marked_below(NO_LIMIT)))
