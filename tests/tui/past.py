"""A scenario with a past: calls of many days."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.in_memory.supervisor import InMemorySupervisor
from tests.in_memory.world import ManualClock
from tests.tui.cockpit import Cockpit
from tests.tui.scenes import ME, Scenario
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


def begin() -> Scenario:
    """Two agents are connected."""
    clock = ManualClock()
    supervisor = PastStage(clock)
    supervisor.open(BUILDER, ROOT, "claude-code", "2.1.329")
    supervisor.open(RELEASER, ROOT, "codex", "0.169.0")
    return Scenario(supervisor, clock)


def ask(scenario: Scenario, *words: str, session_id: str = "s1", verdict: str = "ask", rule: str | None = None) -> str:
    """An agent asks for a command."""
    request = CallRequest(
        session_id=session_id,
        tool="execute_command",
        arguments={"command": words[0], "args": list(words[1:])},
        spec=CommandSpec(command=Argv(program=words[0], args=words[1:]), cwd=ROOT),
        description=f"Run {words[0]}",
    )
    return scenario.supervisor.ask(request, Verdict(kind=verdict, reason="as the rules say", rule=rule))


def ran(scenario: Scenario, *words: str, code: int = 0, by: Decider = ME, wait_s: float = 3, **asked: str) -> str:
    """A command that was decided about, ran and ended."""
    call_id = ask(scenario, *words, **asked)
    scenario.clock.advance(wait_s)
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=by))
    scenario.supervisor.start(call_id)
    scenario.clock.advance(1)
    scenario.supervisor.finish(call_id, Exited(code=code))
    return call_id


def a_month() -> Scenario:
    """Calls of forty days: decided by a human, a rule and memory; of two agents; some fail, one is denied."""
    scenario = begin()
    rule, memory = Decider(surface="rule", who="status"), Decider(surface="memory", who="g1")
    ran(scenario, "make", "old")
    scenario.clock.advance(38 * DAY_S)
    ran(scenario, "git", "status", by=rule, verdict="allow", rule="status", wait_s=0)
    scenario.clock.advance(3 * DAY_S)
    ran(scenario, "make", "test", code=2, wait_s=9)
    ran(scenario, "make", "test", by=memory, verdict="allow", wait_s=0)
    denied = ask(scenario, "rm", "-r", "build", session_id="s2")
    scenario.clock.advance(5)
    deny = Deny(reason="keep it")
    scenario.supervisor.happen(
        Decided(at=scenario.clock(), call_id=denied, decision=deny, by=ME),
        Finished(at=scenario.clock(), call_id=denied, ending={"kind": "denied", "by": ME, "reason": "keep it"}),
    )
    scenario.clock.advance(7200)
    counting(scenario)
    ask(scenario, "git", "push", session_id="s2")
    scenario.clock.advance(30)
    return scenario


def counting(scenario: Scenario) -> str:
    """A run that writes a line to each stream every ten seconds."""
    call_id = ask(scenario, "./count.sh")
    scenario.clock.advance(2)
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=ME))
    scenario.supervisor.start(call_id)
    for number in range(1, 6):
        scenario.clock.advance(10)
        scenario.supervisor.write(call_id, f"\x1b[32mstep {number}\x1b[0m of 5\n".encode())
        scenario.supervisor.write(call_id, f"note {number}\n".encode(), "err")
    scenario.clock.advance(10)
    scenario.supervisor.finish(call_id, Exited(code=0))
    return call_id


@asynccontextmanager
async def history(cockpit: Cockpit) -> AsyncIterator[HistoryScreen]:
    """The history over a cockpit."""
    await cockpit.press("H")
    await cockpit.until(lambda: isinstance(cockpit.app.screen, HistoryScreen))
    screen = cockpit.app.screen
    assert isinstance(screen, HistoryScreen)
    await cockpit.until(lambda: screen.record is not None or screen._past.ended)
    await cockpit.pilot.pause()
    yield screen


def ids(screen: HistoryScreen) -> list[str]:
    """The calls that the history lists, from the top."""
    return [past.id for past in screen.query_one(PastList)._found]
