"""Chooses how far an approval reaches, and shows which calls it would have let through before."""

import shlex
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Approve, Coverage, Scope
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.port import HistoryQuery
from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.command_text import command_paragraphs, command_title
from whisper_tui.tui.covered_text import covered_paragraphs, refused_paragraphs
from whisper_tui.tui.sandbox_text import why_not_confined
from whisper_tui.tui.scope_draft import REACH_WORDS, REACHES, ScopeDraft, scope_of
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.spans import BLANK, Paragraph, Span
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

PAUSE_S = 0.15
"""How long typing must rest before the supervisor is asked what it would cover."""
SANDBOXES: tuple[Sandbox | None, ...] = (
    None,
    Sandbox(),
    Sandbox(kind="workspace"),
    Sandbox(kind="workspace", network=True),
)
"""How what is approved may be confined, in the order in which they are offered."""
LOOKED_AT = 500
"""Calls whose commands are at hand to be listed: as many as the supervisor looks at."""


class ScopeScreen(Dialog[Approve]):
    """What is approved stands above what it would have covered; nothing is approved before Ctrl+S."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "scope.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "approve", "Approve", priority=True),
        Binding("ctrl+n", "suggest", "Next suggestion", priority=True),
        Binding("ctrl+t", "sandbox", "Sandbox", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Ctrl+S", "Approve", "approve"),
        ("Ctrl+N", "Next suggestion", "suggest"),
        ("Ctrl+T", "Sandbox", "sandbox"),
    )

    def __init__(self, cockpit: "CockpitScreen", record: CallRecord, edited: CommandSpec | None = None) -> None:
        """`edited`: what runs instead of what was asked."""
        super().__init__()
        self._cockpit = cockpit
        self._record = record
        self._edited = edited
        self._spec = edited or record.call.spec
        prefixes = record.verdict.prefixes if record.verdict and edited is None else ()
        self._suggested = tuple(shlex.join(prefix) for prefix in prefixes)
        self._next = 0
        self._sandbox: Sandbox | None = None
        self._records: dict[str, CallRecord] | None = None
        self._resting: Timer | None = None
        """Runs out when typing has rested."""

    def compose(self) -> ComposeResult:
        """The reaches, their fields, and what comes of them."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Approve call {self._record.id}, and more")
            with Horizontal(id="scope-body"):
                with Vertical(id="scope-fields"):
                    yield OptionList(*(Option(REACH_WORDS[reach], id=reach) for reach in REACHES), id="reach")
                    yield Label("It begins with these words", id="words-label")
                    yield Input(next(iter(self._suggested), ""), id="words", compact=True)
                    with Horizontal(id="scope-limits"):
                        yield Label("Times ", id="uses-label")
                        yield Input(placeholder="any", id="uses", compact=True)
                        yield Label("Minutes ")
                        yield Input(placeholder="no end", id="minutes", compact=True)
                    yield LineView(id="sandbox")
                yield ParagraphsView(id="covered")
            yield Static("", id="scope-problems", classes="dialog-problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """The least reach first."""
        for field in self.query(Input):
            field.cursor_blink = False
        self._show_sandbox()
        reaches = self.query_one(OptionList)
        reaches.highlighted = 0
        reaches.focus()
        self._changed()

    def draft(self) -> ScopeDraft:
        """The fields as they are now."""
        at = self.query_one(OptionList).highlighted or 0
        words, uses, minutes = (self.query_one(f"#{name}", Input).value for name in ("words", "uses", "minutes"))
        return ScopeDraft(REACHES[at], words, uses, minutes)

    @on(Input.Changed)
    @on(OptionList.OptionHighlighted)
    def _changed(self) -> None:
        """Say what is wrong at once, and what it would cover as soon as typing rests."""
        draft = self.draft()
        for name in ("#words", "#words-label"):
            self.query_one(name).disabled = not draft.has_words
        for name in ("#uses", "#uses-label"):
            self.query_one(name).disabled = not draft.has_uses
        self._stop_looking()
        if (scope := self._scope()) is not None:
            self._resting = self.set_timer(PAUSE_S, lambda: self._begin_to_look(scope))

    def _begin_to_look(self, scope: Scope) -> None:
        self.run_worker(self._look(scope), name="cover", group="cover", exclusive=True)

    def _stop_looking(self) -> None:
        """What was typed before does not count any more."""
        if self._resting is not None:
            self._resting.stop()
        self.workers.cancel_group(self, "cover")

    def _scope(self) -> Scope | None:
        """What the fields mean. None: it is said why they mean nothing."""
        problems: list[str] = []
        draft = self.draft()
        scope = scope_of(draft, self._spec, problems)
        notes = problems or ([self._about_suggestions()] if draft.has_words else [])
        self.query_one("#scope-problems", Static).update(Content(" ".join(notes)))
        if scope is None:
            self._show(())
        return scope

    def _about_suggestions(self) -> str:
        if not self._suggested:
            return "Nothing is suggested: there is no short beginning of this that says what it does."
        if len(self._suggested) == 1:
            return ""
        return f"It holds {count(len(self._suggested), 'command')}, and this is about one of them: see Ctrl+N."

    async def _look(self, scope: Scope) -> bool:
        """Show what a scope would cover. Returns whether it may be given."""
        supervision = self._cockpit.supervision
        try:
            coverage = await supervision.would_cover(self._record.id, scope, self._edited)
            records = await self._known(coverage)
        except Refused as error:
            self._show(refused_paragraphs(told(error)))
            return False
        except WhisperError as error:
            self._show(refused_paragraphs(told(error)))
            return True
        self._show(covered_paragraphs(coverage, records, self._record, edited=self._edited is not None))
        return True

    async def _known(self, coverage: Coverage) -> dict[str, CallRecord]:
        """The records of what is covered, asked for once."""
        if self._records is None and coverage.calls:
            found = await self._cockpit.supervision.history(HistoryQuery(limit=LOOKED_AT))
            self._records = {record.id: record for record in found}
        return self._records or {}

    def _show(self, paragraphs: tuple[Paragraph, ...]) -> None:
        """Draw what is approved, and this below it; an answer may come when the dialog is left already."""
        command = self._spec.command
        title = Paragraph(
            (Span("Approves", "label"), Span(f"  {command_title(command)}", "muted")), margin=(Span(" "),)
        )
        shown = (title, *command_paragraphs(command, ()), BLANK, *paragraphs)
        for view in self.query(ParagraphsView):
            view.show(shown, from_top=False)

    @on(OptionList.OptionSelected)
    def _reach_chosen(self) -> None:
        """Enter on a reach goes on to its fields."""
        self.query_one("#words" if self.draft().has_words else "#uses", Input).focus()

    def action_suggest(self) -> None:
        """The next beginning that is suggested."""
        if self._suggested:
            self._next = (self._next + 1) % len(self._suggested)
            self.query_one("#words", Input).value = self._suggested[self._next]
        else:
            self.notify("There is no suggestion: no rule could be made of this command.", markup=False)

    async def action_sandbox(self) -> None:
        """The next way to confine what is approved, and what is remembered with it; after the last, none."""
        problem = await why_not_confined(self._cockpit.supervision, self._record)
        if problem:
            self.query_one("#scope-problems", Static).update(Content(problem))
            self.app.bell()
            return
        self._sandbox = SANDBOXES[(SANDBOXES.index(self._sandbox) + 1) % len(SANDBOXES)]
        self._show_sandbox()

    def _show_sandbox(self) -> None:
        words = self._sandbox.words() if self._sandbox is not None else "none: it may do what you may do"
        line = (Span("Sandbox ", "muted"), Span(words, "strong" if self._sandbox is not None else "text"))
        self.query_one("#sandbox", LineView).show(line)

    async def action_approve(self) -> None:
        """Approve and remember, unless that may not be."""
        scope = self._scope()
        self._stop_looking()
        if scope is None or not await self._look(scope):
            self.app.bell()
            return
        self.dismiss(Approve(edited=self._edited, remember=scope, sandbox=self._sandbox))
