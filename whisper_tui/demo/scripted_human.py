"""The demo without a terminal: a scripted human watches, decides, prints every step and checks the results."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import assert_never

from whisper_tui.demo.scripted_agents import DemoAgent, Workspace, connect
from whisper_tui.demo.story import (
    CRAWL_LINES,
    SCENES,
    Agent,
    AppliesPreview,
    Approves,
    Denies,
    Edits,
    IsNotAsked,
    Move,
    Rewrites,
    StoryScene,
    crawl_line,
)
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, FileEdits, WriteFile
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.ending import Exited, HandedOver
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Running, Waiting
from whisper_tui.model.text import visible
from whisper_tui.present.preview_text import counts_text
from whisper_tui.tools import Answer, ToolFailure
from whisper_tui.tools.agent_text import without_frames

PATIENCE_S = 60.0
"""Seconds after which an expected event counts as missing."""
LOOK_S = 0.02
"""Seconds between two reads of a command's output: no event announces it (decision 3)."""


class StoryFailed(WhisperError):
    """The demo deviated from its story."""

    kind = "story_broke"


class StoryObserver:
    """Follows the events, like a cockpit."""

    def __init__(self, supervision: Supervision) -> None:
        self.board = Board()
        self._supervision = supervision
        self._news = asyncio.Condition()

    async def see(self, call_id: str, wanted: Callable[[CallRecord], bool], what: str) -> CallRecord:
        """Wait until a call's record is as wanted, and return it. Raises `StoryFailed` on a timeout."""
        # The condition is checked with each batch of events, also for calls that ended before anybody waited.
        await self._until(
            lambda: call_id in self.board.calls and wanted(self.board.calls[call_id]), f"call {call_id} {what}"
        )
        return self.board.calls[call_id]

    async def see_quiet(self) -> None:
        """Wait until no call waits or runs, and no process is left behind. Raises `StoryFailed`."""
        board = self.board
        await self._until(
            lambda: (
                not (board.waiting or board.aside or board.held or board.queued or board.running or board.unsettled)
            ),
            "everything to be over",
        )

    async def read(self, call_id: str, text: str) -> None:
        """Wait until a command's standard output contains this text. Raises `StoryFailed` on a timeout."""
        wanted = text.encode()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    chunk = await self._supervision.read_output(call_id, "out", 0, 65_536)
                    if wanted in chunk.data:
                        return
                    if chunk.ended:
                        raise StoryFailed(f"call {call_id} ended without writing this: {text}")
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise StoryFailed(f"call {call_id} did not write this within {PATIENCE_S:g} s: {text}") from None

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(holds)
        except TimeoutError:
            raise StoryFailed(f"this did not happen within {PATIENCE_S:g} s: {what}") from None

    async def _watch(self) -> None:
        async for events in self._supervision.watch():
            async with self._news:
                self.board.apply_all(events)
                self._news.notify_all()


@asynccontextmanager
async def observing(supervision: Supervision) -> AsyncIterator[StoryObserver]:
    """Yield an observer that follows the events until the end of the block."""
    observer = StoryObserver(supervision)
    watching = asyncio.create_task(observer._watch(), name="the scripted human watches")
    try:
        yield observer
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def deviations(
    scene: StoryScene, record: CallRecord, heard: Answer | ToolFailure, supervision: Supervision
) -> list[str]:
    """Return how an ended call and its answer deviate from the story; empty if they do not."""
    decided = [] if _decided_by(record) == _expected_decider(scene) else [f"it was decided by {_decided_by(record)}"]
    if isinstance(scene.move, Denies):
        return decided + _about_denial(scene.move, record, heard)
    if isinstance(heard, ToolFailure):
        return [*decided, f"the agent was told that it failed: {heard.message}"]
    return [
        *decided,
        *_about_ending(scene, record),
        *_about_output(scene, heard),
        *_about_words(scene, heard),
        *await _about_size(scene, record, supervision),
    ]


def _decided_by(record: CallRecord) -> str:
    return record.decided_by.surface if record.decided_by else "nobody"


def _expected_decider(scene: StoryScene) -> str:
    return "memory" if isinstance(scene.move, IsNotAsked) else "demo"


def _about_denial(move: Denies, record: CallRecord, heard: Answer | ToolFailure) -> list[str]:
    if record.process is not None:
        return ["it ran although it was denied"]
    if not isinstance(heard, ToolFailure) or move.reason not in heard.message:
        return ["the agent was not told the reason word for word"]
    return []


def _about_ending(scene: StoryScene, record: CallRecord) -> list[str]:
    ending = record.state.ending if isinstance(record.state, Ended) else None
    if scene.exit_code is None:
        return [] if ending == HandedOver() else [f"its agent should have carried it out: {ending!r}"]
    if ending != Exited(code=scene.exit_code or 0):
        return [f"it should have ended with exit code {scene.exit_code}, not as {ending!r}"]
    return []


