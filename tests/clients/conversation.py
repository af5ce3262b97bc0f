"""Plays one conversation: the scripted model, a real client, whisper_tui, and a human."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.human import Human
from tests.clients.model.script import Answer, Call, Say
from tests.clients.model.server import ScriptedModel
from tests.clients.programs.program import Program
from tests.clients.scenes import ApprovedTooLate, Scene
from tests.clients.stage import Stage
from whisper_tui.model.call import Session
from whisper_tui.model.state import CallRecord, Waiting

LONGEST_S = 480
"""Seconds that a client has for a step of a conversation, its start among them, on a machine that does other things as
well."""

SETTLING_S = 20
"""Seconds in which the supervisor has noticed that the client is gone."""

PROMPT = "Do as the script says."
POLL_S = 0.05

SetUp = Callable[[Stage], None]
AskFor = Callable[[Any, Scene], Call]


@dataclass(frozen=True)
class Played:
    """What is left of a conversation."""

    program: Program
    scenes: Sequence[Scene]
    workspace: Path
    records: dict[Scene, list[CallRecord]]
    """What the cockpit knew about each scene's commands, oldest first."""
    calls: list[CallRecord]
    """All calls, oldest first."""
    sessions: list[Session]
    answers: list[Answer | None]
    """What the model was told after each call, in the order of the scenes."""
    exit_code: int | None
    """The client's own. None: it had to be killed, for it took no more steps."""
    written: str

    def answer(self, scene: Scene) -> Answer:
        """What the model was told about this scene."""
        found = self.answers[self.scenes.index(scene)]
        assert found is not None, f"the client did not tell its model about: {scene.command}\n{self.written}"
        return found

    def record(self, scene: Scene) -> CallRecord:
        """The one call of this scene."""
        records = self.records[scene]
        assert len(records) == 1, f"{len(records)} calls for: {scene.command}\n{self.written}"
        return records[0]

    def session(self, scene: Scene) -> Session:
        """The session that the scene's call came in."""
        wanted = self.record(scene).call.session_id
        return next(session for session in self.sessions if session.id == wanted)


def play(
    program: Program,
    scenes: Sequence[Scene],
    directory: Path,
    *,
    ask_for: AskFor,
    set_up: SetUp,
    interrupt: bool = False,
    also: Sequence[Scene] = (),
    rivals: bool = False,
) -> Played:
    """Play a conversation to its end. With `interrupt`, the user stops the client when the last scene waits.

    `also`: scenes that the model asks for in the same turns as others. Unless there are `rivals`, other hooks that
    change calls, every conversation also shows that nothing raises a false alarm.
    """
    played = asyncio.run(_play(program, scenes, directory, ask_for, set_up, interrupt, also))
    alarmed = [record for record in played.calls if record.alarms]
    assert rivals or not alarmed, f"a false alarm: {alarmed}\n{played.written}"
    return played


async def _play(
    program: Program,
    scenes: Sequence[Scene],
    directory: Path,
    ask_for: AskFor,
    set_up: SetUp,
    interrupt: bool,
    also: Sequence[Scene],
) -> Played:
    turns = [*(ask_for(program, scene) for scene in scenes), Say("That was all.")]
    humans: list[Human] = []

    def is_time(index: int) -> bool:
        """Whether all decisions were made that the model was told to wait for. No clock may decide which came first."""
        late = {scene for scene in scenes[:index] if isinstance(scene.human, ApprovedTooLate)}
        return all(human.problems or late <= human.decided_late for human in humans)

    with ScriptedModel(program.dialect, turns, is_time) as model:
        stage = Stage(directory, program, model.url)
        set_up(stage)
        try:
            told = lambda scene: model.answer(scenes.index(scene)) is not None  # noqa: E731
            async with Human(stage.home, (*scenes, *also), told) as human:
                humans.append(human)
                asked = lambda: len(model.requests)  # noqa: E731
                exit_code = await _run_client(stage, human, scenes[-1] if interrupt else None, asked)
                await _settled(human)
                return Played(
                    program=program,
                    scenes=scenes,
                    workspace=stage.workspace,
                    records={scene: human.records(scene) for scene in (*scenes, *also)},
                    calls=list(human.board.calls.values()),
                    sessions=list(human.board.sessions.values()),
                    answers=[model.answer(index) for index in range(len(scenes))],
                    exit_code=exit_code,
                    written="\n".join((*map(repr, human.problems), stage.written())),
                )
        finally:
            stage.stop()


@asynccontextmanager
async def while_it_goes_on(steps: Callable[[], int]) -> AsyncIterator[None]:
    """Raise `TimeoutError` once the number of steps has stayed the same for `LONGEST_S`."""

    async def watch(limit: asyncio.Timeout) -> None:
        seen = steps()
        while True:
            await asyncio.sleep(POLL_S)
            if (now := steps()) != seen:
                seen = now
                limit.reschedule(asyncio.get_running_loop().time() + LONGEST_S)

    async with asyncio.timeout(LONGEST_S) as limit:
        watching = asyncio.create_task(watch(limit))
        try:
            yield
        finally:
            watching.cancel()


async def _run_client(stage: Stage, human: Human, until: Scene | None, steps: Callable[[], int]) -> int | None:
    """The client's exit code; it is interrupted once the scene `until` waits, and killed if it takes no more steps."""
    client = stage.start_client(PROMPT)
    try:
        with suppress(TimeoutError):
            async with while_it_goes_on(steps):
                if until is not None:
                    waiting = asyncio.create_task(human.waits_for(until))
                    await asyncio.wait({waiting, asyncio.create_task(_ended(client))}, return_when="FIRST_COMPLETED")
                    with suppress(ProcessLookupError):
                        os.killpg(client.pid, signal.SIGINT)
                return await _ended(client)
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(client.pid, signal.SIGKILL)
        client.wait()


async def _ended(client: "subprocess.Popen[bytes]") -> int:
    while (code := client.poll()) is None:
        await asyncio.sleep(POLL_S)
    return code


async def _settled(human: Human) -> None:
    """Wait until all that the client did is known: its sessions end with it, as far as it had any of its own."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLING_S):
            while not _is_settled(human):
                await asyncio.sleep(POLL_S)


def _is_settled(human: Human) -> bool:
    board = human.board
    left = (each for each in board.calls.values() if isinstance(each.state, Waiting) and each.agent_gave_up is None)
    closed = all(each.closed_at for each in board.sessions.values())
    return not board.running and not board.queued and closed and next(left, None) is None
