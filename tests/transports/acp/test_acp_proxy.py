"""The proxy between an editor and an agent: what acts on this machine waits for a human, and all else passes."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.outside import outside_only
from tests.transports.test_end_to_end import PATIENCE_S, Place
from whisper_tui.transports.acp import acp_questions
from whisper_tui.transports.hook.edit_answers import StaleEdit

pytestmark = outside_only
AGENT = str(Path(__file__).with_name("scripted_acp_agent.py"))
OPTIONS = [
    {"optionId": "1", "name": "Never", "kind": "reject_once"},
    {"optionId": "2", "name": "Always", "kind": "allow_always"},
    {"optionId": "3", "name": "Yes", "kind": "allow_once"},
]


class Editor:
    """An editor that sends and reads lines, and keeps the updates that it was shown."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.updates: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self._asked = 0

    async def send(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        content = line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode()
        self.process.stdin.write(content + b"\n")
        await self.process.stdin.drain()

    async def line(self) -> bytes:
        assert self.process.stdout is not None
        return await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)

    async def until(self, request_id: Any) -> dict[str, Any]:
        """The answer to a request; what comes before it is kept."""
        while line := await self.line():
            message: dict[str, Any] = json.loads(line)
            if message.get("method") == "session/update":
                self.updates.append(message["params"]["update"])
            elif "method" in message:
                self.requests.append(message)
            elif message.get("id") == request_id:
                return message
        raise AssertionError(f"the proxy ended before it answered {request_id}")

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        self._asked += 1
        await self.send({"id": self._asked, "method": method, "params": params})
        return await self.until(self._asked)

    async def open(self, root: Path, **more: Any) -> dict[str, Any]:
        """Begin, and open a session. Returns the first answer that is an error, or the last one."""
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False, "_meta": {"a": 1}}
        hello = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": {"name": "ed", "version": "1"}}
        said = await self.ask("initialize", {**hello, **more})
        return said if "error" in said else await self.ask("session/new", {"cwd": str(root), "mcpServers": []})

    async def prompt(self, *steps: tuple[str, Any]) -> list[Any]:
        """Have the agent do something, and return the answers that it was given."""
        text = [{"type": "text", "text": json.dumps(steps)}]
        said = await self.ask("session/prompt", {"sessionId": "s-1", "prompt": text})
        answers: list[Any] = said["result"]["_meta"]["answers"]
        return answers

    def doing(self, *steps: tuple[str, Any]) -> asyncio.Task[list[Any]]:
        return asyncio.create_task(self.prompt(*steps))

    def shown(self) -> str:
        """All text of the updates."""
        return json.dumps(self.updates, ensure_ascii=False)

    async def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


