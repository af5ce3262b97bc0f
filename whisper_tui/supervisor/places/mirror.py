"""The mirrors of attempts at a place: their files as they were there, written piece by piece, and what they report."""

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.run import BackgroundProcess, ProcessIdentity, RunProcess
from whisper_tui.supervisor.health import Health
from whisper_tui.supervisor.places.far_news import ROWS, SMALL, STREAMS, ring_state
from whisper_tui.supervisor.places.frames import FrameView
from whisper_tui.supervisor.places.incoming_frames import LongFrame
from whisper_tui.supervisor.runs.attempt import Attempt
from whisper_tui.supervisor.runs.executor import HasBackground, HasEnded, HasSettled, HasSpawned, Report, RunKey
from whisper_tui.supervisor.runs.monitor import RunMonitor
from whisper_tui.supervisor.runs.output_files import OutputFiles, RecordedOutput
from whisper_tui.system import run_files
from whisper_tui.system.processes import boot_id
from whisper_tui.system.run_files import RingState

NEAR = "near"
"""File beside the attempts: the random name by which the places know this supervisor."""
PLACE = "place"
"""In the record of a mirror: where it runs."""


class Identity(NamedTuple):
    """A place as it was when something was ordered from it. Empty: it was not known."""

    instance: str = ""
    boot: str = ""


class PlaceMark:
    """A file beside the attempts with the identity of a place when something was last ordered from it."""

    def __init__(self, runs: Path, place: str) -> None:
        self._path = runs / f"{PLACE}-{place}"
        self.before = Identity()

    def read(self) -> None:
        """Read it."""
        with suppress(OSError, ValueError, TypeError):
            self.before = Identity(*json.loads(self._path.read_text()))

    def note(self, now: Identity) -> None:
        """Write the identity, flushed to the disk, unless the file already has it. Raises `OSError`."""
        if self.before != now:
            run_files.write_whole(str(self._path), json.dumps(now).encode(), durable=True)
            self.before = now


def near_name(runs: Path) -> str:
    """Return the random name of this runs directory, made and flushed to the disk the first time. Raises `OSError`."""
    path = runs / NEAR
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    made = secrets.token_hex(8)
    run_files.write_whole(str(path), made.encode(), durable=True)
    return made


def placed_at(runs: str, key: RunKey) -> str:
    """Return the place where an attempt runs, as its mirror says. Empty: it has none, so it runs here."""
    try:
        record = Attempt(runs, key).read(run_files.SPEC)
        return str(record.get(PLACE, "")) if isinstance(record, dict) else ""
    except OSError:
        return ""


