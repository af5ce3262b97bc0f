"""The changes of calls as sentences on lines of their own, for screen readers and pipes."""

import re
import shlex
from collections.abc import Iterator, Mapping

from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, CommandSpec, FileEdits, Function, Shell
from whisper_tui.model.decision import Approve, masked_denial
from whisper_tui.model.effects import Effects
from whisper_tui.model.ending import signal_name
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.event import (
    AgentGaveUp,
    AlarmRaised,
    AttemptRefused,
    BackgroundSeen,
    Decided,
    DenialAdded,
    DenialLifted,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    Judged,
    PhoneChanged,
    PhoneYes,
    PreviewEnded,
    PreviewStarted,
    RulesChanged,
    SessionClosed,
    SessionOpened,
    SetAside,
    Settled,
    SignalSent,
    Spawned,
    UndoEnded,
)
from whisper_tui.model.masking import mask_unless_undecided
from whisper_tui.model.run import NO_STALL, QueueReasons, Stall
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import visible
from whisper_tui.present.call_text import describe
from whisper_tui.present.column_words import UNREAD
from whisper_tui.present.command_text import call_line, command_paragraphs, meaning_paragraphs
from whisper_tui.present.effects_text import effect_lines, no_effects_text
from whisper_tui.present.ending_text import ending_sentence, ending_word
from whisper_tui.present.phone_notices import phone_sentence
from whisper_tui.present.preview_text import findings_text, warnings
from whisper_tui.present.quantities import clock_time, count, duration
from whisper_tui.present.security_text import (
    alarm_sentence,
    own_shell_paragraphs,
    refused_sentence,
    rules_sentence,
)
from whisper_tui.present.session_text import session_label_of
from whisper_tui.present.spans import Paragraph, Role
from whisper_tui.present.verdict_text import findings, repeats_a_risk
from whisper_tui.present.words import decided_by_text
from whisper_tui.tui.dialogs.drafts import Draft, checked

DRAWN = "│┆┊▲“◆◈◇▶▷●○✔✘⊘↺┌"
"""Symbols that a screen reader would read out by their Unicode names."""
UNSPOKEN = str.maketrans("", "", DRAWN)
SIGN = re.compile(rf"^(\s*)[{DRAWN}]+\s?")
SIGNED: frozenset[Role] = frozenset({"waiting", "running", "good", "bad", "behind"})
"""Roles of our own text, whose leading symbols are left out; in an agent's text they stay."""
LAST_LINES = 20
"""Lines at the end of an output that are read out."""
HELP = """\
approve, or a, or yes, or y: let it run as it was read out.
session, or s: the same, and again whenever it is asked in this session.
deny REASON, or d REASON: do not let it run; the agent is given the reason.
edit COMMAND, or e COMMAND: run this instead; it is read out first.
approve read-only, approve confined, or approve confined network: let it run in a sandbox; with session, too.
aside, or z: set it aside without an answer, and go to the next one; for one that is set aside: bring it back.
skip, or k: leave it, and go to the next one that waits.
call NUMBER, or c NUMBER: go to another call that waits.
list, or l: read out everything that waits and runs.
show, or v, with or without a number: everything about a call.
output NUMBER, or o NUMBER: the last lines that a command has printed.
signal NUMBER NAME: send a signal, like TERM, to everything of a run.
quit, or q: leave; nothing stops because of it."""
"""The answers of a person, each with what it does."""


def happened(event: Event, board: Board) -> str | None:
    """Return the line for an event that the board has already, with the time of day. None: no line."""
    sentence = _sentence(event, board)
    return f"{clock_time(event.at)} {sentence}" if sentence is not None else None


def _sentence(event: Event, board: Board) -> str | None:
    match event:
        case SessionOpened(session=session):
            return f"Session {session.id} opened: {visible(session.name)}, in {visible(session.root)}."
        case SessionClosed(session_id=id_, why=why):
            return f"Session {id_} closed: {visible(why)}."
        case Granted(grant=grant):
            return f"Approval {grant.id} is a standing approval now, given with call {grant.from_call}."
        case GrantRevoked(grant_id=id_, by=by):
            return f"Approval {id_} was revoked, {decided_by_text(by)}."
        case DenialAdded(denial=denial):
            words = visible(shlex.join(masked_denial(denial).words))
            return f"{words!r} is denied in session {denial.session_id} ({denial.id}), {decided_by_text(denial.by)}."
        case DenialLifted(denial_id=id_, by=by):
            return f"Denial {id_} was lifted, {decided_by_text(by)}."
        case AttemptRefused():
            return refused_sentence(event)
        case PhoneChanged():
            return phone_sentence(event)
        case RulesChanged():
            return rules_sentence(event)
        case _:
            return _about_call(event, board)


