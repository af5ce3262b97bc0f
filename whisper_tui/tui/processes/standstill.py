"""Which runs stand still: stopped by a signal, or waiting for somebody to type. All of them, at a bounded cost."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from whisper_tui.model.state import CallRecord, Running
from whisper_tui.tui.processes.identity import find
from whisper_tui.tui.processes.waiting import Waits, input_of, waits

MOST_RUNS = 64
"""Runs that are looked at in one round; the next round goes on with the others."""
MOST_PROCESSES = 32
"""Processes of one run that are looked at."""
SILENT_S = 3.0
"""How long nothing must have been written before it is said that a command waits for input."""


@dataclass(frozen=True)
class Standstill:
    """Why a run gets no further."""

    stopped: bool = False
    """Whether all its processes are stopped by a signal."""
    waits: Waits | None = None
    """Whether one of them waits for input."""
    silent_since: float | None = None
    """When the last output came, in seconds since the epoch, if it needs input. None: it needs none."""


GOES_ON = Standstill()


def look_at_runs(records: Iterable[CallRecord]) -> dict[str, Standstill]:
    """Look at the processes of each run. It takes milliseconds, so it belongs in a thread."""
    found = {}
    for record in records:
        if isinstance(record.state, Running) and find(record.state.process.leader) is not None:
            found[record.id] = _look(record, record.state.process.leader.pid)
    return found


def _look(record: CallRecord, leader: int) -> Standstill:
    pids = _tree(leader)
    states = {_state(pid) for pid in pids} - {""}
    stopped = "T" in states and states <= {"T", "Z"}
    source = input_of(leader) if record.spec.tty or record.spec.accepts_input else None
    signs = {waits(pid, source) for pid in pids} if source is not None and not stopped else set()
    sign: Waits | None = "reads" if "reads" in signs else "perhaps" if "perhaps" in signs else None
    return Standstill(stopped, sign)


def _tree(leader: int) -> list[int]:
    """The process and what it has started. Only the main threads are asked for children: others rarely fork."""
    found = [leader]
    for pid in found:
        if len(found) >= MOST_PROCESSES:
            break
        with suppress(OSError, ValueError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    return found[:MOST_PROCESSES]


def _state(pid: int) -> str:
    with suppress(OSError, ValueError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat[stat.rindex(b")") + 2 :][:1].decode("ascii")
    return ""
