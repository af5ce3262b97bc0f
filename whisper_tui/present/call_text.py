"""A call in full, as paragraphs: its state, risks, command, decision, limits, origin and session."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from whisper_tui.model.call import Argv, CarriedOut, CommandSpec, FileEdits, Session, Shell, Trust
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.ending import signal_name
from whisper_tui.model.run import Blocked
from whisper_tui.model.state import Aside, CallRecord, Ended, Held, PendingYes, Queued, Running, Starting, Waiting
from whisper_tui.model.verdict import Resolved
from whisper_tui.present.command_text import (
    SYSTEM_PROGRAMS,
    call_line,
    command_paragraphs,
    command_title,
    head_and_tail_line,
    meaning_paragraphs,
)
from whisper_tui.present.ending_text import (
    ending_sentence,
    ending_word,
    recent_paragraphs,
    undone_words,
    went_well,
)
from whisper_tui.present.explained_words import explained_paragraphs
from whisper_tui.present.quantities import age, clock_time, count, duration, limit, size
from whisper_tui.present.security_text import (
    alarm_paragraphs,
    blocked_paragraphs,
    own_shell_paragraphs,
    sandbox_paragraphs,
)
from whisper_tui.present.session_text import session_line
from whisper_tui.present.spans import BLANK, LONGEST_TEXT, Line, Paragraph, Role, Span, labelled, said
from whisper_tui.present.unasked_text import level_words
from whisper_tui.present.verdict_text import is_the_verdict, repeats_a_risk, shortened_findings, verdict_rows
from whisper_tui.present.words import decided_by_text

TRUST: Mapping[Trust, tuple[str, Role]] = {
    "trusted_operator": ("trusted as an operator", "good"),
    "trusted_system": ("trusted as part of the system", "good"),
    "trusted_integration": ("trusted as an integration", "good"),
}


def session_paragraphs(session: Session) -> tuple[Paragraph, ...]:
    """Return the agent of a session, its workspace, and its trust."""
    pid = f"pid {session.pid}" if session.pid is not None else ""
    closed = f"closed: {session.closed_because}" if session.closed_at is not None else ""
    facts = filter(None, (_client_beside(session) if session.client else "unknown agent", pid, closed))
    # every agent is untrusted, unless its hello says otherwise
    trust = () if session.trust == "untrusted_external" else (labelled("Trust", (Span(*TRUST[session.trust]),)),)
    return (
        labelled("Session", (*session_line(session, session.id), *said("".join(f" · {fact}" for fact in facts)))),
        *trust,
        labelled("Workspace", said(session.root), at_words=False),
    )


ALWAYS_SET = {"ASIMI_CLI": "1"}
"""Variables that a tool sets for every command. They need not have been visible before an approval."""
ENDED_SHOWN = 3
"""How many ended background processes are shown, the newest ones."""


def describe(
    record: CallRecord,
    session: Session | None,
    now: float,
    recent: tuple[CallRecord, ...] = (),
    effects: tuple[Paragraph, ...] = (),
    *,
    told: tuple[Paragraph, ...] = (),
    diff: tuple[Paragraph, ...] = (),
    preview: tuple[Paragraph, ...] = (),
    changes: tuple[Paragraph, ...] = (),
) -> tuple[Paragraph, ...]:
    """Return everything about a call: its card, what its words mean, and all further facts.

    `now` is in seconds since the epoch; `recent` are other calls of the same session; `told` is the answer that its
    agent got; the rest is as for a card.
    """
    shown = card(record, session, effects, diff=diff, preview=preview, changes=changes)
    return (*shown, *beyond_the_card(record, session, now, recent, shown, told=told))


def beyond_the_card(
    record: CallRecord,
    session: Session | None,
    now: float,
    recent: tuple[CallRecord, ...],
    shown: tuple[Paragraph, ...],
    *,
    told: tuple[Paragraph, ...],
) -> tuple[Paragraph, ...]:
    """Return what `describe` has below the card. `shown` is the card."""
    words = explained_paragraphs(record.spec.command, _resolved(record))
    return (*words, *further_details(record, session, now, recent, shown), *told)


def further_details(
    record: CallRecord,
    session: Session | None,
    now: float,
    recent: tuple[CallRecord, ...],
    beside: tuple[Paragraph, ...],
) -> tuple[Paragraph, ...]:
    """Return facts that the card has not, also for a screen with room to spare. `beside` is on the card."""
    shown = {paragraph.spans for paragraph in beside}
    rows = (row for row in _details(record, session, now, recent) if not row.spans or row.spans not in shown)
    # Room decides whether they are shown, so no decision may depend on them.
    return (BLANK, *(replace(row, decides=False) for row in rows))


def _details(
    record: CallRecord, session: Session | None, now: float, recent: tuple[CallRecord, ...]
) -> tuple[Paragraph, ...]:
    return (
        *(labelled("In full", said(sentence)) for sentence in shortened_findings(record)),
        *_limits(record.spec, record),
        *_origin(record, session, now),
        *recent_paragraphs(recent, now),
    )


def card(
    record: CallRecord,
    session: Session | None,
    effects: tuple[Paragraph, ...] = (),
    offer: tuple[Paragraph, ...] = (),
    diff: tuple[Paragraph, ...] = (),
    *,
    note: tuple[Paragraph, ...] = (),
    preview: tuple[Paragraph, ...] = (),
    changes: tuple[Paragraph, ...] = (),
    told: Collection[str] = (),
    key: str = "",
    nothing_there: bool = False,
    verdict_first: bool = False,
    headed: bool = False,
    steps: tuple[Paragraph, ...] = (),
) -> tuple[Paragraph, ...]:
    """Return the facts that a decision needs: the command, the verdict on it, other facts, and its effects.

    Each fact stands once (decision 42), and other facts have a row only if they are unusual. `preview` with its
    `changes` is shown below them, and `diff` in the place of the command. `told`: the findings that stand in the
    effects; `key` goes to the next finding. `nothing_there`: what it deletes does not exist. `verdict_first`: the
    command is so long that the verdict stands above it. `headed`: the heading above says what reads the command.
    `steps`: the command as one line a step.
    """
    usual_directory = _directory_is_usual(record, session)
    waits = isinstance(record.state, Waiting)
    stands = _outcome(record)
    verdict = verdict_rows(record, told, key, nothing_there=nothing_there)
    command = _edit(record, session) if diff else _marked_as_deciding(_command(record, steps, headed=headed))
    command = (*command, BLANK) if command else ()
    top = (*verdict.first, *verdict.severe)
    top = (*top, BLANK) if top else ()
    facts = (
        *(stands if waits else ()),
        *note,
        *_description(record),
        *_decision(record),
        *_asked_by(record, session, with_directory=usual_directory),
        *place_paragraphs(record.spec),
        *(() if usual_directory else (_directory(record.spec, record),)),
        *unusual_paragraphs(record, session),
        *verdict.others,
    )
    expanded = () if diff else _marked_as_deciding(meaning_paragraphs(record.spec.command, _resolved(record)))
    return (
        *((*stands, BLANK) if stands and not waits else ()),
        *((*top, *command) if verdict_first else (*command, *top)),
        *facts,
        *((BLANK, *diff) if diff else ()),
        # What a preview has found comes before what the words expand to: somebody has asked for it.
        *preview,
        *changes,
        *expanded,
        *offer,
        # Effects come last, because the text of a script may be long and must not push other facts off the screen.
        *effects,
    )


def _directory_is_usual(record: CallRecord, session: Session | None) -> bool:
    """True if the command runs in the requested directory, inside the workspace of its session."""
    if session is None or record.spec.place:
        return False
    resolved = _resolved(record)
    real = resolved.cwd if resolved is not None else record.spec.cwd
    return real == record.spec.cwd and f"{real}/".startswith(f"{session.root.rstrip('/')}/")


def unusual_paragraphs(record: CallRecord, session: Session | None) -> Iterator[Paragraph]:
    """Yield rows that a decision only needs if they are unusual."""
    resolved = _resolved(record)
    if record.function is None:
        found = resolved.program if resolved is not None else None
        if resolved is not None and (found is None or resolved.problem or not found.startswith(SYSTEM_PROGRAMS)):
            yield replace(_program(record), decides=True)
        yield from (*own_shell_paragraphs(record), *(row for row in _environment(record.spec) if row.decides))
        yield from _input(record.spec)
    if session is not None and session.trust != "untrusted_external":
        yield labelled("Trust", (Span(*TRUST[session.trust]),))
    if not is_the_verdict(record):
        yield from _reasons(record)


def _asked_by(record: CallRecord, session: Session | None, *, with_directory: bool) -> Iterator[Paragraph]:
    """Yield a line with the agent and, unless it has its own row, the directory."""
    if session is None:
        return
    client = _client_beside(session)
    agent: Line = (*session_line(session, session.id), *(said(f" · {client}", "muted") if client else ()))
    where: Line = (Span("  in ", "muted"), *said(record.spec.cwd)) if with_directory else ()
    if session.unasked is not None:
        where = (*where, Span(f"  {level_words(session.unasked)}", "waiting"))
    yield Paragraph((*agent, *where), margin=(Span(" "),), at_words=False, decides=with_directory)


def _client_beside(session: Session) -> str:
    """The program of a session with its version, without what the name of the session says."""
    if session.client is None:
        return ""
    named = "" if session.client.name in session.name else session.client.name
    return f"{named} {session.client.version}".strip()


def _marked_as_deciding(paragraphs: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    return tuple(replace(paragraph, decides=True) for paragraph in paragraphs)


def heading(record: CallRecord, now: float, *, still: bool | None = None, silent_since: float | None = None) -> Line:
    """Return a call on one line: its number and its state.

    `still`: True if the run is paused. None: take it from the record. `silent_since`: when it began to need input.
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
    """Return the state of a call as a symbol and words, after its alarm."""
    alarm = (Span(f"! {record.alarm.word()}", "bad"), Span("  ")) if record.alarm is not None else ()
    undone = undone_words(record) if isinstance(record.state, Ended) else ()
    draft = (Span(", in the draft", "muted"),) if record.in_draft else ()
    return (*alarm, *_state(record, now), *draft, *(Span(f", {word}", "edited") for word in undone))


