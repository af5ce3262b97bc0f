"""States of calls: a union whose arms carry exactly their own data; the record of a call; machines."""

import signal
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.call import CarriedOut, CommandSpec, FileEdits, ToolCall, digest
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.ending import Ending, Exited, FailedToStart, HandedOver, Signalled
from whisper_tui.model.preview import ChangedFiles, KeepsChanges, Preview, Undo
from whisper_tui.model.run import (
    NO_LIMITS,
    BackgroundProcess,
    Blocked,
    Limits,
    OutputSizes,
    RunProcess,
    Sandbox,
    Stall,
    StallNews,
    Usage,
)
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import IN_DRAFT, Resolved, Verdict

MOST_UNDOS = 20
"""Undos and redos of one call that its record keeps; the journal has all of them."""
NO_UNDO_WANTED = "it ran normally, not held back"
"""Why nothing is kept of most commands: nobody has asked for it."""
_STILL = (signal.SIGSTOP, signal.SIGCONT)


LONGEST_ALARM = 2_000
"""Characters of a text in an alarm."""
MOST_ALARMS = 4
"""Alarms of one call. The first ones say what matters; agents could raise any number."""


class Alarm(Value):
    """A sign that an agent's program did something else than what was approved (decision 34)."""

    kind: Literal["replaced", "missing"]
    """*replaced*: the program says that it ran something else. *missing*: the ticket of the call was not shown."""
    approved: str = Field(max_length=LONGEST_ALARM)
    """The command that was approved, or the arguments with which a tool was allowed."""
    ran: str = Field(default="", max_length=LONGEST_ALARM)
    """The same as the program says that it ran. Empty: that is unknown."""
    at: float = 0.0
    """Seconds since the epoch. 0: as in the event, which has it."""

    def word(self) -> str:
        """Say it in a word or two, for a column."""
        return "did not come" if self.kind == "missing" else "replaced"

    def words(self) -> str:
        """Say it as a clause."""
        if self.kind == "missing":
            return "it was approved and did not come: something else may have run"
        return "the agent's program ran something else in its place, outside of whisper_tui"


class Unjudged(Value):
    """Journaled, and not yet judged."""

    kind: Literal["unjudged"] = "unjudged"


class Aside(Value):
    """A human has moved a waiting call out of the way, without a decision about it."""

    by: Decider
    since: float
    """Seconds since the epoch."""


class PendingYes(Value):
    """A phone's yes that the desk can still withdraw."""

    by: Decider
    until: float
    """Seconds since the epoch, from which on it counts."""


WENT_ON = "it was told that the call is set aside"
"""Why an agent no longer waits for the answer to a call that a human has set aside (decision 39)."""


class Waiting(Value):
    """Waits for a human's decision."""

    kind: Literal["waiting"] = "waiting"
    since: float
    aside: Aside | None = Field(default=None, exclude_if=not_)
    """Set aside by a human. None: it is not."""
    yes: PendingYes | None = Field(default=None, exclude_if=not_)
    """A phone's yes that does not count yet. None: there is none."""
    returned_because: str | None = None
    """The reason to ask again after an approval. None: it is asked for the first time."""
    edited_before: CommandSpec | None = None
    """The command as a human had edited it before the call was queued for approval again."""


class Held(Value):
    """Approved; starts when its agent shows the ticket."""

    kind: Literal["held"] = "held"
    since: float


class Queued(Value):
    """Approved; starts as soon as nothing keeps it (decision 15)."""

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
    """The call has ended. Until `settled`, processes that it left behind may still run."""

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
    """Attempts that its sandbox refused."""
    discarded: str = ""
    """Why the changes that it made in its view of the files did not become real, as a clause. Empty: they did."""
    unkept: str = ""
    """Why its changes cannot be undone although they should have been kept, as a clause."""
    changed: ChangedFiles | None = Field(default=None, exclude_if=not_)
    """Its changes, where they are kept. None: they are not known."""


