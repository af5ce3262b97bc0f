"""A human who looks at the queue through the port, and decides as a scene says."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.clients.scenes import (
    Approved,
    ApprovedThenSignalled,
    ApprovedTooLate,
    ChangedMeanwhile,
    DeniedFor,
    Edited,
    NotDecided,
    Rewritten,
    Scene,
)
from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, CommandSpec, FileEdits, Shell, WriteFile
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.state import CallRecord, Running, Waiting
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient

ME = Decider(surface="cockpit", who="the tests")
POLL_S = 0.02


class Human:
    """Sits at the cockpit's data while a client works; use as an asynchronous context manager."""

    def __init__(self, home: Path, scenes: Sequence[Scene], told: Callable[[Scene], bool]) -> None:
        """`told`: whether the model has been told anything about a scene."""
        places = Directories(config=home / "config", state=home / "state", runtime=home / "run")
        self.port = SupervisorClient.unconnected(places)
        self.board = Board()
        self.problems: list[BaseException] = []
        """What went wrong while deciding."""
        self.decided_late: set[Scene] = set()
        """The scenes that were approved after the model had been told that nobody had decided yet."""
        self._told = told
        self._changed = False
        self._scenes = tuple(dict.fromkeys(scenes))
        self._seen: set[tuple[str, float]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.port.status()
        self._watching = asyncio.create_task(self._watch())
        self._watching.add_done_callback(self._done)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._watching, *self._tasks):
            task.cancel()
        await asyncio.gather(self._watching, *self._tasks, return_exceptions=True)
        await self.port.close()

    def records(self, scene: Scene) -> list[CallRecord]:
        """The calls in which the client asked for this command, oldest first."""
        return [record for record in self.board.calls.values() if scene.command in _text(record.call.spec)]

    async def waits_for(self, scene: Scene) -> CallRecord:
        """Wait until this command waits for a decision."""
        while not (waiting := [each for each in self.records(scene) if isinstance(each.state, Waiting)]):
            await asyncio.sleep(POLL_S)
        return waiting[-1]

    async def _watch(self) -> None:
        async for batch in self.port.watch():
            self.board.apply_all(batch)
            for call_id in tuple(self.board.waiting):
                self._look_at(self.board.record(call_id))

    def _look_at(self, record: CallRecord) -> None:
        """React to a call once for every time that it is asked."""
        assert isinstance(record.state, Waiting)
        asked = (record.id, record.state.since)
        if asked in self._seen:
            return
        self._seen.add(asked)
        for scene in self._scenes:
            if record in self.records(scene):
                task = asyncio.create_task(self._react(record, scene))
                self._tasks.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        with suppress(asyncio.CancelledError):
            if (problem := task.exception()) is not None:
                self.problems.append(problem)

    async def _react(self, record: CallRecord, scene: Scene) -> None:
        match scene.human:
            case Approved():
                await self.decide(record, Approve())
            case Edited(command=command):
                await self.decide(record, Approve(edited=_with_text(record.call.spec, command)))
            case DeniedFor(reason=reason):
                await self.decide(record, Deny(reason=reason))
            case Rewritten(content=content):
                await self.decide(record, Approve(edited=_with_result(record.call.spec, content)))
            case ChangedMeanwhile(content=content):
                await self._change_meanwhile(record, content)
            case ApprovedThenSignalled(number=number):
                await self.decide(record, Approve())
                await self._once_it_wrote(record.id)
                await self.port.signal(record.id, number, "tree", ME)
            case ApprovedTooLate():
                while not self._told(scene):
                    await asyncio.sleep(POLL_S)
                await self.decide(record, Approve())
                self.decided_late.add(scene)
            case NotDecided():
                pass

    async def _change_meanwhile(self, record: CallRecord, content: str) -> None:
        """Change the file before the first answer. The second question is about the file as it then is."""
        if not self._changed:
            self._changed = True
            Path(_edits_of(record.call.spec).changes[0].path).write_text(content)
            await self.decide(record, Approve())
        else:
            await self.decide(record, Deny(reason="it has changed meanwhile"))

    async def decide(self, record: CallRecord, decision: Decision) -> None:
        """Decide about what the record shows."""
        await self.port.decide(record.id, decision, ME, record.seen_digest())

    async def _once_it_wrote(self, call_id: str) -> None:
        while not isinstance(self.board.record(call_id).state, Running):
            await asyncio.sleep(POLL_S)
        while not (await self.port.read_output(call_id, "out", 0, 1)).data:
            await asyncio.sleep(POLL_S)


def _text(spec: CommandSpec) -> str:
    """The command as it was asked for."""
    return " ".join(spec.command.words())


def _edits_of(spec: CommandSpec) -> FileEdits:
    assert isinstance(spec.command, FileEdits)
    return spec.command


def _with_result(spec: CommandSpec, content: str) -> CommandSpec:
    """The edit with another content of its one file."""
    edits = _edits_of(spec)
    result = WriteFile(path=edits.changes[0].path, content=content)
    return spec.model_copy(update={"command": edits.model_copy(update={"changes": (result,)})})


def _with_text(spec: CommandSpec, command: str) -> CommandSpec:
    if isinstance(spec.command, Shell):
        return spec.model_copy(update={"command": spec.command.model_copy(update={"text": command})})
    program, *rest = command.split()
    return spec.model_copy(update={"command": Argv(program=program, args=tuple(rest))})
