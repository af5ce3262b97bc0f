"""The facts about calls, sessions and rules: numbered, journaled before their effect, never changed."""

import hashlib
from collections.abc import Iterable
from operator import not_
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from whisper_tui.model.call import ClientInfo, CommandSpec, Session, ToolCall, UnaskedLevel
from whisper_tui.model.decision import Decider, Decision, Grant, SessionDenial
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.ending import Ending
from whisper_tui.model.phone_proof import PhoneProof
from whisper_tui.model.preview import ChangedFiles, KeepsChanges, PreviewReport, UndoDirection
from whisper_tui.model.run import (
    NO_LIMITS,
    BackgroundProcess,
    Blocked,
    Limits,
    OutputDigest,
    OutputSizes,
    RunProcess,
    SignalTarget,
    Usage,
)
from whisper_tui.model.state import Alarm, Claim
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import Resolved, Verdict

LONGEST_SAID = 16_384
"""Characters of one thing that is said."""
LONGEST_PROGRAM = 300
"""Characters kept of the command line of a process that was refused."""


class Fact(Value):
    """Base of all events."""

    seq: int = 0
    """Position in the journal, from 1. 0: not yet journaled."""
    at: float
    """Seconds since the epoch."""


class SessionOpened(Fact):
    """An agent connected."""

    kind: Literal["session_opened"] = "session_opened"
    session: Session


class SessionDescribed(Fact):
    """An agent said which program it is."""

    kind: Literal["session_described"] = "session_described"
    session_id: str
    client: ClientInfo


class SessionResumed(Fact):
    """A closed or interrupted connection is back."""

    kind: Literal["session_resumed"] = "session_resumed"
    session_id: str
    pid: int | None
    started: int | None = Field(default=None, exclude_if=not_)


class SessionClosed(Fact):
    """An agent's connection ended; its approval memory with it."""

    kind: Literal["session_closed"] = "session_closed"
    session_id: str
    why: str


class SessionSaid(Fact):
    """Something was said in a session: by its model, or to it by a human."""

    kind: Literal["session_said"] = "session_said"
    session_id: str
    text: str = Field(min_length=1, max_length=LONGEST_SAID)
    by: Decider
    """On the surface *agent* it is the model, by its name; on any other a human."""

    @property
    def is_to_agent(self) -> bool:
        """True if a human says it to the agent; its own process has no name on the command line."""
        return self.by.surface != "agent" and (self.by.surface != "command line" or bool(self.by.who))


class UnaskedSet(Fact):
    """A human has said how much runs unasked from now on, in one session or in all."""

    kind: Literal["unasked_set"] = "unasked_set"
    session_id: str | None = None
    """None: in all sessions for which nothing else is said."""
    level: UnaskedLevel | None
    """None: as the rules say."""
    by: Decider


class Reviewed(Fact):
    """A human has looked at what calls have changed that nobody was asked about."""

    kind: Literal["reviewed"] = "reviewed"
    until: float
    """Seconds since the epoch: those that had ended by then."""
    by: Decider


class EditModeSet(Fact):
    """Of earlier versions: a human has said how the edits of a session are judged from now on."""

    kind: Literal["edit_mode_set"] = "edit_mode_set"
    session_id: str
    mode: Literal["rules", "ask", "allow"]
    by: Decider


class Submitted(Fact):
    """A call arrived."""

    kind: Literal["submitted"] = "submitted"
    call: ToolCall


class Judged(Fact):
    """The policy looked at a call; again when it is about to start."""

    kind: Literal["judged"] = "judged"
    call_id: str
    verdict: Verdict
    resolved: Resolved


class SetAside(Fact):
    """A human has moved a waiting call out of the way without a decision, or has brought it back."""

    kind: Literal["set_aside"] = "set_aside"
    call_id: str
    back: bool = False
    """True if it was brought back."""
    by: Decider


