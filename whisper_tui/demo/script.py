"""The demo without a terminal: a scripted human decides, every step is printed, and nothing is taken on trust."""

import re
import shlex
import signal
from collections.abc import Callable
from typing import assert_never

from whisper_tui.demo.agent import Player, connect
from whisper_tui.demo.checks import complaints_about
from whisper_tui.demo.onlooker import Onlooker, StoryBroke, looking_on
from whisper_tui.demo.story import SCENES, Agent, Approves, Denies, Edits, IsNotAsked, Move, Scene
from whisper_tui.demo.workspace import Workspace
from whisper_tui.model.command import Argv, Command
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Ended, Running, Waiting
from whisper_tui.model.text import visible
from whisper_tui.tools import Answer, ToolFailure

HUMAN = Decider(surface="demo", who="the script")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TOLD_LINES = 2
"""How many of the last lines of an output are printed."""


async def run_without_terminal(supervision: Supervision, workspace: Workspace, write: Callable[[str], None]) -> bool:
    """Play the whole story, writing it line by line. Returns whether it came out as it is told."""
    write("whisper_tui demo: scripted agents ask, a scripted human decides, and the commands are real.")
    write(f"The agents work in {workspace.root}, which exists for this demo alone.")
    async with looking_on(supervision) as onlooker:
        stage = _Stage(supervision, onlooker, await connect(supervision, workspace), write)
        good = True
        for number, scene in enumerate(SCENES, start=1):
            write("")
            write(f"{number:>2}. The {scene.agent} wants to {scene.title}.")
            good = await stage.play(scene) and good
        good = await stage.end() and good
    write("")
    write("Everything came out as the story says." if good else "Not everything came out as the story says.")
    return good


class _Stage:
    """Where the scenes are played, one after the other."""

    def __init__(
        self,
        supervision: Supervision,
        onlooker: Onlooker,
        players: dict[Agent, Player],
        write: Callable[[str], None],
    ) -> None:
        self._supervision = supervision
        self._onlooker = onlooker
        self._players = players
        self._write = write

    async def play(self, scene: Scene) -> bool:
        """One scene. Returns whether it came out as it is told."""
        try:
            complaints = await self._play(scene)
        except StoryBroke as broken:
            complaints = [broken.sentence()]
        for complaint in complaints:
            self._say("WRONG", complaint)
        return not complaints

    async def _play(self, scene: Scene) -> list[str]:
        player = self._players[scene.agent]
        call_id = await player.ask(scene)
        asked = await self._supervision.record(call_id)
        self._say("asks", f"{scene.tool}: {command_line(asked.call.spec.command)}")
        if asked.call.description:
            self._say("says", asked.call.description)
        await self._decide(scene.move, call_id)
        await self._type(scene, call_id)
        record = await self._onlooker.see(call_id, lambda seen: isinstance(seen.state, Ended), "to have its ending")
        heard = await player.hear(scene, call_id)
        self._tell(record, heard)
        complaints = await complaints_about(scene, record, heard, self._supervision)
        if scene.leaves:
            complaints += await self._end_background(scene, record)
        return complaints

    async def _decide(self, move: Move, call_id: str) -> None:
        if isinstance(move, IsNotAsked):
            self._say("human", "is not asked: the same command was approved for the session")
            return
        record = await self._onlooker.see(call_id, lambda seen: isinstance(seen.state, Waiting | Ended), "to be asked")
        if not isinstance(record.state, Waiting):
            raise StoryBroke(f"call {call_id} was over before the human was asked")
        decision, words = decision_of(move, record)
        self._say("human", words)
        await self._supervision.decide(call_id, decision, HUMAN, record.seen_digest())

    async def _type(self, scene: Scene, call_id: str) -> None:
        for question, line in scene.typed:
            await self._onlooker.see(call_id, lambda seen: isinstance(seen.state, Running | Ended), "to start")
            await self._onlooker.read(call_id, question)
            self._say("human", f"reads {question.strip()!r} and types {line!r}")
            await self._supervision.write_stdin(call_id, f"{line}\n".encode())

    async def _end_background(self, scene: Scene, record: CallRecord) -> list[str]:
        """The human sees what goes on, signals all of it, and sees it gone."""
        await self._onlooker.read(record.id, scene.printed.out.splitlines()[-1])
        left = record.living_background
        pids = ", ".join(str(process.identity.pid) for process in left)
        self._say("human", f"sees it go on in the background (process {pids}) and sends it SIGTERM")
        await self._supervision.signal(record.id, signal.SIGTERM, "tree", HUMAN)
        gone = await self._onlooker.see(record.id, lambda seen: not seen.is_open, "to have nothing left alive")
        self._say("ended", "nothing of it is alive any more; its output is complete")
        return [f"process {process.identity.pid} is still alive" for process in gone.living_background]

    def _tell(self, record: CallRecord, heard: Answer | ToolFailure) -> None:
        if isinstance(heard, ToolFailure):
            self._say("told", heard.message)
            return
        if not isinstance(record.state, Ended):
            return
        sizes = record.state.output
        self._say("told", f"{ending_words(record)}; {sizes.out:,} bytes of output, {sizes.err:,} of errors")
        for line in last_lines(str(heard.result["stdout"])) + last_lines(str(heard.result["stderr"])):
            self._say("", f"| {line}")
        if heard.told:
            self._say("and", heard.told)

    async def end(self) -> bool:
        """Leave, and look that nothing is left over. Returns whether nothing is."""
        for player in self._players.values():
            await self._supervision.close_session(player.session_id, "the story is over")
        self._write("")
        try:
            await self._onlooker.see_quiet()
        except StoryBroke as broken:
            self._say("WRONG", broken.sentence())
            return False
        self._write(f"{len(SCENES)} calls are over. Nothing waits, nothing runs, nothing is left in the background.")
        return True

    def _say(self, who: str, words: str) -> None:
        self._write(f"      {who:<6} {visible(words)}")


def decision_of(move: Approves | Edits | Denies, record: CallRecord) -> tuple[Decision, str]:
    """What the human decides about a waiting call, and how the script calls it."""
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
                raise StoryBroke(f"call {record.id} has no arguments to edit")
            edited = spec.command.model_copy(update={"args": args})
            change = spec.model_copy(update={"command": edited})
            return Approve(edited=change), f"changes it to {command_line(edited)}, and approves that"
        case _:
            assert_never(move)


def command_line(command: Command) -> str:
    """A command as one would type it."""
    return shlex.join(command.words()) if isinstance(command, Argv) else command.text


def ending_words(record: CallRecord) -> str:
    """How a call ended, in a few words."""
    match record.state:
        case Ended(ending=ending) if ending.kind == "exited":
            return f"exit code {ending.code}"
        case Ended(ending=ending):
            return ending.kind.replace("_", " ")
        case state:
            return state.kind


def last_lines(text: str) -> list[str]:
    """The last lines of an output as a printer shows them: no colours, and of an overwritten line the last state."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in COLOURS.sub("", text[-4096:]).split("\n")]
    return [line.rstrip() for line in lines if line.strip()][-TOLD_LINES:]