class Mirror(Attempt):
    """The files of one attempt here, which a place sends."""

    def __init__(self, runs: str, key: RunKey) -> None:
        super().__init__(runs, key)
        self.name = f"{key.call_id}.{key.attempt}"
        self.identity = Identity()
        self._order: dict[str, Any] = {}

    def begin(self, place: str, identity: Identity) -> None:
        """Make the directory. Raises `OSError`, and then leaves no file behind."""
        run_files.make_directory(self.directory)
        try:
            record = {PLACE: place, "identity": identity, "boot": boot_id()}
            run_files.write_new(self.path(run_files.SPEC), json.dumps(record).encode())
        except OSError:
            self.discard()
            raise
        self.identity = identity

    def recover(self, before: Identity) -> None:
        """Read where it was ordered. `before`: where the last order went, for a mirror that was lost."""
        record = self.read(run_files.SPEC)
        try:
            self.identity = Identity(*record["identity"])
        except (KeyError, TypeError):
            self.identity = before
        if record is None or record.get("boot") != boot_id():
            # A power failure may have kept the size of a file and lost its bytes.
            self._begin_anew()

    def has_now(self) -> dict[str, Any]:
        """Return what is here, so that only the rest is sent."""
        found: dict[str, Any] = {}
        for name in (*STREAMS, *ROWS):
            status = run_files.status(self.path(name), follow_links=False)
            found[name] = status.st_size if status is not None else 0
        found["rings"] = {name: state for name in STREAMS if (state := ring_state(self.path(name))) is not None}
        return found

    def write(self, frame: FrameView) -> None:
        """Write what a frame brings. Raises `OSError` if there is no room; `ValueError` if a place may not send it."""
        match frame.header:
            case {"file": str(name), "at": int(at)} if name in (*STREAMS, *ROWS) and at >= 0:
                self._write_at(name, at, frame.payload)
            case {"ring": str(name), "state": list(state)} if name in STREAMS:
                self._write_ring(name, state, frame.payload)
            case {"file": run_files.CLAIM}:
                decision = bytes(frame.payload).decode("ascii", "replace")
                if decision not in {run_files.RUN, run_files.REVOKED}:
                    raise ValueError(f"an attempt cannot be {decision!r}")
                os.makedirs(self.directory, 0o700, exist_ok=True)  # noqa: PTH103
                run_files.claim(self.directory, decision)
            case {"file": str(name)} if name in (*SMALL, run_files.DONE):
                os.makedirs(self.directory, 0o700, exist_ok=True)  # noqa: PTH103
                run_files.write_whole(self.path(name), bytes(frame.payload))
            case _:
                raise ValueError("a frame with news is wrong")

    def pour(self, frame: LongFrame) -> None:
        """Write what has come of a long piece. Raises as `write`, and `EOFError` at the end of the connection."""
        match frame.header:
            case {"file": str(name), "at": int(at)} if name in (*STREAMS, *ROWS) and at >= 0:
                with self._opened(name) as fd:
                    frame.pour(fd, at)
            case _:
                raise ValueError("a frame with news is wrong")

    @property
    def revoked(self) -> bool:
        """True if it never ran, and never will."""
        return run_files.claimed(self.directory) == run_files.REVOKED

    def flush(self) -> None:
        """Have all files on the disk. Raises `OSError`."""
        for entry in (*Path(self.directory).iterdir(), Path(self.directory)):
            if not entry.is_symlink() and (entry.is_file() or entry.is_dir()):
                fd = os.open(entry, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

    def _begin_anew(self) -> None:
        for name in STREAMS:
            for suffix in ("", run_files.TAIL_SUFFIX, run_files.RING_SUFFIX):
                run_files.remove(self.path(name) + suffix)
        for name in (*ROWS, *SMALL):
            run_files.remove(self.path(name))

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        os.makedirs(self.directory, 0o700, exist_ok=True)  # noqa: PTH103
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            yield fd
        finally:
            os.close(fd)

    def _write_at(self, name: str, position: int, data: bytes | memoryview) -> None:
        with self._opened(name) as fd:
            rest = memoryview(data)
            while rest:
                count = os.pwrite(fd, rest, position)
                rest, position = rest[count:], position + count

    def _write_ring(self, name: str, told: list[Any], data: bytes | memoryview) -> None:
        """Write bytes of a ring, and then its state: a reader trusts no bytes that the state does not cover."""
        state = RingState(*map(int, told))
        first = state.total - len(data)
        if (
            not 0 <= state.head <= state.start <= first
            or state.size <= 0
            or len(data) > run_files.ring_step(state.size)
        ):
            raise ValueError("the state of a ring is wrong")
        position = (first - state.start) % state.size
        before_end = min(len(data), state.size - position)
        if data:
            self._write_at(name + run_files.TAIL_SUFFIX, position, data[:before_end])
        if data[before_end:]:
            self._write_at(name + run_files.TAIL_SUFFIX, 0, data[before_end:])
        elif not data:
            self._write_at(name + run_files.TAIL_SUFFIX, 0, b"")
        self._write_at(name + run_files.RING_SUFFIX, 0, run_files.RING.pack(*state))


class PlacedRun:
    """One run at the place."""

    def __init__(self, mirror: Mirror, files: OutputFiles, *, ordered: bool) -> None:
        self.mirror = mirror
        self.monitor = RunMonitor(mirror, files)
        self.ordered = ordered
        """True if its start may have been sent. False: it certainly was not."""
        self.reachable = asyncio.Event()
        """Set once it has a process, or will never have one."""
        self.attached = asyncio.Event()
        """Set while the place sends its news."""
        self.writing = asyncio.Lock()
        self.input_taken = 0
        """Bytes of input that the host process there has handed over."""


REPORTED_AT_ONCE = 100
INLINE = 1 << 17
"""Bytes of news up to which writing them here is faster than starting a thread."""
ROOM_RETRY_S = 1.0


class MirroredRuns:
    """The runs of one place that are not over: their news become files, and the files become reports."""

    def __init__(self, name: str, directory: str, ask_to_forget: Callable[[str], Awaitable[None]]) -> None:
        """`ask_to_forget`: has the place remove the files of an attempt."""
        self.runs: dict[RunKey, PlacedRun] = {}
        self.health = Health()
        self._name = name
        self._directory = directory
        self._ask_to_forget = ask_to_forget
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._tasks = set[asyncio.Task[None]]()

    def close(self) -> None:
        """Report no more."""
        for task in self._tasks:
            task.cancel()
        for run in self.runs.values():
            run.reachable.set()
            run.attached.set()
        self.runs.clear()

    async def news(self) -> tuple[Report, ...]:
        """Wait for the next reports."""
        news = [await self._reports.get()]
        while len(news) < REPORTED_AT_ONCE and not self._reports.empty():
            news.append(self._reports.get_nowait())
        return tuple(news)

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background until this is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def take(self, frames: list[FrameView]) -> None:
        """Write news into the mirrors, and report them. If there is no room, nothing more is read until there is."""
        writes: list[tuple[PlacedRun, FrameView]] = []
        for frame in frames:
            run = self._of(frame.header)
            if run is not None:
                writes.append((run, frame))
        if sum(len(frame.payload) for _, frame in writes) <= INLINE:
            left = self._write(writes)
        else:
            left = await asyncio.to_thread(self._write, writes)
        while left:
            await asyncio.sleep(ROOM_RETRY_S)
            left = await asyncio.to_thread(self._write, left)
        self.health.over()
        for run in dict.fromkeys(run for run, _ in writes):
            self.look(run)

    async def pour(self, frame: LongFrame) -> None:
        """Write what has come of a long piece of output, of which nothing is reported. Without room, wait for some."""
        run = self._of(frame.header)
        while True:
            try:
                await asyncio.to_thread(run.mirror.pour if run is not None else _pour_away, frame)
                break
            except ValueError as error:
                raise self._wrong(error) from None
            except OSError as error:
                self._note_no_room(error)
                await asyncio.sleep(ROOM_RETRY_S)
        self.health.over()

    def _of(self, header: dict[str, Any]) -> PlacedRun | None:
        """Return the run that a frame is about. None: nobody wants to know."""
        call_id, _, attempt = str(header.get("of", "")).rpartition(".")
        run = self.runs.get(RunKey(call_id, int(attempt))) if attempt.isdecimal() else None
        return run if run is not None and not run.monitor.over else None

    def _wrong(self, error: ValueError) -> Unavailable:
        return Unavailable(f"{self._name} sends what no host process sends: {error}")

    def _note_no_room(self, error: OSError) -> None:
        message = f"the output of runs at {self._name} cannot be written here: {error.strerror}"
        self.health.note(Unavailable(message, hint="Make room on the disk; it is tried again"))

    def _write(self, writes: list[tuple[PlacedRun, FrameView]]) -> list[tuple[PlacedRun, FrameView]]:
        """Write news. Return those that could not be written."""
        for number, (run, frame) in enumerate(writes):
            try:
                run.mirror.write(frame)
            except ValueError as error:
                raise self._wrong(error) from None
            except OSError as error:
                self._note_no_room(error)
                return writes[number:]
        return []

    def look(self, run: PlacedRun) -> None:
        """Report what is new in the mirror of a run."""
        if run.monitor.over:
            return
        try:
            self.report(run, run.monitor.on_revoked() if run.mirror.revoked else run.monitor.new_reports())
        except (OSError, Unavailable, ValueError, KeyError, TypeError) as error:
            # A file that cannot be read is not a missing file. A wrong ending would be worse than a late one.
            self.health.note(Unavailable(f"the files of runs at {self._name} cannot be read: {error}"))

    def report(self, run: PlacedRun, news: Iterable[Report]) -> None:
        """Report facts about a run, and forget it after the last one."""
        for report in news:
            if isinstance(report, HasSettled):
                self.keep(self._settle(run))
            else:
                self._reports.put_nowait(self._placed(report))
            if isinstance(report, HasSpawned | HasEnded):
                run.reachable.set()
        if run.monitor.over:
            run.reachable.set()
            run.attached.set()
            self.runs.pop(run.mirror.key, None)
            if run.mirror.revoked:
                self.keep(self._forget(run))

    async def _settle(self, run: PlacedRun) -> None:
        """Report that a run is over, with a digest of its output (decision 2). Then the place forgets it."""
        try:
            recorded = RecordedOutput(self._directory, run.mirror.key)
            made = recorded.digest() if recorded.is_small else await asyncio.to_thread(recorded.digest)
        except OSError:
            made = None
        self._reports.put_nowait(HasSettled(run.mirror.key, made))
        await self._forget(run)

    async def _forget(self, run: PlacedRun) -> None:
        """Have the files there removed, once those here are on the disk."""
        with suppress(OSError, WhisperError):
            await asyncio.to_thread(run.mirror.flush)
            await self._ask_to_forget(run.mirror.name)

    def _placed(self, report: Report) -> Report:
        """Return a report whose processes are nobody's here: pids there must not be looked up on this machine."""
        match report:
            case HasSpawned(process=process):
                return replace(report, process=self._placed_process(process))
            case HasBackground(processes=processes):
                return replace(report, processes=tuple(map(self._placed_background, processes)))
            case _:
                return report

    def _placed_process(self, process: RunProcess) -> RunProcess:
        change: dict[str, Any] = {"leader": self._placed_identity(process.leader), "group": None, "terminal": None}
        return process.model_copy(update=change)

    def _placed_background(self, process: BackgroundProcess) -> BackgroundProcess:
        return process.model_copy(update={"identity": self._placed_identity(process.identity)})

    def _placed_identity(self, identity: ProcessIdentity) -> ProcessIdentity:
        return identity.model_copy(update={"boot_id": f"{self._name}/{identity.boot_id}"})


def _pour_away(frame: LongFrame) -> None:
    fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        frame.pour(fd, 0)
    finally:
        os.close(fd)
