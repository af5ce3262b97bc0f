"""Agents that are at a place themselves: the supervisor here serves them through the host process, as agents alone."""

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.outside import exhaustive_only, outside_only
from tests.ssh_server import SshServer, needs_sshd
from tests.supervisor.engine.conftest import PATIENCE_S, until
from tests.supervisor.places.conftest import processes_with
from tests.supervisor.places.test_supervised_there import PlacedBench
from whisper_tui.cli.output_format import place_lines
from whisper_tui.model.call import CallRequest, CommandSpec, Function, SessionHello, Shell
from whisper_tui.model.decision import RuleScope
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import InvalidRequest, Refused, Unavailable
from whisper_tui.model.event import AttemptRefused, Event
from whisper_tui.model.protocol_version import HELLO_VERSIONS, LONGEST_REQUEST
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.places import far_agents
from whisper_tui.supervisor.places.far_agents import AGENTS, PROGRAM
from whisper_tui.supervisor.places.place_connection import Hello
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import PlaceTransport, SshTransport
from whisper_tui.supervisor.places.remote_executor import peer_from
from whisper_tui.system.ancestry import PeerThere, ProcessSeen
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint
from whisper_tui.wire import server as wire_server
from whisper_tui.wire.operations import OPERATIONS
from whisper_tui.wire.server import Server, serve

# The resources of others are those of tests before it, which are collected some time.
pytestmark = [outside_only, pytest.mark.filterwarnings("error", "ignore::ResourceWarning")]


class AgentsBench(PlacedBench):
    """A supervisor with its socket, that serves agents at its place."""

    server: Server

    def __init__(self, directory: Path, ssh: SshServer | None = None) -> None:
        super().__init__(directory)
        self.places = tuple(replace(place, agents=True) for place in self.places)
        self.refused: list[AttemptRefused] = []
        self._ssh = ssh

    async def open(self, rules: Rules = NO_RULES, workers: int = 4) -> None:
        await super().open(rules, workers)
        self.supervisor.listen(self._note)
        others = dict.fromkeys(("hook", "exec", "call", "executor"), McpEndpoint(self.supervisor))
        endpoints = {**others, "mcp": McpEndpoint(self.supervisor)}
        self.server = await serve(self.supervisor, self.home, endpoints, refused=self.supervisor.attempt_refused)
        self.placed.serve_agents(self.server.serve_agent)

    async def restart(self, rules: Rules = NO_RULES) -> None:
        await self.server.close()
        await super().restart(rules)

    def _way(self, settings: PlaceSettings, near: str) -> PlaceTransport:
        if self._ssh is None:
            return super()._way(settings, near)
        return SshTransport(settings.name, self._ssh.name, ("-F", str(self._ssh.config)))

    def _note(self, event: Event) -> None:
        if isinstance(event, AttemptRefused):
            self.refused.append(event)

    @property
    def agents_socket(self) -> Path:
        """The socket of the agents at the place, once somebody listens there."""
        return next(self.there.glob(f"*/{AGENTS}"))

    async def listens(self) -> None:
        """Wait until agents are served there."""
        await until(lambda: bool(self.placed.states()[0].relay))

    async def cut(self) -> None:
        """Cut the connection, and wait until both ends know it."""
        for pid in processes_with(b"start", os.fsencode(self.there)):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not self.placed.states()[0].reached)
        await until(lambda: not any(self.there.glob(f"*/{AGENTS}")))

    async def only_call(self, kind: str) -> CallRecord:
        """The only call that there ever was, once it has this state."""
        await until(lambda: len(self.supervisor.board.calls) == 1)
        return await self.state("1", kind)


