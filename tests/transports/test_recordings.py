"""What each real client sent when it was recorded is sent again, and gets the same kind of answer as it did then."""

import asyncio
import json
import re
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import ROOT, versions
from tests.clients.record import EDIT, RECORDED, RECORDINGS, SCENES, is_progress, summary
from tests.clients.scenes import DeniedFor, Edited, Scene
from tests.clients.test_edits import OLD
from tests.rows import each_row
from tests.supervisor.conftest import Bench
from tests.transports.conftest import Human
from tests.transports.endpoint_server import EndpointServer, Lines
from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.cli.dispatch import parser
from whisper_tui.cli.subcommand import Options, home_options
from whisper_tui.model.call import Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.policy.rules.rules_toml import read_rules
from whisper_tui.transports.hook import hook_program
from whisper_tui.transports.hook.exec_endpoint import ShellDirectory
from whisper_tui.transports.hook.hook_endpoint import HookEndpoint
from whisper_tui.transports.hook.what_ran import WhatRan
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint

CLIENTS = [program.name for program in RECORDED]
LAUNCHER = ["/launcher/whisper-tui"]
WORDS = frozenset({"additionalContext", "permissionDecisionReason", "reason", "note", "message"})
"""The members of a hook's answer that a model reads. Their words may change."""
RULES = {"read_only": False, "ask": [{"name": "as the tests want", "path": EDIT.command}]}


class Replay:
    """One recording, at a place of its own, with a human who decides as in the recording."""

    def __init__(self, client: str, bench: Bench) -> None:
        self.client = client
        self.bench = bench
        self.stage = bench.workspace.parent
        self.content: dict[str, Any] = json.loads((RECORDINGS / f"{client}.json").read_text())

    def here(self, value: Any) -> Any:
        """Return a recorded value with the paths and the tickets of the replay."""
        text = re.sub(r'(?<=["\' =])/stage\b', str(self.stage), json.dumps(value))
        calls = self.bench.supervisor._store.board.calls
        return json.loads(
            re.sub(r"\bexec (\d+)-0", lambda found: f"exec {found[1]}-{calls[found[1]].call.ticket}", text)
        )

    def recorded(self, value: Any) -> Any:
        """Return a value of the replay as it would be recorded."""
        text = re.sub(r"\bexec (\d+)-[0-9a-f]+", r"exec \1-0", json.dumps(value))
        return json.loads(re.sub(r'"pid": \d+', '"pid": 1', text).replace(str(self.stage), "/stage"))

    def options(self, command: str) -> Options:
        """Return the options of a recorded command line, which the parser of the program still takes."""
        words = self.here(shlex.split(command))
        return parser(words).parse(words)

    async def decide(self, scene: Scene, call_id: str, *, runs: bool) -> None:
        """Decide about a call as soon as it waits."""
        human = Human(self.bench)
        record = await human.waiting(call_id)
        assert scene.command in " ".join(record.call.spec.command.words())
        match scene.human:
            case DeniedFor(reason=reason):
                await self.bench.decide(call_id, Deny(reason=reason))
                return
            case Edited(command=text):
                edited = record.call.spec.model_copy(update={"command": Shell(text=text)})
                await self.bench.decide(call_id, Approve(edited=edited))
            case _:
                await self.bench.decide(call_id, Approve())
        if runs:
            await human.run(call_id)


@pytest.fixture(params=CLIENTS)
async def replay(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Replay:
    """The supervisor has the rules and the files of the recording."""
    await bench.restart(read_rules(RULES, "rules.toml", table=""))
    (bench.workspace / EDIT.command).write_text(OLD)
    made = Replay(request.param, bench)
    for name in [name for known in KNOWN.values() for name in (known.pid_variable, known.shell_variable) if name]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made.stage / "user"))
    if made.client == "copilot":
        # It does not tell of which server a tool is, so its files are read.
        servers = made.stage / "user" / ".copilot" / "mcp-config.json"
        servers.parent.mkdir(parents=True)
        servers.write_text(json.dumps({"mcpServers": {"notes": {"command": "true", "args": []}}}))
    return made


