"""Commands of Codex's environment: each waits for a human, and Codex waits with it."""

import asyncio
import json
import os
import signal
from typing import Any

import psutil
import pytest

from tests.outside import outside_only
from tests.transports.codex_environment.conftest import encoded, uri
from tests.transports.test_end_to_end import PATIENCE_S
from whisper_tui.config import find_directories
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.rendezvous import connect

pytestmark = outside_only


async def test_the_request_is_answered_once_the_command_is_approved_and_its_output_follows_in_order(place):
    async with place.codex() as codex:
        request = await codex.start("p", "echo out; echo err >&2; exit 3")
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == "echo out; echo err >&2; exit 3"
        assert not codex.has_answer(request)
        await place.run("approve", row["id"])
        assert (await codex.answer(request))["result"] == {"processId": "p", "sandboxType": "none"}
        assert await codex.closed("p") == 3
        assert (codex.output("p", "stdout"), codex.output("p", "stderr")) == ("out\n", "err\n")
        assert [note["params"]["seq"] for note in codex.notes("p")] == list(range(1, len(codex.notes("p")) + 1))
        answered = next(at for at, line in enumerate(codex.lines) if line.get("id") == request)
        assert all(codex.lines.index(note) > answered for note in codex.notes("p"))


async def test_a_denial_is_output_with_the_reason_and_exit_code_126(place):
    async with place.codex() as codex:
        request = await codex.start("p", "touch ran")
        await place.run("deny", await place.waiting(), "--reason", "Use `make test`.")
        assert "result" in await codex.answer(request)
        assert await codex.closed("p") == 126
        assert "Nothing ran. Reason: Use `make test`." in codex.output("p")
    assert not (place.workspace / "ran").exists()


@pytest.mark.slow
async def test_an_edited_command_runs_in_its_place_and_the_model_is_told(place):
    async with place.codex() as codex:
        await codex.start("p", "touch ran")
        await place.run("approve", await place.waiting(), "--command", "echo edited")
        assert await codex.closed("p") == 0
        assert codex.output("p", "stdout") == "edited\n"
        assert "The human changed the command before it ran" in codex.output("p", "stderr")
    assert not (place.workspace / "ran").exists()


@pytest.mark.slow
async def test_the_text_of_bash_is_judged_as_for_the_hook_and_another_program_by_its_words(place):
    rules = place.home / "config" / "rules.toml"
    rules.write_text('read_only = false\n[[allow]]\nname = "echo"\nprefix = ["echo"]\n')
    pretender = place.workspace / "bash"
    pretender.write_text("#!/bin/sh\ntouch pretended\n")
    pretender.chmod(0o755)
    async with place.codex() as codex:
        await codex.start("allowed", "echo hello")
        assert await codex.closed("allowed") == 0
        await codex.start("login", "", argv=["/bin/bash", "-lc", "echo hello; touch ran"])
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == "echo hello; touch ran"
        await place.run("deny", row["id"])
        await codex.closed("login")
        # A model can name the shell, and any program can have its name.
        await codex.start("other", "", argv=[str(pretender), "-c", "echo hello"])
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == [str(pretender), "-c", "echo hello"]
        await place.run("deny", row["id"])
        assert await codex.closed("other") == 126
    assert not (place.workspace / "pretended").exists()


@pytest.mark.slow
async def test_typed_input_is_asked_about_and_may_be_changed_or_denied(place):
    async with place.codex() as codex:
        await codex.start("p", "cat", tty=True)
        await place.run("approve", await place.waiting())
        await codex.until(lambda line: "result" in line and line["result"].get("processId") == "p")
        request = await codex.send("process/write", {"processId": "p", "chunk": encoded("no\n"), "writeId": "1"})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert (row["function"]["tool"], json.loads(row["command"].partition(" ")[2])["text"]) == (
            "write_stdin",
            "no\n",
        )
        await place.run("deny", row["id"], "--reason", "Not this.")
        assert "Not this." in (await codex.answer(request))["error"]["message"]
        request = await codex.send("process/write", {"processId": "p", "chunk": encoded("yes\n\x04"), "writeId": "2"})
        await place.run("approve", await place.waiting())
        assert (await codex.answer(request))["result"] == {"status": "accepted"}
        assert await codex.closed("p") == 0
        assert "yes" in codex.output("p", "pty") and "no" not in codex.output("p")


