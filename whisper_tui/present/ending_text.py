"""The ending of a call, and the answer that its agent got, as text."""

import json
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import CarriedOut, Command, FileEdits, Function
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
    signal_name,
)
from whisper_tui.model.secrets import masked, masked_words
from whisper_tui.model.state import Aside, CallRecord, Ended, PlaceState, Waiting
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present import column_words
from whisper_tui.present.command_text import call_line, head_and_tail, shows_only_ends
from whisper_tui.present.quantities import age, clock_time, count, limit
from whisper_tui.present.spans import BLANK, LONGEST_TEXT, Line, Paragraph, Span, labelled, said
from whisper_tui.present.words import decided_by_text

LIMITS = {"cpu": "processor time", "memory": "memory", "processes": "processes"}


def ending_word(ending: Ending, command: Command | None = None) -> str:
    """Return an ending in one or two words, for a column. `command`: of the call that ended so."""
    code = ending.code if isinstance(ending, Exited) else None
    signal = signal_name(ending.number) if isinstance(ending, Signalled) else None
    return column_words.ending_word(ending.kind, code, signal, command.kind if isinstance(command, CarriedOut) else "")


def undone_words(record: CallRecord) -> tuple[str, ...]:
    """Return how far the changes of a call are undone. Empty: they are not."""
    if record.reverted_by is not None:
        return ("undone",)
    undo = record.undo
    if undo is None or not undo.done or undo.direction != "undo":
        return ()
    return ("partly undone" if undo.paths else "undone",)


def ending_sentence(ending: Ending, command: Command | None = None, *, by_agent: bool = False) -> str:
    """Return an ending as a sentence without its full stop.

    `command`: of the call that ended so; `by_agent`: its agent sent the signal that ended it.
    """
    match ending:
        case Exited() if isinstance(command, Function):
            return _tool_ending(ending)
        case Exited(code=0):
            return "Ended with exit code 0"
        case Exited(code=code):
            return f"Failed with exit code {code}"
        case Signalled(number=number, by_us=by_us, core_dumped=core_dumped, limit=broken):
            source = (
                ("sent by its agent" if by_agent else "sent through whisper_tui")
                if by_us
                else "not sent by whisper_tui"
            )
            source = f"because it reached its limit of {LIMITS[broken]}" if broken else source
            core = "; core dumped" if core_dumped else ""
            return f"Ended by {signal_name(number)} ({number}), {source}{core}"
        case TimedOut(after_s=after_s):
            return f"Timed out after {limit(after_s)} and was ended"
        case FailedToStart(message=message):
            return f"Never started: {one_line_beginning(message, LONGEST_TEXT)}"
        case Denied(by=by, reason=reason, for_session=words):
            who = "" if words and by.surface == "memory" else f" {decided_by_text(by)}"
            every = f", like every call of its session that begins with {_quoted(words)}" if words else ""
            because = f": {one_line_beginning(reason, LONGEST_TEXT)}" if reason else ", without a reason"
            return f"Denied{who}{every}{because}{_not_done(command)}"
        case Withdrawn(why=why):
            return f"Withdrawn: {one_line_beginning(why, LONGEST_TEXT)}"
        case HandedOver() if isinstance(command, FileEdits):
            return "Approved, and left to the agent's own tool, which makes the edit"
        case HandedOver() if isinstance(command, Function):
            return "Approved, and left to the agent's own tool; its outcome is not known here"
        case HandedOver():
            return "Approved, and run by the agent itself; its outcome is not known here"
        case Lost(why=why):
            return f"Lost: {one_line_beginning(why, LONGEST_TEXT)}"


def _tool_ending(ending: Exited) -> str:
    if ending.code == 0:
        return "The tool returned"
    return "The tool failed" + (f": {one_line_beginning(ending.problem, LONGEST_TEXT)}" if ending.problem else "")


def _not_done(command: Command | None) -> str:
    if isinstance(command, FileEdits):
        return "; nothing was changed"
    return "; the tool was not called" if isinstance(command, Function) else ""


def went_well(ending: Ending) -> bool:
    """True if the ending needs no attention: exit code 0, or an outcome that is unknown here."""
    return isinstance(ending, HandedOver) or (isinstance(ending, Exited) and ending.code == 0)


def denied_for_session(ending: Denied) -> str:
    """Tell an agent that a human has denied more than this call, without a full stop."""
    return f"Denied by the human for this whole session, like every call that begins with {_quoted(ending.for_session)}"


def _quoted(words: tuple[str, ...]) -> str:
    return repr(one_line_beginning(shlex.join(masked_words(words)), LONGEST_TEXT))


def ending_for_agent(ending: Ending) -> str:
    """Return an ending for an agent: with signal numbers and seconds, which models understand best."""
    match ending:
        case Exited(code=code):
            return f"command exited with status {code}"
        case Signalled(number=number):
            return f"command was ended by signal {number}"
        case TimedOut(after_s=after_s):
            return f"command was ended because its time limit of {after_s:g} seconds was reached"
        case FailedToStart(message=message):
            return f"command was not started: {message}"
        case Denied(reason=reason):
            what = denied_for_session(ending) if ending.for_session else "command was denied"
            return f"{what}: {reason}" if reason else what
        case Withdrawn(why=why):
            return f"command was withdrawn before it ran: {why}"
        case HandedOver():
            return "command was left to the agent, and its end is not known"
        case Lost(why=why):
            return f"command may have run, and its end cannot be known: {why}"


