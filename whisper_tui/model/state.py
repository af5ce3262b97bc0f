"""Where a call stands: a union whose arms carry exactly their own data, and the record around it."""

import signal
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import CommandSpec, Function, digest
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.ending import Ending, Exited, Signalled
from whisper_tui.model.run import NO_LIMITS, BackgroundProcess, Limits, OutputSizes, RunProcess, Usage
from whisper_tui.model.sandbox import Blocked, Sandbox
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import Resolved, Verdict

_STILL = (signal.SIGSTOP, signal.SIGCONT)


class Unjudged(Value):
    """Journaled, and not yet looked at."""

    kind: Literal["unjudged"] = "unjudged"


class Waiting(Value):
    """A human has to decide."""

    kind: Literal["waiting"] = "waiting"
    since: float
    returned_because: str | None = None
    """Why it is asked again after it had been approved. None: it is asked for the first time."""
    edited_before: CommandSpec | None = None
    """What the human had made of it before it came back."""


class Held(Value):
    """Allowed; starts when its agent shows the ticket."""

    kind: Literal["held"] = "held"
    since: float


class Queued(Value):
    """Allowed; waits for a free worker."""

    kind: Literal["queued"] = "queued"
    since: float


class Starting(Value):
    """The order to start was given; the process is not known yet. A tool of the caller's own stays here."""

    kind: Literal["starting"] = "starting"
    attempt: int
    since: float


class Running(Value):
    """The process exists and its leader has not ended."""

    kind: Literal["running"] = "running"
    attempt: int
    process: RunProcess


class Ended(Value):
    """It has its ending. Until `settled`, processes that it left behind may live on."""

    kind: Literal["ended"] = "ended"
    at: float
    ending: Ending
    attempt: int | None = None
    """The attempt that ran. None: nothing was ever started."""
    process: RunProcess | None = None
    output: OutputSizes = OutputSizes()
    usage: Usage | None = None
    settled: bool = True
    blocked: Blocked | None = None
    """What its sandbox kept it from."""


class Claim(Value):
    """What whoever shows a ticket brings along."""

    by: str
    """A word of the claimer's own: who says it again, after a connection was lost, is the same claimer."""
    stdin: bool = False
    """Whether it passes on standard input. False: it has none."""
    without: tuple[str, ...] = ()
    """Names of the session's variables that the agent keeps from its commands."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Harmless variables that the agent gives its commands."""
    follows: bool = False
    """Whether its own shell goes where the command's shell ends."""


CallState = Annotated[
    Unjudged | Waiting | Held | Queued | Starting | Running | Ended,
    Field(discriminator="kind"),
]


class CallRecord(Value):
    """Everything known about one call."""

    call: ToolCall
    state: CallState
    verdict: Verdict | None = None
    resolved: Resolved | None = None
    decision: Decision | None = None
    decided_by: Decider | None = None
    decided_at: float | None = None
    background: tuple[BackgroundProcess, ...] = ()
    signals: tuple[int, ...] = ()
    """Numbers of the signals sent through whisper_tui, oldest first."""
    agent_signals: tuple[int, ...] = ()
    """Those of them that its agent sent."""
    agent_gave_up: str | None = None
    """Why the agent no longer waits for the answer. None: it does."""
    stopping: bool = False
    """Whether the agent has asked for the run to be ended."""
    claim: Claim | None = None
    """Who showed its ticket. None: nobody yet, or it has none."""
    attempts: int = 0
    """How many starts were ordered. More than one only where the earlier ones provably never ran."""
    limits: Limits = NO_LIMITS
    """What its run may use; none while it has not started."""

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def edited(self) -> bool:
        """Whether what runs is not what was asked."""
        return self.spec != self.call.spec

    @property
    def function(self) -> Function | None:
        """The tool that its caller carries out itself. None: the supervisor runs a command."""
        command = self.spec.command
        return command if isinstance(command, Function) else None

    @property
    def spec(self) -> CommandSpec:
        """What runs, or would run: the edited command where a human edited it."""
        if isinstance(self.decision, Approve) and self.decision.edited is not None:
            return self.decision.edited
        return self.call.spec

    @property
    def sandbox(self) -> Sandbox | None:
        """How it is confined. None: it is not, or nothing is decided."""
        return self.decision.sandbox if isinstance(self.decision, Approve) else None

    @property
    def blocked(self) -> Blocked | None:
        """What its sandbox kept it from, once it has ended."""
        return self.state.blocked if isinstance(self.state, Ended) else None

    @property
    def failed_in_sandbox(self) -> bool:
        """Whether it failed, and its sandbox kept it from something: outside of one it might have gone well."""
        return self.blocked is not None and isinstance(self.state, Ended) and self.state.ending != Exited(code=0)

    @property
    def takes_input(self) -> bool:
        """Whether its standard input or terminal stays open while it runs."""
        return self.spec.accepts_input or self.spec.tty or (self.claim is not None and self.claim.stdin)

    @property
    def process(self) -> RunProcess | None:
        """The process, once there is one."""
        return self.state.process if isinstance(self.state, Running | Ended) else None

    @property
    def attempt(self) -> int | None:
        """The attempt that runs or ran. None: nothing was ever started."""
        return self.state.attempt if isinstance(self.state, Starting | Running | Ended) else None

    @property
    def living_background(self) -> tuple[BackgroundProcess, ...]:
        """The processes left behind that are still alive."""
        return tuple(process for process in self.background if process.alive)

    @property
    def paused(self) -> bool:
        """Whether the last signal of the two that hold a run still and let it go on held it still."""
        if isinstance(self.state, Ended) and self.state.settled:
            return False
        held = (number == signal.SIGSTOP for number in reversed(self.signals) if number in _STILL)
        return next(held, False)

    @property
    def ended_by_agent(self) -> bool:
        """Whether the signal that ended it was its agent's, and no human's."""
        if not isinstance(self.state, Ended) or not isinstance(self.state.ending, Signalled):
            return False
        number = self.state.ending.number
        by_others = self.signals.count(number) > self.agent_signals.count(number)
        return self.state.ending.by_us and not by_others and (number in self.agent_signals or self.stopping)

    @property
    def is_open(self) -> bool:
        """Whether anything can still happen: not ended, or something of it is alive."""
        return not (isinstance(self.state, Ended) and self.state.settled)

    def seen_digest(self) -> str:
        """A fingerprint of what an approver sees; a decision about anything else is refused."""
        verdict = self.verdict.model_dump_json() if self.verdict else ""
        resolved = self.resolved.model_dump_json() if self.resolved else ""
        return digest("\n".join((self.call.spec.canonical(), self.call.description, verdict, resolved)))