@pytest.mark.slow
async def test_input_that_the_approval_of_the_command_covers_is_not_asked_about(place):
    async with place.codex("--input", "covered") as codex:
        await codex.start("p", "cat", tty=True)
        await place.run("approve", await place.waiting())
        await codex.until(lambda line: "result" in line and line["result"].get("processId") == "p")
        answer = await codex.ask("process/write", processId="p", chunk=encoded("yes\n\x04"), writeId="1")
        assert answer["result"] == {"status": "accepted"}
        assert await codex.closed("p") == 0
        assert [row["tool"] for row in await place.rows("history")] == ["exec_command"]
        late = await codex.ask("process/write", processId="p", chunk=encoded("x"), writeId="2")
        assert late["result"] == {"status": "stdinClosed"}
        unknown = await codex.ask("process/write", processId="q", chunk=encoded("x"), writeId="3")
        assert unknown["result"] == {"status": "unknownProcess"}


@pytest.mark.slow
async def test_signals_and_the_end_reach_the_command_and_a_read_tells_its_true_state(place):
    async with place.codex() as codex:
        await codex.start("p", "trap 'echo interrupted' INT; echo ready; while :; do sleep 0.05; done")
        await place.run("approve", await place.waiting())
        await codex.until(lambda line: line.get("method") == "process/output")
        state = (await codex.ask("process/read", processId="p", afterSeq=0, maxBytes=100, waitMs=0))["result"]
        assert (state["exited"], state["exitCode"], state["closed"]) == (False, None, False)
        assert [chunk["chunk"] for chunk in state["chunks"]] == [encoded("ready\n")]
        await codex.ask("process/signal", processId="p", signal="interrupt")
        await codex.until(lambda line: "interrupted" in codex.output("p"))
        assert (await codex.ask("process/terminate", processId="p"))["result"] == {"running": True}
        assert await codex.closed("p") == 128 + signal.SIGTERM
        state = (await codex.ask("process/read", processId="p", afterSeq=2, maxBytes=100, waitMs=0))["result"]
        assert (state["exited"], state["exitCode"], state["closed"]) == (True, 143, True)
        assert (await codex.ask("process/terminate", processId="p"))["result"] == {"running": False}


@pytest.mark.slow
async def test_a_command_that_waits_is_withdrawn_when_codex_ends_it(place):
    async with place.codex() as codex:
        request = await codex.start("p", "touch ran")
        call_id = await place.waiting()
        assert (await codex.ask("process/terminate", processId="p"))["result"] == {"running": True}
        assert "result" in await codex.answer(request)
        assert await codex.closed("p") == 126
        assert (await place.ended(call_id))["ending"] == "withdrawn"


@pytest.mark.slow
async def test_a_killed_environment_is_resumed_with_the_command_that_waits(place):
    async with place.codex() as first:
        await first.start("p", "echo survived")
        call_id = await place.waiting()
        session = first.session_id
        rows = await place.rows("status")
        children = [int(pid) for pid in os.popen(f"pgrep -P {first.process.pid}").read().split()]
        assert children and rows["pid"] not in children
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        await first.until(lambda line: line.get("method") == "the end")
    # Meanwhile the human sees that nobody waits for it.
    await place.call(lambda row: row["id"] == call_id and row["agent_gave_up"] is not None)
    async with place.codex(resume=session) as second:
        assert second.session_id == session
        await place.run("approve", call_id)
        assert await second.closed("p") == 0
        assert second.output("p") == "survived\n"


async def test_an_unknown_session_is_not_resumed(place):
    async with place.codex(resume="whisper-0123") as codex:
        assert codex.session_id == ""
        answer = next(line for line in codex.lines if line.get("id") == 1)
        assert "no such session" in answer["error"]["message"]
        answer = await codex.answer(await codex.start("p", "touch ran"))
        assert "Send initialize first" in answer["error"]["message"]
    assert not (place.workspace / "ran").exists()


