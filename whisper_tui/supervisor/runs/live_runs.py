"""Observes runs without changing them: stalls, resource usage and listening ports, once for all who watch."""

import asyncio
import os
import platform
import stat
import termios
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, get_args

import psutil

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import (
    NO_STALL,
    BackgroundUsage,
    Echo,
    InputWait,
    ProcessIdentity,
    RunProcess,
    Stall,
    StallNews,
    Stream,
    UsageSample,
)
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.executor import Executor, RunKey
from whisper_tui.system.processes import LINUX, boot_id, find_process


class _Calls(NamedTuple):
    """Numbers of system calls."""

    read: frozenset[int]
    select: frozenset[int]
    poll: frozenset[int]


_NUMBERS = {
    "x86_64": _Calls(frozenset({0, 19}), frozenset({23, 270}), frozenset({7, 271})),
    "aarch64": _Calls(frozenset({63, 65}), frozenset({72}), frozenset({73})),
}
_READING_SLEEPS = frozenset({"n_tty_read", "wait_woken", "pipe_read", "anon_pipe_read"})
"""The kernel functions in which a process sleeps while it reads a terminal or a pipe."""
_TERMINALS = ("/dev/pts/", "/dev/tty")


def input_of(leader: int) -> str | None:
    """Return the standard input of a run if it is a terminal, pipe or socket. None: it cannot receive input."""
    found = _link(leader, 0)
    return found if found is not None and found.startswith((*_TERMINALS, "pipe:", "socket:")) else None


def input_wait(pid: int, source: str) -> InputWait | None:
    """Return how certainly a process waits for input from `source`, a result of `input_of`. None: it does not."""
    numbers = _NUMBERS.get(platform.machine())
    words = _read(pid, "syscall").split()
    if numbers is None or len(words) < 3 or not words[0].isdigit():
        # Without permission for /proc/<pid>/syscall, or on other processors, only the kernel function is known.
        asleep = _read(pid, "wchan").strip("\0\n ") in _READING_SLEEPS
        return "perhaps" if asleep and words[:1] != ["running"] and _link(pid, 0) == source else None
    number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if number in numbers.read:
        return "reads" if _is(pid, first, source) else None
    if number in numbers.select:
        return "reads" if first == 1 and _is(pid, 0, source) else None
    if number in numbers.poll:
        return "perhaps" if second == 1 and _link(pid, 0) == source else None
    return None


def most_certain(waits: Iterable[InputWait | None]) -> InputWait | None:
    """Return the most certain of these results."""
    found = set(waits)
    return "reads" if "reads" in found else "perhaps" if "perhaps" in found else None


def echo_of(process: RunProcess) -> Echo | None:
    """Return the echo mode of the terminal of a run. None: it has no terminal, or it cannot be opened."""
    # This user owns the device even if the reader is a program such as sudo, whose files we cannot read.
    source = process.terminal or input_of(process.leader.pid) or ""
    if not source.startswith(_TERMINALS):
        return None
    path = process.terminal or f"/proc/{process.leader.pid}/fd/0"
    with suppress(OSError, termios.error):
        terminal = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISCHR(os.fstat(terminal).st_mode):
                return None
            flags = termios.tcgetattr(terminal)[3]
        finally:
            os.close(terminal)
        if flags & termios.ECHO:
            return "shows"
        return "hides" if flags & termios.ICANON else "raw"
    return None


def is_alive(identity: ProcessIdentity) -> bool:
    """True if this process is alive, and not another one with the same pid."""
    seen = find_process(identity.pid)
    return seen is not None and seen.start == identity.start_time and identity.boot_id == boot_id()


def _is(pid: int, descriptor: int, source: str) -> bool:
    """True if a descriptor is the input of the run, even if it was opened as /dev/tty."""
    found = _link(pid, descriptor)
    return found == source or (found == "/dev/tty" and source.startswith("/dev/"))