class Decided(Fact):
    """A human, a rule or a standing approval decided."""

    kind: Literal["decided"] = "decided"
    call_id: str
    decision: Decision
    by: Decider
    heard: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Said to the session since its last approved call, for an agent that only listens to answers: it gets this one."""
    proof: PhoneProof | DeskProof | None = Field(default=None, exclude_if=not_)
    """The document that a phone or a signing desk has shown, and the signature. None: no human has decided, or one at
    the desk without a signature."""


class PhoneYes(Fact):
    """A phone has said yes, and the desk can still withdraw that; or it was withdrawn, so that the call waits again."""

    kind: Literal["phone_yes"] = "phone_yes"
    call_id: str
    until: float | None
    """Seconds since the epoch, from which on it counts. None: it was withdrawn."""
    by: Decider
    """The phone; or the human, or the cause, that has withdrawn it."""


PhoneChange = Literal["paired", "confirmed", "revoked", "doubted"]


class PhoneChanged(Fact):
    """A phone was paired, confirmed again or revoked, is doubted after a kill, or has signed in again."""

    kind: Literal["phone_changed"] = "phone_changed"
    device_id: str
    name: str
    change: PhoneChange
    synced: bool
    origin: str
    public_key: str
    """Base64url of the COSE key."""
    may_approve_from: float
    """Seconds since the epoch."""
    signed_in: bool = False
    """True if it has only signed in again by its key: `change` is what holds as before."""
    by: Decider


class Started(Fact):
    """The order to start this attempt is about to be given."""

    kind: Literal["started"] = "started"
    call_id: str
    attempt: int
    """From 1. A later attempt exists only where the earlier one provably never ran."""
    spec: CommandSpec
    limits: Limits = NO_LIMITS
    applies: bool = False
    """True if no command is started: the changes of the preview that was this attempt are made real."""
    keeps: KeepsChanges = ""


class Spawned(Fact):
    """The process exists."""

    kind: Literal["spawned"] = "spawned"
    call_id: str
    attempt: int
    process: RunProcess


class BackgroundSeen(Fact):
    """The processes that the command has left behind so far, ended ones included."""

    kind: Literal["background_seen"] = "background_seen"
    call_id: str
    processes: tuple[BackgroundProcess, ...]


class SignalSent(Fact):
    """A signal is about to be sent to a run."""

    kind: Literal["signal_sent"] = "signal_sent"
    call_id: str
    number: int
    target: SignalTarget
    by: Decider


class AgentGaveUp(Fact):
    """The agent no longer waits for the answer."""

    kind: Literal["agent_gave_up"] = "agent_gave_up"
    call_id: str
    why: str
    stopping: bool = False
    """True if the run is being ended because of it."""


class AgentReturned(Fact):
    """The agent waits for the answer again."""

    kind: Literal["agent_returned"] = "agent_returned"
    call_id: str


class Claimed(Fact):
    """The ticket of an approved call was shown: it may start."""

    kind: Literal["claimed"] = "claimed"
    call_id: str
    claim: Claim


class AlarmRaised(Fact):
    """Something else than what was approved was seen to run, or what was approved did not come."""

    kind: Literal["alarm_raised"] = "alarm_raised"
    call_id: str
    alarm: Alarm


class Finished(Fact):
    """The call has its ending; its answer is fixed."""

    kind: Literal["finished"] = "finished"
    call_id: str
    ending: Ending
    output: OutputSizes = OutputSizes()
    """Bytes captured when the leader ended; the answer shows these."""
    usage: Usage | None = None
    blocked: Blocked | None = None
    """Attempts that its sandbox refused. None: none, or no sandbox."""
    discarded: str = ""
    """Why the changes that it made in its view of the files did not become real, as a clause. Empty: they did."""
    unkept: str = ""
    """Why its changes cannot be undone although they should have been kept, as a clause."""
    changed: ChangedFiles | None = Field(default=None, exclude_if=not_)
    """Its changes, where they are kept. None: they are not known."""


class PreviewStarted(Fact):
    """A human, or a rule, has a waiting call run in a view of the files that nobody else sees."""

    kind: Literal["preview_started"] = "preview_started"
    call_id: str
    attempt: int
    """The number of the attempt that is the preview."""
    by: Decider
    edited: CommandSpec | None = None
    """The command that runs in the place of the requested one. None: the requested one does."""


class PreviewEnded(Fact):
    """A preview is over, and its changes are known."""

    kind: Literal["preview_ended"] = "preview_ended"
    call_id: str
    attempt: int
    report: PreviewReport


class PreviewDropped(Fact):
    """The changes of a preview were discarded; a preview that was running was ended."""

    kind: Literal["preview_dropped"] = "preview_dropped"
    call_id: str
    attempt: int


class UndoStarted(Fact):
    """The changes of a call are about to be undone, or to be made again."""

    kind: Literal["undo_started"] = "undo_started"
    call_id: str
    direction: UndoDirection
    paths: tuple[str, ...] = ()
    """Only these. Empty: all of them."""
    by: Decider


class UndoEnded(Fact):
    """The changes of a call were undone or made again, or none of them was."""

    kind: Literal["undo_ended"] = "undo_ended"
    call_id: str
    problem: str = ""
    """Why none was, as a clause. Empty: all of them were."""


class EditReverted(Fact):
    """A human has put back the files of an edit as they were before it."""

    kind: Literal["edit_reverted"] = "edit_reverted"
    call_id: str
    by: Decider


class Settled(Fact):
    """Nothing of the run is alive any more and its output is complete."""

    kind: Literal["settled"] = "settled"
    call_id: str
    digest: OutputDigest | None = None
    """Of its recorded output. None: it has none, or it could not be read."""


class Granted(Fact):
    """An approval is remembered."""

    kind: Literal["granted"] = "granted"
    grant: Grant


class GrantUsed(Fact):
    """A standing approval let a call through."""

    kind: Literal["grant_used"] = "grant_used"
    session_id: str
    grant_id: str
    call_id: str


class GrantRevoked(Fact):
    """A standing approval no longer holds."""

    kind: Literal["grant_revoked"] = "grant_revoked"
    session_id: str
    grant_id: str
    by: Decider


class DenialAdded(Fact):
    """A human denied, for the rest of a session, every call that begins with some words."""

    kind: Literal["denial_added"] = "denial_added"
    denial: SessionDenial


class DenialLifted(Fact):
    """Calls of the session that begin with the words of a denial are judged as before."""

    kind: Literal["denial_lifted"] = "denial_lifted"
    session_id: str
    denial_id: str
    by: Decider


class Paused(Fact):
    """Every run is about to be held still, and nothing starts."""

    kind: Literal["paused"] = "paused"
    by: Decider


class Resumed(Fact):
    """Everything goes on."""

    kind: Literal["resumed"] = "resumed"
    by: Decider


ORDER = "order"
"""The attempt to give orders to the keeper of a call: only the supervisor may."""


class AttemptRefused(Fact):
    """Somebody who may not decide has tried to: a supervised command, or what an agent has started."""

    kind: Literal["attempt_refused"] = "attempt_refused"
    operation: str
    """Operation of the API; `ORDER`: an order to a keeper, past the supervisor."""
    about: str | None = None
    """The call, standing approval or session that it was about. None: none."""
    why: str
    """Why it was refused, as a clause."""
    pid: int
    """0: nobody knows, as of a line in a FIFO."""
    program: str = Field(max_length=LONGEST_PROGRAM)
    """Its command line, secrets left out. Empty: it was gone by then."""
    from_call: str | None = None
    """The call whose command it belongs to. None: it is an agent's, or that cannot be known."""
    left_out: int = 0
    """Number of attempts that were refused since the last record and not recorded themselves."""