async def test_an_unknown_or_impossible_request_is_answered_with_an_error_and_does_nothing(place):
    requests: list[tuple[str, dict[str, Any], str]] = [
        ("process/spawn", {"argv": ["touch", "ran"]}, "does not know process/spawn"),
        ("whisper/run", {"argv": ["touch", "ran"], "root": None}, "does not know whisper/run"),
        ("http/request", {"url": "http://127.0.0.1:9"}, "does not know http/request"),
        ("process/start", {"processId": "p", "argv": []}, "argv"),
        (
            "process/start",
            {"processId": "p", "argv": ["touch", "ran"], "cwd": "file:///", "arg0": "ls"},
            "another name",
        ),
        (
            "process/start",
            {"processId": "p", "argv": ["touch", "ran"], "cwd": "file:///", "enforceManagedNetwork": True},
            "network of commands is not managed here",
        ),
        ("process/start", {"processId": "p", "argv": ["touch", "ran"], "cwd": "https://x/"}, "file URI"),
        (
            "process/start",
            {"processId": "p", "argv": ["touch", "whisper-tui-canary-0123456789"], "cwd": "file:///"},
            "the gate is live (canary whisper-tui-canary-0123456789)",
        ),
    ]
    async with place.codex() as codex:
        for method, params, said in requests:
            answer = await codex.ask(method, **params)
            assert said in answer["error"]["message"], (method, params)
        assert await place.rows("history") == []


@pytest.mark.slow
async def test_a_sub_agent_is_named_and_has_the_session_of_its_agent(place):
    async with place.codex() as codex:
        own = {"threadId": "thread-2", "toolCallId": "c"}
        await codex.start("p", "true; echo sub", metadata=own)
        row = await place.call(lambda row: row["state"] == "waiting")
        assert (await place.rows("show", row["id"]))["asker"] == "sub-agent thread-2"
        await place.run("approve", row["id"])
        await codex.closed("p")
        await codex.start("q", "true; echo own")
        other = await place.call(lambda row: row["state"] == "waiting")
        assert other["session_id"] == row["session_id"]
        assert (await place.rows("show", other["id"]))["asker"] is None
        await place.run("deny", other["id"])


@pytest.mark.slow
async def test_commands_have_the_variables_that_the_policy_of_codex_leaves_them(place):
    policy = {"inherit": "core", "ignoreDefaultExcludes": False, "exclude": ["LANG*"], "set": {"SET": "1"}}
    async with place.codex() as codex:
        added = {"CODEX_SESSION_ID": "thread-1", "ADDED": "2"}
        await codex.start("p", "env -0 | tr '\\0' '\\n'", envPolicy={**policy, "includeOnly": []}, env=added)
        await place.run("approve", "--yes", await place.waiting())
        assert await codex.closed("p") == 0
        found = dict(line.partition("=")[::2] for line in codex.output("p", "stdout").splitlines())
    assert (found["SET"], found["ADDED"]) == ("1", "2")
    assert "PATH" in found and "LANG" not in found and "PYTHONDONTWRITEBYTECODE" not in found


async def test_without_a_supervisor_nothing_runs_and_the_environment_ends_with_codex(place):
    async with place.codex() as codex:
        request = await codex.start("p", "touch ran")
        await place.waiting()
        await place.run("stop", "--end-runs")
        another = await codex.start("q", "touch ran")
        read = await codex.ask("fs/readFile", path=uri(place.workspace / "none"))
        assert read["error"]["code"] == -32004
        assert not codex.has_answer(request) and not codex.has_answer(another)
    assert codex.process.returncode == 0
    assert not (place.workspace / "ran").exists()


