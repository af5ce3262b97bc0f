"""Functions of the package that a call and a key pass, recorded while the program runs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.structure.bounds import BOUNDS
from tests.structure.measure import Figure
from tests.structure.recorder import Functions, Recorder
from tests.tui.live import HUMAN, Live, live
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.decision import Approve
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories

ROOT = Path(__file__).parent.parent.parent
RECORDER = Path(__file__).with_name("recorder.py")
LONGEST_S = 60.0
GOAL_OF_KEY, RECORDINGS = 9, 10
FILES_OF_CALL = "files that an approved call passes in the supervisor"
FILES_WITH_CONNECTION = "files with its MCP connection and `whisper-tui approve`"
_CLIENT = {"name": "structure", "version": "1"}
_CALL = {"name": "execute_command", "arguments": {"command": "touch", "args": ["here"]}}


def figures_of_call() -> list[Figure]:
    """Return how many files and functions of the supervisor a call passes, without and with its agent and its human."""
    inside = _smallest(_record_call, BOUNDS[FILES_OF_CALL])
    whole = _smallest(passed_by_mcp_call, BOUNDS[FILES_WITH_CONNECTION])
    return [
        _files(FILES_OF_CALL, inside, 55),
        Figure("functions that it passes there", len(inside)),
        _files(FILES_WITH_CONNECTION, whole),
        Figure("functions with them", len(whole)),
    ]


def figures_of_key() -> list[Figure]:
    """Return how many files are passed from the key `a` in a cockpit to the supervisor's `decide`."""
    return [_files("files from the key `a` to the supervisor", _smallest(_record_key, GOAL_OF_KEY), GOAL_OF_KEY)]


def _smallest(record: Callable[[], Functions], enough: float) -> Functions:
    """Return the recording with the fewest files, of several or until one has no more than `enough`.

    Tasks in the background can only add files to a recording, so that one is the closest to the truth.
    """
    found: list[Functions] = []
    while len(found) < RECORDINGS and not any(_count(each) <= enough for each in found):
        found.append(record())
    return min(found, key=_count)


def _count(functions: Functions) -> int:
    return len({file for file, _ in functions})


def _record_call() -> Functions:
    with _directory() as made:
        return asyncio.run(_passed_by_call(Path(made)))


def _record_key() -> Functions:
    with _directory() as made:
        return asyncio.run(_passed_by_key(Path(made)))


def _directory() -> "tempfile.TemporaryDirectory[str]":
    # Keepers of ended runs may still write their last words while it is removed.
    return tempfile.TemporaryDirectory(prefix="structure-", ignore_cleanup_errors=True)


def _files(name: str, functions: Functions, goal: float | None = None) -> Figure:
    found = sorted({file for file, _ in functions})
    return Figure(name, len(found), goal, which=found)


async def _passed_by_call(place: Path) -> Functions:
    """Return what a call passes from `submit` through `decide` to its end, in a supervisor of this process."""
    recorder = Recorder()
    try:
        home = Directories(config=place / "config", state=place / "state", runtime=place / "run")
        supervisor = Supervisor(home, LocalExecutor(home.state / "runs"))
        await supervisor.open()
        try:
            hello = SessionHello(name="agent", root=str(place), environment={"PATH": os.environ["PATH"]})
            session = await supervisor.open_session(hello)
            recorder.begin()
            call_id = await supervisor.submit(_request(session.id, place))
            seen = (await supervisor.record(call_id)).seen_digest()
            await supervisor.decide(call_id, Approve(), HUMAN, seen)
            await asyncio.wait_for(supervisor.outcome(call_id), LONGEST_S)
            return recorder.end()
        finally:
            await supervisor.shutdown(end_runs=True)
            await supervisor.close()
    finally:
        recorder.remove()


def _request(session_id: str, cwd: Path) -> CallRequest:
    spec = CommandSpec(command=Argv(program="touch", args=("here",)), cwd=str(cwd))
    return CallRequest(session_id=session_id, tool="execute_command", arguments={}, spec=spec)


async def _passed_by_key(place: Path) -> Functions:
    async with live(place) as cockpit:
        await _show_call(cockpit)
        recorder = Recorder()
        decided: asyncio.Future[Functions] = asyncio.get_running_loop().create_future()
        decide = cockpit.supervisor.decide

        async def end_and_decide(*args: Any, **options: Any) -> Any:
            decided.set_result(recorder.end())
            return await decide(*args, **options)

        cockpit.supervisor.decide = end_and_decide  # type: ignore[method-assign]
        try:
            recorder.begin()
            await cockpit.pilot.press("a")
            return await asyncio.wait_for(decided, LONGEST_S)
        finally:
            recorder.remove()


async def _show_call(cockpit: Live) -> None:
    """Wait until a call is shown with all that its card asks for, and a key can decide about it."""
    call_id = await cockpit.supervisor.submit(_request(cockpit.session_id, cockpit.workspace))
    screen = cockpit.screen
    await cockpit.until(
        lambda: screen.shown is not None and screen.shown.id == call_id and not screen.card.facts.asking
    )
    await cockpit.until(lambda: not screen.decisions.guard.holds_at(time.monotonic()))


def passed_by_mcp_call() -> Functions:
    """Return what an MCP call passes in the supervisor's process from its request until its agent has the result.

    Supervisor, agent and human are the programs that users run. Keepers are processes of their own, and not counted.
    """
    with _directory() as made:
        place = Path(made)
        answer = place / "passed.json"
        with _supervisor(place, answer) as supervisor, _agent(place) as ask:
            ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT})
            supervisor.send_signal(signal.SIGUSR1)
            result = ask("tools/call", _CALL, meanwhile=lambda: _until(lambda: _run(place, "approve", "1") == 0))
            assert (place / "here").exists() and not result.get("isError"), result
            supervisor.send_signal(signal.SIGUSR2)
            _until(answer.exists)
        return [(file, name) for file, name in json.loads(answer.read_text())]


@contextmanager
def _supervisor(place: Path, answer: Path) -> Iterator["subprocess.Popen[bytes]"]:
    words = [sys.executable, str(RECORDER), str(answer), "supervise", *_home(place)]
    with subprocess.Popen(words, env=_environment(place), stderr=subprocess.DEVNULL) as supervisor:
        try:
            _until(lambda: _run(place, "status") == 0)
            yield supervisor
        finally:
            _run(place, "stop")
            supervisor.kill()


@contextmanager
def _agent(place: Path) -> Iterator[Callable[..., Any]]:
    words = [sys.executable, "-m", "whisper_tui", "mcp", *_home(place)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=_environment(place), cwd=place, **pipes) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        told, heard = agent.stdin, agent.stdout

        def ask(method: str, params: dict[str, Any], meanwhile: Callable[[], None] | None = None) -> Any:
            request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
            told.write(json.dumps(request).encode() + b"\n")
            told.flush()
            if meanwhile is not None:
                meanwhile()
            while (message := json.loads(heard.readline())).get("id") != method:
                pass
            return message["result"]

        try:
            yield ask
        finally:
            agent.kill()


def _run(place: Path, *words: str) -> int:
    command = [sys.executable, "-m", "whisper_tui", *words, *_home(place)]
    done = subprocess.run(command, env=_environment(place), capture_output=True, timeout=LONGEST_S, check=False)
    return done.returncode


def _home(place: Path) -> tuple[str, str]:
    return "--home", str(place / "home")


def _environment(place: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(place), "PYTHONPATH": str(ROOT)}


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
