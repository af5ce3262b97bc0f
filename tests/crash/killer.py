"""Kills one thing after the other with signal 9, at random instants."""

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.crash.field import Field
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.supervisor.runs.attempt import Attempt
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.system.processes import children_of, find_process, is_stopped

VICTIMS = {
    "supervisor": 9,
    "keeper": 18,
    "waiting keeper": 8,
    "guardian": 5,
    "guardian and keeper": 4,
    "command": 17,
    "relay": 6,
    "MCP client": 5,
    "hook": 10,
    "exec": 11,
    "hook client": 5,
    "cockpit": 2,
}
"""What is killed how often, of a hundred."""
CALLS_A_KILL = 3
"""Agents come to so many calls, on average, before the next kill."""
IN_A_ROW = 0.25
"""How often the next kill comes without waiting for more calls: in the middle of the recovery from the last one."""
LONGEST_WAIT_S = 10.0
LONGEST_PAUSE_S = 0.15


async def killer(field: Field, kills: int, chance: random.Random, until: float) -> None:
    """Kill until it was enough, or the monotonic clock says `until`."""
    kinds, weights = list(VICTIMS), list(VICTIMS.values())
    while (killed := field.killed.total()) < kills and time.monotonic() < until:
        if chance.random() >= IN_A_ROW:
            await _calls(field, CALLS_A_KILL * killed)
        await asyncio.sleep(chance.uniform(0.0, LONGEST_PAUSE_S))
        (kind,) = chance.choices(kinds, weights)
        _kill(field, kind, chance)


async def _calls(field: Field, wanted: int) -> None:
    """Wait until so many calls were made, though not for ever: what was killed may be in the way of all."""
    deadline = time.monotonic() + LONGEST_WAIT_S
    while len(field.told.submitted) < wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.02)


def _kill(field: Field, kind: str, chance: random.Random) -> None:
    match kind:
        case "supervisor":
            pid = field.supervisor()
            if pid is not None:
                field.kill(kind, pid)
        case "keeper" | "guardian and keeper" | "command":
            running = [record for record in _running(field) if isinstance(record.state, Running)]
            if running:
                _kill_of(field, kind, chance.choice(running))
        case "guardian":
            for parent in _forkers(field):
                field.kill(kind, parent)
        case "waiting keeper":
            children = [pid for parent in _forkers(field) for pid in children_of(parent)]
            # Commands of a killed keeper are among them.
            if waiting := [pid for pid in children if is_ours(field, pid) and not children_of(pid)]:
                field.kill(kind, chance.choice(waiting))
        case _:
            if victims := field.victims(kind):
                field.kill(kind, chance.choice(victims))


def _running(field: Field) -> list[CallRecord]:
    return [field.board.calls[call_id] for call_id in tuple(field.board.running)]


def _kill_of(field: Field, kind: str, record: CallRecord) -> None:
    """What the human sees may be over already, and its pids be taken by others."""
    assert record.process is not None
    leader, keeper = record.process.leader, record.process.keeper_pid
    seen = find_process(leader.pid)
    if kind == "command" and seen is not None and seen.start == leader.start_time:
        field.without_leader.add(record.id)
        field.kill(kind, leader.pid)
    elif kind != "command" and is_ours(field, keeper):
        if _stands_still(keeper) and _still_keeps(field, record):
            parent = find_process(keeper)
            if kind == "guardian and keeper" and parent is not None and is_ours(field, parent.ppid):
                field.kill("guardian", parent.ppid)
            field.kill("keeper", keeper)
        else:
            _let_go_on(keeper)


def _stands_still(pid: int) -> bool:
    """Stop a keeper, which may be about to take its next run. Returns whether it is there and has stopped."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    while (seen := find_process(pid)) is not None and not is_stopped(pid):
        time.sleep(0.001)
    return seen is not None


def _still_keeps(field: Field, record: CallRecord) -> bool:
    runs = str(field.root / "state" / "runs")
    try:
        return Attempt(runs, RunKey(record.id, record.attempt or 1)).state() == "alive"
    except OSError:
        return False


def _let_go_on(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _forkers(field: Field) -> list[int]:
    """Processes that fork keepers for the supervisor of now."""
    supervisor = field.supervisor()
    return [] if supervisor is None else [pid for pid in children_of(supervisor) if is_ours(field, pid)]


def is_ours(field: Field, pid: int) -> bool:
    """Whether a process is one that keeps runs of this instance, or forks those that do."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"keeper.guardian" in words and str(field.root).encode() in words