class AgentThere:
    """A client of MCP that has started the relay of the place."""

    def __init__(self, bench: AgentsBench, words: Sequence[str] = ()) -> None:
        self._command = [str(bench.there / PROGRAM), "mcp", "--root", str(bench.workspace), *words]
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={"SECRET": "there"}
        )
        self._reading = asyncio.create_task(self._read())

    async def initialize(self) -> dict[str, Any]:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}}
        answer = await self.ask("initialize", **about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            return await self.begin(method, **params)

    def begin(self, method: str, **params: Any) -> "asyncio.Future[dict[str, Any]]":
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return answer

    def run(self, command: str, **arguments: Any) -> "asyncio.Future[dict[str, Any]]":
        given = {"command": command, **arguments}
        return self.begin("tools/call", name="run_shell_command", arguments=given)

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._reading

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                self._answers.pop(message["id"]).set_result(message)


async def said(answer: "asyncio.Future[dict[str, Any]]") -> str:
    """The last text of an answer: what the command has printed, and how it ended."""
    async with asyncio.timeout(PATIENCE_S):
        text: str = (await answer)["result"]["content"][-1]["text"]
    return text


@asynccontextmanager
async def opened(tmp_path: Path, ssh: SshServer | None = None) -> AsyncIterator[AgentsBench]:
    made = AgentsBench(tmp_path, ssh)
    await made.open()
    await made.listens()
    try:
        yield made
    finally:
        await made.server.close()
        await made.supervisor.shutdown(end_runs=True)
        await made.supervisor.close()
        for pid in processes_with(b"serve", os.fsencode(made.there)):
            os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def connected(bench: AgentsBench, *words: str) -> AsyncIterator[AgentThere]:
    made = AgentThere(bench, words)
    await made.start()
    try:
        await made.initialize()
        yield made
    finally:
        await made.end()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[AgentsBench]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def agent(bench: AgentsBench) -> AsyncIterator[AgentThere]:
    async with connected(bench) as made:
        yield made


@needs_sshd
async def test_an_agent_behind_ssh_asks_here_and_its_command_runs_there(tmp_path: Path, ssh_server: SshServer) -> None:
    async with opened(tmp_path, ssh_server) as bench, connected(bench) as agent:
        (line,) = place_lines([state.model_dump() for state in bench.placed.states()])
        assert line.endswith(f"; agents there start {bench.there / PROGRAM} mcp, 1 connected")
        tools = (await agent.ask("tools/list"))["result"]["tools"]
        assert {tool["name"] for tool in tools} == {"run_shell_command", "wait"}
        answer = agent.run("echo $WHISPER_TUI_CALL_ID ${SECRET-unset}; exit 3")
        record = await bench.only_call("waiting")
        assert (record.spec.place, record.spec.cwd) == ("gpu1", str(bench.workspace))
        session = bench.supervisor.board.sessions[record.call.session_id]
        assert session.name == f"{bench.workspace.name} (claude) at gpu1"
        assert (session.place, session.relayed, session.pid) == ("gpu1", True, None)
        assert session.trust == "untrusted_external"
        await bench.approve("1")
        assert await said(answer) == "Output: 1 unset\n\nExit Code: 3"


@pytest.mark.slow
async def test_a_cut_while_a_call_waits_loses_and_repeats_nothing(bench: AgentsBench, agent: AgentThere) -> None:
    answer = agent.run("echo once >> ran; cat ran")
    await bench.only_call("waiting")
    await bench.cut()
    await bench.only_call("waiting")
    await bench.listens()
    await until(lambda: bench.placed.states()[0].agents == 1)
    await bench.approve("1")
    assert await said(answer) == "Output: once\n"
    assert (bench.workspace / "ran").read_text() == "once\n" and len(bench.supervisor.board.calls) == 1
    assert len(bench.supervisor.board.sessions) == 1


@pytest.mark.slow
async def test_a_cut_while_a_command_runs_starts_no_second_one(bench: AgentsBench, agent: AgentThere) -> None:
    answer = agent.run("echo once >> ran; until test -e go; do sleep 0.02; done; cat ran")
    await bench.only_call("waiting")
    await bench.approve("1")
    await bench.only_call("running")
    await bench.cut()
    await bench.listens()
    (bench.workspace / "go").touch()
    assert await said(answer) == "Output: once\n"
    assert len(bench.supervisor.board.calls) == 1


@pytest.mark.slow
async def test_a_restarted_supervisor_goes_on_with_the_session(bench: AgentsBench, agent: AgentThere) -> None:
    answer = agent.run("echo once >> ran; cat ran")
    await bench.only_call("waiting")
    await bench.restart()
    await bench.only_call("waiting")
    await bench.approve("1")
    assert await said(answer) == "Output: once\n"
    assert len(bench.supervisor.board.calls) == len(bench.supervisor.board.sessions) == 1


@pytest.mark.slow
async def test_the_session_of_an_agent_that_does_not_come_back_is_closed(
    bench: AgentsBench, agent: AgentThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_server, "RETURN_S", 0.0)
    agent.run("true")
    record = await bench.only_call("waiting")
    agent.process.send_signal(signal.SIGSTOP)
    await bench.cut()
    await until(lambda: bench.supervisor.board.sessions[record.call.session_id].closed_at is not None)
    # As for an agent of this machine that is gone, its call stays, and says so.
    assert (await bench.only_call("waiting")).agent_gave_up is not None


def test_a_relay_looks_for_the_only_near_end(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_agents, "REACH_S", 0.0)
    near_ends = far_agents.NearEnds(str(tmp_path))
    with pytest.raises(Unavailable, match="to which this place belongs is not connected"):
        near_ends.reach()
    with ExitStack() as listeners:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            listeners.enter_context(far_agents.listening(AGENTS))
            if name == "a":
                near_ends.reach().close()
        with pytest.raises(InvalidRequest, match="2 supervisors serve the agents here"):
            near_ends.reach()
    assert near_ends.look() is None


@exhaustive_only
async def test_without_the_supervisor_the_agent_is_told_why(bench: AgentsBench, agent: AgentThere) -> None:
    bench.gate.unlink()
    await bench.cut()
    answer = await agent.ask("tools/list")
    assert "the supervisor to which this place belongs is not connected" in answer["error"]["message"]


@pytest.mark.slow
async def test_an_agent_that_ends_closes_its_session(bench: AgentsBench, agent: AgentThere) -> None:
    agent.run("true")
    record = await bench.only_call("waiting")
    await agent.end()
    await until(lambda: bench.supervisor.board.sessions[record.call.session_id].closed_at is not None)
    await until(lambda: bench.placed.states()[0].agents == 0)


@pytest.mark.slow
async def test_much_output_comes_whole(bench: AgentsBench, agent: AgentThere) -> None:
    answer = agent.run("head -c 3000000 /dev/zero | tr '\\0' x")
    await bench.only_call("waiting")
    await bench.approve("1")
    assert "x" * 1000 in await said(answer)


def asked(bench: AgentsBench, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    """What the host process there answers to lines of this process."""
    directory = os.open(bench.agents_socket.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(f"/proc/self/fd/{directory}/{AGENTS}")
        os.close(directory)
        connection.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        connection.shutdown(socket.SHUT_WR)
        got = b""
        with suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                got += piece
    return [json.loads(line) for line in got.splitlines()]


@pytest.mark.slow
async def test_it_is_served_as_nothing_but_an_agent(bench: AgentsBench) -> None:
    doors = ("port", "hook", "exec", "call", "executor")
    for door in doors:
        hello = {"door": door, "version": HELLO_VERSIONS.get(door, 1)}
        tries = ({"id": number, "op": name, "args": {}} for number, name in enumerate(OPERATIONS, 1))
        (answer,) = await asyncio.to_thread(asked, bench, hello, *tries)
        assert "over MCP alone" in answer["error"]["message"]
    assert [(each.operation, each.pid) for each in bench.refused] == [
        (f"{door} at gpu1", os.getpid()) for door in doors
    ]


@pytest.mark.slow
async def test_an_agent_that_writes_without_end_is_refused(bench: AgentsBench) -> None:
    sent = 0
    with socket.socket(socket.AF_UNIX) as connection:
        directory = os.open(bench.agents_socket.parent, os.O_RDONLY)
        connection.connect(f"/proc/self/fd/{directory}/{AGENTS}")
        os.close(directory)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        with suppress(BrokenPipeError, ConnectionResetError):
            async with asyncio.timeout(PATIENCE_S):
                # The first line is too long: it is refused once so many bytes were read, and nothing more is.
                while sent < 10 * LONGEST_REQUEST:
                    await loop.sock_sendall(connection, b"x" * (1 << 16))
                    sent += 1 << 16
    assert sent < 3 * LONGEST_REQUEST


@pytest.mark.slow
async def test_no_operation_is_carried_out_over_mcp(bench: AgentsBench, agent: AgentThere) -> None:
    agent.run("true")
    await bench.only_call("waiting")
    for name in OPERATIONS:
        answer = await agent.ask(name, call_id="1", decision={"kind": "approve"})
        assert "error" in answer, name
    await bench.only_call("waiting")


@pytest.mark.slow
async def test_what_it_says_about_itself_counts_for_nothing(bench: AgentsBench) -> None:
    mine = await bench.supervisor.open_session(SessionHello(name="mine", root=str(bench.workspace), key="k"))
    session = {
        "name": "me",
        "root": "/elsewhere",
        "pid": os.getpid(),
        "environment": {"A": "1"},
        "trust": "trusted_internal",
        "resume": mine.id,
        "key": "k",
        "place": "",
        "relayed": False,
    }
    (answer,) = await asyncio.to_thread(asked, bench, {"door": "mcp", "version": 1, "session": session})
    opened = bench.supervisor.board.sessions[answer["session_id"]]
    assert answer["session_id"] != mine.id
    assert (opened.place, opened.relayed, opened.pid) == ("gpu1", True, None)
    assert (opened.trust, opened.name, opened.root) == ("untrusted_external", "me at gpu1", "/elsewhere")


@pytest.mark.slow
async def test_a_supervised_command_there_is_no_agent(bench: AgentsBench) -> None:
    relay = shlex.join([str(bench.there / PROGRAM), "mcp"])
    hello = shlex.quote('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
    call_id = await bench.asked(f"echo {hello} | env -i {relay}; true")
    record = await bench.supervisor.outcome(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert "no agent is served at gpu1, because the request comes from inside" in (await bench.out(call_id)).decode()
    assert bench.refused and {attempt.from_call for attempt in bench.refused} == {call_id}
    assert [session.relayed for session in bench.supervisor.board.sessions.values()] == [False]


async def test_an_orphan_of_a_supervised_command_there_is_none_either(bench: AgentsBench) -> None:
    relay = shlex.join([str(bench.there / PROGRAM), "mcp"])
    (bench.workspace / "hello").write_text('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
    (bench.workspace / "later").write_text(f"until test -e go; do sleep 0.02; done; env -i {relay} < hello > said\n")
    call_id = await bench.asked("(setsid sh later &) > /dev/null")
    await bench.supervisor.outcome(call_id)
    (bench.workspace / "go").touch()
    answer = bench.workspace / "said"
    await until(lambda: answer.exists() and "no agent is served" in answer.read_text())
    assert all(not session.relayed for session in bench.supervisor.board.sessions.values())


async def test_it_is_kept_to_its_place(bench: AgentsBench, agent: AgentThere) -> None:
    for arguments in ({"place": "here"}, {"place": "gpu1"}):
        answer = await agent.run("true", **arguments)
        assert answer["result"]["isError"]
    answer = await agent.ask("tools/call", name="read_file", arguments={"path": "x"})
    assert "error" in answer
    assert not bench.supervisor.board.calls
    agent.run("true")
    record = await bench.only_call("waiting")
    here = record.spec.model_copy(update={"place": ""})
    with pytest.raises(Refused, match="its agent is at gpu1"):
        await bench.approve("1", edited=here)
    with pytest.raises(Refused, match="its workspace is at gpu1"):
        await bench.approve("1", remember=RuleScope(words=("true",), where="project"))


@pytest.mark.slow
async def test_none_of_its_calls_runs_elsewhere(bench: AgentsBench) -> None:
    session = await bench.session(place="gpu1", relayed=True)
    for place, command in (("here", Shell(text="x")), ("", Function(tool="t", arguments={}))):
        spec = CommandSpec(command=command, cwd="/", place=place)
        with pytest.raises(Refused, match="nothing of it runs elsewhere"):
            await bench.supervisor.submit(CallRequest(session_id=session, tool="t", arguments={}, spec=spec))
    spec = CommandSpec(command=Shell(text="x"), cwd="/")
    call_id = await bench.supervisor.submit(CallRequest(session_id=session, tool="t", arguments={}, spec=spec))
    assert (await bench.record(call_id)).spec.place == "gpu1"


SEEN = ProcessSeen(pid=7, parent=0, start="1")


@pytest.mark.parametrize("line", [None, (), (replace(SEEN, foreign=True),)], ids=["unseen", "empty", "foreign"])
@pytest.mark.few(1)
async def test_who_is_not_known_counts_as_a_supervised_command(
    bench: AgentsBench, line: tuple[ProcessSeen, ...] | None
) -> None:
    answers = []
    for seen in (line, (SEEN,)):
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(bench.server.serve_agent(theirs, PeerThere("gpu1", 7, "x", seen, "key")))
        reader, writer = await asyncio.open_connection(sock=ours)
        session = {"name": "a", "root": "/"}
        writer.write(json.dumps({"door": "mcp", "version": 1, "session": session}).encode() + b"\n")
        answers.append(json.loads(await reader.readline()))
        writer.close()
        await serving
    assert "cannot be examined" in answers[0]["error"]["message"] and answers[1]["ok"]


def facts(told: dict[str, Any]) -> PeerThere:
    hello = Hello("life", "instance", "boot", "host", 0, "/", 0.0, None, {})
    return peer_from("gpu1", hello, json.dumps(told).encode())


def test_what_a_place_says_wrongly_about_a_process_makes_it_unknown() -> None:
    seen = {"pid": 7, "parent": 0, "start": "1", "marked": False, "keeper": False, "descends_from": None}
    whole = {"pid": 7, "program": "x", "line": [{**seen, "foreign": False}]}
    known = facts(whole)
    assert known.line == (SEEN,) and known.key
    assert facts({**whole, "pid": 8}).line is None
    assert facts({**whole, "line": [{**seen, "foreign": False, "parent": 1}]}).line is None
    assert facts({**whole, "line": [seen]}).line is None
    assert facts({**whole, "line": "x"}).line is None
    odd = facts({**whole, "line": [{**seen, "foreign": 0, "marked": "no", "descends_from": "?"}]}).line
    assert odd is not None and (odd[0].foreign, odd[0].marked, odd[0].descends_from) == (True, True, "command")


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.chdir(tmp_path)
    with far_agents.listening("s") as made:
        made.setblocking(True)
        yield made


def test_a_process_that_has_ended_is_not_known(tmp_path: Path, listener: socket.socket) -> None:
    program = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);sys.stdin.read()"
    words = [sys.executable, "-I", "-S", "-c", program, str(tmp_path / "s")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    connection, _ = listener.accept()
    with connection:
        told = far_agents.facts_of(connection, process.pid)
        assert told["pid"] == process.pid and told["line"][0]["pid"] == process.pid
        process.communicate()
        # Its pid is another process's by now.
        assert far_agents.facts_of(connection, os.getpid())["line"] is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.slow
async def test_another_user_is_no_agent(bench: AgentsBench) -> None:
    directory = bench.agents_socket.parent
    for path in (directory, bench.agents_socket):
        path.chmod(path.stat().st_mode | 0o077)
    script = f"import os,socket;os.chdir({str(directory)!r});os.setuid(65534);s=socket.socket(socket.AF_UNIX)"
    script += f";s.connect({AGENTS!r});print(s.recv(9))"
    program = [sys.executable, "-I", "-S", "-c", script]
    out = await asyncio.to_thread(subprocess.check_output, program, timeout=PATIENCE_S)
    assert out == b"b''\n" and bench.placed.states()[0].agents == 0 and not bench.refused


async def test_another_machines_agent_cannot_say_to_be_there(bench: AgentsBench) -> None:
    with pytest.raises(InvalidRequest, match="at which"):
        await bench.supervisor.open_session(SessionHello(name="a", root="/", relayed=True))
    reader, writer = await asyncio.open_unix_connection(str(bench.home.runtime / "supervisor.sock"))
    session = {"name": "a", "root": "/", "place": "gpu1", "relayed": True, "key": "relay x"}
    writer.write(json.dumps({"door": "mcp", "version": 1, "session": session}).encode() + b"\n")
    assert json.loads(await reader.readline())["error"]["kind"] == "not_allowed"
    writer.close()


async def test_no_agents_are_served_unless_the_settings_say_so(tmp_path: Path) -> None:
    made = AgentsBench(tmp_path)
    made.places = tuple(replace(place, agents=False) for place in made.places)
    await made.open()
    await made.reached()
    assert not any(made.there.glob(f"*/{AGENTS}")) and not (made.there / PROGRAM).exists()
    await made.server.close()
    await made.supervisor.close()
    for pid in processes_with(b"serve", os.fsencode(made.there)):
        os.kill(pid, signal.SIGKILL)


async def test_only_its_user_can_connect(bench: AgentsBench) -> None:
    assert bench.agents_socket.stat().st_mode & 0o777 == 0o600
    assert bench.agents_socket.parent.stat().st_mode & 0o777 == 0o700
    assert (bench.there / PROGRAM).stat().st_mode & 0o777 == 0o700