def _about_output(scene: StoryScene, heard: Answer) -> list[str]:
    out, err = str(heard.result["stdout"]), str(heard.result["stderr"])
    if not scene.printed.whole:
        first = scene.printed.out.splitlines()[0]
        return [] if first in out else [f"its output lacks the line {first!r}"]
    return [
        f"its {name} should have been {should!r}, not {was!r}"
        for name, should, was in (("output", scene.printed.out, out), ("errors", scene.printed.err, err))
        # Of lines that were written over, agents get the last state, and a word about the others.
        if should != was and not was.startswith(without_frames(should)[0].rstrip("\n"))
    ]


def _about_words(scene: StoryScene, heard: Answer) -> list[str]:
    if scene.told and scene.told not in (heard.told or ""):
        return [f"the agent was not told {scene.told!r}"]
    if scene.leaves and not heard.result["backgroundPids"]:
        return ["the agent was not told which process is in the background"]
    return []


async def _about_size(scene: StoryScene, record: CallRecord, supervision: Supervision) -> list[str]:
    """Check that a long output has all its bytes, and its last line."""
    if scene.out_bytes is None:
        return []
    end = await supervision.read_output(record.id, "out", -100, 100)
    complaints = [] if end.size == scene.out_bytes else [f"{end.size:,} of {scene.out_bytes:,} bytes were kept"]
    if end.data != crawl_line(CRAWL_LINES).encode():
        complaints.append("the last line of its output is not there")
    return complaints


HUMAN = Decider(surface="demo", who="the script")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TOLD_LINES = 2
"""Number of last lines of an output that are printed."""


async def run_without_terminal(supervision: Supervision, workspace: Workspace, write: Callable[[str], None]) -> bool:
    """Play the whole story and write it line by line. Returns whether it succeeded."""
    write("whisper_tui demo: scripted agents ask, a scripted human decides, and the commands are real.")
    write(f"The agents work in {workspace.root}, which exists for this demo alone.")
    async with observing(supervision) as observer:
        human = _ScriptedHuman(supervision, observer, await connect(supervision, workspace), write)
        good = True
        for number, scene in enumerate(SCENES, start=1):
            write("")
            write(f"{number:>2}. The {scene.agent} wants to {scene.title}.")
            good = await human.play(scene) and good
        good = await human.end() and good
    write("")
    write("Everything happened as the story says." if good else "Not everything happened as the story says.")
    return good


