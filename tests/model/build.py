"""Small values of the model, for tests that care about one field and not about the rest."""

from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, ClientInfo, Command, CommandSpec, Session, Shell, ToolCall, UnaskedLevel
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, Grant, SessionDenial
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.ending import (
    Denied,
    Ending,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
)
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    AlarmRaised,
    AttemptRefused,
    BackgroundSeen,
    Claimed,
    Decided,
    DenialAdded,
    DenialLifted,
    EditModeSet,
    EditReverted,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    GrantUsed,
    Judged,
    Paused,
    PhoneChanged,
    PhoneYes,
    PreviewDropped,
    PreviewEnded,
    PreviewStarted,
    Resumed,
    Reviewed,
    RulesChanged,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    SetAside,
    Settled,
    SignalSent,
    Spawned,
    Started,
    Submitted,
    UnaskedSet,
    UndoEnded,
    UndoStarted,
)
from whisper_tui.model.phone_proof import PhoneAssertion, PhoneProof
from whisper_tui.model.preview import BlockedAccess, ChangeCounts, PreviewReport
from whisper_tui.model.run import BackgroundProcess, OutputSizes, ProcessIdentity, RunProcess, Usage
from whisper_tui.model.state import Alarm, Claim
from whisper_tui.model.verdict import Resolved, Risk, Verdict

HUMAN = Decider(surface="cockpit", who="ada")
PHONE = Decider(surface="phone", who="pixel")
ROOT = "/srv/project"
DENY = Deny(reason="use the staging server instead", stop_session=True)
ASK = Verdict(kind="ask", reason="no rule matches this command")
ALLOW = Verdict(kind="allow", reason="the rule 'status' allows this command", rule="status")


def a_spec(command: Command | None = None, **changes: object) -> CommandSpec:
    """`git status` in the workspace, or another command."""
    spec = CommandSpec(command=command or Argv(program="git", args=("status",)), cwd=ROOT)
    return spec.model_copy(update=changes)


def a_shell(text: str, **changes: object) -> CommandSpec:
    """A line for bash in the workspace."""
    return a_spec(Shell(text=text), **changes)


def preview_report(**changes: object) -> PreviewReport:
    """The outcome of a preview that changed three files, one of them outside the workspace."""
    report = PreviewReport(
        ending=Exited(code=0),
        output=OutputSizes(out=12),
        seconds=0.4,
        digest="5f" * 32,
        counts=ChangeCounts(created=1, changed=1, deleted=1, outside=1, flagged=1),
        blocked=(BlockedAccess(what="network", target="pypi.org:443", times=2),),
        left=("sleep 60",),
    )
    return report.model_copy(update=changes)


def a_session(session_id: str = "s1", **changes: object) -> Session:
    """A session of an agent in the workspace."""
    return Session(id=session_id, name="builder", root=ROOT, opened_at=1.0).model_copy(update=changes)


def a_call(call_id: str = "1", spec: CommandSpec | None = None, session_id: str = "s1") -> ToolCall:
    """A call of `execute_command`."""
    return ToolCall(
        id=call_id,
        session_id=session_id,
        tool="execute_command",
        arguments={"command": "git", "args": ["status"]},
        spec=spec or a_spec(),
        description="See what changed",
        key="k1",
        dedup_key="t1",
        rejoin=True,
        asker="reviewer",
        submitted_at=2.0,
    )


def a_grant(grant_id: str = "g1", spec: CommandSpec | None = None, session_id: str = "s1") -> Grant:
    """A standing approval of call 1."""
    return Grant(id=grant_id, session_id=session_id, spec=spec or a_spec(), from_call="1", granted_at=3.0, by=HUMAN)


def an_identity(pid: int = 4242) -> ProcessIdentity:
    """A process of this boot."""
    return ProcessIdentity(pid=pid, start_time=pid * 10, boot_id="boot-a")


def a_process(pid: int = 4242) -> RunProcess:
    """The leader of a run."""
    return RunProcess(leader=an_identity(pid), pgid=pid, keeper_pid=pid - 1, started_at=5.0)