class RulesChanged(Fact):
    """The content of a rule file changed, or a human trusts it (decision 10)."""

    kind: Literal["rules_changed"] = "rules_changed"
    path: str
    entries: tuple[str, ...]
    """Its entries now: the effect, a short subject and a digest of the rule."""
    trusted: tuple[str, ...]
    """The entries that a human agrees to. What allows holds only if it is one of these."""
    added: tuple[str, ...] = ()
    """The first of those that it did not say before."""
    removed: tuple[str, ...] = ()
    left_out: int = 0
    """Number of further entries that were added or removed."""
    why: str = ""
    by: Decider | None = None
    """The human who trusts it. None: nobody was asked."""


CallEvent = (
    Submitted
    | Judged
    | SetAside
    | Decided
    | PhoneYes
    | Claimed
    | Started
    | Spawned
    | BackgroundSeen
    | SignalSent
    | AgentGaveUp
    | AgentReturned
    | Finished
    | Settled
    | EditReverted
    | AlarmRaised
    | PreviewStarted
    | PreviewEnded
    | PreviewDropped
    | UndoStarted
    | UndoEnded
)
SessionEvent = (
    SessionOpened | SessionDescribed | SessionResumed | SessionSaid | SessionClosed | UnaskedSet | EditModeSet
)
GrantEvent = Granted | GrantUsed | GrantRevoked
DenialEvent = DenialAdded | DenialLifted
PauseEvent = Paused | Resumed

AnyEvent = (
    CallEvent
    | SessionEvent
    | GrantEvent
    | DenialEvent
    | PauseEvent
    | AttemptRefused
    | RulesChanged
    | Reviewed
    | PhoneChanged
)
Event = Annotated[AnyEvent, Field(discriminator="kind")]

# Building the adapters takes long, so there is one of each for the whole process, built when it is used first.
LATER = ConfigDict(defer_build=True)
EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Event, config=LATER)
"""Reads and writes one event as JSON."""


READ_ONLY_ENTRY = "looks"
"""The entry of a file that allows read-only commands. The word is in journals, so it stays."""
ALLOW_PREFIX = "allow "
"""Begins the entry of a rule that allows. All others make things stricter, or are disabled."""
DISABLED_PREFIX = "disabled "
"""Begins the entry of a rule that decides nothing."""


def entry_allows(entry: str) -> bool:
    """True if an entry lets something run without a human."""
    return entry == READ_ONLY_ENTRY or entry.startswith(ALLOW_PREFIX)


def entries_digest(entries: Iterable[str]) -> str:
    """A fingerprint of what a file says."""
    # Sorted: moving a rule within its file changes nothing that a human would have to see again.
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()


def untrusted_entries(changed: RulesChanged) -> tuple[str, ...]:
    """The entries that allow and are not in force. A stricter entry that is gone takes all of them along."""
    trusted = set(changed.trusted)
    # Removing a deny rule allows as much as adding an allow rule does (decision 10).
    gone = trusted.difference(changed.entries)
    stricter_gone = any(not entry_allows(entry) and not entry.startswith(DISABLED_PREFIX) for entry in gone)
    return tuple(entry for entry in changed.entries if entry_allows(entry) and (stricter_gone or entry not in trusted))
