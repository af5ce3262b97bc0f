"""The middle of the cockpit: the heading of a call, its text, and the buttons that decide about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from whisper_tui.model.call import FileEdits, Session
from whisper_tui.model.effects import StepEffect
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.call_text import beyond_the_card, card, further_details, heading, kind_in_heading
from whisper_tui.present.command_steps import step_paragraphs
from whisper_tui.present.command_text import call_line, command_paragraphs, whole_text
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Line, Paragraph, Span, said
from whisper_tui.present.verdict_text import verdict_rows
from whisper_tui.tui.button_bar import ButtonBar, label
from whisper_tui.tui.cockpit.approval_choice import REACHES, SANDBOXES, ApprovalChoice
from whisper_tui.tui.cockpit.notices import FirstHints
from whisper_tui.tui.command_definition import Command, Keymap, available, in_force
from whisper_tui.tui.lines import LineView, width_of, wrap
from whisper_tui.tui.paragraphs_view import ParagraphsView, Position

BUTTONS = (
    *("approve", "approval-reach", "approval-way", "deny", "edit", "preview", "deny-session", "approve-scope"),
    *("set-aside", "mark", "mark-alike", "deny-class", "rerun-unconfined"),
    *("start-anyway", "type", "terminal", "pause", "signal", "retry", "revert-edit"),
    *("talk", "details", "background", "history", "rules", "export", "copy-command"),
)
SOME_STATES_ONLY = frozenset({"deny-class"})
"""Commands that are available for nearly every call, but get a button only for a waiting one."""


class ActionBar(ButtonBar):
    """One button for each command that is available now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(BUTTONS, id=id)
        self.has_conversation = False
        """True if an agent takes part in a conversation: without one its button would be of no use."""
        self._can_preview = True
        """False if nothing can be previewed on this machine. The key still works: the card says why."""
        self._still = False
        self._shown: tuple[CallRecord | None, bool, ApprovalChoice | None] = None, False, None

    def begins_with(self, command: Command) -> str:
        """Return the class of a button that means nothing while no call is selected. Empty: it means something."""
        # A class that a button gets later has its styles computed once more, and there are thirty buttons.
        return "" if available(command, None) and command.id not in SOME_STATES_ONLY else "-meaningless"

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None, *, still: bool = False, choice: ApprovalChoice | None = None) -> None:
        """Show the buttons that are available for a call; `still`: its run is paused; `choice`: how `a` approves it."""
        self._shown = record, still, choice
        waits = record is not None and record.state.kind == "waiting"
        keys = in_force(self.app)
        for button in self.buttons:
            id_ = (button.id or "").removeprefix("do-")
            means = available(keys.by_id(id_), record) and (waits or id_ not in SOME_STATES_ONLY)
            if id_ == "talk":
                means = self.has_conversation
            elif id_ == "preview":
                means = means and self._can_preview
            button.set_class(not means, "-meaningless")
            if id_ == "pause" and still is not self._still:
                self._still = still
                pause = keys.by_id(id_)
                button.label = label(replace(pause, label="Continue") if still else pause)
                button.refresh(layout=True)
        self.fit()

    def fit(self) -> None:
        """Say what is chosen for the next approval, with the other options where there is room for them."""
        if (choice := self._shown[2]) is not None:
            whole = self.content_size.width >= ROOM_FOR_OPTIONS
            for button in self.buttons:
                words = _choice_label(in_force(self.app).by_id((button.id or "").removeprefix("do-")), choice, whole)
                if words is not None and button.label != words:
                    button.label = words
                    button.refresh(layout=True)
        super().fit()

    def offer_previews(self, possible: bool) -> None:
        """Have a button for previews, or have none because they are not possible on this machine."""
        if possible is not self._can_preview:
            self._can_preview = possible
            record, still, choice = self._shown
            self.show(record, still=still, choice=choice)


ROOM_FOR_OPTIONS = 110
"""Least columns of the buttons for all options of an approval."""