def left_behind(pid: int = 5000, *, alive: bool = True) -> BackgroundProcess:
    """A process that a command left behind."""
    return BackgroundProcess(identity=an_identity(pid), pgid=pid, command="sleep 30", alive=alive)


def opened(session_id: str = "s1") -> SessionOpened:
    """The session is there."""
    return SessionOpened(at=1.0, session=a_session(session_id))


def submitted(call_id: str = "1", spec: CommandSpec | None = None) -> Submitted:
    """The call arrived."""
    return Submitted(at=2.0, call=a_call(call_id, spec))


def judged(call_id: str = "1", verdict: Verdict = ASK, at: float = 2.5) -> Judged:
    """The policy looked at it."""
    return Judged(at=at, call_id=call_id, verdict=verdict, resolved=Resolved(program="/usr/bin/git", cwd=ROOT))


def decided(call_id: str = "1", decision: Decision | None = None) -> Decided:
    """A human decided; approved as it is where nothing else is said."""
    return Decided(at=3.0, call_id=call_id, decision=decision or Approve(), by=HUMAN)


def started(call_id: str = "1", attempt: int = 1) -> Started:
    """The order to start is about to be given."""
    return Started(at=4.0, call_id=call_id, attempt=attempt, spec=a_spec())


def spawned(call_id: str = "1", attempt: int = 1) -> Spawned:
    """The process exists."""
    return Spawned(at=5.0, call_id=call_id, attempt=attempt, process=a_process())


def finished(call_id: str = "1", ending: Ending | None = None, at: float = 6.0) -> Finished:
    """The leader ended; with code 0 where nothing else is said."""
    return Finished(
        at=at,
        call_id=call_id,
        ending=ending or Exited(code=0),
        output=OutputSizes(out=3, err=4),
        usage=Usage(wall_s=1.0, user_s=0.5, system_s=0.25, max_rss_kib=2048),
    )


def settled(call_id: str = "1") -> Settled:
    """Nothing of it is alive."""
    return Settled(at=7.0, call_id=call_id)


def whole_life(call_id: str = "1") -> tuple[Event, ...]:
    """Everything that happens to a call that a human approves."""
    return (
        submitted(call_id),
        judged(call_id),
        decided(call_id),
        started(call_id),
        spawned(call_id),
        finished(call_id),
        settled(call_id),
    )


ENDINGS: tuple[Ending, ...] = (
    Exited(code=3),
    Signalled(number=11, by_us=False, core_dumped=True),
    TimedOut(after_s=60.0),
    FailedToStart(problem="program_not_found", subject="gti", message="Command not found: gti"),
    Denied(by=HUMAN, reason="use the staging server instead"),
    Withdrawn(why="the agent took it back"),
    HandedOver(),
    Lost(why="the machine was restarted while it ran"),
)
"""One of every kind."""


def denial() -> SessionDenial:
    return SessionDenial(id="d1", session_id="s1", words=("npm", "publish"), reason="no", denied_at=7.21, by=HUMAN)


def a_proof() -> PhoneProof:
    """The proof of a decision from a phone."""
    return PhoneProof(
        device_id="p1",
        seen="5f" * 32,
        document="{}",
        decision="approve",
        nonce="AAAA",
        expires=120,
        rp_id="box.example.ts.net",
        origin="https://box.example.ts.net",
        public_key="pQECAyYg",
        assertion=PhoneAssertion(credential_id="AAAA", client_data="e30", authenticator_data="AAAA", signature="MEQ"),
    )


