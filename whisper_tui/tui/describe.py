"""A call in full, as paragraphs: what is asked, what will run or ran, and how it stands."""

from collections.abc import Iterator
from dataclasses import replace

from whisper_tui.model.call import Session
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.sandbox import Blocked
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Waiting
from whisper_tui.model.verdict import Resolved
from whisper_tui.tui.command_text import command_paragraphs, command_title
from whisper_tui.tui.ends import said_with_ends
from whisper_tui.tui.fields import labelled
from whisper_tui.tui.meaning_text import meaning_paragraphs
from whisper_tui.tui.risk_words import risk_role, risk_sign
from whisper_tui.tui.sandbox_text import blocked_paragraphs, sandbox_paragraphs
from whisper_tui.tui.session_text import recent_paragraphs, session_paragraphs
from whisper_tui.tui.spans import BLANK, LONGEST_SAID, Line, Paragraph, Role, Span, said
from whisper_tui.tui.words import (
    age,
    clock_time,
    count,
    decider,
    duration,
    ending_sentence,
    ending_word,
    limit,
    signal_name,
    size,
    went_well,
)

ALWAYS_SET = {"ASIMI_CLI": "1"}
"""Variables that a tool sets for each of its commands: nobody has to have seen them to know what a command does."""
ENDED_SHOWN = 3
"""Processes of a call that were left behind and have ended since."""


def describe(
    record: CallRecord, session: Session | None, now: float, recent: tuple[CallRecord, ...] = ()
) -> tuple[Paragraph, ...]:
    """Everything about a call, the most important first.

    `now` is in seconds since the epoch; `recent` are other calls of the same session.
    """
    stands = _how_it_stands(record)
    return (
        *((*stands, BLANK) if stands else ()),
        *_risks(record),
        *_description(record),
        *_decides(_command(record)),
        *_decides(meaning_paragraphs(record.spec.command, _resolved(record))),
        BLANK,
        *_decision(record),
        *_limits(record.spec, record),
        *_origin(record, session, now),
        *recent_paragraphs(recent, now),
    )


