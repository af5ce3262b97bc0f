"""What happens to calls as sentences on lines of their own, for whoever hears them read out."""

import re
import shlex
from collections.abc import Iterator

from whisper_tui.model.board import Board
from whisper_tui.model.command import Argv
from whisper_tui.model.decision import Approve
from whisper_tui.model.event import (
    AgentGaveUp,
    AttemptRefused,
    BackgroundSeen,
    Decided,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    Judged,
    RulesChanged,
    SessionClosed,
    SessionOpened,
    Settled,
    SignalSent,
    Spawned,
)
from whisper_tui.model.masked import as_shown
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.text import visible
from whisper_tui.tui.command_text import one_line
from whisper_tui.tui.describe import describe
from whisper_tui.tui.meaning_text import meaning_paragraphs
from whisper_tui.tui.refused_words import refused_sentence, rules_sentence
from whisper_tui.tui.spans import Paragraph, Role
from whisper_tui.tui.unmasking import listed_command
from whisper_tui.tui.words import called, clock_time, count, decider, duration, ending_sentence, signal_name

DRAWN = "│┆┊▲“◆◇▶▷●○✔✘⊘↺┌"
"""Signs that are drawn for the eye, and would be read out by their names."""
UNSPOKEN = str.maketrans("", "", DRAWN)
SIGN = re.compile(rf"^(\s*)[{DRAWN}]+\s?")
SIGNED: frozenset[Role] = frozenset({"waiting", "running", "good", "bad", "behind"})
"""Roles of our own words, which may begin with a sign; in an agent's words a sign is one of its letters."""


def happened(event: Event, board: Board) -> str | None:
    """What an event says, with the time of day; the board has it already. None: nothing worth a line."""
    sentence = _sentence(event, board)
    return f"{clock_time(event.at)} {sentence}" if sentence is not None else None


def _sentence(event: Event, board: Board) -> str | None:
    match event:
        case SessionOpened(session=session):
            return f"Session {session.id} opened: {visible(session.name)}, in {visible(session.root)}."
        case SessionClosed(session_id=id_, why=why):
            return f"Session {id_} closed: {visible(why)}."
        case Granted(grant=grant):
            return f"Approval {grant.id} is remembered, of call {grant.from_call}."
        case GrantRevoked(grant_id=id_, by=by):
            return f"Approval {id_} was revoked, {decider(by)}."
        case AttemptRefused():
            return refused_sentence(event)
        case RulesChanged():
            return rules_sentence(event)
        case _:
            return _about_call(event, board)


def _about_call(event: Event, board: Board) -> str | None:
    call_id = str(getattr(event, "call_id", ""))
    record = board.calls.get(call_id)
    if record is None:
        return None
    match event:
        case Judged() if isinstance(record.state, Waiting):
            return f"Call {call_id} of {session_name(record, board)} asks: {first_words(record)}."
        case Decided(decision=Approve(), by=by):
            edited = ", edited" if record.edited else ""
            confined = f" into a sandbox ({record.sandbox.words()})" if record.sandbox is not None else ""
            return f"Call {call_id} is approved{edited}{confined} {decider(by)}: {first_words(record)}."
        case Spawned(process=process):
            return f"Call {call_id} runs as pid {process.leader.pid}: {first_words(record)}."
        case SignalSent(number=number, by=by):
            return f"{signal_name(number)} is sent to call {call_id} {decider(by)}."
        case AgentGaveUp(why=why):
            return f"The agent no longer waits for call {call_id}: {visible(why)}."
        case BackgroundSeen():
            alive = len(record.living_background)
            return f"Call {call_id} has {count(alive, 'process', 'processes')} in the background."
        case Finished(ending=ending, usage=usage):
            after = f", after {duration(usage.wall_s)}" if usage is not None else ""
            return (
                f"Call {call_id}: {ending_sentence(ending, by_agent=record.ended_by_agent)}{after}.{_blocked(record)}"
            )
        case Settled() if record.background:
            return f"Nothing of call {call_id} is alive any more."
        case _:
            return None


def _blocked(record: CallRecord) -> str:
    """What its sandbox kept a call from, as a sentence after another one. Empty: nothing."""
    blocked = as_shown(record).blocked
    return f" Its sandbox blocked it: it {visible(blocked.words())}." if blocked is not None else ""


def asks(record: CallRecord, board: Board, waiting: int) -> Iterator[str]:
    """All that a decision needs, most important first."""
    yield f"Call {record.id} waits for you. {session_name(record, board)} asks, with {visible(record.call.tool)}:"
    yield from command_lines(record)
    yield f"It runs in {visible(record.spec.cwd)}."
    for risk in record.verdict.risks if record.verdict else ():
        yield f"Risk: {visible(risk.sentence)}."
    if isinstance(record.state, Waiting) and record.state.returned_because:
        yield f"It is asked again: {visible(record.state.returned_because)}."
    yield from lines(meaning_paragraphs(record.spec.command, record.resolved))
    if record.call.description:
        yield f"The agent says: {visible(record.call.description)}"
    if record.verdict is not None:
        yield f"It is asked because {visible(record.verdict.reason)}."
    if waiting > 1:
        yield f"{count(waiting, 'call')} wait."


def in_full(record: CallRecord, board: Board, now: float) -> Iterator[str]:
    """Everything about a call."""
    yield f"Call {record.id}."
    yield from lines(describe(as_shown(record), board.sessions.get(record.call.session_id), now))


def command_lines(record: CallRecord) -> Iterator[str]:
    """What runs, each line of it on a line of its own."""
    command = record.spec.command
    text = shlex.join(command.words()) if isinstance(command, Argv) else command.text
    for line in text.split("\n"):
        yield f"  {visible(line)}"


def lines(paragraphs: tuple[Paragraph, ...]) -> Iterator[str]:
    """Paragraphs of the cockpit as lines of any length, without what is drawn."""
    for paragraph in paragraphs:
        margin = "".join(span.text for span in paragraph.margin).translate(UNSPOKEN)
        words = (SIGN.sub(r"\1", text) if role in SIGNED else text for text, role in paragraph.spans)
        if said := "".join((margin, *words)).strip():
            yield said


def first_words(record: CallRecord) -> str:
    """The beginning of a command on one line."""
    text = "".join(span.text for span in one_line(listed_command(record)))
    return f"{text[:120]} …" if len(text) > 120 else text


def session_name(record: CallRecord, board: Board) -> str:
    """The name of a call's session."""
    return called(board.sessions.get(record.call.session_id), record.call.session_id)


def standing_sentence(record: CallRecord) -> str:
    """Where a call stands, in a few words."""
    return ending_sentence(record.state.ending) if isinstance(record.state, Ended) else record.state.kind