class ShellReport(Value):
    """The variables and the profile of the agent's own shell, as the process that shows a ticket has them.

    They may be secret, so they are kept in the private file of the session and never in the journal (decision 2).
    """

    names: tuple[str, ...]
    """Names of all its variables."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Their values, as far as they are reported."""
    profile: str = ""
    """Absolute path of the file of functions and aliases that the shell has read. Empty: none is known."""


class Claim(Value):
    """Claim of an approved call by the process that shows its ticket."""

    by: str
    """A token of the claimer, by which it is recognized after a lost connection."""
    stdin: bool = False
    """True if it passes on standard input. False: it has none."""
    without: tuple[str, ...] = ()
    """Names of the session's variables that the agent keeps from its commands."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Harmless variables that the agent gives its commands."""
    follows: bool = False
    """True if its own shell goes where the command's shell ends."""


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
    heard: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Messages of humans to the session that its agent gets with the answer to this call."""
    knows_previews: bool = Field(default=False, exclude_if=not_)
    """True if an earlier call of its session had its preview made real: its answer has told the agent what it means."""
    background: tuple[BackgroundProcess, ...] = ()
    signals: tuple[int, ...] = ()
    """Numbers of the signals sent through whisper_tui, oldest first."""
    agent_signals: tuple[int, ...] = ()
    """Those of them that its agent sent."""
    agent_gave_up: str | None = None
    """Why the agent no longer waits for the answer. None: it does."""
    stopping: bool = False
    """True if the agent has asked for the run to be ended."""
    claim: Claim | None = None
    """The process that showed the ticket. None: nobody yet, or the call has no ticket."""
    attempts: int = 0
    """Number of starts and previews. More than one start only if the earlier ones provably never ran."""
    limits: Limits = NO_LIMITS
    """Resource limits of its run; none before the start."""
    reverted_by: Decider | None = None
    """The human who has put back the files of this edit. None: nobody has."""
    preview: Preview | None = None
    """The newest preview. None: there was none."""
    keeps: KeepsChanges = ""
    """How the changes of its run are kept, since its start."""
    undo: Undo | None = None
    """The newest undo, or redo, of the changes of its run. None: there was none."""
    earlier_undos: tuple[Undo, ...] = ()
    """Those before it, oldest first; the last `MOST_UNDOS` of them."""
    alarms: tuple[Alarm, ...] = Field(default=(), exclude_if=not_)
    """Signs that its agent's program did something else, oldest first."""

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that holds: a replacement before a missing ticket. None: there is none, or the ticket came late."""
        replaced = next((alarm for alarm in self.alarms if alarm.kind == "replaced"), None)
        missing = self.alarms[0] if self.alarms and self.claim is None else None
        return replaced or missing

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def host(self) -> str:
        """The machine that it belongs to, if a cockpit shows several. Empty: there is only one."""
        return self.id.rpartition(":")[0]

    @property
    def number(self) -> int:
        """The number of the call on its machine, which grows with time."""
        return int(self.id.rpartition(":")[2])

    @property
    def decided_by_human(self) -> bool:
        """True if somebody decided about this very call; False: a rule or a standing approval did, or nobody yet."""
        return self.decided_by is not None and self.decided_by.surface not in {"rule", "memory"}

    @property
    def is_held_back(self) -> bool:
        """True if it runs in a view of the files before anybody is asked: its effects decide whether somebody is."""
        if not isinstance(self.state, Waiting) or self.state.returned_because is not None:
            return False
        if self.verdict is None or not self.verdict.held_back:
            return False
        return self.preview is None or (self.preview.report is None and not self.preview.dropped)

    @property
    def in_draft(self) -> bool:
        """True if its command runs in the draft of its session, whatever lets it run (decision 44)."""
        plan = self.verdict.undo if self.verdict is not None else None
        return plan is not None and plan.why == IN_DRAFT

    @property
    def aside(self) -> Aside | None:
        """By whom it was set aside, and when. None: it is not set aside, or does not wait."""
        return self.state.aside if isinstance(self.state, Waiting) else None

    @property
    def pending_yes(self) -> PendingYes | None:
        """A phone's yes that the desk can still withdraw. None: there is none."""
        return self.state.yes if isinstance(self.state, Waiting) else None

    @property
    def agent_went_on(self) -> bool:
        """True if it is set aside, and its agent was told so and does something else meanwhile."""
        return self.aside is not None and self.agent_gave_up == WENT_ON

    @property
    def changed_unasked(self) -> bool:
        """True if it has changed files although nobody was asked about it, and that is not undone."""
        return self.decided_by is not None and not self.decided_by_human and self.has_changed

    @property
    def has_changed(self) -> bool:
        """True if it has ended and is known to have changed files, and that is not undone."""
        if not isinstance(self.state, Ended):
            return False
        if isinstance(self.spec.command, FileEdits):
            return isinstance(self.state.ending, HandedOver) and self.reverted_by is None
        taken_back = self.undo is not None and self.undo.done and self.undo.direction == "undo" and not self.undo.paths
        return self.state.changed is not None and self.state.changed.counts.all > 0 and not taken_back

    @property
    def is_undone(self) -> bool:
        """True if what it changed is undone, all of it or a part."""
        undo = self.undo
        return self.reverted_by is not None or (undo is not None and undo.done and undo.direction == "undo")

    @property
    def edited(self) -> bool:
        """True if a human edited the requested command."""
        return self.spec != self.call.spec

    @property
    def function(self) -> CarriedOut | None:
        """The tool that its caller carries out itself. None: the supervisor runs a command."""
        command = self.spec.command
        return command if isinstance(command, CarriedOut) else None

    @property
    def spec(self) -> CommandSpec:
        """The command to run: the edited one if a human edited it."""
        if isinstance(self.decision, Approve) and self.decision.edited is not None:
            return self.decision.edited
        return self.call.spec

    @property
    def sandbox(self) -> Sandbox | None:
        """Sandbox of its run. None: unconfined, or not decided yet."""
        return self.decision.sandbox if isinstance(self.decision, Approve) else None

    @property
    def applies(self) -> bool:
        """True if the changes of its preview are made real in the place of a run."""
        return isinstance(self.decision, Approve) and self.decision.preview is not None

    @property
    def undoable(self) -> bool:
        """True if what it changed is kept: its preview was applied, or its run keeps it."""
        if self.in_draft or (isinstance(self.state, Ended) and (self.state.unkept or self.state.discarded)):
            return False
        return self.applies or bool(self.keeps) or self.asked_undoable

    @property
    def discarded(self) -> str:
        """Why its changes did not become real although it has run, as a clause. Empty: they did."""
        return self.state.discarded if isinstance(self.state, Ended) else ""

    @property
    def not_kept_because(self) -> str:
        """Why the changes of its run cannot be undone, as a clause. Empty: they can, or nothing was to be kept."""
        state, plan = self.state, self.verdict.undo if self.verdict is not None else None
        ran = isinstance(state, Ended) and state.attempt is not None and not isinstance(state.ending, FailedToStart)
        if not isinstance(state, Ended) or not ran or self.undoable or self.discarded or self.function is not None:
            return ""
        if state.unkept:
            return state.unkept
        if isinstance(self.decision, Approve) and self.decision.undoable is False:
            return "its approval left that out"
        if plan is not None:
            return plan.why or "it ran in a sandbox"
        return NO_UNDO_WANTED if self.decided_by_human else ""

    @property
    def asked_undoable(self) -> bool:
        """True if a human has asked for this run to be undoable: then it does not run in another way."""
        return isinstance(self.decision, Approve) and self.decision.undoable is True

    @property
    def blocked(self) -> Blocked | None:
        """Attempts that its sandbox refused; None before the end."""
        return self.state.blocked if isinstance(self.state, Ended) else None

    @property
    def failed_in_sandbox(self) -> bool:
        """True if it failed and its sandbox refused something: unconfined it might have succeeded."""
        return self.blocked is not None and isinstance(self.state, Ended) and self.state.ending != Exited(code=0)

    @property
    def takes_input(self) -> bool:
        """True if its standard input or terminal stays open while it runs."""
        return self.spec.accepts_input or self.spec.tty or (self.claim is not None and self.claim.stdin)

    @property
    def process(self) -> RunProcess | None:
        """The process, once it has started."""
        return self.state.process if isinstance(self.state, Running | Ended) else None

    @property
    def attempt(self) -> int | None:
        """The attempt that runs or ran. None: nothing was ever started."""
        return self.state.attempt if isinstance(self.state, Starting | Running | Ended) else None

    @property
    def output_attempt(self) -> int | None:
        """The attempt whose output is the call's: the run, or its preview while it waits. None: there is none."""
        if self.attempt is not None or isinstance(self.state, Ended) or self.preview is None:
            return self.attempt
        report = self.preview.report
        return None if report is not None and isinstance(report.ending, FailedToStart) else self.preview.attempt

    @property
    def living_background(self) -> tuple[BackgroundProcess, ...]:
        """The processes left behind that are still alive."""
        return tuple(process for process in self.background if process.alive)

    @property
    def paused(self) -> bool:
        """True if SIGSTOP was sent after the last SIGCONT."""
        if isinstance(self.state, Ended) and self.state.settled:
            return False
        # Only the last of the two counts: the kernel keeps no count of stops.
        held = (number == signal.SIGSTOP for number in reversed(self.signals) if number in _STILL)
        return next(held, False)

    def stall_news(self, before: Stall, now: Stall) -> StallNews | None:
        """As `Stall.news`, but that it was stopped is none if it was asked to be."""
        news = now.news(before)
        return None if news == "stopped" and self.paused else news

    @property
    def ended_by_agent(self) -> bool:
        """True if the signal that ended it was its agent's, and no human's."""
        if not isinstance(self.state, Ended) or not isinstance(self.state.ending, Signalled):
            return False
        number = self.state.ending.number
        # A human may have sent the same signal; then the end is not the agent's alone.
        by_others = self.signals.count(number) > self.agent_signals.count(number)
        return self.state.ending.by_us and not by_others and (number in self.agent_signals or self.stopping)

    @property
    def is_open(self) -> bool:
        """True if anything can still happen: not ended, or something of it is alive."""
        return not (isinstance(self.state, Ended) and self.state.settled)

    def seen_digest(self) -> str:
        """A digest of everything that an approver sees; a decision with another digest is refused."""
        verdict = self.verdict.model_dump_json() if self.verdict else ""
        resolved = self.resolved.model_dump_json() if self.resolved else ""
        # The verdict and the resolution belong to it: an approval is for what the human was shown (decision 23).
        return digest("\n".join((self.call.spec.canonical(), self.call.description, verdict, resolved)))