def _decides(paragraphs: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    return tuple(replace(paragraph, decides=True) for paragraph in paragraphs)


def heading(record: CallRecord, now: float, *, still: bool | None = None, silent_since: float | None = None) -> Line:
    """The call in one line: its number, and where it stands.

    `still`: whether the run is paused; None: as far as its record tells. `silent_since`: since when it needs input.
    """
    more: Line = ()
    if isinstance(record.state, Running) and (record.paused if still is None else still):
        where: Line = (
            Span("‖ paused", "waiting"),
            Span(f", started {duration(_runs_for(record.state, now))} ago", "muted"),
        )
    else:
        where = standing(record, now)
        if silent_since is not None and isinstance(record.state, Running):
            more = (Span(f"  ◆ needs input, silent for {limit(int(max(0, now - silent_since)))}", "waiting"),)
    return (Span(f"Call {record.id}", "strong"), Span("  "), *where, *more)


def _runs_for(state: Running, now: float) -> float:
    return max(0, now - state.process.started_at)


def standing(record: CallRecord, now: float) -> Line:
    """Where a call stands, with a symbol and in words."""
    match record.state:
        case Waiting(since=since):
            return (Span("◆ waits for you", "waiting"), Span(f" for {duration(max(0, now - since))}", "muted"))
        case Held(since=since):
            waited = Span(f", its agent has not started it for {duration(max(0, now - since))}", "muted")
            return (Span("◇ approved", "running"), waited)
        case Queued():
            return (Span("◇ approved", "running"), Span(", waits for a free worker", "muted"))
        case Starting(since=since) if record.function is not None:
            return (
                Span("▶ carried out by its agent", "running"),
                Span(f" for {duration(max(0, now - since))}", "muted"),
            )
        case Starting():
            return (Span("▷ starting", "running"),)
        case Running(process=process):
            return (Span("▶ running", "running"), Span(f" for {duration(max(0, now - process.started_at))}", "muted"))
        case Ended(ending=ending, settled=True, blocked=Blocked()):
            return (Span("⊘ ", "risk"), Span(f"blocked, {ending_word(ending)}", "risk"))
        case Ended(ending=ending, settled=settled):
            mark = Span("✔ ", "good") if went_well(ending) else Span("✘ ", "bad")
            word = Span(ending_word(ending), mark.role)
            alive = count(len(record.living_background), "process", "processes")
            return (mark, word) if settled else (mark, word, Span(f"  ● {alive} left behind", "behind"))
        case _:
            return (Span("… not yet judged", "muted"),)


def _risks(record: CallRecord) -> tuple[Paragraph, ...]:
    risks = record.verdict.risks if record.verdict else ()
    found = [
        Paragraph(said(f"{risk.sentence}.", risk_role(risk)), (Span(f" {risk_sign(risk)} ", risk_role(risk)),))
        for risk in risks
    ]
    return (*found, BLANK) if found else ()


def _description(record: CallRecord) -> tuple[Paragraph, ...]:
    """The agent's own words, marked as such: they may say anything."""
    text = record.call.description
    if not text and not isinstance(record.state, Waiting):
        return ()
    if not text:
        return (Paragraph((Span("The agent gave no description.", "muted"),), margin=(Span(" "),)), BLANK)
    lines = text[:LONGEST_SAID].split("\n")
    if len(text) > LONGEST_SAID:
        lines[-1] += f" … {len(text) - LONGEST_SAID:,} more characters"
    first = Paragraph(said(lines[0], "strong"), margin=(Span(" “ ", "muted"),))
    rest = ((Span(" ┊ ", "muted"),),) * 2
    return (first, *(Paragraph(said(line, "strong"), *rest) for line in lines[1:]), BLANK)


def _command(record: CallRecord) -> tuple[Paragraph, ...]:
    risks = record.verdict.risks if record.verdict else ()
    asked = record.call.spec
    if not record.edited:
        return (_caption(_verb(record, "Command"), asked), *command_paragraphs(asked.command, risks))
    return (
        _caption("Asked", asked),
        *command_paragraphs(asked.command, risks),
        BLANK,
        _caption(f"{_verb(record, 'Will run')}, as edited", record.spec, "edited"),
        *command_paragraphs(record.spec.command, ()),
    )


def _verb(record: CallRecord, before: str) -> str:
    if record.process is None:
        return before
    return "Ran" if isinstance(record.state, Ended) else "Runs"


def _caption(word: str, spec: CommandSpec, role: str = "label") -> Paragraph:
    caption = Span(word, "edited" if role == "edited" else "label")
    return Paragraph((caption, Span(f"  {command_title(spec.command)}", "muted")), margin=(Span(" "),))


def _how_it_stands(record: CallRecord) -> tuple[Paragraph, ...]:
    """What happened to it: before the command, because it is what a person looks for once it runs."""
    found: list[Paragraph] = list(blocked_paragraphs(record.blocked))
    if isinstance(record.state, Waiting) and record.state.returned_because:
        found.append(labelled("Asked again", said(record.state.returned_because, "risk")))
    if record.process is not None:
        leader = record.process.leader
        words = f"pid {leader.pid} · group {record.process.pgid} · attempt {record.attempt}"
        found.append(labelled("Process", (Span(words),)))
    found += sandbox_paragraphs(record)
    if isinstance(record.state, Ended):
        found += _how_it_ended(record, record.state)
    found += _left_behind(record)
    if record.signals:
        found.append(labelled("Signals", (Span(", ".join(map(signal_name, record.signals))),)))
    if record.agent_gave_up is not None:
        stopping = "; it has asked for the run to be ended" if record.stopping else ""
        gone = (Span("no longer waits: ", "risk"), *said(f"{record.agent_gave_up}{stopping}"))
        found.append(labelled("Agent", gone))
    return tuple(found)


def _left_behind(record: CallRecord) -> Iterator[Paragraph]:
    """Every process that is alive, and the last of those that have ended."""
    ended = [process for process in record.background if not process.alive]
    shown = [*(process for process in record.background if process.alive), *reversed(ended[-ENDED_SHOWN:])]
    for number, process in enumerate(shown):
        mark = Span("● alive  ", "behind") if process.alive else Span("○ ended  ", "muted")
        line = (mark, Span(f"pid {process.identity.pid}  ", "muted"), *said(process.command, "command"))
        yield labelled("Left behind" if number == 0 else "", line)
    if len(ended) > ENDED_SHOWN:
        yield labelled("", (Span(f"○ ended  {len(ended) - ENDED_SHOWN:,} more", "muted"),))


def _decision(record: CallRecord) -> tuple[Paragraph, ...]:
    if record.decision is None or record.decided_by is None:
        return ()
    return (labelled("Decided", _decided(record, record.decision, record.decided_by)),)


def _decided(record: CallRecord, decision: Decision, by: Decider) -> Line:
    who = decider(by)
    at = f" at {clock_time(record.decided_at)}" if record.decided_at is not None else ""
    if not isinstance(decision, Approve):
        return (Span("denied ", "bad"), Span(who + at))
    edited = (Span(", edited", "edited"),) if record.edited else ()
    exact = decision.remember == "exact_for_session"
    words = ", and again whenever it is asked in this session" if exact else ", and remembered"
    remembered = (Span(words),) if decision.remember else ()
    return (Span("approved ", "good"), Span(who + at), *edited, *remembered)


def _how_it_ended(record: CallRecord, state: Ended) -> list[Paragraph]:
    role: Role = "good" if went_well(state.ending) else "bad"
    found = [labelled("Ending", (Span(ending_sentence(state.ending, by_agent=record.ended_by_agent), role),))]
    if state.usage is not None:
        usage = state.usage
        words = f"{duration(usage.wall_s)} · CPU {duration(usage.user_s + usage.system_s)}"
        words += f" · memory {size(usage.max_rss_kib * 1024)}" if usage.max_rss_kib else ""
        found.append(labelled("Used", (Span(words),)))
    return found


def _limits(spec: CommandSpec, record: CallRecord) -> tuple[Paragraph, ...]:
    if record.function is not None:
        return (_directory(spec, record),)
    found = [_directory(spec, record), _program(record)]
    for number, (name, value) in enumerate(sorted(spec.environment.items())):
        line = (*said_with_ends(name, "strong"), Span("=", "muted"), *said_with_ends(value, "command"))
        decides = ALWAYS_SET.get(name) != value
        found.append(labelled("Environment" if number == 0 else "", line, at_words=False, decides=decides))
    timeout = f"{limit(spec.timeout_s)}, then TERM, and KILL {limit(spec.grace_s)} later" if spec.timeout_s else "none"
    found.append(labelled("Timeout", (Span(timeout),)))
    if spec.tty or spec.accepts_input:
        found.append(
            labelled("Input", (Span("a terminal" if spec.tty else "open: it may be given input while it runs"),))
        )
    return tuple(found)


def _resolved(record: CallRecord) -> Resolved | None:
    """What the words mean, as far as it is known for what runs: an edited command is resolved when it starts."""
    return record.resolved if not record.edited or record.attempt is not None else None


def _directory(spec: CommandSpec, record: CallRecord) -> Paragraph:
    resolved = _resolved(record)
    real = resolved.cwd if resolved is not None else spec.cwd
    if real is None:
        return labelled("Directory", (*said(spec.cwd), Span("  does not exist", "bad")), at_words=False, decides=True)
    asked: Line = () if real == spec.cwd else (Span("  asked as ", "muted"), *said(spec.cwd, "muted"))
    return labelled("Directory", (*said(real), *asked), at_words=False, decides=True)


def _program(record: CallRecord) -> Paragraph:
    resolved = _resolved(record)
    if resolved is None:
        return labelled("Program", said(record.spec.command.words()[0]), at_words=False)
    problem: Line = (Span("  "), *said(resolved.problem, "bad")) if resolved.problem else ()
    found = said(resolved.program) if resolved.program else (Span("not found", "bad"),)
    return labelled("Program", (*found, *problem), at_words=False)


def _origin(record: CallRecord, session: Session | None, now: float) -> tuple[Paragraph, ...]:
    found: list[Paragraph] = []
    if session is not None:
        found += session_paragraphs(session)
    since = age(now - record.call.submitted_at)
    tool = said(f"{record.call.tool} at {clock_time(record.call.submitted_at)}, {since} ago")
    found.append(labelled("Asked with", tool))
    if record.verdict is not None:
        rule = f" (rule {record.verdict.rule})" if record.verdict.rule else ""
        word = {"ask": "Why asked", "allow": "Why allowed", "refuse": "Why refused"}[record.verdict.kind]
        known = any(risk.sentence == record.verdict.reason for risk in record.verdict.risks)
        reason = "because of the risk above" if known else record.verdict.reason
        found.append(labelled(word, said(f"{reason}{rule}")))
    return tuple(found)