@pytest.mark.slow
async def test_memory_is_bounded_for_a_codex_that_does_not_read(place):
    size = 96 << 20
    async with place.codex() as codex:
        await codex.start("p", f"head -c {size} /dev/zero")
        supervisor = psutil.Process((await place.rows("status"))["pid"])
        (program,) = psutil.Process(codex.process.pid).children()
        await place.run("approve", await place.waiting())
        await codex.until(lambda line: line.get("method") == "process/output")
        codex._reading.cancel()
        await asyncio.wait([codex._reading])
        before = [process.memory_info().rss for process in (supervisor, program)]
        await place.call(lambda row: row["ending"] is not None, "history")
        # Its end is journaled before all of its output is sent, so they are looked at once both rest.
        used = [sum(process.cpu_times()[:2]) for process in (supervisor, program)]
        async with asyncio.timeout(60):
            rests = 0
            while rests < 10:
                await asyncio.sleep(0.1)
                now = [sum(process.cpu_times()[:2]) for process in (supervisor, program)]
                rests, used = (rests + 1 if sum(now) - sum(used) < 0.05 else 0), now
        grown = [process.memory_info().rss - was for process, was in zip((supervisor, program), before, strict=True)]
        codex._reading = asyncio.create_task(codex.skip())
        assert max(grown) < size // 2


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.slow
@pytest.mark.slow
async def test_commands_continue_under_the_next_supervisor_and_no_output_is_repeated(place, number):
    os.mkfifo(place.workspace / "fifo")
    async with place.codex() as codex:
        running = await codex.start("running", "echo one; read <fifo; echo two; exit 5")
        call = await place.call(lambda row: row["state"] == "waiting")
        await place.run("approve", call["id"])
        await codex.until(lambda _: "one\n" in codex.output("running"))
        waiting = await codex.start("waiting", "echo later")
        later = await place.call(lambda row: row["state"] == "waiting")
        supervision = await SupervisorClient.connect(find_directories(str(place.home), {}), start=False)
        killed = psutil.Process((await supervision.status()).pid)
        killed.send_signal(number)
        await supervision.close()
        # A command that connects while it ends is told that the connection was lost.
        await asyncio.to_thread(psutil.wait_procs, [killed], 60)
        # Its place is taken by another one, which knows the call that waits.
        again = await place.call(lambda row: row["id"] == later["id"] and row["agent_gave_up"] is None)
        assert again["state"] == "waiting"
        await place.run("approve", later["id"])
        assert (await codex.answer(waiting))["result"] == {"processId": "waiting", "sandboxType": "none"}
        assert await codex.closed("waiting") == 0
        await asyncio.to_thread((place.workspace / "fifo").write_text, "go\n")
        assert await codex.closed("running") == 5
        assert codex.output("running") == "one\ntwo\n"
        seqs = [line["params"]["seq"] for line in codex.notes("running")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert sum(line.get("id") == running for line in codex.lines) == 1
        await codex.start("after", "echo after")
        await place.run("approve", (await place.call(lambda row: row["state"] == "waiting"))["id"])
        assert await codex.closed("after") == 0
    assert [row["id"] for row in await place.rows("history")] == ["3", "2", "1"]


@pytest.mark.slow
async def test_no_program_takes_over_the_process_of_another_one(place):
    async with place.codex() as codex, place.codex() as other:
        request = await codex.start("p", "sleep 100", tty=True)
        call = await place.call(lambda row: row["state"] == "waiting")
        await place.run("approve", call["id"])
        await codex.answer(request)
        # The member that says so is dropped, for it is our own program's alone.
        await other.start("p", "echo mine", whisperGoesOn={"callId": call["id"], "answered": True})
        mine = await place.call(lambda row: row["state"] == "waiting")
        assert mine["command"] == "echo mine"
        await place.run("deny", mine["id"])
        assert await other.closed("p") == 126
        answer = await started_by_another_program(place, codex.workspace, call["id"])
        assert f"call {call['id']} is not this process" in answer["error"]["message"]


async def started_by_another_program(place, workspace, call_id) -> dict[str, Any]:
    """Name a call on a connection of its own, with another nonce, and return the answer."""
    hello = {"door": "executor", "version": HELLO_VERSIONS["executor"], "directory": str(workspace)}
    known = {"processId": "p", "argv": ["sleep", "100"], "cwd": uri(workspace), "whisperGoesOn": {"callId": call_id}}
    connection = connect(find_directories(str(place.home), {}))
    assert connection is not None
    connection.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    try:
        for line in (
            {**hello, "environment": {}, "nonce": "0123456789abcdef"},
            {"id": "a", "method": "initialize", "params": {}},
            {"id": "b", "method": "process/start", "params": known},
        ):
            writer.write(json.dumps(line).encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            while (answer := json.loads(await reader.readline())).get("id") != "b":
                pass
        return answer
    finally:
        writer.close()