async def test_a_hook_is_answered_as_when_it_was_recorded(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = replay.content["hook"]
    for name, text in replay.here(hooks["environment"]).items():
        monkeypatch.setenv(name, text)
    bench = replay.bench
    last = bench.supervisor.queries.last_directory
    shell_directory = ShellDirectory(replay.stage / "directories", last, lambda _: False)
    what_ran = WhatRan(bench.supervisor, bench.supervisor.raise_alarm)
    endpoint = HookEndpoint(bench.supervisor, shell_directory, what_ran)
    server = EndpointServer(endpoint, replay.stage / "s", bench.workspace)
    calls = 0
    async with server.open():
        for start in hooks["starts"]:
            scene = SCENES.get(start.get("scene"))
            asking = asyncio.create_task(asyncio.to_thread(ask, replay, server.path, start, monkeypatch))
            if scene is not None:
                calls += 1
                deciding = asyncio.create_task(replay.decide(scene, str(calls), runs=False))
                await asyncio.wait({asking, deciding}, return_when="FIRST_COMPLETED")
            assert replay.recorded(relied_on(await asking)) == relied_on(start["answer"]), start.get("scene")
            if scene is not None and isinstance(scene.human, DeniedFor):
                assert scene.human.reason in json.dumps(start["answer"])
    assert calls == len(bench.supervisor._store.board.calls)


def ask(replay: Replay, path: Path, start: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Be the hook's program with a recorded input. Returns what it would answer."""
    options = replay.options(start["command"])
    said: dict[int, bytes] = {1: b"", 2: b""}
    given = json.dumps(replay.here(start["stdin"])).encode()
    monkeypatch.setattr(hook_program, "_stdin", lambda: given)
    monkeypatch.setattr(hook_program, "_write", lambda descriptor, data: said.update({descriptor: data}))
    # The process of the tests must never be taken for an agent's.
    monkeypatch.setattr(hook_program, "agent_pid", lambda *_: None)

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return connection

    code = hook_program.run_hook(
        options.client,
        connect,
        deadline_s=KNOWN[options.client].deadline_s if options.deadline is None else options.deadline,
        agent_runs=options.agent_runs,
        launcher=LAUNCHER,
        places=home_options(options),
    )
    return {"code": code, "stdout": json.loads(said[1]) if said[1] else None, "stderr": said[2].decode()}


def relied_on(answer: Any) -> Any:
    """Return what a client relies on in an answer of a hook: all but the words that its model reads."""
    if not isinstance(answer, dict):
        return answer
    return {key: "…" if key in WORDS and value else relied_on(value) for key, value in answer.items()}


async def test_an_mcp_session_is_answered_as_when_it_was_recorded(replay: Replay) -> None:
    served = replay.content["server"]
    options = replay.options(served["command"])
    bench = replay.bench
    server = EndpointServer(McpEndpoint(bench.supervisor), replay.stage / "s", bench.workspace)
    hello = {**server.hello(pid=None), "wait_s": options.wait, "own_shell": options.own_shell}
    async with server.open(), server.lines(hello) as agent:
        calls = 0
        for line in served["lines"]:
            if "server" in line:
                assert replay.recorded(summary(await answer(agent))) == line["server"]
                continue
            message = replay.here(line["client"])
            agent.send(message)
            if message["method"] == "tools/call":
                calls += 1
                asked = message["params"]["arguments"]["command"]
                scene = next(scene for scene in SCENES.values() if scene.command == asked)
                await replay.decide(scene, str(calls), runs=True)
    assert calls == 3


async def answer(agent: Lines) -> dict[str, Any]:
    """Return the next line that is neither progress nor a question of the server."""
    while is_progress(message := await agent.receive()):
        pass
    return message


@each_row("client", CLIENTS)
def test_a_recording_is_of_the_version_that_the_tests_install(client: str) -> None:
    assert json.loads((RECORDINGS / f"{client}.json").read_text())["version"] == versions()[client]


@each_row("client", CLIENTS)
def test_a_recording_tells_nothing_of_the_machine_or_the_run(client: str) -> None:
    text = (RECORDINGS / f"{client}.json").read_text()
    assert set(re.findall(r"(?<![\w.])/tmp[/-][a-z-]+", text)) <= {"/tmp/cc-socks", "/tmp/claude-"}
    assert str(ROOT) not in text and str(Path.home()) not in text
    assert set(re.findall(r"\b20\d\d-\d\d-\d\dT", text)) <= {"2026-01-01T"}


@each_row("client", CLIENTS)
def test_the_variables_that_are_known_of_a_client_are_in_its_recording(client: str) -> None:
    content = json.loads((RECORDINGS / f"{client}.json").read_text())
    known = KNOWN[client]
    hook, server = content["hook"]["environment"], content["server"]["environment"]
    assert not known.pid_variable or hook[known.pid_variable] == "1"
    assert not known.project_variable or server[known.project_variable] == "/stage/workspace"
