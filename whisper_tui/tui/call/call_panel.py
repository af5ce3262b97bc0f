"""The middle of the cockpit: the heading of a call, the call in full, and the buttons that decide about it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.css.query import NoMatches

from whisper_tui.model.call import Session
from whisper_tui.model.decision import Coverage, RuleScope, ToolScope, scope_about
from whisper_tui.model.effects import CodeEffect, Effects
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.verdict import Risk
from whisper_tui.present.call_text import card, describe, further_details, heading
from whisper_tui.present.effects_text import EffectLine, effect_lines, no_effects_text
from whisper_tui.present.ending_text import AnswerReader, Told, told_paragraphs
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Line, Paragraph, Role, Span, said
from whisper_tui.present.words import rule_words
from whisper_tui.tui.call.edit_diff import EditFacts
from whisper_tui.tui.call.revealed_secrets import RevealedSecrets
from whisper_tui.tui.cockpit.status_bars import FirstHints
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import available, in_force
from whisper_tui.tui.command_screen import ButtonBar, label
from whisper_tui.tui.lines import LineView, width_of
from whisper_tui.tui.paragraphs_view import ParagraphsView, Position

FRESH_S = 2.0
"""Seconds after which the effects are asked for again: files change while a call waits."""
MOST_DIFF_LINES, MOST_CODE_LINES = 60, 80
"""Lines of one diff, and of one script, on the card."""
_ROLES: dict[str, Role] = {"removal": "risk", "host": "strong", "unknown": "muted", "code": "text"}

Version = tuple[str, str]
"""The id of a call, and the fingerprint of the version that a person sees."""


class CardFacts:
    """Asks for the facts about the call on the screen, without ever delaying a key."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        """`changed` draws the card again."""
        self._cockpit = cockpit
        self._changed = changed
        self._version: Version | None = None
        self._asked_at = float("-inf")
        self.asking = False
        """True until the supervisor has answered."""
        self._effects: tuple[Paragraph, ...] = ()
        self._offer: Offer | None = None

    def effects(self, record: CallRecord) -> tuple[Paragraph, ...]:
        """Return the effects of a waiting call as paragraphs; empty until they are known."""
        self._look(record)
        return self._effects if self._is_about(record) else ()

    def offer(self, record: CallRecord, key: str) -> tuple[Paragraph, ...]:
        """Return the line that offers a rule for commands like this one; empty if there is none to offer."""
        if self._offer is None or not self._is_about(record):
            return ()
        scope, coverage = self._offer
        dots = "" if isinstance(scope, ToolScope) else " …"
        past = (
            f"{dots} in this workspace: covers {len(coverage.calls):,} of the last {count(coverage.looked_at, 'call')}"
        )
        line = (Span("Always allow ", "muted"), Span(rule_words(scope), "command"), Span(past, "muted"))
        return (Paragraph(line, margin=(Span(f" {key} ", "strong"),)),)

    def offered(self, record: CallRecord) -> RuleScope | ToolScope | None:
        """Return the rule whose offer is on the screen."""
        return self._offer[0] if self._offer is not None and self._is_about(record) else None

    def _is_about(self, record: CallRecord) -> bool:
        # The digest comes last: it takes long where a call has megabytes.
        known = isinstance(record.state, Waiting) and self._version is not None and self._version[0] == record.id
        return known and self._version == (record.id, record.seen_digest())

    def _look(self, record: CallRecord) -> None:
        if not isinstance(record.state, Waiting) or self.asking:
            return
        # What an agent carries out itself has no effects that are stated here: only the rule is asked for, once.
        known = record.function is not None or self._cockpit.clock() - self._asked_at < FRESH_S
        if self._is_about(record) and known:
            return
        # Once the card is drawn: to ask, and to read the answer, would take its time from the first paint.
        screen = self._cockpit.screen
        self.asking = screen.call_after_refresh(lambda: screen.run_worker(self._ask(record), name="effects"))

    async def _ask(self, record: CallRecord) -> None:
        version = (record.id, record.seen_digest())
        before = (self._version, self._effects, self._offer)
        try:
            effects = await self._stated(record)
            offer = self._offer if version == self._version else await self._offer_for(record)
        except WhisperError:
            # The call was decided meanwhile, or the connection is lost: the banner reports that.
            return
        finally:
            self.asking = False
            self._asked_at = self._cockpit.clock()
        self._version, self._effects, self._offer = version, effects, offer
        if (version, effects, offer) != before:
            # Widgets go one after the other when the cockpit closes, and this may still be on its way then.
            with suppress(NoMatches):
                self._changed()

    async def _stated(self, record: CallRecord) -> tuple[Paragraph, ...]:
        """Return what a command would change."""
        if record.function is not None:
            return ()
        risks = record.verdict.risks if record.verdict is not None else ()
        return effect_paragraphs(await self._cockpit.supervision.effects(record.id), risks)

    async def _offer_for(self, record: CallRecord) -> "Offer | None":
        """Return a rule for calls like this one, if there is one that its risks allow, and what it would cover."""
        if (scope := _rule_for(record)) is None:
            return None
        try:
            return scope, await self._cockpit.supervision.would_cover(record.id, scope)
        except Refused:
            return None


Offer = tuple[RuleScope | ToolScope, Coverage]
"""A rule that an approval can save, and the past calls that it would have allowed."""


def _rule_for(record: CallRecord) -> RuleScope | ToolScope | None:
    """Return the narrowest rule of the workspace for the first words of a command, or for the target of a tool."""
    if record.verdict is None:
        return None
    prefixes, targets = set(record.verdict.prefixes), record.verdict.targets
    if record.function is not None:
        return scope_about(record.function, targets[0], "project") if targets else None
    return RuleScope(words=prefixes.pop(), where="project") if len(prefixes) == 1 else None


class AnswerFacts:
    """Asks what the agent was told about the ended call on the screen, once for each end."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        """`changed` draws the call again."""
        self._cockpit = cockpit
        self._changed = changed
        self._about: tuple[str, float] | None = None
        self._told: tuple[Paragraph, ...] = ()

    def paragraphs(self, record: CallRecord) -> tuple[Paragraph, ...]:
        """Return the answer to a call as paragraphs; empty while it has none, and until it is known."""
        if not isinstance(record.state, Ended):
            return ()
        about = (record.id, record.state.at)
        if about != self._about:
            self._about, self._told = about, ()
            self._cockpit.screen.run_worker(self._ask(record, about), name="answer", group="answer", exclusive=True)
        return self._told

    async def _ask(self, record: CallRecord, about: tuple[str, float]) -> None:
        told = await answer_paragraphs(self._cockpit, record)
        if about == self._about:
            self._told = told
            with suppress(NoMatches):
                self._changed()


async def answer_paragraphs(cockpit: CockpitContext, record: CallRecord) -> tuple[Paragraph, ...]:
    """Return what the agent was told about a call as paragraphs, or why that cannot be said."""
    answer_of: AnswerReader | None = getattr(cockpit.screen.app, "answer_of", None)
    if not isinstance(record.state, Ended) or answer_of is None:
        return ()
    try:
        told = await answer_of(cockpit.supervision, record)
    except WhisperError as error:
        told = Told(caveats=(f"The answer cannot be reproduced: {error.sentence()}",))
    return told_paragraphs(told)


def effect_paragraphs(effects: Effects, told: Iterable[Risk] = ()) -> tuple[Paragraph, ...]:
    """Return the effects of a call: one line each, a diff below each known write, the text of each unread script.

    `told`: the risks of the call, which stand above them.
    """
    facts = effects.model_dump(mode="json")
    sentences = {risk.sentence for risk in told}
    for code, fact in zip(effects.code, facts["code"], strict=True):
        pairs = zip(code.risks, fact["risks"], strict=True)
        fact["told"] = [each for risk, each in pairs if risk.sentence_about(code.name) in sentences]
    lines = effect_lines(facts)
    nothing = no_effects_text(facts)
    title = (Span("Effects", "label"), *((Span(f"  {nothing}", "muted"),) if nothing else ()))
    files, scripts = iter(effects.files), iter(effects.code)
    found: list[Paragraph] = [BLANK, Paragraph(title, margin=(Span(" "),))]
    for line in lines:
        found.append(_effect(line))
        if line.kind == "file" and (diff := next(files).diff) is not None:
            found += _block(diff.text, MOST_DIFF_LINES, cut=diff.cut, role=_diff_role)
        if line.kind == "code":
            found += _script(next(scripts))
    return tuple(found)


def _script(code: CodeEffect) -> Iterator[Paragraph]:
    """Yield the difference of a script since it was approved, and its text."""
    if code.since is not None:
        yield from _block(code.since.text, MOST_DIFF_LINES, cut=code.since.cut, role=_diff_role)
        yield Paragraph((Span("now", "muted"),), (Span("   "),))
    if code.text:
        yield from _block(code.text, MOST_CODE_LINES, cut=code.cut, role=lambda _: "command")


def _effect(line: EffectLine) -> Paragraph:
    role: Role = "risk" if line.grave else _ROLES.get(line.kind, "text")
    mark: Role = "risk" if line.grave else "muted"
    return Paragraph(said(line.text, role), (Span(" • ", mark),), (Span("   "),))


def _diff_role(line: str) -> Role:
    return "good" if line.startswith("+") else "bad" if line.startswith("-") else "muted"


def _block(text: str, most: int, *, cut: bool, role: Callable[[str], Role]) -> Iterator[Paragraph]:
    margin: Line = (Span("   "), Span("│ ", "frame"))
    lines = text.rstrip("\n").split("\n")
    for line in lines[:most]:
        spans = said(line.replace("\t", "    "), role(line), whole=True)
        # Unlike a command, a script breaks between words: a row that is not full ends with a blank.
        yield Paragraph(spans, margin, (Span("   "), Span("┆ ", "frame")), card=True)
    if len(lines) > most or cut:
        more = f"… {count(len(lines) - most, 'more line')}" if len(lines) > most else "… more, too long to be shown"
        yield Paragraph((Span(more, "muted"),), margin)


BUTTONS = (
    *("approve", "approve-session", "edit", "deny", "deny-session", "approve-scope", "deny-class"),
    *("mark", "mark-alike", "rerun-unconfined", "type", "terminal", "pause", "signal", "kill", "retry"),
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
        self._still = False

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None, *, still: bool = False) -> None:
        """Show the buttons that are available for a call; `still`: its run is paused."""
        waits = record is not None and record.state.kind == "waiting"
        keys = in_force(self.app)
        for button in self.buttons:
            id_ = (button.id or "").removeprefix("do-")
            means = available(keys.by_id(id_), record) and (waits or id_ not in SOME_STATES_ONLY)
            if id_ == "talk":
                means = self.has_conversation
            button.set_class(not means, "-meaningless")
            if id_ == "pause" and still is not self._still:
                self._still = still
                pause = keys.by_id(id_)
                button.label = label(replace(pause, label="Continue") if still else pause)
                button.refresh(layout=True)
        self.fit()


HEADING_AND_BUTTONS = 2
WIDE_SCREEN = 160
"""Least width of a terminal whose spare room is filled with details."""
LEAST_ROWS = 4
"""Rows that the call gets in the smallest terminal."""
NOTHING: Line = (Span("No call yet", "strong"),)


@dataclass(frozen=True)
class Guidance:
    """Texts for somebody new to the cockpit."""

    caption: Callable[[CallRecord | None], str] | None = None
    """Returns a line about the selected call, empty for none."""
    clients: tuple[tuple[str, str], ...] = ()
    """The agent clients on this machine, by name and title."""
    hints: FirstHints = field(default_factory=FirstHints)
    """Shows each hint once; without arguments, none at all."""


NO_GUIDANCE = Guidance()


def welcome(clients: tuple[tuple[str, str], ...]) -> tuple[Paragraph, ...]:
    """Return the text of a cockpit without calls: how to connect an agent, try the demo, test the policy, get help.

    `clients` are the agent clients on this machine: their names on the command line, and their titles.
    """
    found = clients or (("CLIENT", "claude, codex, gemini, opencode"),)
    rows = [
        *((f"whisper-tui install {name}", f"connect {title}") for name, title in found),
        ("whisper-tui demo", "try it without an agent"),
        ("whisper-tui explain 'rm -rf build'", "see what the policy decides about a command"),
        ("?", "what every key does"),
    ]
    return (
        Paragraph((Span("No agent has submitted a command yet.", "strong"),), margin=(Span(" "),)),
        BLANK,
        *(Paragraph((Span(what, "muted"),), margin=(Span(f"  {words:<38}", "command"),)) for words, what in rows),
    )


class CallPanel(Vertical):
    """Shows one record at a time, and a welcome while there is none."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.record: CallRecord | None = None
        """The version of the call on the screen: decisions are about this one (decision 23)."""
        self._heading: Line = NOTHING
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
        note: tuple[Paragraph, ...] = (),
        effects: tuple[Paragraph, ...] = (),
        offer: tuple[Paragraph, ...] = (),
        told: tuple[Paragraph, ...] = (),
        diff: tuple[Paragraph, ...] = (),
        still: bool = False,
        silent_since: float | None = None,
    ) -> None:
        """Show a call as it is now, with other calls of its session. None: there is no call.

        `drawn` is the call with its secrets masked, `note` stands above it, `effects` below its command, and `offer`
        or `told` at its end, `diff` in the place of the command; `still` and `silent_since` are as for `heading`.
        """
        # The same call in a newer version keeps its scroll position; another call begins at its top.
        another = record is None or self.record is None or record.id != self.record.id
        self.record = record
        paragraphs: tuple[Paragraph, ...] = welcome(self.guidance.clients)
        spare: tuple[Paragraph, ...] = ()
        if record is not None:
            shown = drawn or record
            if self.details:
                text = describe(shown, session, now, recent, effects, told=told, diff=diff)
            else:
                text = card(shown, session, effects, offer, diff)
            paragraphs = (*note, *text)
            # A difference takes all the width that there is.
            spare = () if self.details or diff else further_details(shown, session, now, recent, paragraphs)
            self.guidance.hints.about(self, record, offers_rule=bool(offer))
        self._heading = heading(record, now, still=still, silent_since=silent_since) if record is not None else NOTHING
        self.query_one(ParagraphsView).show(paragraphs, from_top=another, aside=effects, spare=spare)
        self.query_one(ActionBar).show(record, still=still)
        self._draw_heading()

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
        height = None if room is None else max(LEAST_ROWS, min(self._rows + HEADING_AND_BUTTONS, room))
        self.styles.height = "1fr" if height is None else height

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
        left = (sign, *self._heading)
        right = (*_position_line(self._position), *self._hidden)
        if width_of((*left, *right)) >= line.size.width:
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


