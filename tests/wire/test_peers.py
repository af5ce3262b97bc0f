"""A supervised command can never approve anything, however it hides."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import whisper_tui
from tests.interpreter import PYTHON
from tests.outside import outside_only
from tests.rows import each_row
from tests.wire.conftest import Raw, waiting_call
from whisper_tui.model.call import ClientInfo, Session, SessionHello
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.protocol_version import VERSION
from whisper_tui.system import processes
from whisper_tui.system.ancestry import ProcessSeen, ancestry, is_supervisor, origin_by_mark, parse_ps, read_process
from whisper_tui.system.own_program import own_program
from whisper_tui.system.processes import INSIDE, find_process, mark_in_limits
from whisper_tui.wire.peers import why_supervised
from whisper_tui.wire.server import serve
from whisper_tui.wire.server_state import AgentPrograms

KEEPER = 50
TREE = {
    1: ProcessSeen(pid=1, parent=0, start="0", foreign=True),
    10: ProcessSeen(pid=10, parent=1, start="1"),
    11: ProcessSeen(pid=11, parent=10, start="2"),
    KEEPER: ProcessSeen(pid=KEEPER, parent=1, start="3"),
    51: ProcessSeen(pid=51, parent=KEEPER, start="4"),
    52: ProcessSeen(pid=52, parent=51, start="5"),
    60: ProcessSeen(pid=60, parent=1, start="6", marked=True),
    61: ProcessSeen(pid=61, parent=60, start="7"),
    70: ProcessSeen(pid=70, parent=1, start="8", keeper=True),
    71: ProcessSeen(pid=71, parent=70, start="9"),
    72: ProcessSeen(pid=72, parent=1, start="9", supervisor=True),
    73: ProcessSeen(pid=73, parent=72, start="9"),
    74: ProcessSeen(pid=74, parent=1, start="9", descends_from="supervisor"),
    80: ProcessSeen(pid=80, parent=999, start="10"),
    90: ProcessSeen(pid=90, parent=1, start="11", foreign=True),
}


def judged(pid: int) -> str | None:
    return why_supervised(ancestry(pid, TREE.get), {KEEPER})


def test_a_process_of_the_user_may_decide():
    assert judged(10) is None
    assert judged(11) is None


@each_row("pid", [KEEPER, 51, 52])
def test_a_descendant_of_a_keeper_may_not_decide(pid):
    assert "inside a supervised command" in judged(pid)


@pytest.mark.parametrize("pid", [60, 61])
def test_a_process_with_the_environment_of_a_supervised_command_may_not_decide(pid):
    assert INSIDE in judged(pid)


def test_a_keeper_that_is_not_yet_known_is_known_by_its_command_line():
    assert "inside a supervised command" in judged(71)


@pytest.mark.parametrize("pid", [73, 74])
def test_what_a_supervisor_has_started_may_not_decide(pid):
    assert "a supervisor has started" in judged(pid)


def test_a_supervisor_may_take_the_place_of_another():
    assert judged(72) is None


@each_row(
    ("words", "is_one"),
    [
        (" ".join([*own_program(), "supervise", "--home", "/h"]), True),
        (" ".join([*own_program(), "approve", "1"]), False),
        ("/usr/bin/python3 -m whisper_tui supervise --home /h", True),
        ("/usr/bin/python3 -I -m whisper_tui supervise --directories /c /s /r --tell 5", True),
        ("/h/bin/python /h/bin/whisper-tui --home /h supervise", True),
        ("whisper-tui supervise --hold", True),
        ("/usr/bin/python3 -m whisper_tui approve 1", False),
        ("whisper-tui", False),
        ("bash -c sleep", False),
        ("vim whisper-tui.txt supervise", False),
        ("", False),
    ],
)
def test_supervisors_are_known_by_their_command_line(words, is_one):
    for between in ("\0", " "):
        assert is_supervisor(words.replace(" ", between).encode()) == is_one


def test_a_shell_that_has_started_a_supervisor_is_none():
    assert not is_supervisor(b"bash\0-c\0whisper-tui supervise & whisper-tui approve 1\0")


MARKS = """
import os, subprocess, sys
from pathlib import Path
from whisper_tui.system import processes
for level in range(2):
    if level < int(sys.argv[1]):
        processes.mark_agent(0)
