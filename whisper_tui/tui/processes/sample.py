"""One look at all processes of a run. It takes milliseconds, so it belongs in a thread."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from whisper_tui.model.run import ProcessIdentity
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.tui.processes.identity import find
from whisper_tui.tui.processes.waiting import Waits, input_of, waits

MOST_PROCESSES = 256
"""Processes of a run that are looked at; with more, the figures say so by their number alone."""


@dataclass(frozen=True)
class Sample:
    """What the processes of a run use."""

    at: float
    """Seconds of a clock that only goes forward."""
    cpu_s: dict[int, float]
    """Seconds of computing so far, by pid."""
    memory: int
    """Bytes in memory; what processes share is counted for each."""
    threads: int
    ports: tuple[str, ...]
    """Where they listen for TCP connections."""
    paused: bool
    """Whether all of them have been stopped by a signal."""
    waits: Waits | None

    @property
    def processes(self) -> int:
        """How many there are."""
        return len(self.cpu_s)


@dataclass
class _Sum:
    cpu_s: dict[int, float] = field(default_factory=dict)
    memory: int = 0
    threads: int = 0
    states: set[str] = field(default_factory=set)


def look(record: CallRecord, *, ports: tuple[str, ...] | None = None) -> Sample | None:
    """Look at a run. `ports`: what was known before, to save the look. None: nothing of it is alive or known."""
    processes = processes_of(record)
    if not processes:
        return None
    found = _Sum()
    for process in processes[:MOST_PROCESSES]:
        with suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            found.cpu_s[process.pid] = times.user + times.system
            found.memory += process.memory_info().rss
            found.threads += process.num_threads()
            found.states.add(process.status())
    if not found.cpu_s:
        return None
    return Sample(
        at=time.monotonic(),
        cpu_s=found.cpu_s,
        memory=found.memory,
        threads=found.threads,
        ports=listening(processes) if ports is None else ports,
        paused=found.states <= {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE} and psutil.STATUS_STOPPED in found.states,
        waits=_waits(record, processes),
    )


def processes_of(record: CallRecord) -> list[psutil.Process]:
    """Everything that a run has started and that lives, the keeper left out."""
    roots = [find(process.identity) for process in record.living_background]
    leader = _leader(record)
    if leader is not None and record.process is not None:
        with suppress(psutil.Error):
            keeper = psutil.Process(leader.ppid())
            if keeper.pid == record.process.keeper_pid:
                return list(keeper.children(recursive=True))
        roots.append(leader)
    found: dict[int, psutil.Process] = {}
    for root in roots:
        if root is not None:
            with suppress(psutil.Error):
                found |= {one.pid: one for one in (root, *root.children(recursive=True))}
    return list(found.values())


def _leader(record: CallRecord) -> psutil.Process | None:
    return find(record.process.leader) if isinstance(record.state, Running) and record.process is not None else None


def _waits(record: CallRecord, processes: list[psutil.Process]) -> Waits | None:
    """Whether any process of a run waits to be typed to."""
    if not isinstance(record.state, Running) or not (record.spec.tty or record.spec.accepts_input):
        return None
    source = input_of(record.state.process.leader.pid)
    if source is None:
        return None
    found = {waits(process.pid, source) for process in processes[:MOST_PROCESSES]}
    return "reads" if "reads" in found else "perhaps" if "perhaps" in found else None


def listening(processes: Iterable[psutil.Process]) -> tuple[str, ...]:
    """Where processes listen for TCP connections, as address and port, each once."""
    found: dict[tuple[int, str], None] = {}
    for process in processes:
        with suppress(psutil.Error, OSError):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr:
                    found[(connection.laddr.port, _host(connection.laddr.ip))] = None
    return tuple(f"{host}:{port}" for port, host in sorted(found))


def _host(address: str) -> str:
    if address in {"0.0.0.0", "::"}:  # noqa: S104 (it is only compared)
        return "*"
    return f"[{address}]" if ":" in address else address


@dataclass(frozen=True)
class Behind:
    """A process that a command left behind, as it is now."""

    started_at: float
    """Seconds since the epoch."""
    memory: int
    ports: tuple[str, ...]


def look_behind(identities: Iterable[ProcessIdentity]) -> dict[ProcessIdentity, Behind]:
    """Those of these processes that are alive and known."""
    found: dict[ProcessIdentity, Behind] = {}
    for identity in identities:
        process = find(identity)
        if process is not None:
            with suppress(psutil.Error):
                started, memory = process.create_time(), process.memory_info().rss
                found[identity] = Behind(started, memory, listening((process, *process.children(recursive=True))))
    return found