HOST_NAME = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$"
"""The names of machines."""


class HostState(Value):
    """A machine whose supervisor one cockpit shows beside others."""

    name: str = Field(pattern=HOST_NAME)
    reached: bool | None = None
    """True if its calls are shown as they are now, False if as they were last. None: nothing is known of it yet."""
    since: float
    """When that began, in seconds since the epoch."""
    problem: str = ""
    """Why it is not reached, and what to do, as sentences. Empty: it is, or the first attempt goes on."""


class PlaceState(Value):
    """A place where commands of this machine's agents run, as its supervisor reaches it."""

    name: str
    way: str
    """How it is reached, in a few words: `ssh me@gpu1`."""
    reached: bool = False
    since: float
    """When that began, in seconds since the epoch."""
    problem: str = ""
    """Why it is not reached, as a clause. Empty: it is, or is connected when a call needs it."""
    host: str = ""
    """The name that it has for itself. Empty: not known yet."""
    running: int = 0
    """Runs there that are not over, as far as is known."""
    workspace: str = ""
    """The directory there that stands for an agent's workspace. Empty: the same path."""
    relay: str = ""
    """The program that agents there start to ask this supervisor. Empty: it serves none there."""
    agents: int = 0
    """Agents there that are connected by it."""

    @property
    def is_away(self) -> bool:
        """True if it is unreachable, and not only let go until a call needs it."""
        return not self.reached and bool(self.problem)