processes.mark_supervisor()
def child(mark):
    with subprocess.Popen(["sleep", "300"]) as process:
        mark(process.pid)
        print(processes.mark_in_limits(Path(f"/proc/{process.pid}/limits").read_bytes()))
        process.kill()
child(lambda pid: None)
child(processes.mark_supervised)
child(processes.mark_agent)
print(processes.mark_in_limits(Path(f"/proc/{os.getppid()}/limits").read_bytes()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")
@pytest.mark.parametrize("agents_around", [0, 1])
def test_what_a_supervisor_starts_has_a_mark_of_its_own(agents_around):
    words = [sys.executable, "-c", MARKS, str(agents_around)]
    ran = subprocess.run(words, capture_output=True, check=True, text=True, timeout=60)
    assert ran.stdout.split() == ["supervisor", "command", "agent", "None"]


LOWERED = """
import subprocess, sys
from pathlib import Path
from whisper_tui.system import processes
processes.mark_supervisor()
lower = "import os, resource; resource.prlimit(os.getppid(), processes.FILE_LOCKS, (0, 0))"
def marks(*children):
    for child in children:
        print(processes.mark_in_limits(Path(f"/proc/{child.pid}/limits").read_bytes()))
with subprocess.Popen(["sleep", "300"]) as earlier:
    processes.mark_supervised(earlier.pid)
    subprocess.run([sys.executable, "-c", f"from whisper_tui.system import processes; {lower}"], check=True)
    with subprocess.Popen(["sleep", "300"]) as later:
        processes.mark_supervised(later.pid)
        marks(earlier, later)
        later.kill()
    earlier.kill()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")
def test_a_command_that_lowers_the_limit_of_its_supervisor_keeps_its_mark():
    words = [sys.executable, "-c", LOWERED]
    ran = subprocess.run(words, capture_output=True, check=True, text=True, timeout=60)
    assert ran.stdout.split() == ["command", "command"]


def test_the_agents_own_process_may_decide_and_its_children_may_not():
    agents = {(10, "1"): "builder (session s1, pid 10)"}
    assert "inside the agent builder" in why_supervised(ancestry(11, TREE.get), (), agents)
    assert why_supervised(ancestry(10, TREE.get), (), agents) is None


def test_a_process_that_has_only_the_pid_of_an_agent_that_ended_is_no_agent():
    assert why_supervised(ancestry(11, TREE.get), (), {(10, "before"): "builder"}) is None


@pytest.fixture
def program() -> Iterator[int]:
    """A process of its own, which may be somebody's agent."""
    with subprocess.Popen(["sleep", "300"]) as child:
        yield child.pid
        child.kill()


async def test_nothing_that_the_supervisor_descends_from_is_taken_for_an_agent(program, monkeypatch):
    # A mark that stayed on the first process of the machine could not be taken off again.
    monkeypatch.setattr(processes, "mark_agent", lambda _pid: None)
    agents = AgentPrograms()
    for pid in (None, 0, 1, os.getpid(), os.getppid(), program):
        seen = find_process(pid) if pid else None
        started = seen.start if seen else 1
        await agents.note(Session(id="s1", name="builder", root="/", pid=pid, started=started, key="k", opened_at=1.0))
    assert [pid for pid, _ in agents.known] == [program]


async def test_init_is_no_agent_even_where_the_ancestors_of_the_supervisor_cannot_be_determined(program, monkeypatch):
    marked: list[int] = []
    monkeypatch.setattr("whisper_tui.system.processes.mark_agent", marked.append)
    monkeypatch.setattr("whisper_tui.system.processes.is_process", lambda pid, started: True)

    def read(pid: int) -> ProcessSeen | None:
        return None if pid == os.getpid() else ProcessSeen(pid=pid, parent=0, start="1", adopts=pid == 1)

    for pid in (1, program):
        agents = AgentPrograms(read)
        session = Session(id="s1", name="builder", root="/", pid=pid, started=1, key="k", opened_at=1.0)
        await agents.note(session)
    assert marked == [program]


async def test_a_program_that_opened_its_own_session_with_the_library_is_no_agent_but_one_that_launched_us_is(program):
    agents = AgentPrograms()
    seen = find_process(program)
    assert seen is not None
    session = Session(id="s1", name="builder", root="/", pid=program, started=seen.start, opened_at=1.0)
    await agents.note(session)
    assert not agents.known
    await agents.note(session.model_copy(update={"client": ClientInfo(name="an agent", version="1")}))
    assert len(agents.known) == 1


@pytest.mark.parametrize("started", [1, None])
async def test_a_program_that_has_the_pid_of_an_agent_of_the_journal_is_neither_marked_nor_taken_for_it(
    program, started
):
    agents = AgentPrograms()
    await agents.note(Session(id="s1", name="builder", root="/", pid=program, started=started, key="k", opened_at=1.0))
    assert not agents.known
    assert mark_in_limits(Path(f"/proc/{program}/limits").read_bytes()) is None


async def test_a_peer_that_names_an_agent_which_is_no_ancestor_is_refused(home, supervisor, program):
    async def door(_reader, writer, hello):
        writer.write(json.dumps(hello).encode() + b"\n")

    server = await serve(supervisor, home, {"echo": door})
    try:
        for pid, heard in ((os.getpid(), "echo"), (os.getppid(), "echo"), (None, "echo"), (program, "not_allowed")):
            raw = await Raw.open(home, hello=False)
            told = await raw.request({"door": "echo", "version": VERSION, "pid": pid})
            assert heard == (told["error"]["kind"] if "error" in told else told["door"])
            raw.writer.close()
    finally:
        await server.close()


@each_row("pid", [0, 80, 90, 4711])
def test_a_process_that_cannot_be_examined_may_not_decide(pid):
    assert "cannot be examined" in judged(pid)


def test_a_parent_that_ends_during_the_search_is_searched_again():
    asked = []

    def changing(pid):
        asked.append(pid)
        if pid == 11 and asked.count(11) == 1:
            return ProcessSeen(pid=11, parent=999, start="2")
        return TREE.get(pid)

    assert [seen.pid for seen in ancestry(11, changing)] == [11, 10, 1]


def test_a_cycle_of_parent_processes_ends_the_search():
    assert ancestry(5, lambda pid: ProcessSeen(pid=pid, parent=5, start="")) is None


def test_the_answers_of_ps_are_understood():
    told = b"  501   502 ttys003 Sat Nov 21 00:42:01 2026"
    seen = parse_ps(77, 502, told, f"/bin/sh -c x HOME=/h {INSIDE}=3 PATH=/bin".encode())
    assert (seen.parent, seen.start, seen.marked, seen.foreign) == (501, "Sat Nov 21 00:42:01 2026", True, False)
    assert seen.has_terminal and not parse_ps(77, 502, told.replace(b"ttys003", b"??"), b"/bin/sh").has_terminal
    assert parse_ps(77, 1, told, b"python -c whisper_tui.supervisor.keeper.guardian").keeper
    assert parse_ps(77, 1, told, b"vim").foreign
    assert parse_ps(77, 1, b"", b"") is None


def test_this_process_and_its_ancestors_are_seen():
    line = ancestry(os.getpid(), read_process)
    assert line[0].pid == os.getpid() and line[1].pid == os.getppid()
    assert not line[0].foreign


def test_the_environment_of_a_real_process_is_read():
    words = ["bash", "-c", "echo begun; read"]
    child = subprocess.Popen(words, env={INSIDE: "7"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout.readline() == b"begun\n"
        seen = read_process(child.pid)
        child.stdin.close()
    assert seen.marked


@pytest.mark.skipif(sys.platform != "linux", reason="a zombie keeps its place in /proc")
def test_a_process_that_has_ended_is_not_there():
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert read_process(child.pid) is None


@pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")
def test_a_process_that_has_ended_counts_as_a_supervised_command():
    with subprocess.Popen(["true"]) as process:
        pass
    assert origin_by_mark(process.pid) == "command"
    assert origin_by_mark(os.getpid()) is None


WAYS = {
    "directly": "{approve} >{log} 2>&1",
    "in a new session": "setsid {approve} >{log} 2>&1",
    "in the background": "({approve} >{log} 2>&1 &) ; sleep 0.1",
    "after a double fork": "setsid sh -c '{approve} >{log} 2>&1 &' & sleep 0.1",
    "with nohup and disown": "nohup {approve} >{log} 2>&1 & disown; exit 0",
    "with an empty environment": "env -i {path} {approve} >{log} 2>&1",
    "with an empty environment, double forked": "env -i {path} setsid sh -c '{approve} >{log} 2>&1 &'",
    "with its mark removed": "unset WHISPER_TUI_CALL_ID; {approve} >{log} 2>&1",
}


@outside_only
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.few(3)
async def test_a_supervised_command_cannot_approve(way, server, supervisor, home, tmp_path):
    wanted = await waiting_call(supervisor, tmp_path, "touch", "owned")
    log = tmp_path / "log"
    root = Path(whisper_tui.__file__).parent.parent
    path = f"PYTHONPATH={shlex.quote(str(root))}"
    approve = f"{PYTHON} -m whisper_tui approve {wanted} --home {tmp_path}"
    assert home.runtime == tmp_path / "run"
    script = WAYS[way].format(approve=approve, log=log, path=f"{path} PATH={os.environ['PATH']}")
    culprit = await waiting_call(supervisor, tmp_path, "bash", "-c", f"export {path}; {script}")
    seen = (await supervisor.record(culprit)).seen_digest()
    await supervisor.decide(culprit, Approve(), Decider(surface="library"), seen)
    async with asyncio.timeout(60):
        while not log.exists() or "\n" not in log.read_text():
            await asyncio.sleep(0.02)
    assert "inside a supervised command" in log.read_text()
    assert (await supervisor.record(wanted)).state.kind == "waiting"


@outside_only
async def test_a_connection_made_before_the_keeper_was_killed_cannot_approve_afterwards(
    server, supervisor, home, tmp_path
):
    wanted = await waiting_call(supervisor, tmp_path, "touch", "owned")
    seen = (await supervisor.record(wanted)).seen_digest()
    script = f"""
import json, os, signal, socket, time
keeper = os.getppid()
s = socket.socket(socket.AF_UNIX); s.connect({str(tmp_path / "run" / "supervisor.sock")!r}); f = s.makefile("rb")
s.sendall(b'{{"door": "port", "version": 1}}\\n'); f.readline()
s.sendall(b'{{"id": 1, "op": "status"}}\\n'); f.readline()
os.kill(keeper, signal.SIGKILL)
while os.getppid() == keeper: time.sleep(0.01)
args = {{"call_id": {wanted!r}, "decision": {{"kind": "approve"}}, "by": {{"surface": "library"}}, "seen": {seen!r}}}
s.sendall(json.dumps({{"id": 2, "op": "decide", "args": args}}).encode() + b"\\n")
open({str(tmp_path / "log")!r}, "wb").write(f.readline())
"""
    culprit = await waiting_call(supervisor, tmp_path, "env", "-i", sys.executable, "-c", script)
    digest = (await supervisor.record(culprit)).seen_digest()
    await supervisor.decide(culprit, Approve(), Decider(surface="library"), digest)
    log = tmp_path / "log"
    async with asyncio.timeout(60):
        while not log.exists() or not log.read_text().endswith("\n"):
            await asyncio.sleep(0.02)
    assert "not_allowed" in log.read_text()
    assert (await supervisor.record(wanted)).state.kind == "waiting"


@outside_only
async def test_a_supervised_command_may_look_and_ask_for_itself(server, supervisor, home, tmp_path):
    log = tmp_path / "log"
    root = Path(whisper_tui.__file__).parent.parent
    listing = f"PYTHONPATH={shlex.quote(str(root))} {PYTHON} -m whisper_tui list --home {tmp_path} >{log} 2>&1"
    culprit = await waiting_call(supervisor, tmp_path, "bash", "-c", listing)
    seen = (await supervisor.record(culprit)).seen_digest()
    await supervisor.decide(culprit, Approve(), Decider(surface="library"), seen)
    await asyncio.wait_for(supervisor.outcome(culprit), 60)
    assert log.read_text().startswith("ID")


@outside_only
async def test_a_process_beside_the_supervisor_approves(server, supervisor, tmp_path):
    wanted = await waiting_call(supervisor, tmp_path, "true")
    approve = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "whisper_tui", "approve", wanted, "--home", str(tmp_path), stdout=subprocess.PIPE
    )
    told, _ = await asyncio.wait_for(approve.communicate(), 60)
    assert approve.returncode == 0 and told.startswith(b"Approved")
    assert (await asyncio.wait_for(supervisor.outcome(wanted), 60)).state.ending.kind == "exited"


@outside_only
async def test_a_program_started_by_an_agent_cannot_approve_even_after_the_agent_disconnects(
    server, supervisor, home, tmp_path, caplog
):
    wanted = await waiting_call(supervisor, tmp_path, "touch", "owned")
    root = Path(whisper_tui.__file__).parent.parent
    script = "read go; setsid sh -c '{approve} >{log} 2>&1' & wait; read again; {approve} >{log}.2 2>&1; read end"
    approve = f"{PYTHON} -m whisper_tui approve {wanted} --home {tmp_path}"
    log = tmp_path / "log"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root)}
    agent = await asyncio.create_subprocess_exec(
        "sh", "-c", script.format(approve=approve, log=log), stdin=asyncio.subprocess.PIPE, env=environment
    )
    try:
        hello = SessionHello(name="builder", root=str(tmp_path), pid=agent.pid, key="k1")
        session = await supervisor.open_session(hello)
        async with asyncio.timeout(60):
            while not server._state.agents():
                await asyncio.sleep(0.02)
        for path in (log, Path(f"{log}.2")):
            agent.stdin.write(b"\n")
            async with asyncio.timeout(60):
                while not path.exists() or "\n" not in path.read_text():
                    await asyncio.sleep(0.02)
            assert "inside the agent builder" in path.read_text()
            await supervisor.close_session(session.id, "it left")
    finally:
        agent.kill()
        await agent.wait()
    assert (await supervisor.record(wanted)).state.kind == "waiting"
    assert any("was refused because" in record.getMessage() for record in caplog.records)


@outside_only
async def test_a_cockpit_that_has_ended_after_its_farewell_is_recorded_as_no_attempt_and_decides_nothing(
    supervisor, home, monkeypatch
):
    refused = []
    server = await serve(supervisor, home, {}, refused=refused.append)
    try:
        raw = await Raw.open(home)
        monkeypatch.setattr("whisper_tui.wire.authorization.ancestry", lambda *_: None)
        monkeypatch.setattr("whisper_tui.wire.authorization.has_ended", lambda _: True)
        presence = {"cockpit": "c", "present": False, "muted": False}
        told = await raw.request({"id": 1, "op": "report_presence", "args": {"presence": presence}})
        assert told["error"]["kind"] == "not_allowed" and refused == []
        told = await raw.request({"id": 2, "op": "pause", "args": {"by": {"surface": "cockpit", "who": "me"}}})
        assert told["error"]["kind"] == "not_allowed"
        assert [attempt.operation for attempt in refused] == ["pause"]
        assert supervisor.board.paused is None
        raw.writer.close()
    finally:
        await server.close()
