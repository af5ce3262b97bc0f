"""A stage with a past: calls of many days."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.in_memory.supervisor import InMemorySupervisor
from tests.in_memory.world import ManualClock
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import ME, Play
from whisper_tui.demo.story import BUILDER, RELEASER
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided, Finished
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Verdict
from whisper_tui.tui.screens.history_screen import HistoryScreen
from whisper_tui.tui.screens.past_calls import PastList

ROOT = "/home/me/garden"
DAY_S = 86_400


class PastStage(InMemorySupervisor):
    """Counts how many calls it was asked for."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.handed_out = 0

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        found = await super().history(query)
        self.handed_out += len(found)
        return found


def begin() -> Play:
    """Two agents are connected."""
    clock = ManualClock()
    stage = PastStage(clock)
    stage.open(BUILDER, ROOT, "claude-code", "2.1.329")
    stage.open(RELEASER, ROOT, "codex", "0.169.0")
    return Play(stage, clock)


def ask(play: Play, *words: str, session_id: str = "s1", verdict: str = "ask", rule: str | None = None) -> str:
    """An agent asks for a command."""
    request = CallRequest(
        session_id=session_id,
        tool="execute_command",
        arguments={"command": words[0], "args": list(words[1:])},
        spec=CommandSpec(command=Argv(program=words[0], args=words[1:]), cwd=ROOT),
        description=f"Run {words[0]}",
    )
    return play.stage.ask(request, Verdict(kind=verdict, reason="as the rules say", rule=rule))


def ran(play: Play, *words: str, code: int = 0, by: Decider = ME, wait_s: float = 3, **asked: str) -> str:
    """A command that was decided about, ran and ended."""
    call_id = ask(play, *words, **asked)
    play.clock.advance(wait_s)
    play.stage.happen(Decided(at=play.clock(), call_id=call_id, decision=Approve(), by=by))
    play.stage.start(call_id)
    play.clock.advance(1)
    play.stage.finish(call_id, Exited(code=code))
    return call_id


def a_month() -> Play:
    """Calls of forty days: decided by a human, a rule and memory; of two agents; some fail, one is denied."""
    play = begin()
    rule, memory = Decider(surface="rule", who="status"), Decider(surface="memory", who="g1")
    ran(play, "make", "old")
    play.clock.advance(38 * DAY_S)
    ran(play, "git", "status", by=rule, verdict="allow", rule="status", wait_s=0)
    play.clock.advance(3 * DAY_S)
    ran(play, "make", "test", code=2, wait_s=9)
    ran(play, "make", "test", by=memory, verdict="allow", wait_s=0)
    denied = ask(play, "rm", "-r", "build", session_id="s2")
    play.clock.advance(5)
    deny = Deny(reason="keep it")
    play.stage.happen(
        Decided(at=play.clock(), call_id=denied, decision=deny, by=ME),
        Finished(at=play.clock(), call_id=denied, ending={"kind": "denied", "by": ME, "reason": "keep it"}),
    )
    play.clock.advance(7200)
    counting(play)
    ask(play, "git", "push", session_id="s2")
    play.clock.advance(30)
    return play


def counting(play: Play) -> str:
    """A run that writes a line to each stream every ten seconds."""
    call_id = ask(play, "./count.sh")
    play.clock.advance(2)
    play.stage.happen(Decided(at=play.clock(), call_id=call_id, decision=Approve(), by=ME))
    play.stage.start(call_id)
    for number in range(1, 6):
        play.clock.advance(10)
        play.stage.write(call_id, f"\x1b[32mstep {number}\x1b[0m of 5\n".encode())
        play.stage.write(call_id, f"note {number}\n".encode(), "err")
    play.clock.advance(10)
    play.stage.finish(call_id, Exited(code=0))
    return call_id


@asynccontextmanager
async def history(seat: Cockpit) -> AsyncIterator[HistoryScreen]:
    """The history over a cockpit."""
    await seat.press("H")
    await seat.until(lambda: isinstance(seat.app.screen, HistoryScreen))
    screen = seat.app.screen
    assert isinstance(screen, HistoryScreen)
    await seat.until(lambda: screen.record is not None or screen._past.ended)
    await seat.pilot.pause()
    yield screen


def ids(screen: HistoryScreen) -> list[str]:
    """The calls that the history lists, from the top."""
    return [past.id for past in screen.query_one(PastList)._found]