def _state(record: CallRecord, now: float) -> Line:
    match record.state:
        case Waiting(since=since) if record.is_held_back:
            return (Span("▷ held back", "running"), Span(f" for {duration(max(0, now - since))}", "muted"))
        case Waiting(yes=PendingYes(by=by, until=until)):
            return (
                Span("◆ ", "waiting"),
                *said(by.who, "waiting"),
                Span(f" says yes by phone, in {duration(max(0, until - now))}", "waiting"),
            )
        case Waiting(aside=Aside(since=since)):
            return (Span("◈ set aside", "muted"), Span(f" for {duration(max(0, now - since))}", "muted"))
        case Waiting(since=since):
            return (Span("◆ waiting for you", "waiting"), Span(f" for {duration(max(0, now - since))}", "muted"))
        case Held(since=since):
            waited = Span(f"; its agent has not started it for {duration(max(0, now - since))}", "muted")
            return (Span("◇ approved", "running"), waited)
        case Queued():
            return (Span("◇ approved", "running"), Span(", about to start", "muted"))
        case Starting(since=since) if record.function is not None:
            return (
                Span("▶ run by its agent", "running"),
                Span(f" for {duration(max(0, now - since))}", "muted"),
            )
        case Starting():
            return (Span("▷ starting", "running"),)
        case Running(process=process):
            return (Span("▶ running", "running"), Span(f" for {duration(max(0, now - process.started_at))}", "muted"))
        case Ended(ending=ending, settled=True, blocked=Blocked()):
            return (Span("⊘ ", "risk"), Span(f"blocked, {ending_word(ending, record.spec.command)}", "risk"))
        case Ended(ending=ending, settled=settled):
            mark = Span("✔ ", "good") if went_well(ending) else Span("✘ ", "bad")
            word = Span(ending_word(ending, record.spec.command), mark.role)
            alive = count(len(record.living_background), "process", "processes")
            return (mark, word) if settled else (mark, word, Span(f"  ● {alive} left behind", "behind"))
        case _:
            return (Span("… not yet judged", "muted"),)


