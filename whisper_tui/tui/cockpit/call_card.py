"""Draws a call on the panel: asks for its effects, its preview, its answer and the rule on offer; masks its secrets."""

from collections.abc import Callable
from contextlib import suppress

from textual.css.query import NoMatches
from textual.screen import Screen
from textual.timer import Timer

from whisper_tui.model.call import Session
from whisper_tui.model.decision import Coverage, RuleScope, ToolScope, scope_about
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.masking import mask_unless_undecided
from whisper_tui.model.state import CallRecord, Ended, Running, Starting, Waiting
from whisper_tui.model.text import visible
from whisper_tui.present.ending_text import AgentAnswer, AnswerReader, agent_answer_paragraphs, away_text
from whisper_tui.present.phone_notices import words_paragraphs
from whisper_tui.present.preview_text import undo_paragraphs
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import Paragraph, Span, labelled
from whisper_tui.present.verdict_text import findings
from whisper_tui.present.words import rule_words
from whisper_tui.tui.asked_facts import AskedFacts
from whisper_tui.tui.cockpit.approval_choice import ApprovalChoices
from whisper_tui.tui.cockpit.call_list import places_of
from whisper_tui.tui.cockpit.call_panel import CallPanel, CardParts
from whisper_tui.tui.cockpit.call_row import place_key
from whisper_tui.tui.cockpit.effect_rows import EffectRows, effect_rows
from whisper_tui.tui.cockpit.preview_card import PreviewFacts
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import in_force
from whisper_tui.tui.edit_diff import EditFacts

REVEALED_S = 10.0
"""Seconds for which the secrets of one call are shown."""

FRESH_S = 2.0
"""Seconds after which the effects are asked for again: files change while a call waits."""
OFTEN = 2
"""Approvals of similar commands after which the rule that covers them stands right below the verdict."""

Version = tuple[str, str]
"""The id of a call, and the fingerprint of the version that a person sees."""


