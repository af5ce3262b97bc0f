"""Measurements of the processes of runs: resource usage and listening ports. Nothing is changed."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil

from whisper_tui.model.run import BackgroundUsage, InputWait, ProcessIdentity, UsageSample
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.supervisor.runs.live_runs import input_of, input_wait, is_alive, most_certain
from whisper_tui.system.processes import LINUX


def find_process(identity: ProcessIdentity) -> psutil.Process | None:
    """Return the process with this identity. None: it has ended, or its pid may have been reused."""
    # Other systems do not compare start times, because reading one starts `ps`.
    if (LINUX and not is_alive(identity)) or identity.boot_id == "stage":
        return None
    with suppress(psutil.Error):
        return psutil.Process(identity.pid)
    return None


MOST_PROCESSES = 256
"""How many processes of a run are measured. The number of processes shows if there are more."""


@dataclass
class _Totals:
    cpu_s: dict[int, float] = field(default_factory=dict)
    memory: int = 0
    threads: int = 0
    states: set[str] = field(default_factory=set)


def sample_run(record: CallRecord, *, known: UsageSample | None = None) -> UsageSample | None:
    """Measure a run. `known`: a sample whose ports are recent enough to reuse. None: no process is alive."""
    processes = processes_of(record)
    if not processes:
        return None
    found = _Totals()
    for process in processes[:MOST_PROCESSES]:
        with suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            found.cpu_s[process.pid] = times.user + times.system
            found.memory += process.memory_info().rss
            found.threads += process.num_threads()
            found.states.add(process.status())
    if not found.cpu_s:
        return None
    return UsageSample(
        at=time.monotonic(),
        cpu_s=found.cpu_s,
        memory=found.memory,
        threads=found.threads,
        ports=listening(processes) if known is None else known.ports,
        paused=found.states <= {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE} and psutil.STATUS_STOPPED in found.states,
        waits=_waits(record, processes),
        left_behind=sample_left_behind((one.identity for one in record.living_background), known),
    )


def processes_of(record: CallRecord) -> list[psutil.Process]:
    """Return all living processes that a run has started, without the keeper."""
    roots = [find_process(process.identity) for process in record.living_background]
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
    return find_process(record.state.process.leader) if isinstance(record.state, Running) else None


def _waits(record: CallRecord, processes: list[psutil.Process]) -> InputWait | None:
    """Return how certainly any process of a run waits for input."""
    if not isinstance(record.state, Running) or not (record.spec.tty or record.spec.accepts_input):
        return None
    source = input_of(record.state.process.leader.pid)
    if source is None:
        return None
    return most_certain(input_wait(process.pid, source) for process in processes[:MOST_PROCESSES])


def listening(processes: Iterable[psutil.Process]) -> tuple[str, ...]:
    """Return the addresses and ports on which processes listen for TCP connections, each once."""
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


def sample_left_behind(
    identities: Iterable[ProcessIdentity], known: UsageSample | None = None
) -> tuple[BackgroundUsage, ...]:
    """Measure those of these processes that are alive. `known`: as for `sample_run`."""
    ports = {one.identity: one.ports for one in known.left_behind} if known is not None else {}
    found = []
    for identity in identities:
        process = find_process(identity)
        if process is not None:
            with suppress(psutil.Error):
                started, memory = process.create_time(), process.memory_info().rss
                open_now = ports.get(identity)
                if open_now is None:
                    open_now = listening((process, *process.children(recursive=True)))
                found.append(BackgroundUsage(identity=identity, started_at=started, memory=memory, ports=open_now))
    return tuple(found)


FRESH_S = 0.9
"""Seconds for which a sample is reused: a little less than the second after which cockpits ask again."""
PORTS_EVERY = 5
"""Ports are only read with every so many samples, because that costs more than the rest."""
KEPT_S = 60.0
"""Seconds for which a sample is kept that nobody requests."""


class _KeptSample(NamedTuple):
    sample: UsageSample | None
    at: float
    number: int
    attempt: int | None


class UsageSampler:
    """Measures runs in a thread, each at most once a second, however many clients watch it."""

    def __init__(self, record_of: Callable[[str], CallRecord | None]) -> None:
        """`record_of`: returns the call with an id."""
        self._record_of = record_of
        self._kept: dict[str, _KeptSample] = {}
        self._measuring = asyncio.Lock()

    async def usage(self, call_ids: Iterable[str]) -> dict[str, UsageSample]:
        """Return the samples of those calls that have living processes."""
        wanted = dict.fromkeys(call_ids)
        # One measurement at a time. Concurrent requests share its samples.
        async with self._measuring:
            now = time.monotonic()
            self._kept = {id_: kept for id_, kept in self._kept.items() if now - kept.at < KEPT_S}
            stale = [record for id_ in wanted if (record := self._record_of(id_)) and self._is_stale(record, now)]
            if stale:
                self._kept |= await asyncio.to_thread(self._measure, stale)
        found = {id_: kept.sample for id_ in wanted if (kept := self._kept.get(id_)) is not None}
        return {id_: sample for id_, sample in found.items() if sample is not None}

    def _is_stale(self, record: CallRecord, now: float) -> bool:
        kept = self._kept.get(record.id)
        return kept is None or kept.attempt != record.attempt or now - kept.at >= FRESH_S

    def _measure(self, records: list[CallRecord]) -> dict[str, _KeptSample]:
        found = {}
        for record in records:
            kept = self._kept.get(record.id)
            number = kept.number + 1 if kept is not None and kept.attempt == record.attempt else 0
            known = kept.sample if kept is not None and number % PORTS_EVERY else None
            sample = sample_run(record, known=known) if record.is_open and record.process is not None else None
            found[record.id] = _KeptSample(sample, time.monotonic(), number, record.attempt)
        return found
