"""The ways in which an attempt starts and ends: plainly, in a view, with pre-images, or as the apply of its preview.

A way is chosen once, when the start of an attempt is journaled, from what is journaled. It starts the attempt, and when
the attempt has ended it makes its changes real and says what becomes of the call. Its end is reported to it once; until
it has answered, the call is recorded as running. A supervisor that is killed meanwhile leaves the files of the attempt
to the next one, which is told of the same end and finishes what was begun (decision 16).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from whisper_tui.changes import pre_images, transition
from whisper_tui.changes.change_records import PLAN
from whisper_tui.changes.file_trees import PreviewTooLarge, remove_tree
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.changes.pre_images import NotKept, Root
from whisper_tui.changes.real_paths import Conflict
from whisper_tui.changes.transition import TransitionFailed
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.preview import ChangedFiles, KeepsChanges
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import UndoPlan
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import Executor, HasEnded, RunKey
from whisper_tui.supervisor.runs.kept_changes import KeptChanges, named_paths, what_stays
from whisper_tui.supervisor.runs.open_drafts import OVER, OpenDrafts
from whisper_tui.system import run_files

KEEPING = "keeping"
"""The directory beside the attempts with the pre-images of calls that are just starting."""
UNKEPT = "unkept"
"""The file with the reason why nothing of a run is kept."""

_log = logging.getLogger(__name__)


class IsOver(NamedTuple):
    """The call has ended as its attempt has."""

    discarded: str = ""
    """Why its changes did not become real. Empty: they did, or it made them itself."""
    unkept: str = ""
    """Why its changes cannot be undone although they should have been kept."""
    changed: ChangedFiles | None = None
    """The changes in short. None: nothing is kept of them."""


NOTHING_KEPT: Mapping[str, IsOver] = {}
"""How runs are over of which nothing was to be kept."""


class RunPlainly(NamedTuple):
    """It has changed nothing, and the next attempt keeps nothing: a rule lets it run, and promises no undo."""

    why: str


class AskAgain(NamedTuple):
    """It has changed nothing, and its human decides again."""

    reason: str
    undo: UndoPlan | None = None
    """How its changes are kept from now on. None: as before."""


Order = Callable[[], Awaitable[None]]
"""Gives the order to start the attempt to its executor."""


class AttemptWay(Protocol):
    """One attempt, from its journaled start to its recorded end."""

    async def start(self, order: Order) -> AskAgain | None:
        """Start it. `AskAgain`: it was not started."""
        ...

    async def settle(self, ended: HasEnded) -> IsOver | RunPlainly | AskAgain:
        """Return what becomes of the call, once its changes are real."""
        ...


def keeps_of(record: CallRecord) -> KeepsChanges:
    """Return how the changes of an attempt that is about to start are kept."""
    decision, plan = record.decision, record.verdict.undo if record.verdict is not None else None
    if not isinstance(decision, Approve) or record.applies or record.in_draft:
        return ""
    if decision.undoable:
        return "view"
    if decision.undoable is False or plan is None or plan.how == "none":
        return ""
    return "" if plan.how == "view" and decision.sandbox is not None else plan.how


@dataclass(frozen=True)
class PlainWay:
    """The command changes the real files, and nothing of them is kept."""

    unkept: str = ""
    """Why the changes are not kept, although an earlier attempt was to keep them."""

    async def start(self, order: Order) -> None:
        """Start it."""
        await order()

    async def settle(self, ended: HasEnded) -> IsOver:
        """Return that the call is over."""
        return IsOver(unkept=self.unkept)


@dataclass(eq=False)
class _KeepingWay:
    """Common to all ways that keep something."""

    changes: KeptChanges
    record: CallRecord
    """As its start was journaled."""

    @property
    def key(self) -> RunKey:
        """The attempt."""
        return RunKey(self.record.id, self.record.attempt or 1)

    @property
    def directory(self) -> str:
        """The directory with the view and the changes of the attempt."""
        return self.changes.directory(self.key)

    async def _made_real(self, work: Callable[[str], None]) -> IsOver:
        """Do the work on the directory with the changes, in a thread.

        Raises `Conflict` if nothing was changed. With a change that had to stay the call is over: it cannot run again.
        """
        try:
            # Two commands that have changed the same file must not both find it as it was.
            async with self.changes.turn(self.record.id), self.changes.turn(self.changes.workspace(self.record)):
                await asyncio.to_thread(work, self.directory)
        except Conflict as conflict:
            if not (stays := what_stays(conflict)):
                raise
            return IsOver(discarded=f"{named_paths(conflict.paths)} changed meanwhile; {stays}")
        except (OSError, ValueError, PreviewTooLarge, TransitionFailed) as error:
            _log.warning("the changes of call %s could not be made real: %s", self.record.id, error)
            return IsOver(discarded=f"they could not be written: {error}")
        return IsOver(changed=await asyncio.to_thread(self._summary))

    def _summary(self) -> ChangedFiles | None:
        preview, store = self.record.preview, self.changes.store_in(self.directory)
        report = preview.report if self.record.applies and preview is not None else None
        try:
            known = report.counts if report is not None else None
            return store.summary(self.changes.workspace(self.record), known) if store.exists else None
        except (OSError, ValueError) as error:
            _log.warning("the changes of call %s cannot be counted: %s", self.record.id, error)
            return None


@dataclass(eq=False)
class InView(_KeepingWay):
    """The command runs in a view of the files, and its changes become real when it ends."""

    async def start(self, order: Order) -> None:
        """Start it."""
        await order()

    async def settle(self, ended: HasEnded) -> IsOver | RunPlainly | AskAgain:
        """Make its changes real, unless there is no view, or others have changed the same files."""
        if isinstance(ended.ending, FailedToStart):
            why = ended.ending.message.rstrip(".")
            return _without_undo(why) if self.record.decided_by_human else RunPlainly(why)
        try:
            return await self._made_real(make_real)
        except Conflict as conflict:
            why = f"{named_paths(conflict.paths)} changed while it ran"
        # What a command has read of its input is gone, and what it has reached by the network has happened.
        if self.record.keeps != "view" or self.record.takes_input or self.record.asked_undoable:
            return IsOver(discarded=why)
        return AskAgain(f"it has changed nothing yet: {why}") if self.record.decided_by_human else RunPlainly(why)


@dataclass(eq=False)
class PreImages(_KeepingWay):
    """The files that the command is about to change are kept before it starts, and compared when it has ended."""

    roots: Callable[[CallRecord], Iterator[Root]]
    """Yields the files and trees to be kept. Raises `NotKept`."""
    clock: Callable[[], float]

    async def start(self, order: Order) -> AskAgain | None:
        """Keep them, and start it. If that is not possible, what a rule lets run starts all the same."""
        place = f"{self._runs}/{KEEPING}/{self.key.call_id}.{self.key.attempt}"
        async with self.changes.turn(self.record.id):
            why = await asyncio.to_thread(self._keep, place)
            if why and self.record.decided_by_human:
                await asyncio.to_thread(remove_tree, place)
                return _without_undo(why)
            await order()
            # The directory of an attempt is made with its order.
            await asyncio.to_thread(_move_in, place, self.directory)
        return None

    async def settle(self, ended: HasEnded) -> IsOver:
        """Find what it has changed."""
        over = IsOver() if isinstance(ended.ending, FailedToStart) else await self._made_real(self._seal)
        with suppress(OSError):
            over = over._replace(unkept=Path(self.directory, UNKEPT).read_text(encoding="utf-8"))
        return over

    @property
    def _runs(self) -> str:
        return str(self.changes.runs)

    def _keep(self, place: str) -> str:
        """Keep the files. Returns why that is not possible, if it is not."""
        remove_tree(place)
        try:
            pre_images.keep(place, self.roots(self.record))
        except (NotKept, OSError) as error:
            _write_unkept(place, str(error))
            return str(error)
        return ""

    def _seal(self, directory: str) -> None:
        _move_in(f"{self._runs}/{KEEPING}/{self.key.call_id}.{self.key.attempt}", directory)
        if Path(directory, UNKEPT).exists():
            return
        ended = run_files.status(f"{attempt_directory(self._runs, self.key)}/{run_files.EXIT}")
        try:
            pre_images.seal(directory, ended.st_mtime_ns if ended is not None else int(self.clock() * 1e9))
        except NotKept as why:
            _write_unkept(directory, str(why))


@dataclass(eq=False)
class ApplyPreview(_KeepingWay):
    """No command is started: the attempt is the preview of the call, whose output and end become those of the call."""

    executor: Executor
    _over: IsOver | None = None

    async def start(self, order: Order) -> AskAgain | None:
        """Make the changes of the preview real. Then its end is reported as that of the call."""
        try:
            self._over = await self._made_real(make_real)
        except Conflict as conflict:
            return AskAgain(f"nothing was applied: {named_paths(conflict.paths)} changed since the preview")
        await self.executor.attach(self.key)
        return None

    async def settle(self, ended: HasEnded) -> IsOver | AskAgain:
        """Return that the call is over."""
        if self._over is not None:
            return self._over
        # An earlier supervisor has made them real, and was killed before it recorded the end.
        try:
            return await self._made_real(make_real)
        except Conflict as conflict:
            return AskAgain(f"nothing was applied: {named_paths(conflict.paths)} changed since the preview")


@dataclass(eq=False)
class InDraft:
    """A human has let the command out, and it runs in the draft of its session: nothing of it becomes real."""

    drafts: OpenDrafts
    record: CallRecord

    async def start(self, order: Order) -> AskAgain | None:
        """Start it when no other command is on the files of the draft, and keep others away until it has ended."""
        session_id = self.record.call.session_id
        if self.record.sandbox is not None:
            # The view would be less than the sandbox: it shows more files, and lets the network in.
            return AskAgain("it runs in the draft of its session, and not in a sandbox as well: approve it without one")
        async with self.drafts.turn(session_id):
            if not self.drafts.has(session_id):
                return AskAgain(OVER, UndoPlan(how="none", why=OVER))
            await order()
            await self.drafts.over(self.record.id)
        return None

    async def settle(self, ended: HasEnded) -> IsOver:
        """Note what it has changed."""
        try:
            await self.drafts.note(self.record.call.session_id, ended.key)
        except OSError as error:
            _log.warning("the changes of call %s in its draft cannot be noted: %s", self.record.id, error)
        return IsOver()


@dataclass(frozen=True)
class AttemptWays:
    """Chooses the way of an attempt."""

    changes: KeptChanges
    executor: Executor
    roots: Callable[[CallRecord], Iterator[Root]]
    clock: Callable[[], float]
    drafts: OpenDrafts

    def of(self, record: CallRecord) -> AttemptWay:
        """Return the way of the attempt of a call whose start is journaled."""
        if record.in_draft and not record.applies:
            return InDraft(self.drafts, record)
        if record.applies:
            return ApplyPreview(self.changes, record, self.executor)
        if record.keeps == "copies":
            return PreImages(self.changes, record, self.roots, self.clock)
        if record.keeps == "view" or record.asked_undoable:
            return InView(self.changes, record)
        return PlainWay()

    async def discard(self, record: CallRecord) -> None:
        """Remove the view of an attempt that has changed nothing, once it is journaled what follows it.

        Until then a next supervisor has to find it: without a view, the attempt would seem to be over.
        """
        await asyncio.to_thread(remove_tree, self.changes.directory(RunKey(record.id, record.attempt or 1)))


def make_real(directory: str) -> None:
    """Make the changes of a view real. One that never was, or was taken away, has none."""
    if Path(directory).exists():
        if not Path(directory, PLAN).exists():
            read_changes(directory)
        transition.apply(directory)


def _without_undo(why: str) -> AskAgain:
    """Return that a human decides again about a call whose changes cannot be kept, although that was promised."""
    return AskAgain(f"it did not run: its changes cannot be kept: {why}", UndoPlan(how="none", why=why))


def _write_unkept(directory: str, why: str) -> None:
    """Leave the reason why nothing is kept of a run in the place of its changes."""
    Path(directory).mkdir(0o700, parents=True, exist_ok=True)
    run_files.write_whole(f"{directory}/{UNKEPT}", why.encode(errors="backslashreplace"))


def _move_in(place: str, directory: str) -> None:
    """Move pre-images to the files of their run, unless they are there."""
    with suppress(FileNotFoundError):
        Path(place).rename(directory)