def one_of_each() -> tuple[Event, ...]:
    """Every kind of event and of ending, with every optional part filled, in an order that a board accepts."""
    risky = Verdict(
        kind="ask", reason="It may run another command", risks=(Risk(id="substitution", sentence="Look.", span=(0, 2)),)
    )
    edited = Approve(edited=a_shell("make clean", timeout_s=5.0), remember="exact_for_session")
    return (
        opened(),
        SessionDescribed(at=1.1, session_id="s1", client=ClientInfo(name="an agent", version="1.2", model="a model")),
        SessionResumed(at=1.2, session_id="s1", pid=77),
        SessionSaid(at=1.3, session_id="s1", text="Look at the tests first.", by=HUMAN),
        submitted(),
        judged(verdict=risky),
        decided(decision=edited),
        Granted(at=3.1, grant=a_grant()),
        Claimed(
            at=4.5, call_id="1", claim=Claim(by="one", stdin=True, without=("TOKEN",), environment={"PAGER": "cat"})
        ),
        started(),
        spawned(),
        BackgroundSeen(at=5.5, call_id="1", processes=(left_behind(), left_behind(5001, alive=False))),
        SignalSent(at=5.6, call_id="1", number=15, target="tree", by=HUMAN),
        AgentGaveUp(at=5.7, call_id="1", why="it was cancelled", stopping=True),
        AgentReturned(at=5.8, call_id="1"),
        finished(),
        settled(),
        GrantUsed(at=7.1, session_id="s1", grant_id="g1", call_id="1"),
        GrantRevoked(at=7.2, session_id="s1", grant_id="g1", by=HUMAN),
        DenialAdded(at=7.21, denial=denial()),
        DenialLifted(at=7.22, session_id="s1", denial_id="d1", by=HUMAN),
        Paused(at=7.25, by=HUMAN),
        Resumed(at=7.26, by=HUMAN),
        AttemptRefused(
            at=7.27,
            operation="decide",
            about="1",
            why="it was asked from inside a supervised command",
            pid=5002,
            program="sh -c make",
            from_call="1",
            left_out=3,
        ),
        RulesChanged(
            at=7.28,
            path="/home/me/.config/whisper_tui/rules.toml",
            entries=("allow make … #0123456789abcdef01234567", "looks"),
            trusted=("looks",),
            added=("allow make … #0123456789abcdef01234567",),
            by=None,
        ),
        *(
            event
            for call_id, ending in enumerate(ENDINGS, start=2)
            for event in (submitted(str(call_id)), finished(str(call_id), ending))
        ),
        decided("2", DENY),
        decided("3", DENY).model_copy(update={"by": PHONE, "proof": a_proof()}),
        decided("4", DENY).model_copy(update={"proof": DeskProof(document="{}", statement="{}", signature="U1NI")}),
        SetAside(at=7.2805, call_id="2", by=HUMAN),
        PhoneYes(at=7.2806, call_id="2", until=10.5, by=PHONE),
        PhoneChanged(
            at=7.2807,
            device_id="p1",
            name="pixel",
            change="paired",
            synced=True,
            origin="https://box.example.ts.net",
            public_key="pQECAyYg",
            may_approve_from=607.0,
            by=HUMAN,
        ),
        PreviewStarted(at=7.281, call_id="2", attempt=2, by=HUMAN, edited=edited.edited),
        PreviewEnded(at=7.282, call_id="2", attempt=2, report=preview_report()),
        PreviewDropped(at=7.283, call_id="2", attempt=2),
        UndoStarted(at=7.284, call_id="2", direction="undo", paths=("/home/me/project/a",), by=HUMAN),
        UndoEnded(at=7.285, call_id="2", problem="a changed meanwhile"),
        EditReverted(at=7.29, call_id="2", by=HUMAN),
        AlarmRaised(at=7.291, call_id="2", alarm=Alarm(kind="replaced", approved="make test", ran="make clean")),
        EditModeSet(at=7.295, session_id="s1", mode="ask", by=HUMAN),
        UnaskedSet(at=7.296, session_id="s1", level=UnaskedLevel(level="workspace", until=8.5), by=HUMAN),
        Reviewed(at=7.298, until=7.2, by=HUMAN),
        UnaskedSet(at=7.297, level=UnaskedLevel(level="reading"), by=HUMAN),
        SessionClosed(at=7.3, session_id="s1", why="it left"),
    )


def numbered(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The same events as the journal numbers them, from 1."""
    return tuple(event.model_copy(update={"seq": number}) for number, event in enumerate(events, start=1))


def a_board(*events: Event) -> Board:
    """A board with session s1 and these events."""
    board = Board()
    board.apply(opened())
    board.apply_all(events)
    return board