class CallCard:
    """Draws a call on the panel with its effects and the rule on offer, and its secrets masked until revealed."""

    def __init__(
        self,
        cockpit: CockpitContext,
        changed: Callable[[], object],
        standing_still: Callable[[CallRecord], tuple[bool, float | None]],
    ) -> None:
        """`changed` draws the card again; `standing_still`: whether a run is paused, and since when it is silent."""
        self._cockpit = cockpit
        self._changed = changed
        self._standing_still = standing_still
        self.facts = CardFacts(cockpit, changed)
        """Asks for the effects of the selected call."""
        self._answers = AnswerFacts(cockpit, changed)
        self.edits = EditFacts(cockpit, changed)
        """Asks for the contents of the files of the selected edit."""
        self.revealed = RevealedSecrets(cockpit.screen, changed)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"reveal": self._reveal}

    def draw(self, record: CallRecord, session: Session | None, recent: tuple[CallRecord, ...]) -> None:
        """Draw a call as it is now, with the last other calls of its session."""
        still, silent = self._standing_still(record)
        panel = self._cockpit.screen.query_one(CallPanel)
        panel.resized = self._changed
        drawn = self.revealed.shown(record)
        panel.show(
            record,
            session,
            self._cockpit.clock(),
            recent,
            drawn=drawn,
            diff=self.edits.paragraphs(record, drawn, panel.columns),
            note=self.revealed.note(record, self._key_of("reveal")),
            effects=self.facts.effects(record),
            offer=self.facts.offer(record, self._key_of("approve-always")),
            told=self._answers.paragraphs(record) if panel.details else (),
            still=still,
            silent_since=silent,
        )

    def _key_of(self, command_id: str) -> str:
        return in_force(self._cockpit.screen.app).by_id(command_id).key_name

    def _reveal(self) -> None:
        if (record := self._cockpit.shown) is not None:
            self._cockpit.tell(self.revealed.reveal(record))