class _ScriptedHuman:
    """Plays the scenes one after another: decides, types and signals as the story says."""

    def __init__(
        self,
        supervision: Supervision,
        observer: StoryObserver,
        agents: dict[Agent, DemoAgent],
        write: Callable[[str], None],
    ) -> None:
        self._supervision = supervision
        self._observer = observer
        self._agents = agents
        self._write = write

    async def play(self, scene: StoryScene) -> bool:
        """Play one scene. Returns whether it succeeded."""
        try:
            complaints = await self._play(scene)
        except StoryFailed as broken:
            complaints = [broken.sentence()]
        for complaint in complaints:
            self._say("WRONG", complaint)
        return not complaints

    async def _play(self, scene: StoryScene) -> list[str]:
        player = self._agents[scene.agent]
        call_id = await player.ask(scene)
        asked = await self._supervision.record(call_id)
        text = asked.call.spec.command.text
        self._say("asks", text if asked.function else f"{scene.tool}: {text}")
        if asked.call.description:
            self._say("says", asked.call.description)
        # An agent waits from the beginning: what it carries out itself ends only when it has taken it over.
        hearing = asyncio.create_task(player.hear(scene, call_id))
        try:
            return await self._decided(scene, call_id, hearing)
        finally:
            hearing.cancel()

    async def _decided(
        self, scene: StoryScene, call_id: str, hearing: "asyncio.Task[Answer | ToolFailure]"
    ) -> list[str]:
        """Decide about a call as the story says, and return how it deviates from that."""
        await self._decide(scene.move, call_id)
        await self._type(scene, call_id)
        record = await self._observer.see(call_id, lambda seen: isinstance(seen.state, Ended), "to have its ending")
        heard = await hearing
        self._tell(record, heard)
        complaints = await deviations(scene, record, heard, self._supervision)
        if scene.leaves:
            complaints += await self._end_background(scene, record)
        return complaints

    async def _decide(self, move: Move, call_id: str) -> None:
        if isinstance(move, IsNotAsked):
            self._say("human", "is not asked: the same command was approved for the session")
            return
        record = await self._observer.see(call_id, lambda seen: isinstance(seen.state, Waiting | Ended), "to be asked")
        if not isinstance(record.state, Waiting):
            raise StoryFailed(f"call {call_id} was over before the human was asked")
        decision, words = (
            await self._previewed(call_id) if isinstance(move, AppliesPreview) else decision_of(move, record)
        )
        self._say("human", words)
        await self._supervision.decide(call_id, decision, HUMAN, record.seen_digest())

    async def _previewed(self, call_id: str) -> tuple[Decision, str]:
        """Preview a call, and return the decision to make its changes real, or to run it where that is impossible."""
        await self._supervision.preview(call_id, HUMAN)
        self._say("human", "has a look at what it would change, in a preview")
        record = await self._observer.see(call_id, _is_previewed, "to be previewed")
        report = record.preview.report if record.preview is not None else None
        if report is None or record.preview is None or not record.preview.can_be_applied:
            return Approve(), f"approves it; it was not previewed: {report.problem if report else 'no report'}"
        return Approve(preview=report.digest), f"has just these changes made: {counts_text(report.counts)}"

    async def _type(self, scene: StoryScene, call_id: str) -> None:
        for question, line in scene.typed:
            await self._observer.see(call_id, lambda seen: isinstance(seen.state, Running | Ended), "to start")
            await self._observer.read(call_id, question)
            self._say("human", f"reads {question.strip()!r} and types {line!r}")
            await self._supervision.write_stdin(call_id, f"{line}\n".encode())

    async def _end_background(self, scene: StoryScene, record: CallRecord) -> list[str]:
        """End the background processes of a scene by a signal, and wait until they are gone."""
        await self._observer.read(record.id, scene.printed.out.splitlines()[-1])
        left = record.living_background
        pids = ", ".join(str(process.identity.pid) for process in left)
        self._say("human", f"sees it go on in the background (process {pids}) and sends it SIGTERM")
        await self._supervision.signal(record.id, signal.SIGTERM, "tree", HUMAN)
        gone = await self._observer.see(record.id, lambda seen: not seen.is_open, "to have nothing left alive")
        self._say("ended", "nothing of it is alive any more; its output is complete")
        return [f"process {process.identity.pid} is still alive" for process in gone.living_background]

    def _tell(self, record: CallRecord, heard: Answer | ToolFailure) -> None:
        if isinstance(heard, ToolFailure):
            self._say("told", heard.message)
            return
        if not isinstance(record.state, Ended):
            return
        sizes = record.state.output
        carried_out = isinstance(record.state.ending, HandedOver)
        if carried_out:
            self._say("told", "to go on: its own tool does it, and this is the file now")
        else:
            self._say("told", f"{ending_words(record)}; {sizes.out:,} bytes of output, {sizes.err:,} of errors")
        for line in last_lines(str(heard.result["stdout"])) + last_lines(str(heard.result["stderr"])):
            self._say("", f"| {line}")
        if heard.told:
            self._say("and", heard.told)

    async def end(self) -> bool:
        """Close the sessions. Returns whether no call and no process is left."""
        for player in self._agents.values():
            await self._supervision.close_session(player.session_id, "the story is over")
        self._write("")
        try:
            await self._observer.see_quiet()
        except StoryFailed as broken:
            self._say("WRONG", broken.sentence())
            return False
        self._write(f"{len(SCENES)} calls are over. Nothing waits, nothing runs, nothing is left in the background.")
        return True

    def _say(self, who: str, words: str) -> None:
        self._write(f"      {who:<6} {visible(words)}")


def _is_previewed(record: CallRecord) -> bool:
    return record.preview is not None and record.preview.report is not None


def decision_of(move: Approves | Edits | Rewrites | Denies, record: CallRecord) -> tuple[Decision, str]:
    """Return the human's decision about a waiting call, and its description."""
    match move:
        case Approves(for_session=True):
            return Approve(remember="exact_for_session"), "approves it, and the same command for the session"
        case Approves():
            return Approve(), "approves it"
        case Denies(reason=reason):
            return Deny(reason=reason), f"denies it: {reason}"
        case Edits(args=args):
            spec = record.call.spec
            if not isinstance(spec.command, Argv):
                raise StoryFailed(f"call {record.id} has no arguments to edit")
            edited = spec.command.model_copy(update={"args": args})
            change = spec.model_copy(update={"command": edited})
            return Approve(edited=change), f"changes it to {edited.text}, and approves that"
        case Rewrites(content=content):
            spec = record.call.spec
            if not isinstance(spec.command, FileEdits):
                raise StoryFailed(f"call {record.id} edits no file")
            changes = (WriteFile(path=spec.command.changes[0].path, content=content),)
            result = spec.command.model_copy(update={"changes": changes})
            edited_file = spec.model_copy(update={"command": result})
            return Approve(edited=edited_file), "takes a line out of the result, and approves that"
        case _:
            assert_never(move)


def ending_words(record: CallRecord) -> str:
    """Describe the ending of a call, in a few words."""
    match record.state:
        case Ended(ending=ending) if ending.kind == "exited":
            return f"exit code {ending.code}"
        case Ended(ending=ending):
            return ending.kind.replace("_", " ")
        case state:
            return state.kind


def last_lines(text: str) -> list[str]:
    """Return the last lines of an output without colours; of an overwritten line only its final state."""
    # Only the end: a noisy command prints 40 MB.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in COLOURS.sub("", text[-4096:]).split("\n")]
    return [line.rstrip() for line in lines if line.strip()][-TOLD_LINES:]