def _description(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return the agent's description, quoted so that it cannot be mistaken for the cockpit's text (decision 21)."""
    text = record.call.description
    if not text and not isinstance(record.state, Waiting):
        return ()
    if not text:
        return (Paragraph((Span("The agent gave no description.", "muted"),), margin=(Span(" "),)),)
    lines = text[:LONGEST_TEXT].split("\n")
    if len(text) > LONGEST_TEXT:
        lines[-1] += f" … {len(text) - LONGEST_TEXT:,} more characters"
    first = Paragraph(said(lines[0]), margin=(Span(" “ ", "muted"),))
    rest = ((Span(" ┊ ", "muted"),),) * 2
    return (first, *(Paragraph(said(line), *rest) for line in lines[1:]))


def _command(record: CallRecord, steps: tuple[Paragraph, ...], *, headed: bool) -> tuple[Paragraph, ...]:
    risks = record.verdict.risks if record.verdict else ()
    asked = record.call.spec
    if not record.edited:
        noun = "Call" if isinstance(asked.command, CarriedOut) else "Command"
        caption = () if headed and kind_in_heading(record) else (_caption(_verb(record, noun), asked),)
        return (*caption, *(steps or command_paragraphs(asked.command, risks)))
    return (
        _caption("Asked", asked),
        *command_paragraphs(asked.command, risks),
        BLANK,
        _caption(f"{_verb(record, 'Will run')}, as edited", record.spec, "edited"),
        *command_paragraphs(record.spec.command, ()),
    )


def _edit(record: CallRecord, session: Session | None) -> tuple[Paragraph, ...]:
    """Return what an edit does on one line; the difference says the rest."""
    if not isinstance(record.spec.command, FileEdits):
        return ()
    line, names = call_line(record, session), (Span(": ", "muted"),)
    # The names of several files are listed above their differences.
    line = line[: line.index(names[0])] if names[0] in line else line
    margin = (Span(" "), Span("│ ", "frame"))
    return (Paragraph(line, margin, (Span(" "), Span("┆ ", "frame")), card=True, at_words=False, decides=True),)


USUAL_SHELL = re.compile(r"((/usr)?/bin/)?(ba)?sh")


def kind_in_heading(record: CallRecord) -> str:
    """Return what reads the command of a waiting call, if that is usual enough to stand above the card."""
    command = record.spec.command
    if not isinstance(record.state, Waiting) or record.edited or record.spec.place:
        return ""
    usual = isinstance(command, Shell) and USUAL_SHELL.fullmatch(command.shell) and not command.login
    return command_title(command) if usual or isinstance(command, Argv) else ""


def _verb(record: CallRecord, before: str) -> str:
    if record.process is None:
        return before
    return "Ran" if isinstance(record.state, Ended) else "Runs"


def _caption(word: str, spec: CommandSpec, role: str = "label") -> Paragraph:
    caption = Span(word, "edited" if role == "edited" else "label")
    place = (Span(f"  at {spec.place}", PLACE_ROLE),) if spec.place else ()
    return Paragraph((caption, Span(f"  {command_title(spec.command)}", "muted"), *place), margin=(Span(" "),))


PLACE_ROLE: Role = "keyword"


def place_paragraphs(spec: CommandSpec) -> tuple[Paragraph, ...]:
    """Return where a command runs. Empty: on this machine."""
    if not spec.place:
        return ()
    here = Span("  not on this machine; no sandbox, no preview, no undo", "muted")
    return (labelled("Place", (Span(spec.place, PLACE_ROLE), here), decides=True),)


def _outcome(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return the outcome so far. It is above the command, because people look for it first once a call runs."""
    found: list[Paragraph] = [*alarm_paragraphs(record), *blocked_paragraphs(record.blocked)]
    found += returned_paragraphs(record)
    if record.process is not None:
        leader = record.process.leader
        words = f"pid {leader.pid} · group {record.process.pgid} · attempt {record.attempt}"
        found.append(labelled("Process", (Span(words),)))
    found += sandbox_paragraphs(record)
    if isinstance(record.state, Ended):
        found += _ending(record, record.state)
    found += _left_behind(record)
    if record.signals:
        found.append(labelled("Signals", (Span(", ".join(map(signal_name, record.signals))),)))
    if record.aside is not None:
        found.append(labelled("Set aside", said(f"{decided_by_text(record.aside.by)}, without an answer")))
    if record.agent_went_on:
        found.append(labelled("Agent", (Span("was told that it is set aside, and goes on meanwhile", "muted"),)))
    elif record.agent_gave_up is not None:
        stopping = "; it asked to end the run" if record.stopping else ""
        gone = (Span("no longer waiting: ", "risk"), *said(f"{record.agent_gave_up}{stopping}"))
        found.append(labelled("Agent", gone))
    return tuple(found)


def returned_paragraphs(record: CallRecord) -> tuple[Paragraph, ...]:
    """Return why a call waits again although somebody has approved it. Empty: it waits for the first time."""
    why = record.state.returned_because if isinstance(record.state, Waiting) else None
    return (labelled("Asked again", said(why, "risk"), decides=True),) if why else ()


def _left_behind(record: CallRecord) -> Iterator[Paragraph]:
    """Yield every living background process, and the last ended ones."""
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
    who = decided_by_text(by)
    at = f" at {clock_time(record.decided_at)}" if record.decided_at is not None else ""
    if not isinstance(decision, Approve):
        return (Span("denied ", "bad"), Span(who + at))
    how = ", as previewed" if decision.preview is not None else ", undoable"
    edited = (Span(", edited", "edited"),) if record.edited else ()
    kept = (Span(how),) if record.undoable else ()
    exact = decision.remember == "exact_for_session"
    words = ", and whenever it is asked again in this session" if exact else ", and remembered"
    remembered = (Span(words),) if decision.remember else ()
    return (Span("approved ", "good"), Span(who + at), *kept, *edited, *remembered)


def _ending(record: CallRecord, state: Ended) -> list[Paragraph]:
    role: Role = "good" if went_well(state.ending) else "bad"
    found = [
        labelled(
            "Ending", (Span(ending_sentence(state.ending, record.spec.command, by_agent=record.ended_by_agent), role),)
        )
    ]
    if state.usage is not None:
        usage = state.usage
        words = f"{duration(usage.wall_s)} · CPU {duration(usage.user_s + usage.system_s)}"
        words += f" · memory {size(usage.max_rss_kib * 1024)}" if usage.max_rss_kib else ""
        found.append(labelled("Used", (Span(words),)))
    return found


def _limits(spec: CommandSpec, record: CallRecord) -> tuple[Paragraph, ...]:
    if record.function is not None:
        return (_directory(spec, record),)
    found = [
        *place_paragraphs(spec),
        _directory(spec, record),
        _program(record),
        *own_shell_paragraphs(record),
        *_environment(spec),
    ]
    timeout = f"{limit(spec.timeout_s)}, then TERM, and KILL {limit(spec.grace_s)} later" if spec.timeout_s else "none"
    found.append(labelled("Timeout", (Span(timeout),)))
    return (*found, *_input(spec))


def _environment(spec: CommandSpec) -> Iterator[Paragraph]:
    for number, (name, value) in enumerate(sorted(spec.environment.items())):
        line = (*head_and_tail_line(name, "strong"), Span("=", "muted"), *head_and_tail_line(value, "command"))
        decides = ALWAYS_SET.get(name) != value
        yield labelled("Environment" if number == 0 else "", line, at_words=False, decides=decides)


def _input(spec: CommandSpec) -> Iterator[Paragraph]:
    if spec.tty or spec.accepts_input:
        yield labelled("Input", (Span("a terminal" if spec.tty else "open, accepts input while it runs"),))


def _resolved(record: CallRecord) -> Resolved | None:
    """Return the resolved command, if it belongs to the command that runs."""
    # An edited command is resolved when it starts. Until then, the resolution is of the original command.
    return record.resolved if not record.edited or record.attempt is not None else None


def _directory(spec: CommandSpec, record: CallRecord) -> Paragraph:
    resolved = _resolved(record)
    real = resolved.cwd if resolved is not None else spec.cwd
    if real is None:
        return labelled("Directory", (*said(spec.cwd), Span("  does not exist", "bad")), at_words=False, decides=True)
    asked: Line = () if real == spec.cwd else (Span("  requested as ", "muted"), *said(spec.cwd, "muted"))
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
    tool = said(f"via {record.call.tool} at {clock_time(record.call.submitted_at)}, {since} ago")
    found.append(labelled("Requested", tool))
    # Of a waiting call, the line of the verdict says it.
    known = isinstance(record.state, Waiting) and is_the_verdict(record)
    rule = record.verdict.rule if record.verdict is not None else None
    return (*found, *(() if known and not rule else _reasons(record)))


def _reasons(record: CallRecord) -> Iterator[Paragraph]:
    """Yield the reason of the verdict, and the rule behind it."""
    if record.verdict is None:
        return
    rule = f" (rule {record.verdict.rule})" if record.verdict.rule else ""
    word = {"ask": "Why asked", "allow": "Why allowed", "refuse": "Why refused"}[record.verdict.kind]
    # Repeating the sentence of a risk would only push the command off the screen.
    reason = "flagged: see the risk above" if repeats_a_risk(record.verdict) else record.verdict.reason
    yield labelled(word, said(f"{reason}{rule}"))