def _how_it_waits(event: SetAside | PhoneYes, record: CallRecord) -> str:
    """Return in which other way a call waits, without its command."""
    if isinstance(event, SetAside):
        done = "waits again, brought back" if event.back else "is set aside"
        return f"Call {record.id} {done} {decided_by_text(event.by)}"
    if event.until is None:
        return f"The yes of a phone to call {record.id} is withdrawn {decided_by_text(event.by)}"
    return f"{visible(event.by.who)} says yes to call {record.id} by phone, which counts in a moment"


def _about_call(event: Event, board: Board) -> str | None:
    call_id = str(getattr(event, "call_id", ""))
    record = board.calls.get(call_id)
    if record is None:
        return None
    match event:
        case Judged() if isinstance(record.state, Waiting):
            return f"Call {call_id} of {session_label_of(record, board)} asks: {first_words(record)}."
        case SetAside() | PhoneYes():
            return f"{_how_it_waits(event, record)}: {first_words(record)}."
        case Decided(decision=Approve(), by=by):
            edited = ", edited" if record.edited else ""
            confined = f" into a sandbox ({record.sandbox.words()})" if record.sandbox is not None else ""
            kept = ", as previewed" if record.applies else ", undoable" if record.undoable else ""
            return f"Call {call_id} is approved{edited}{confined}{kept} {decided_by_text(by)}: {first_words(record)}."
        case Spawned(process=process):
            return f"Call {call_id} runs as pid {process.leader.pid}: {first_words(record)}."
        case SignalSent(number=number, by=by):
            return f"{signal_name(number)} is sent to call {call_id} {decided_by_text(by)}."
        case AlarmRaised():
            return alarm_sentence(record)
        case AgentGaveUp(why=why):
            return f"The agent no longer waits for call {call_id}: {visible(why)}."
        case BackgroundSeen():
            alive = len(record.living_background)
            return f"Call {call_id} has {count(alive, 'process', 'processes')} in the background."
        case Finished(ending=ending, usage=usage):
            after = f", after {duration(usage.wall_s)}" if usage is not None else ""
            sentence = ending_sentence(ending, record.spec.command, by_agent=record.ended_by_agent)
            return f"Call {call_id}: {sentence}{after}.{_blocked(record)}"
        case Settled() if record.background:
            return f"Nothing of call {call_id} is alive any more."
        case _:
            return _about_preview(event, record)


def _about_preview(event: Event, record: CallRecord) -> str | None:
    """Return the line about a preview or an undo."""
    match event:
        case PreviewStarted(by=by):
            return f"Call {record.id} is previewed {decided_by_text(by)}: {first_words(record)}."
        case PreviewEnded(report=report):
            found = f"{findings_text(report)}; {ending_word(report.ending)}"
            return " ".join((f"The preview of call {record.id} is over: {found}.", *warnings(report)))
        case UndoEnded(problem=problem) if record.undo is not None:
            what = "undone" if record.undo.direction == "undo" else "redone"
            if problem:
                return f"The changes of call {record.id} were not {what}: {visible(problem)}."
            return f"The changes of call {record.id} were {what} {decided_by_text(record.undo.by)}."
        case _:
            return None


def stall_sentence(record: CallRecord, board: Board, before: Stall, now: Stall) -> str | None:
    """Return the line for a run that gets no further since the last look. None: no line."""
    call = f"Call {record.id} of {session_label_of(record, board)}"
    match record.stall_news(before, now):
        case "stopped":
            return f"{call} is stopped: {first_words(record)}."
        case "needs-input":
            silent = f"silent since {clock_time(now.silent_since or 0)}"
            return f"{call} needs input, {silent}: {first_words(record)}."
        case None:
            return None


def stall_sentences(board: Board, known: Mapping[str, Stall], now: Mapping[str, Stall]) -> Iterator[str]:
    """Yield a line for each run that gets no further since it was as `known`."""
    for call_id, stall in now.items():
        record = board.calls.get(call_id)
        if record and (told := stall_sentence(record, board, known.get(call_id, NO_STALL), stall)):
            yield told


def queue_sentences(board: Board, reasons: QueueReasons, said: set[str]) -> Iterator[str]:
    """Yield a line for each call that is queued for a worker, but for those that were `said`, and add it to them."""
    said &= board.queued.keys()
    for call_id in board.queued.keys() - said:
        record = board.calls[call_id]
        reason = reasons.of(record.call.session_id, by_human=record.decided_by_human, place=record.spec.place)
        if record.function is None and reason is not None:
            said.add(call_id)
            yield f"Call {record.id} of {session_label_of(record, board)} is queued: {visible(reason.words())}."