class AcpPlace(Place):
    """An instance, and an editor that reaches the scripted agent through the proxy alone."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.log = directory / "received"
        self.elsewhere = directory / "elsewhere"
        """Outside the workspace, so that each write is asked about."""
        self.elsewhere.mkdir()

    @asynccontextmanager
    async def editor(self, *options: str, name: str = "kimi-code", **environ: str) -> AsyncIterator[Editor]:
        words = (sys.executable, "-m", "whisper_tui", "acp", "--home", str(self.home), "--root", str(self.workspace))
        self.ready()
        process = await asyncio.create_subprocess_exec(
            *(*words, *options, "--", sys.executable, AGENT, name, str(self.log)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=1 << 28,
            env={**os.environ, **environ},
        )
        editor = Editor(process)
        try:
            yield editor
        finally:
            await editor.end()

    def received(self, method: str) -> list[dict[str, Any]]:
        """The messages with a method that reached the agent."""
        messages = [json.loads(line) for line in self.log.read_bytes().splitlines()]
        return [message for message in messages if message.get("method") == method]


@pytest.fixture
async def place(tmp_path: Path, warm: None) -> AsyncIterator[AcpPlace]:
    made = AcpPlace(tmp_path)
    yield made
    await made.stop()


def terminal(text: str, **more: Any) -> tuple[tuple[str, Any], ...]:
    """The steps of an agent that runs a command as editors are asked to, and shows it."""
    call = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t",
        "content": [{"type": "terminal", "terminalId": "$terminal"}],
    }
    return (
        ("terminal/create", {"command": "/bin/bash", "args": ["-c", text], **more}),
        ("x/notify", {"method": "session/update", "params": {"sessionId": "s-1", "update": call}}),
        ("terminal/wait_for_exit", {"terminalId": "$terminal"}),
        ("terminal/output", {"terminalId": "$terminal"}),
        ("terminal/release", {"terminalId": "$terminal"}),
    )


def unanswered(*words: str) -> tuple[str, Any]:
    """The step of an agent that asks for a terminal, and goes on before the answer comes."""
    params = {"sessionId": "s-1", "command": words[0], "args": words[1:]}
    return "x/notify", {"id": f"raw {words}", "method": "terminal/create", "params": params}


def question(kind: str, raw: Any, options: Any = OPTIONS, **more: Any) -> tuple[str, Any]:
    call = {"toolCallId": "q", "title": "May I?", "kind": kind, "rawInput": raw, **more}
    return "session/request_permission", {"toolCall": call, "options": options}


async def test_a_terminal_is_a_command_in_the_queue_and_its_output_is_the_agents(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(*terminal("echo $A; pwd; echo err >&2; exit 3", env=[{"name": "A", "value": "b"}]))
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == "echo $A; pwd; echo err >&2; exit 3" and row["cwd"] == str(place.workspace)
        # Agents count the time of a command from this answer on.
        assert not [line for line in place.log.read_bytes().splitlines() if b'"terminalId": "whisper-tui-' in line]
        await place.run("approve", row["id"])
        _, _, ended, output, _ = await doing
    assert ended["result"] == {"exitCode": 3, "signal": None}
    assert output["result"] == {
        "output": f"b\n{place.workspace}\nerr\n",
        "truncated": False,
        "exitStatus": ended["result"],
    }


@pytest.mark.slow
async def test_an_edited_command_is_what_runs_and_agent_and_editor_are_told(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(*terminal("echo asked"))
        call_id = await place.waiting()
        await place.run("approve", call_id, "--command", "echo edited")
        output = (await doing)[3]["result"]["output"]
        told = await place.run("show", call_id, "--told", "--json")
        assert json.loads(told)["parts"][0]["text"] == output
    assert "What ran: echo edited." in output and output.endswith("\nedited\n")
    assert "$ echo edited" in editor.shown() and '"terminal"' not in editor.shown()


@pytest.mark.slow
async def test_a_denial_is_the_output_of_the_terminal_with_the_reason(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(*terminal("touch made"))
        call_id = await place.waiting()
        await place.run("deny", call_id, "use make")
        _, _, ended, output, _ = await doing
        told = await place.run("show", call_id, "--told")
        assert output["result"]["output"] in told and '"exitCode": 126' in told
    assert ended["result"] == {"exitCode": 126, "signal": None}
    assert output["result"]["output"] == "Denied by the human. Nothing ran. Reason: use make\n"
    assert not (place.workspace / "made").exists() and "use make" in editor.shown()


@pytest.mark.slow
async def test_the_editor_is_shown_which_tool_call_waits_for_the_human(place):
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "rawInput": {"command": "echo shown"}}
    told = ("x/notify", {"method": "session/update", "params": {"sessionId": "s-1", "update": call}})
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(told, *terminal("cd / && echo shown"))
        call_id = await place.waiting()
        async with asyncio.timeout(PATIENCE_S):
            while f"Waits for a human in whisper_tui (call {call_id})" not in editor.shown():
                await asyncio.sleep(0.02)
        await place.run("approve", call_id)
        await doing
    assert {update["toolCallId"] for update in editor.updates} == {"t"}


@pytest.mark.slow
async def test_only_the_newest_output_is_kept_and_cut_between_two_characters(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(*terminal("printf 'abc\u00e4\u00f6'", outputByteLimit=3))
        await place.run("approve", await place.waiting())
        output = (await doing)[3]["result"]
    assert output["output"] == "\u00f6" and output["truncated"] is True


@pytest.mark.slow
async def test_a_whole_line_as_the_program_is_read_by_a_shell(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        steps = terminal("")
        doing = editor.doing(("terminal/create", {"command": "echo a | tr a b"}), *steps[2:])
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == "echo a | tr a b"
        await place.run("approve", row["id"])
        assert (await doing)[2]["result"]["output"] == "b\n"


@pytest.mark.slow
async def test_output_that_was_read_once_stays_at_the_beginning_of_later_output(place):
    gate = place.workspace / "gate"
    text = f"echo one >&2; echo two; while [ ! -e {gate} ]; do sleep 0.05; done; echo three >&2; printf '\\303'"
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("sh", "-c", text))
        call_id = await place.waiting()
        look = ("terminal/output", {"terminalId": f"whisper-tui-{call_id}"})
        assert (await editor.prompt(look))[0]["result"] == {"output": "", "truncated": False}
        await place.run("approve", call_id, "--command", text + "; printf '\\244'")
        seen = [""]
        async with asyncio.timeout(PATIENCE_S):
            while not {"one", "two"} <= set(seen[-1].split()):
                seen.append((await editor.prompt(look))[0]["result"]["output"])
            gate.touch()
            await editor.prompt(("terminal/wait_for_exit", look[1]))
        seen.append((await editor.prompt(look))[0]["result"]["output"])
    assert all(after.startswith(before) for before, after in itertools.pairwise(seen))
    assert seen[-1].startswith("[whisper_tui: The human changed") and "three\n" in seen[-1] and "\u00e4" in seen[-1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["terminal/kill", "terminal/release"])
async def test_a_running_command_is_ended_by_kill_and_by_release(place, method):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("sleep", "600"))
        call_id = await place.waiting()
        await place.run("approve", call_id)
        await place.call(lambda row: row["id"] == call_id and row["state"] == "running")
        await editor.prompt((method, {"terminalId": f"whisper-tui-{call_id}"}))
        row = await place.call(lambda row: row["id"] == call_id and row["ending"] is not None, "history")
        assert row["ending"] == "signalled"
        (again,) = await editor.prompt(("terminal/output", {"terminalId": f"whisper-tui-{call_id}"}))
        assert ("error" in again) is (method == "terminal/release")


@pytest.mark.slow
async def test_a_write_is_made_as_it_was_approved(place):
    file = place.elsewhere / "new" / "a.txt"
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(("fs/write_text_file", {"path": str(file), "content": "one\ntwo\n"}))
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["tool"] == "write_text_file" and not file.exists()
        await place.run("approve", row["id"])
        assert await doing == [{"result": {}}]
        assert file.read_text() == "one\ntwo\n"
        await place.run("revert", row["id"])
        assert not file.exists()


@pytest.mark.slow
async def test_a_denied_write_is_an_error_with_the_reason(place):
    file = place.elsewhere / "a.txt"
    file.write_text("kept")
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(("fs/write_text_file", {"path": str(file), "content": "lost"}))
        call_id = await place.waiting()
        await place.run("deny", call_id, "not this one")
        (answer,) = await doing
        assert answer["error"]["message"] in await place.run("show", call_id, "--told")
    assert answer["error"]["code"] == -32000 and "not this one" in answer["error"]["message"]
    assert file.read_text() == "kept" and "not this one" in editor.shown()


@pytest.mark.slow
async def test_a_file_that_changes_while_a_write_of_it_waits_is_kept(place):
    file = place.elsewhere / "a.txt"
    file.write_text("before")
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(("fs/write_text_file", {"path": str(file), "content": "agent"}))
        call_id = await place.waiting()
        file.write_text("human")
        await place.run("approve", call_id)
        # It is another edit now, so it is asked about again.
        await place.run("deny", await place.waiting(), "look again")
        (answer,) = await doing
    assert "look again" in answer["error"]["message"] and file.read_text() == "human"


@pytest.mark.slow
async def test_a_file_is_read_without_a_question(place):
    (place.workspace / "a.txt").write_text("1\n2\n3\n4\n")
    os.mkfifo(place.workspace / "fifo")
    async with place.editor() as editor:
        await editor.open(place.workspace)
        whole, part, missing, fifo = await editor.prompt(
            ("fs/read_text_file", {"path": str(place.workspace / "a.txt")}),
            ("fs/read_text_file", {"path": str(place.workspace / "a.txt"), "line": 2, "limit": 2}),
            ("fs/read_text_file", {"path": str(place.workspace / "none")}),
            ("fs/read_text_file", {"path": str(place.workspace / "fifo")}),
        )
    assert whole["result"]["content"] == "1\n2\n3\n4\n" and part["result"]["content"] == "2\n3\n"
    assert missing["error"]["code"] == -32002 and "regular" in fifo["error"]["message"]


@pytest.mark.slow
async def test_permission_for_what_comes_back_is_given_and_the_action_is_asked_about_once(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("execute", {"command": "echo hi"}), *terminal("echo hi"))
        await place.run("approve", await place.waiting())
        assert (await doing)[0]["result"] == {"outcome": {"outcome": "selected", "optionId": "3"}}
    assert len(await place.rows("history")) == 1 and editor.requests == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "options", "outcome"),
    [
        ("approve", OPTIONS, {"outcome": "selected", "optionId": "3"}),
        ("deny", OPTIONS, {"outcome": "selected", "optionId": "1"}),
        ("approve", OPTIONS[:2], {"outcome": "cancelled"}),
        ("deny", OPTIONS[1:], {"outcome": "cancelled"}),
    ],
)
@pytest.mark.few(1)
async def test_permission_for_a_command_of_the_agents_own_is_answered_by_the_kind_of_option(
    place, verb, options, outcome
):
    async with place.editor("--allow-unseen-shell", name="gemini-cli") as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("execute", {"command": "make all"}, options))
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["command"] == "make all"
        await place.run(verb, row["id"])
        assert (await doing)[0]["result"] == {"outcome": outcome}
        assert ("rejected" in await place.run("show", row["id"], "--told")) is (verb == "deny")


@pytest.mark.slow
async def test_a_change_of_a_command_that_the_agent_runs_itself_is_a_rejection(place):
    async with place.editor("--allow-unseen-shell", name="gemini-cli") as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("execute", {"command": "make all"}))
        await place.run("approve", await place.waiting(), "--command", "make some")
        assert (await doing)[0]["result"]["outcome"]["optionId"] == "1"
    assert (await place.rows("history"))[0]["ending"] == "withdrawn"


async def test_a_choice_between_answers_is_left_to_the_person_in_the_editor(place):
    answers = [{"optionId": each, "name": each, "kind": "allow_once"} for each in ("red", "green")]
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("other", None, [*answers, OPTIONS[0]]))
        async with asyncio.timeout(PATIENCE_S):
            while not editor.requests:
                await asyncio.sleep(0.02)
        asked = editor.requests[0]
        assert asked["method"] == "session/request_permission"
        outcome = {"outcome": {"outcome": "selected", "optionId": "green"}}
        await editor.send({"id": asked["id"], "result": outcome})
        assert (await doing)[0]["result"] == outcome
    assert await place.rows("history") == []


@pytest.mark.slow
async def test_a_question_with_two_ways_to_allow_is_refused(place):
    twice = [OPTIONS[2], {**OPTIONS[2], "optionId": "4"}]
    async with place.editor("--allow-unseen-shell", name="gemini-cli") as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("other", {"command": "make all"}, twice))
        await place.run("approve", await place.waiting())
        assert (await doing)[0]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert editor.requests == []


@pytest.mark.slow
async def test_permission_for_an_edit_of_the_agents_own_shows_the_files(place):
    file = place.elsewhere / "a.txt"
    file.write_text("one two")
    diff = {"type": "diff", "path": str(file), "oldText": "two", "newText": "three"}
    async with place.editor("--allow-unseen-shell", name="copilot") as editor:
        await editor.open(place.workspace)
        doing = editor.doing(question("edit", {"x": 1}, content=[diff]))
        row = await place.call(lambda row: row["state"] == "waiting")
        assert [each["path"] for each in row["edits"]] == [str(file)]
        await place.run("approve", row["id"])
        assert (await doing)[0]["result"]["outcome"]["optionId"] == "3"


@pytest.mark.slow
async def test_a_cancelled_turn_withdraws_what_waits_and_answers_the_question(place):
    async with place.editor("--allow-unseen-shell", name="gemini-cli") as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("ls"))
        doing = editor.doing(question("execute", {"command": "make all"}))
        await place.call(lambda row: row["command"] == "make all")
        await editor.send({"method": "session/cancel", "params": {"sessionId": "s-1"}})
        assert (await doing)[0]["result"] == {"outcome": {"outcome": "cancelled"}}
        for text in ("ls", "make all"):
            await place.call(lambda row, text=text: row["command"] == text and row["ending"] == "withdrawn", "history")
    assert len(place.received("session/cancel")) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gemini-cli", "Gemini CLI runs its commands itself"),
        ("qwen-code", "Qwen Code runs its commands itself"),
        ("kimiko", "does not know where kimiko runs its commands"),
        ("", "an agent without a name"),
        ("late", "does not speak version 1"),
    ],
)
@pytest.mark.few(1)
async def test_an_agent_whose_commands_are_not_seen_is_refused_at_the_start(place, name, said):
    async with place.editor(name=name) as editor:
        answer = await editor.open(place.workspace)
        assert said in answer["error"]["message"]
        assert await editor.line() == b""
        assert await asyncio.wait_for(editor.process.wait(), PATIENCE_S) == 1
    assert place.received("session/new") == []


async def test_an_agent_with_a_hook_opens_sessions_only_where_the_hook_is_installed(place, tmp_path):
    home = tmp_path / "person"
    (home / ".claude").mkdir(parents=True)
    async with place.editor(name="@agentclientprotocol/claude-agent-acp", HOME=str(home)) as editor:
        refused = await editor.open(place.workspace)
        assert "whisper-tui install claude" in refused["error"]["message"]
        words = ("-m", "whisper_tui", "install", "claude", "--home", str(place.home), "--yes")
        done = subprocess.run(
            [sys.executable, *words], env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "result" in await editor.ask("session/new", {"cwd": str(place.workspace), "mcpServers": []})
    assert len(place.received("session/new")) == 1


async def test_the_agent_is_told_that_everything_is_served_and_all_else_passes_unchanged(place):
    strange = b'{"jsonrpc":"2.0",  "id":77,"method":"_x/y","params":{"b":1.50,"a":[null]}}'
    call = b'{"jsonrpc":"2.0", "method":"_zed/thing",  "params":{"b":1.50}}'
    async with place.editor() as editor:
        hello = await editor.ask("initialize", {"protocolVersion": 3, "clientCapabilities": {"_meta": {"a": 1}}})
        assert hello["result"]["agentCapabilities"]["_meta"] == {"kept": [1, 2.5]}
        await editor.ask("session/new", {"cwd": str(place.workspace), "mcpServers": []})
        await editor.send(strange)
        assert (await editor.until(77))["result"]["method"] == "_x/y"
        done = editor.doing(("x/line", call.decode()))
        assert await editor.line() == call + b"\n"
        done.cancel()
    (told,) = place.received("initialize")
    assert told["params"]["protocolVersion"] == 1
    assert told["params"]["clientCapabilities"] == {
        "_meta": {"a": 1},
        "terminal": True,
        "fs": {"readTextFile": True, "writeTextFile": True},
    }
    assert strange in place.log.read_bytes().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"method":"terminal/create_2","params":{"sessionId":"s-1","command":"ls"}}',
        '{"jsonrpc":"2.0","id":1,"method":"x","method":"terminal/create","params":{"sessionId":"s-1","command":"ls"}}',
        '{"jsonrpc":"2.0","id":1,"Method":"terminal/create","params":{"sessionId":"s-1","command":"ls"}}',
        '[{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"s-1","command":"ls"}}]',
        "starting up\u2026",
    ],
)
@pytest.mark.few(1)
async def test_a_line_in_which_the_editor_could_find_a_command_does_not_reach_it(place, line):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(("x/line", line))
        await editor.ask("_after", {})
    assert editor.requests == []
    assert any("error" in json.loads(each) for each in place.log.read_bytes().splitlines())


@pytest.mark.slow
async def test_what_the_agent_starts_may_not_decide(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("ls"))
        call_id = await place.waiting()
        words = [sys.executable, "-m", "whisper_tui", "approve", "--home", str(place.home), call_id]
        (answer,) = await editor.prompt(("x/run", words))
        assert answer["code"] == 1 and "refused" in answer["err"]
        await place.run("approve", call_id)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "SIGTERM"])
async def test_agent_and_commands_end_with_the_editor(place, end):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("sleep", "600"))
        running = await place.waiting()
        await place.run("approve", running)
        await place.call(lambda row: row["id"] == running and row["state"] == "running")
        await editor.prompt(unanswered("ls"))
        waiting = await place.waiting()
        if end == "close":
            assert await editor.end() == 0
        else:
            editor.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(editor.process.wait(), PATIENCE_S) == 0
        for call_id, ending in ((running, "signalled"), (waiting, "withdrawn")):
            await place.call(lambda row, i=call_id, e=ending: row["id"] == i and row["ending"] == e, "history")


@pytest.mark.slow
async def test_the_editor_is_told_by_the_end_when_the_agent_dies(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        await editor.prompt(unanswered("ls"))
        call_id = await place.waiting()
        await editor.send(
            {
                "id": "p",
                "method": "session/prompt",
                "params": {"sessionId": "s-1", "prompt": [{"type": "text", "text": '[["x/die", 7]]'}]},
            }
        )
        assert await editor.line() == b""
        assert await asyncio.wait_for(editor.process.wait(), PATIENCE_S) == 7
        await place.call(lambda row: row["id"] == call_id and row["ending"] == "withdrawn", "history")


@pytest.mark.slow
async def test_a_killed_supervisor_is_not_noticed_by_an_agent_whose_command_waits(place):
    async with place.editor() as editor:
        await editor.open(place.workspace)
        for word in ("first", "second"):
            doing = editor.doing(*terminal(f"echo {word}"))
            call_id = await place.waiting()
            os.kill((await place.rows("status"))["pid"], signal.SIGKILL)
            assert await place.waiting() == call_id
            await place.run("approve", call_id)
            assert (await doing)[3]["result"]["output"] == f"{word}\n"
    assert len(await place.rows("history")) == 2


@pytest.mark.slow
async def test_a_write_whose_supervisor_is_killed_is_an_error_and_not_made(place):
    file = place.elsewhere / "a.txt"
    async with place.editor() as editor:
        await editor.open(place.workspace)
        doing = editor.doing(("fs/write_text_file", {"path": str(file), "content": "x"}))
        await place.waiting()
        os.kill((await place.rows("status"))["pid"], signal.SIGKILL)
        (answer,) = await doing
        assert "connection to the supervisor was lost" in answer["error"]["message"] and not file.exists()


async def test_an_agent_that_cannot_be_started_is_an_error_in_one_sentence(place):
    words = (sys.executable, "-m", "whisper_tui", "acp", "--home", str(place.home), "--", "/no/such/agent")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "cannot be started: /no/such/agent" in done.stderr


def test_a_file_that_differs_in_the_moment_of_the_write_is_left_as_it_is(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("human")
    with pytest.raises(StaleEdit):
        acp_questions._write(str(file), b"approved", "agent")
    with pytest.raises(FileExistsError):
        acp_questions._write(str(file), None, "agent")
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError):
        acp_questions._write(str(tmp_path / "link"), b"human", "agent")
    assert file.read_text() == "human"
    acp_questions._write(str(file), b"human", "agent")
    assert file.read_text() == "agent"
