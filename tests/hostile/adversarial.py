"""An agent that writes one text into everything that it may fill in."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.in_memory.supervisor import InMemorySupervisor
from tests.in_memory.world import ManualClock
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import ME, Scenario
from whisper_tui.model.call import Argv, CallRequest, ClientInfo, Command, CommandSpec, Function, Session, Shell
from whisper_tui.model.decision import Approve, Decider, Grant, PrefixScope
from whisper_tui.model.ending import Ending, FailedToStart, Lost, Withdrawn
from whisper_tui.model.event import (
    AgentGaveUp,
    Decided,
    Finished,
    Granted,
    SessionDescribed,
    SessionOpened,
    SessionSaid,
)
from whisper_tui.model.shown_rules import Judgement, RuleList, ShownRule
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict


@dataclass
class Adversary:
    """Plays an agent that fills in `text`, whatever it is asked for."""

    text: str
    scenario: Scenario = field(init=False)
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        clock = ManualClock()
        self.scenario = Scenario(InMemorySupervisor(clock), clock)
        text = self.text
        client = ClientInfo(name=f"client {text}", version=f"v {text}", model=f"model {text}")
        self.session = Session(
            id="s1", name=f"name {text}", root=f"/root {text}", client=client, hears=True, opened_at=clock()
        )
        self.scenario.supervisor.happen(
            SessionOpened(at=clock(), session=self.session),
            SessionDescribed(at=clock(), session_id="s1", client=client),
        )

    def ask(self, command: Command | None = None, description: str | None = None) -> str:
        """Ask for a command, by all the texts that there are beside it."""
        text = self.text
        command = command if command is not None else Shell(text=f"run {text}")
        spec = CommandSpec(command=command, cwd=f"/cwd {text}", environment={f"N{text}": f"value {text}"})
        request = CallRequest(
            session_id="s1",
            tool=f"tool {text}",
            arguments={text: text},
            spec=spec,
            description=description if description is not None else f"says {text}",
            asker=f"asker {text}",
        )
        return self.scenario.supervisor.ask(request, self.verdict(), self.resolved())

    def ask_in_every_form(self) -> list[str]:
        """The same as an argv, for a shell, and as a tool of the agent's own."""
        text = self.text
        return [
            self.ask(Argv(program=f"program {text}", args=(text, "end"))),
            self.ask(Shell(text=f"run {text}")),
            self.ask(Function(tool=f"function {text}", arguments={f"key {text}": [f"argument {text}"]})),
        ]

    def verdict(self) -> Verdict:
        """What the policy repeats of it."""
        risk = Risk(id="destructive", sentence=f"risk {self.text}", span=(2, 5))
        return Verdict(kind="ask", reason=f"reason {self.text}", rule=f"rule {self.text}", risks=(risk,))

    def resolved(self) -> Resolved:
        """What the system says of it."""
        text = self.text
        meaning = Meaning(
            words=(f"word {text}", None),
            program=f"/bin {text}",
            through=(f"wrapper {text}",),
            expanded=(f"files {text}",),
            unknown=f"unknown {text}",
        )
        return Resolved(
            program=f"/usr/bin/{text}",
            cwd=f"/real {text}",
            problem=f"problem {text}",
            commands=(meaning,),
            variables={f"V{text}": f"variable {text}"},
        )

    def run(self, call_id: str, output: str = "") -> None:
        """Let it run, print, and leave something behind."""
        scenario = self.scenario
        scenario.supervisor.happen(
            Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=self.somebody())
        )
        scenario.supervisor.start(call_id)
        scenario.supervisor.write(call_id, output.encode("utf-8", "surrogatepass"))
        scenario.supervisor.write(call_id, output.encode("utf-8", "surrogatepass"), "err")
        scenario.supervisor.leave_behind(call_id, f"behind {self.text}")
        scenario.supervisor.happen(AgentGaveUp(at=scenario.clock(), call_id=call_id, why=f"gave up {self.text}"))

    def endings(self) -> list[str]:
        """Calls that ended in every way that has words in it."""
        text, supervisor = self.text, self.scenario.supervisor
        endings: tuple[Ending, ...] = (
            FailedToStart(problem="program_not_found", subject=text, message=f"failed {text}"),
            Withdrawn(why=f"withdrawn {text}"),
            Lost(why=f"lost {text}"),
            {"kind": "denied", "by": self.somebody(), "reason": f"denied {text}"},
        )
        ids = [self.ask() for _ in endings]
        for call_id, ending in zip(ids, endings, strict=True):
            supervisor.happen(Finished(at=self.scenario.clock(), call_id=call_id, ending=ending))
        return ids

    def talk(self) -> None:
        """Say it, in somebody else's name, too."""
        at, supervisor = self.scenario.clock(), self.scenario.supervisor
        supervisor.happen(SessionSaid(at=at, session_id="s1", text=f"said {self.text}", by=self.somebody("agent")))
        supervisor.happen(SessionSaid(at=at, session_id="s1", text=f"asked {self.text}", by=self.somebody()))

    def remember(self) -> None:
        """A human has approved it for the session."""
        spec = CommandSpec(command=Shell(text=f"run {self.text}"), cwd=f"/cwd {self.text}")
        scope = PrefixScope(words=(f"word {self.text}",), directory=f"/dir {self.text}")
        grant = Grant(
            id="g1", session_id="s1", spec=spec, from_call="1", granted_at=self.scenario.clock(), by=ME, scope=scope
        )
        self.scenario.supervisor.happen(Granted(at=self.scenario.clock(), grant=grant))

    def somebody(self, surface: str = "library") -> Decider:
        """Who decides, as they call themselves."""
        return Decider(surface=surface, who=f"who {self.text}")


@dataclass
class AdversarialRuleBook:
    """Rules that an agent has written into its project."""

    adversary: Adversary
    path: Path = Path("rules.toml")

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        text = self.adversary.text
        said = {name: f"{name} {text}" for name in ("subject", "where", "because")}
        rule = ShownRule(effect="ask", name=f"rule {text}", **said, removable=True)
        return RuleList(rules=(rule,), broken=f"broken {text}", path=str(self.path))

    def judge(self, text: str, directory: str) -> Judgement:
        return Judgement(verdict=self.adversary.verdict(), resolved=self.adversary.resolved())

    def remove(self, name: str) -> None:
        raise AssertionError("nobody removes anything here")


@asynccontextmanager
async def cockpit_of(adversary: Adversary, size: tuple[int, int] = (200, 60)) -> AsyncIterator[Cockpit]:
    """A cockpit that shows it, a moment later."""
    async with open_cockpit(adversary.scenario, size=size, rule_book=AdversarialRuleBook(adversary)) as cockpit:
        adversary.scenario.clock.advance(5)
        yield cockpit