def _blocked(record: CallRecord) -> str:
    """Return what the sandbox blocked, as a sentence that follows another one. Empty: nothing."""
    blocked = mask_unless_undecided(record).blocked
    return f" Its sandbox blocked it: it {visible(blocked.words())}." if blocked is not None else ""


def asks(record: CallRecord, board: Board, waiting: int) -> Iterator[str]:
    """Yield what a decision needs to know, the most important first."""
    waits = "waits for you" if record.aside is None else "is set aside and still waits"
    yield f"Call {record.id} {waits}. {session_label_of(record, board)} asks, with {visible(record.call.tool)}:"
    yield from command_lines(record)
    at = f"at {record.spec.place}, " if record.spec.place else ""
    yield f"It runs {at}in {visible(record.spec.cwd)}."
    yield from lines(own_shell_paragraphs(record))
    for each in findings(record):
        grade = "Severe risk: " if each.grave else "" if each.id == UNREAD else "Risk: "
        yield f"{grade}{visible(each.sentence)}."
    if isinstance(record.state, Waiting) and record.state.returned_because:
        yield f"Asked again: {visible(record.state.returned_because)}."
    yield from lines(meaning_paragraphs(record.spec.command, record.resolved))
    if record.call.description:
        yield f"The agent says: {visible(record.call.description)}"
    if record.verdict is not None and not repeats_a_risk(record.verdict):
        yield f"Reason: {visible(record.verdict.reason)}."
    if waiting > 1:
        yield f"{count(waiting, 'call')} wait."


MOST_EFFECTS = 6
"""Effects that are read out unasked; `show` reads all of them."""


def effects_said(effects: Effects, most: int | None = None) -> Iterator[str]:
    """Yield the effects of a call, one sentence each, the gravest first."""
    facts = effects.model_dump(mode="json")
    found = effect_lines(facts)
    if most is not None:
        # The code that it runs was read out with the risks already.
        found = tuple(sorted((line for line in found if line.kind != "code"), key=lambda line: not line.grave))
    for line in found[:most]:
        yield f"Effect: {visible(line.text)}."
    if most is not None and len(found) > most:
        yield f"And {count(len(found) - most, 'more effect')}; show reads them all."
    if nothing := no_effects_text(facts):
        yield f"It makes {nothing}."


def in_full(record: CallRecord, board: Board, now: float) -> Iterator[str]:
    """Everything about a call."""
    yield f"Call {record.id}."
    yield from lines(describe(mask_unless_undecided(record), board.sessions.get(record.call.session_id), now))


def edited_spec(asked: CommandSpec, text: str) -> CommandSpec:
    """Return the command that replaces the requested one. Raises `InvalidRequest`."""
    command = asked.command
    timeout = f"{asked.timeout_s!r}" if asked.timeout_s is not None else ""
    if isinstance(command, Shell):
        draft = Draft("", text, asked.cwd, timeout)
    elif isinstance(command, Argv):
        program, _, arguments = text.partition(" ")
        draft = Draft(program, arguments, asked.cwd, timeout)
    else:
        raise InvalidRequest("this call runs no command, so there is none to edit", hint="Approve it, or deny it")
    found = checked(draft, asked)
    if found.spec is None:
        raise InvalidRequest(" ".join(found.problems).rstrip("."), hint="Edit it again")
    return found.spec


def command_lines(record: CallRecord) -> Iterator[str]:
    """Yield the command, each of its lines on a line of its own; of an edit its files, of a tool its arguments."""
    command = record.spec.command
    if isinstance(command, FileEdits):
        yield f"  {''.join(span.text for span in call_line(record))}"
    elif isinstance(command, Function):
        yield from (f"  {line}" for line in lines(command_paragraphs(command, ())))
    else:
        yield from (f"  {visible(line)}" for line in command.text.split("\n"))


def lines(paragraphs: tuple[Paragraph, ...]) -> Iterator[str]:
    """Yield paragraphs of the cockpit as lines without symbols."""
    for paragraph in paragraphs:
        margin = "".join(span.text for span in paragraph.margin).translate(UNSPOKEN)
        words = (SIGN.sub(r"\1", text) if role in SIGNED else text for text, role, _ in paragraph.spans)
        if said := "".join((margin, *words)).strip():
            yield said


def first_words(record: CallRecord) -> str:
    """The beginning of a command on one line."""
    text = "".join(span.text for span in call_line(record))
    return f"{text[:120]} …" if len(text) > 120 else text


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of output without colours, as data."""
    from whisper_tui.export.document import plain_output

    text = plain_output(data).rstrip("\n")
    return tuple(f"  {visible(line)}" for line in text.split("\n")[-LAST_LINES:]) if text else ()