def _read(pid: int, name: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
    return ""


def _link(pid: int, descriptor: int) -> str | None:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    return None


MOST_PROCESSES = 32
"""How many processes of one run are checked."""


def find_stalls(records: Iterable[CallRecord]) -> dict[str, Stall]:
    """Check the processes of each run. Call it in a thread, because it takes milliseconds."""
    found: dict[str, Stall] = {}
    if not LINUX:  # Only Linux shows where a process sleeps.
        return found
    for record in records:
        if isinstance(record.state, Running) and is_alive(record.state.process.leader):
            found[record.id] = _look(record, record.state.process.leader.pid)
    return found


def _look(record: CallRecord, leader: int) -> Stall:
    pids = _tree(leader)
    states = {_state(pid) for pid in pids} - {""}
    stopped = "T" in states and states <= {"T", "Z"}
    source = input_of(leader) if record.spec.tty or record.spec.accepts_input else None
    waits = most_certain(input_wait(pid, source) for pid in pids) if source is not None and not stopped else None
    return Stall(stopped=stopped, waits=waits)


def _tree(leader: int) -> list[int]:
    """Return a process and its descendants. Only children of main threads are found, because others rarely fork."""
    found = [leader]
    for pid in found:
        if len(found) >= MOST_PROCESSES:
            break
        with suppress(OSError, ValueError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    return found[:MOST_PROCESSES]


def _state(pid: int) -> str:
    with suppress(OSError, ValueError):
        found = Path(f"/proc/{pid}/stat").read_bytes()
        # The program's name may contain spaces and parentheses.
        return found[found.rindex(b")") + 2 :][:1].decode("ascii")
    return ""


CHECK_EVERY_S = 1.0
MOST_RUNS = 64
"""How many runs are checked in one round. The next round continues with the others."""
SILENT_S = 3.0
"""Seconds without output after which a command that reads its input counts as needing input."""


class StallMonitor:
    """Looks for stalled runs every second, and keeps the results in memory. None of them is journaled."""

    def __init__(self, store: Store, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self._found: dict[str, Stall] = {}
        self._next = 0
        self._task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[dict[str, StallNews]], None]] = []

    def open(self) -> None:
        """Start the checks."""
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop the checks."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def listen(self, listener: Callable[[dict[str, StallNews]], None]) -> None:
        """Subscribe a function to runs that begin to need input, or that somebody else has stopped."""
        self._listeners.append(listener)

    def now(self) -> dict[str, Stall]:
        """The stalled runs, by call."""
        running = self._store.board.running
        return {call_id: found for call_id, found in self._found.items() if call_id in running}

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            if self._store.board.running or self._found:
                await self.look()

    async def look(self) -> None:
        """Check a batch of runs now."""
        records = self._next_batch()
        seen = await asyncio.to_thread(find_stalls, records)
        before, known = self._found, self.now()
        for record in records:
            known[record.id] = self._with_silence(record, seen.get(record.id, NO_STALL))
        self._found = {call_id: found for call_id, found in known.items() if found != NO_STALL}
        new = {
            record.id: news
            for record in records
            if (news := record.stall_news(before.get(record.id, NO_STALL), self._found.get(record.id, NO_STALL)))
        }
        if new:
            for listener in self._listeners:
                listener(new)

    def _next_batch(self) -> list[CallRecord]:
        """Return the runs for this round."""
        board = self._store.board
        ids = list(board.running)
        start = self._next if self._next < len(ids) else 0
        turn = (ids[start:] + ids[:start])[:MOST_RUNS]
        self._next = start + len(turn) if len(ids) > MOST_RUNS else 0
        return [board.calls[call_id] for call_id in turn]

    def _with_silence(self, record: CallRecord, found: Stall) -> Stall:
        """Add the time since when a run has needed input, if it does."""
        if found.waits is None or record.process is None:
            return found
        key = RunKey(record.id, record.attempt or 1)
        try:
            chunks = [self._executor.read_output(key, stream, -1, 1) for stream in get_args(Stream)]
        except WhisperError:
            return found
        # A prompt usually ends without a line feed. If the wait is uncertain, the output must end like a prompt.
        last = max(chunk.written_at or record.process.started_at for chunk in chunks)
        asks = any(chunk.data and chunk.data != b"\n" for chunk in chunks)
        if time.time() - last < SILENT_S or (found.waits == "perhaps" and not asks):
            return found
        return found.model_copy(update={"silent_since": last})


def living_process(identity: ProcessIdentity) -> psutil.Process | None:
    """Return the process with this identity. None: it has ended, or its pid may have been reused."""
    # Other systems do not compare start times, because reading one starts `ps`.
    if (LINUX and not is_alive(identity)) or identity.boot_id == "stage":
        return None
    with suppress(psutil.Error):
        return psutil.Process(identity.pid)
    return None


MOST_MEASURED = 256
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
    for process in processes[:MOST_MEASURED]:
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
    roots = [living_process(process.identity) for process in record.living_background]
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
    return living_process(record.state.process.leader) if isinstance(record.state, Running) else None


def _waits(record: CallRecord, processes: list[psutil.Process]) -> InputWait | None:
    """Return how certainly any process of a run waits for input."""
    if not isinstance(record.state, Running) or not (record.spec.tty or record.spec.accepts_input):
        return None
    source = input_of(record.state.process.leader.pid)
    if source is None:
        return None
    return most_certain(input_wait(process.pid, source) for process in processes[:MOST_MEASURED])


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
        process = living_process(identity)
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