def _choice_label(command: Command, choice: ApprovalChoice, whole: bool) -> Content | None:
    """Return the label of a button by which an approval is given or chosen. None: it is another one."""
    match command.id:
        case "approve":
            return label(replace(command, label="Apply changes" if choice.way == "as previewed" else "Approve"))
        case "approval-reach":
            return _options(command, REACHES, choice.reach, choice.reaches, whole)
        case "approval-way":
            # The sandboxes are one option, which says which of them is meant once it is chosen.
            ways = [way for way in choice.ways if way not in SANDBOXES]
            boxes = [way for way in choice.ways if way in SANDBOXES]
            shown = (*ways, *((choice.way,) if choice.way in boxes else boxes[:1]))
            return _options(command, shown, choice.way, shown, whole)
        case _:
            return None


def _options(command: Command, options: Sequence[str], chosen: str, possible: Sequence[str], whole: bool) -> Content:
    """Return a key with its options, the chosen one in brackets, or with the chosen one alone."""
    # A mark beside the colour: in a theme without colours it must be seen as well.
    unusual = chosen != options[0]
    if not whole:
        return Content.assemble((f"{command.key_name} ", "bold"), (chosen, "bold" if unusual else ""))
    parts: list[tuple[str, str]] = [(command.key_name, "bold")]
    for option in options:
        if option == chosen:
            parts.append((f" [{option}]", "bold" if unusual else ""))
        else:
            parts.append((f" {option}", "dim" if option in possible else "dim strike"))
    return Content.assemble(*parts)


HEADING_AND_BUTTONS = 2
WIDE_SCREEN = 160
"""Least width of a terminal whose spare room is filled with details."""
LEAST_FOR_BLANKS = 30
"""Least rows of a terminal whose cards have blank rows between their parts."""
PART_FOR_STEPS = 4
"""A chain is shown as one line a step if it takes no more than this part of the terminal's rows."""
LEAST_ROWS = 4
"""Rows that the call gets in the smallest terminal."""
Nothing = Literal["no-call", "loading", "no-match"]
"""Why no call is shown: there is none, they are not known yet, or none is what the list is filtered by."""
HEADINGS: dict[Nothing, str] = {"no-call": "No call yet", "loading": "Loading…", "no-match": "No call matches"}


@dataclass(frozen=True)
class Guidance:
    """Texts for somebody new to the cockpit."""

    caption: Callable[[CallRecord | None], str] | None = None
    """Returns a line about the selected call, empty for none."""
    clients: Callable[[], tuple[tuple[str, str], ...]] = lambda: ()
    """Returns a command line for each agent client of this machine, with what it does: starts or connects it."""
    hints: FirstHints = field(default_factory=FirstHints)
    """Shows each hint once; without arguments, none at all."""


NO_GUIDANCE = Guidance()


class CardParts(NamedTuple):
    """The parts of a card that are asked for, each empty while it is not known."""

    note: tuple[Paragraph, ...] = ()
    """Below the verdict."""
    effects: tuple[Paragraph, ...] = ()
    """Below its command, or beside it."""
    undo: tuple[Paragraph, ...] = ()
    """Below its effects."""
    texts: tuple[Paragraph, ...] = ()
    """The differences and the code of its effects, which come last."""
    findings: frozenset[str] = frozenset()
    """The sentences of findings that stand in the effects."""
    offer: tuple[Paragraph, ...] = ()
    """A rule that an approval can save."""
    told: tuple[Paragraph, ...] = ()
    """The answer that its agent got."""
    diff: tuple[Paragraph, ...] = ()
    """In the place of its command."""
    preview: tuple[Paragraph, ...] = ()
    """Below its command."""
    changes: tuple[Paragraph, ...] = ()
    """The differences that the preview has found, below what the command expands to."""
    nothing_there: bool = False
    """True if nothing exists of what the call deletes."""
    steps: tuple[StepEffect, ...] = ()
    """The effect of each command of a chain."""
    choice: ApprovalChoice | None = None
    """How the call would be approved. None: it does not wait."""

    @property
    def aside(self) -> tuple[Paragraph, ...]:
        """The part that has a column of its own where it is wide: a difference takes all of the width."""
        return () if self.preview or self.undo else (*self.effects, *self.texts)