class CardFacts(AskedFacts):
    """Asks for the facts about the call on the screen, without ever delaying a key."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        super().__init__(cockpit, changed)
        self._version: Version | None = None
        self._effects = EffectRows()
        self._offer: Offer | None = None

    def effects(self, record: CallRecord) -> EffectRows:
        """Return the effects of a waiting call; none until they are known."""
        self._look(record)
        return self._effects if self._is_about(record) else EffectRows()

    def offer(self, record: CallRecord, key: str) -> tuple[Paragraph, ...]:
        """Return the line that offers a rule for commands like this one; empty if there is none to offer."""
        if self._offer is None or not self._is_about(record):
            return ()
        scope, coverage = self._offer
        dots = "" if isinstance(scope, ToolScope) else " …"
        also = f" with {visible(' '.join(scope.options))}" if isinstance(scope, RuleScope) and scope.options else ""
        past = (
            f"{dots}{also} in this workspace: would allow {len(coverage.calls):,} of your last "
            f"{count(coverage.looked_at, 'call')}"
        )
        # The rule gives later commands what this approval gives its own.
        unconfined = () if isinstance(scope, ToolScope) else (Span("; runs without a sandbox", "risk"),)
        often = (Span(f"Approved {coverage.approved:,} times already. ", "strong"),) if self.repeats(record) else ()
        line = (
            *often,
            Span("Always allow ", "muted"),
            Span(rule_words(scope), "command"),
            Span(past, "muted"),
            *unconfined,
        )
        # Chosen by the second press.
        return (Paragraph(line, margin=(Span(f" {key} {key} " if key else " ", "strong"),)),)

    def repeats(self, record: CallRecord) -> bool:
        """True if the rule on offer would answer what the person has answered several times."""
        return self._offer is not None and self._offer[1].approved >= OFTEN and self._is_about(record)

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
            self._answered()
        self._version, self._effects, self._offer = version, effects, offer
        if (version, effects, offer) != before:
            self._draw()

    async def _stated(self, record: CallRecord) -> EffectRows:
        """Return what a command would change."""
        if record.function is not None:
            return EffectRows()
        effects = await self._cockpit.supervision.effects(record.id)
        later = record.resolved.sensitive if record.resolved is not None else ()
        return effect_rows(effects, record.spec.command, findings(record), later)

    async def _offer_for(self, record: CallRecord) -> "Offer | None":
        """Return a rule for calls like this one, if there is one that its risks allow, and what it would cover."""
        if (scope := _rule_for(record)) is None:
            return None
        try:
            found = await self._cockpit.supervision.would_cover(record.id, scope)
            if isinstance(scope, RuleScope) and found.approved >= OFTEN and found.options:
                # What was approved before had other options: the rule is to cover all of it.
                scope = scope.model_copy(update={"options": found.options})
                found = await self._cockpit.supervision.would_cover(record.id, scope)
        except Refused:
            return None
        return scope, found


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
        told = AgentAnswer(caveats=(f"The answer cannot be reproduced: {error.sentence()}",))
    return agent_answer_paragraphs(told)


class RevealedSecrets:
    """The call of a screen that is shown with its secrets for some seconds."""

    def __init__(self, screen: Screen[None], draw: Callable[[], object]) -> None:
        """`draw` shows the selected call anew."""
        self._screen = screen
        self._draw = draw
        self._call_id: str | None = None
        self._timer: Timer | None = None
        self._last: tuple[CallRecord, CallRecord] | None = None
        """The record that was masked last, and what came of it; it is asked for again and again."""
        self._hides = False

    def shown(self, record: CallRecord) -> CallRecord:
        """A call as it is drawn."""
        return record if record.id == self._call_id else self._masked(record)

    def note(self, record: CallRecord, key: str) -> tuple[Paragraph, ...]:
        """Return the note above a call with secrets: hidden, or shown for the moment."""
        if not self.hides(record):
            return ()
        shown = record.id == self._call_id
        words = "shown" if shown else f"hidden{f'; {key} shows them for {REVEALED_S:.0f} seconds' if key else ''}"
        return (labelled("Secrets", (Span(words, "risk" if shown else "muted"),)),)

    def hides(self, record: CallRecord) -> bool:
        """True if a call has secrets that are masked unless revealed."""
        self._masked(record)
        return self._hides

    def conceals(self, record: CallRecord) -> bool:
        """True if secrets of a call are masked on the screen now."""
        return record.id != self._call_id and self.hides(record)

    def _masked(self, record: CallRecord) -> CallRecord:
        if self._last is None or self._last[0] is not record:
            masked = mask_unless_undecided(record)
            self._hides = masked is not record and (masked.spec, masked.call) != (record.spec, record.call)
            self._last = record, masked
        return self._last[1]

    def reveal(self, record: CallRecord) -> str:
        """Show the secrets of a call for some seconds, or hide them again. Returns what is said about it."""
        if record.id == self._call_id:
            self._hide()
            return f"The secrets of call {record.id} are hidden."
        if not self.hides(record):
            return f"Nothing in call {record.id} is hidden."
        if self._timer is not None:
            self._timer.stop()
        self._call_id = record.id
        self._timer = self._screen.set_timer(REVEALED_S, self._hide)
        self._draw()
        return f"The secrets of call {record.id} are shown for {REVEALED_S:.0f} seconds."

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._call_id = self._timer = None
        self._draw()


class CallCard:
    """Draws a call on the panel with its effects and the rule on offer, and its secrets masked until revealed."""

    def __init__(
        self,
        cockpit: CockpitContext,
        changed: Callable[[], object],
        standing_still: Callable[[CallRecord], tuple[bool, float | None]],
        why_queued: Callable[[CallRecord], str],
    ) -> None:
        """`changed` draws the card again; `standing_still`: whether a run is paused, and since when it is silent.

        `why_queued`: why a call is queued, as a clause.
        """
        self._cockpit = cockpit
        self._changed = changed
        self._standing_still = standing_still
        self._why_queued = why_queued
        self.facts = CardFacts(cockpit, changed)
        """Asks for the effects of the selected call."""
        self._answers = AnswerFacts(cockpit, changed)
        self.edits = EditFacts(cockpit, changed)
        """Asks for the contents of the files of the selected edit."""
        self.previews = PreviewFacts(cockpit, changed)
        """Asks for the changes of the preview of the selected call."""
        self.revealed = RevealedSecrets(cockpit.screen, changed)
        self.choices = ApprovalChoices(self.facts.offered)
        """How the selected call would be approved."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"reveal": self._reveal}

    def draw(self, record: CallRecord, session: Session | None, recent: tuple[CallRecord, ...]) -> None:
        """Draw a call as it is now, with the last other calls of its session."""
        still, silent = self._standing_still(record)
        panel = self._cockpit.screen.query_one(CallPanel)
        panel.resized = self._changed
        drawn = self.revealed.shown(record)
        keys = self._keys()
        preview, changes = self.previews.paragraphs(record, panel.columns, keys, mask=drawn is not record)
        previewed = record.preview is not None and not record.preview.dropped
        effects = self.facts.effects(record)
        offer, repeats = self.facts.offer(record, self._key_of("approval-reach")), self.facts.repeats(record)
        panel.show(
            record,
            session,
            self._cockpit.clock(),
            recent,
            drawn=drawn,
            parts=CardParts(
                note=(
                    *words_paragraphs(record, self._cockpit.board.phones.values()),
                    *(offer if repeats else ()),
                    *self.revealed.note(record, self._key_of("reveal")),
                ),
                effects=effects.paragraphs,
                undo=() if previewed else undo_paragraphs(record, keys["approval-way"]),
                texts=effects.texts,
                steps=effects.steps,
                findings=effects.told,
                nothing_there=effects.nothing_there,
                offer=() if repeats else offer,
                told=self._answers.paragraphs(record) if panel.details else (),
                diff=self.edits.paragraphs(record, drawn, panel.columns),
                preview=preview,
                changes=changes,
                choice=self.choices.of(record),
            ),
            still=still,
            silent_since=silent,
            queued=self._why_queued(record),
            away=self._away(record),
        )

    def _away(self, record: CallRecord) -> str:
        """Return why nothing new is known of a run, as a clause. Empty: it is as it is shown."""
        place = places_of(self._cockpit.screen).get(place_key(record))
        runs = isinstance(record.state, Starting | Running) or (isinstance(record.state, Ended) and record.is_open)
        return away_text(place) if place is not None and place.is_away and runs else ""

    def _keys(self) -> dict[str, str]:
        named = ("approve", "approval-way", "preview", "revert-edit")
        return {id_: self._key_of(id_) for id_ in named}

    def _key_of(self, command_id: str) -> str:
        return in_force(self._cockpit.screen.app).by_id(command_id).key_name

    def _reveal(self) -> None:
        if (record := self._cockpit.shown) is not None:
            self._cockpit.tell(self.revealed.reveal(record))