TITLE = "What the agent was told"
MOST_TOLD_LINES = 200
"""Lines of one part of an answer that the cockpit shows; `whisper-tui show ID --told` prints all."""


class AnswerPart(NamedTuple):
    """One part of an answer."""

    label: str
    """The place of the part in the answer: `text`, `structured content`, `standard error`."""
    text: str


@dataclass(frozen=True)
class AgentAnswer:
    """The answer to a call."""

    parts: tuple[AnswerPart, ...] = ()
    """Exactly as the agent's program got them, in their order. Empty: not known, and `caveats` say why."""
    caveats: tuple[str, ...] = ()
    """Sentences about what is not known of the answer."""

    def masked(self) -> "AgentAnswer":
        """The same with secrets replaced, and very long parts without their middle."""
        return AgentAnswer(tuple(AnswerPart(part.label, masked(_ends(part.text))) for part in self.parts), self.caveats)

    def as_json(self) -> dict[str, Any]:
        """Return the answer for programs."""
        return {"parts": [part._asdict() for part in self.parts], "caveats": list(self.caveats)}


AnswerReader = Callable[[Supervision, CallRecord], Awaitable[AgentAnswer]]
"""Returns the answer to an ended call. Raises `WhisperError`."""


def _ends(text: str) -> str:
    if not shows_only_ends(text):
        return text
    head, tail = head_and_tail(text)
    left_out = tail.start - len(head.text)
    return f"{head.text}\n… {left_out:,} characters are not shown here …\n{tail.text}"


def object_part(label: str, content: object) -> AnswerPart:
    """Return a structured part as JSON, as programs read it."""
    return AnswerPart(label, json.dumps(content, ensure_ascii=False, indent=2, default=str))


def agent_answer_paragraphs(told: AgentAnswer | None) -> tuple[Paragraph, ...]:
    """Return a section with the answer, secrets masked. None: it is not known yet, so there is no section."""
    if told is None:
        return ()
    found = [BLANK, Paragraph((Span(TITLE, "label"),), margin=(Span(" "),))]
    found += [Paragraph((Span(f"{caveat}", "risk"),), margin=(Span(" ◦ ", "muted"),)) for caveat in told.caveats]
    for label, text in told.masked().parts:
        found.append(Paragraph((Span(label, "muted"),), margin=(Span(" "),)))
        lines = text.removesuffix("\n").split("\n")
        margin = (Span(" │ ", "frame"),)
        found += [
            Paragraph(said(line.replace("\t", "    "), "command"), margin, (Span(" ┆ ", "frame"),), at_words=False)
            for line in lines[:MOST_TOLD_LINES]
        ]
        if len(lines) > MOST_TOLD_LINES:
            more = f"… {count(len(lines) - MOST_TOLD_LINES, 'more line')}; whisper-tui show ID --told prints all"
            found.append(Paragraph((Span(more, "muted"),), margin))
    return tuple(found)


def away_text(place: PlaceState) -> str:
    """Return since when a place is unreachable, and why, as a clause."""
    why = f": {visible(place.problem).rstrip('.')}" if place.problem else ""
    return f"{visible(place.name)} is unreachable since {clock_time(place.since)}{why}"


LONGEST_EARLIER = 60
"""How many characters of an earlier command are shown."""


def recent_paragraphs(recent: tuple[CallRecord, ...], now: float) -> tuple[Paragraph, ...]:
    """Return the last other calls of the session with their outcomes, newest first."""
    return tuple(
        labelled("Last calls" if number == 0 else "", _recent(record, now)) for number, record in enumerate(recent)
    )


def _recent(record: CallRecord, now: float) -> Line:
    command = _truncated_line(call_line(record))
    since = Span(f"  {age(now - record.call.submitted_at)} ago", "muted")
    return (*_outcome_line(record), Span("  "), *command, since)


def _truncated_line(line: Line) -> Line:
    """Cut a line after LONGEST_EARLIER characters, with an ellipsis."""
    if sum(len(span.text) for span in line) <= LONGEST_EARLIER:
        return line
    kept: list[Span] = []
    left = LONGEST_EARLIER - 1
    for span in line:
        kept.append(Span(span.text[:left], span.role))
        left -= len(kept[-1].text)
        if left <= 0:
            break
    return (*kept, Span("…", kept[-1].role))


def _outcome_line(record: CallRecord) -> Line:
    match record.state:
        case Ended(ending=ending):
            good = went_well(ending)
            return (
                Span(f"{'✔' if good else '✘'} {ending_word(ending, record.spec.command)}", "good" if good else "bad"),
            )
        case Waiting(aside=Aside()):
            return (Span("◈ set aside", "muted"),)
        case Waiting():
            return (Span("◆ waiting", "waiting"),)
        case _:
            return (Span("▶ running", "running"),)