NO_PARTS = CardParts()


def _without_blanks(paragraphs: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    return tuple(paragraph for paragraph in paragraphs if paragraph.spans or paragraph.margin)


def welcome(clients: tuple[tuple[str, str], ...]) -> tuple[Paragraph, ...]:
    """Return the text of a cockpit without calls: how to connect an agent, try the demo, test the policy, get help.

    `clients` are command lines for the agent clients of this machine, with what each does.
    """
    names = "claude, codex, gemini, opencode, copilot, qwen, kimi, kilo"
    rows = [
        *(clients or (("whisper-tui install CLIENT", f"connect {names}"),)),
        ("whisper-tui demo", "try it without an agent"),
        ("whisper-tui explain 'rm -rf build'", "see what the policy decides about a command"),
        ("?", "what every key does"),
    ]
    return (
        Paragraph((Span("No agent has submitted a command yet.", "strong"),), margin=(Span(" "),)),
        BLANK,
        *(Paragraph((Span(what, "muted"),), margin=(Span(f"  {words:<38}", "command"),)) for words, what in rows),
    )


def no_match(keys: Keymap) -> tuple[Paragraph, ...]:
    """Return the text of a cockpit whose list is filtered by something that no call has."""
    past = keys.by_id("history").key_name
    how = "Esc in its field clears the search" + (
        f"; {past} searches the calls that the list has no more." if past else "."
    )
    return (Paragraph((Span("No call in the list matches.", "strong"),)), BLANK, Paragraph((Span(how, "muted"),)))


class CallPanel(Vertical):
    """Shows one record at a time, and a welcome while there is none."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.record: CallRecord | None = None
        """The version of the call on the screen: decisions are about this one (decision 23)."""
        self._heading: Line = (Span(HEADINGS["loading"], "strong"),)
        self._kind: Line = ()
        """The program that reads the command, which the heading names where there is room."""
        self._hidden: Line = ()
        self._position: Position | None = None
        self.details = False
        """True while everything about the call is shown, and not only what a decision needs."""
        self.guidance = NO_GUIDANCE
        self._rows = 0
        self._room: int | None = None
        self.resized: Callable[[], object] = lambda: None
        """Draws the call again for another width."""

    def compose(self) -> ComposeResult:
        """Heading, text, buttons."""
        yield LineView(id="call-heading")
        yield ParagraphsView(id="call-detail")
        yield LineView(id="call-choice")
        yield ActionBar(id="call-actions")

    @property
    def columns(self) -> int:
        """The columns of the text."""
        return self.query_one(ParagraphsView).columns

    def page(self, direction: int) -> None:
        """Show the next part of the call, or the one before."""
        self.query_one(ParagraphsView).page(direction)

    def show(
        self,
        record: CallRecord | None,
        session: Session | None,
        now: float,
        recent: tuple[CallRecord, ...] = (),
        *,
        drawn: CallRecord | None = None,
        parts: CardParts = NO_PARTS,
        still: bool = False,
        silent_since: float | None = None,
        queued: str = "",
        away: str = "",
        nothing: Nothing = "no-call",
    ) -> None:
        """Show a call as it is now, with other calls of its session. None: there is no call, because of `nothing`.

        `drawn` is the call with its secrets masked, `parts` is what was found out about it; `still` and `silent_since`
        are as for `heading`; `queued`: why it is queued, as a clause; `away`: why nothing new is
        known of it, as a clause.
        """
        # The same call in a newer version keeps its scroll position; another call begins at its top.
        another = record is None or self.record is None or record.id != self.record.id
        self.record = record
        paragraphs = self._without_call(nothing) if record is None else ()
        spare: tuple[Paragraph, ...] = ()
        steps: tuple[Paragraph, ...] = ()
        if record is not None:
            steps = self._steps(drawn or record, parts.steps)
            paragraphs, spare = self._text(drawn or record, session, now, recent, parts, steps=steps)
            self.guidance.hints.about(self, record, offers_rule=bool(parts.offer))
        self._heading = (Span(HEADINGS[nothing], "strong"),)
        if record is not None and queued:
            # The reason names the command of another call, which is an agent's text (decision 21).
            self._heading = (*heading(record, now)[:3], Span(", queued: ", "muted"), *said(queued, "waiting"))
        elif record is not None:
            self._heading = heading(record, now, still=still, silent_since=silent_since)
        if away:
            self._heading = (*self._heading, *said(f"  ○ {away}", "bad"))
        kind = kind_in_heading(record) if record is not None else ""
        self._kind = (Span(f"{kind}  ", "muted"),) if kind else ()
        # Beside its effects, a chain would get other lines once these are known.
        aside = () if steps else parts.aside
        if self.app.size.height < LEAST_FOR_BLANKS:
            paragraphs, aside = _without_blanks(paragraphs), _without_blanks(aside)
        # A difference takes all the width that there is; a line about the changes of an ended call does not.
        is_wide = (
            parts.diff or parts.changes or ((parts.preview or parts.undo) and record is not None and record.is_open)
        )
        view = self.query_one(ParagraphsView)
        view.show(paragraphs, from_top=another, aside=aside, spare=spare, spare_below=bool(is_wide or steps))
        self.query_one(ActionBar).show(record, still=still, choice=parts.choice)
        self._say_choice(parts.choice)
        self._draw_heading()

    def _say_choice(self, choice: ApprovalChoice | None) -> None:
        """Say above the buttons what follows of an approval that is not the usual one."""
        line, words = self.query_one("#call-choice", LineView), choice.words if choice is not None else ""
        line.display = bool(words)
        if words:
            key = in_force(self.app).by_id("approve").key_name
            line.show((Span(f" {key} ", "strong"), *said(words, "waiting")))

    def _without_call(self, nothing: Nothing) -> tuple[Paragraph, ...]:
        match nothing:
            case "no-call":
                return welcome(self.guidance.clients())
            case "no-match":
                return no_match(in_force(self.app))
            case "loading":
                return ()

    def _text(
        self,
        record: CallRecord,
        session: Session | None,
        now: float,
        recent: tuple[CallRecord, ...],
        parts: CardParts,
        *,
        steps: tuple[Paragraph, ...],
    ) -> tuple[tuple[Paragraph, ...], tuple[Paragraph, ...]]:
        """Return the text about a call, and what fills a screen with room to spare."""
        text = card(
            record,
            session,
            (*parts.effects, *parts.undo, *parts.texts),
            parts.offer,
            parts.diff,
            note=parts.note,
            preview=parts.preview,
            changes=parts.changes,
            told=parts.findings,
            key=in_force(self.app).by_id("jump-to-risk").key_name,
            nothing_there=parts.nothing_there,
            verdict_first=self._is_long(record, session),
            headed=True,
            steps=steps,
        )
        if self.details:
            return (*text, *beyond_the_card(record, session, now, recent, text, told=parts.told)), ()
        return text, further_details(record, session, now, recent, text)

    def _steps(self, record: CallRecord, effects: tuple[StepEffect, ...]) -> tuple[Paragraph, ...]:
        """Return a chain of commands as one line a step if all severe findings still fit below them."""
        if not isinstance(record.state, Waiting):
            return ()
        lines = step_paragraphs(record, effects, self.columns)
        rows = sum(len(wrap(line, self.columns)) for line in lines)
        if rows > self.app.size.height // PART_FOR_STEPS:
            return ()
        # What the effects tell comes later, and must not move the command: neither may decide whether it fits.
        key = in_force(self.app).by_id("jump-to-risk").key_name
        verdict = verdict_rows(record, (), key, nothing_there=False)
        below = sum(len(wrap(row, self.columns)) for row in (*verdict.first, *verdict.severe))
        return lines if rows + below <= self.app.size.height // 2 else ()

    def _is_long(self, record: CallRecord, session: Session | None) -> bool:
        """True if a command leaves no room for its verdict below it."""
        most = self.app.size.height // 2
        commands = [record.call.spec.command, *([record.spec.command] if record.edited else [])]
        if isinstance(record.spec.command, FileEdits):
            # The difference stands elsewhere: only the names of the files are above the verdict.
            names = Paragraph(call_line(record, session), at_words=False)
            return len(wrap(names, self.columns)) > most
        # Each character takes a column or more as it is drawn: only what is short has to be laid out.
        if sum(len(whole_text(each)) for each in commands) > most * self.columns:
            return True
        paragraphs = [paragraph for each in commands for paragraph in command_paragraphs(each, ())]
        return sum(len(wrap(paragraph, self.columns)) for paragraph in paragraphs) > most

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Say how much is not on the screen."""
        message.stop()
        parts = [f"▲ {count(message.above, 'line')}"] if message.above else []
        parts += [f"▼ {count(message.below, 'more line')}"] if message.below else []
        self._hidden = (Span("  ".join(parts) + " ", "running"),) if parts else ()
        if message.unseen and self.record is not None and isinstance(self.record.state, Waiting):
            key = in_force(self.app).by_id("page-call-down").key_name
            words = f"▼ {count(message.unseen, 'line')} not seen yet{f' ({key})' if key else ''} "
            self._hidden = (Span(words, "risk"),)
        self._rows = message.rows
        self._position = message.position
        self._draw_heading()
        self.leave_room(self._room)

    def leave_room(self, room: int | None) -> None:
        """Be no higher than the text needs, and than `room` rows. None: be as high as there is room."""
        self._room = room
        self.query_one(ParagraphsView).set_fills(room is None and self.app.size.width >= WIDE_SCREEN)
        height = None if room is None else max(LEAST_ROWS, min(self._rows + self._rows_around, room))
        self.styles.height = "1fr" if height is None else height

    @property
    def _rows_around(self) -> int:
        """The rows of the heading, of the buttons, and of the line about the choice."""
        return HEADING_AND_BUTTONS + (1 if self.query_one("#call-choice").display else 0)

    def on_resize(self) -> None:
        """Lay out anew what is laid out for a width."""
        self.call_after_refresh(self.resized)

    def on_descendant_focus(self) -> None:
        """A sign says that keys go here."""
        self._draw_heading()

    def on_descendant_blur(self) -> None:
        """Keys go elsewhere."""
        self._draw_heading()

    def _draw_heading(self) -> None:
        sign = Span("▌", "running") if self.query_one(ParagraphsView).has_focus else Span(" ")
        line = self.query_one("#call-heading", LineView)
        left = (sign, *self._heading[:2], *self._kind, *self._heading[2:])
        right = (*_position_line(self._position), *self._hidden)
        if width_of((*left, *right)) >= line.size.width:
            left = (sign, *self._heading)
            right = (*_position_line(self._position, short=True), *self._hidden)
        line.show(left, right)


def _position_line(position: Position | None, *, short: bool = False) -> Line:
    """Return the file and the hunk that a person looks at as words; nothing if there is only one."""
    if position is None or (position.files == 1 and position.hunks <= 1):
        return ()
    of = "/" if short else " of "
    words = [f"file {position.file}{of}{position.files}"] if position.files > 1 else []
    words += [f"hunk {position.hunk}{of}{position.hunks}"] if position.hunks else []
    return (Span(f"{', '.join(words)}  ", "muted"),)
