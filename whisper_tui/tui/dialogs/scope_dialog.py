"""The dialog for the scope of an approval, with a preview of the past calls that it would have covered."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Label, Static
from textual.widgets.option_list import Option

from whisper_tui.model.api import HistoryQuery, all_sessions
from whisper_tui.model.call import CarriedOut, CommandSpec
from whisper_tui.model.decision import LOOKED_AT, Approve, Coverage, Scope, scope_about
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.masking import masked_spec
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.present.command_text import call_line, command_paragraphs, command_title, one_line
from whisper_tui.present.quantities import count
from whisper_tui.present.scope_words import scope_targets
from whisper_tui.present.security_text import why_not_confined
from whisper_tui.present.spans import BLANK, Paragraph, Role, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.dialogs.drafts import TARGET_LABELS, ScopeDraft, reach_words, scope_of, target_kind
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList

SHOWN = 2000
"""Most characters of a command that are shown."""


def covered_paragraphs(
    coverage: Coverage, records: Mapping[str, CallRecord], asked: CallRecord, *, edited: bool
) -> tuple[Paragraph, ...]:
    """Return the number of covered calls and each of their commands once, the most frequent first."""
    looked, covered = count(coverage.looked_at, "call"), len(coverage.calls)
    role: Role = "good" if covered else "label"
    lines = [_line(f"Of your last {looked}, {covered:,} would have run without approval:", role)]
    # A prefix may cover one command of several, or not a flagged one: unsaid, the approval would seem to fail later.
    if asked.id not in coverage.calls and not edited:
        lines.append(_line("Not this one: the same call would still need approval.", "risk"))
    return (*lines, *command_counts(coverage.calls, records), BLANK)


def command_counts(calls: Iterable[str], records: Mapping[str, CallRecord]) -> tuple[Paragraph, ...]:
    """Return each of the commands of past calls once, with how often it came, the most frequent first."""
    covered = tuple(calls)
    lines: list[Paragraph] = []
    # Nobody asked to see the secrets of past calls (decision 2).
    times = Counter(_what(masked_spec(records[id_].call.spec)) for id_ in covered if id_ in records)
    for (command, cwd), often in times.most_common():
        margin = (Span(f" {often:>4} \N{MULTIPLICATION SIGN} ", "muted"), Span("│ ", "frame"))
        hanging = (Span("        "), Span("┆ ", "frame"))
        lines.append(
            Paragraph((*said(command, "command"), *said(f"  {cwd}", "muted")), margin, hanging, at_words=False)
        )
    missing = len(covered) - sum(times.values())
    if missing:
        lines.append(_line(f"{count(missing, 'older call')} not listed.", "muted"))
    return tuple(lines)


def refused_paragraphs(reason: str) -> tuple[Paragraph, ...]:
    """Return the reason why the scope is not possible."""
    return (Paragraph(said(reason, "bad"), margin=(Span(" ✘ ", "bad"),)),)


def _line(text: str, role: Role) -> Paragraph:
    return Paragraph((Span(text, role),), margin=(Span(" "),))


def _what(spec: CommandSpec) -> tuple[str, str]:
    command = spec.command
    text = "".join(span.text for span in one_line(command)) if isinstance(command, CarriedOut) else command.text
    where = f"{spec.cwd} at {spec.place}" if spec.place else spec.cwd
    return (text if len(text) <= SHOWN else text[:SHOWN] + " …"), where


PAUSE_S = 0.15
"""The debounce of the preview: seconds after the last typed character."""
SANDBOXES: tuple[Sandbox | None, ...] = (
    None,
    Sandbox(),
    Sandbox(kind="workspace"),
    Sandbox(kind="workspace", network=True),
)
"""The sandboxes in the order in which they are offered."""


class ScopeScreen(Dialog[Approve]):
    """Asks for a scope, and shows the approved command above the past calls that the scope would have covered."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/scope.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "suggest", "Next suggestion", priority=True),
        Binding("ctrl+t", "sandbox", "Sandbox", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Approve", "approve"),
        ("Ctrl+N", "Next suggestion", "suggest"),
        ("Ctrl+T", "Sandbox", "sandbox"),
    )

    def __init__(self, cockpit: CockpitContext, record: CallRecord, edited: CommandSpec | None = None) -> None:
        """`edited` runs instead of the requested command."""
        super().__init__()
        self._cockpit = cockpit
        self._record = record
        self._edited = edited
        self._spec = edited or record.call.spec
        # The policy suggested prefixes and targets for the request; they need not fit the edited command.
        verdict = record.verdict if edited is None else None
        self._reaches = reach_words(self._spec.command)
        self._is_tool = isinstance(self._spec.command, CarriedOut)
        self._suggested = (*map(shlex.join, verdict.prefixes), *verdict.targets) if verdict else ()
        self._next = 0
        self._sandbox: Sandbox | None = None
        self._records: dict[str, CallRecord] | None = None
        self._resting: Timer | None = None
        """The debounce timer of the preview."""

    def compose(self) -> ComposeResult:
        """Build the reaches, their fields and the preview."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Approve call {self._record.id}, and more")
            with Horizontal(id="scope-body"):
                with Vertical(id="scope-fields"):
                    yield RowList(*(Option(words, id=reach) for reach, words in self._reaches.items()), id="reach")
                    yield Label(TARGET_LABELS[target_kind(self._spec.command)], id="words-label")
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
        """Highlight the narrowest reach."""
        for field in self.query(Input):
            field.cursor_blink = False
        # The agent carries it out itself, so no sandbox is around it.
        self.query_one("#sandbox").display = self.query_one("#choose-sandbox").display = not self._is_tool
        self._show_sandbox()
        reaches = self.query_one(RowList)
        reaches.styles.height = len(self._reaches)
        reaches.highlighted = 0
        reaches.focus()
        self._changed()

    def draft(self) -> ScopeDraft:
        """Return the fields as they are now."""
        at = self.query_one(RowList).highlighted or 0
        words, uses, minutes = (self.query_one(f"#{name}", Input).value for name in ("words", "uses", "minutes"))
        return ScopeDraft(tuple(self._reaches)[at], words, uses, minutes)

    @on(Input.Changed)
    @on(RowList.OptionHighlighted)
    def _changed(self) -> None:
        """Show problems at once, and the preview after the debounce."""
        draft = self.draft()
        for name in ("#words", "#words-label"):
            self.query_one(name).disabled = not draft.has_words
        for name in ("#uses", "#uses-label"):
            self.query_one(name).disabled = not draft.has_uses
        self._cancel_lookup()
        if (scope := self._scope()) is not None:
            self._resting = self.set_timer(PAUSE_S, lambda: self._begin_to_look(scope))

    def _begin_to_look(self, scope: Scope) -> None:
        self.run_worker(self._look(scope), name="cover", group="cover", exclusive=True)

    def _cancel_lookup(self) -> None:
        """Cancel the preview of an earlier draft."""
        # An answer about an earlier draft that arrives late would be drawn over that of the present one.
        if self._resting is not None:
            self._resting.stop()
        self.workers.cancel_group(self, "cover")

    def _scope(self) -> Scope | None:
        """Return the scope of the fields. None if they are invalid; the problems are shown."""
        problems: list[str] = []
        draft = self.draft()
        scope = scope_of(draft, self._spec, problems)
        notes = problems or ([self._about_suggestions()] if draft.has_words else [])
        self.query_one("#scope-problems", Static).update(Content(" ".join(notes)))
        if scope is None:
            self._show(())
        return scope

    def _about_suggestions(self) -> str:
        if self._is_tool:
            return self._about_targets()
        if not self._suggested:
            return "No suggestion: no short prefix of this command tells what it does."
        if len(self._suggested) == 1:
            return ""
        return f"Contains {count(len(self._suggested), 'command')}; this prefix covers one of them, Ctrl+N the next."

    def _about_targets(self) -> str:
        """Return what the text in the field covers, and what the next suggestion would."""
        command, typed = self._spec.command, self.query_one("#words", Input).value.strip()
        if not isinstance(command, CarriedOut) or not typed:
            return ""
        covers = f"Covers {scope_targets(scope_about(command, typed).model_dump())}."
        if not self._suggested:
            return f"{covers} No suggestion: the same call would still need approval."
        following = self._suggested[(self._next + 1) % len(self._suggested)]
        if following == typed:
            return covers
        return f"{covers} Ctrl+N: {scope_targets(scope_about(command, following).model_dump())}."

    async def _look(self, scope: Scope) -> bool:
        """Show the preview of a scope. Returns False if the supervisor refuses the scope."""
        supervision = self._cockpit.supervision
        try:
            coverage = await supervision.would_cover(self._record.id, scope, self._edited)
            records = await self._known(coverage)
        except Refused as error:
            self._show(refused_paragraphs(error_text(error)))
            return False
        except WhisperError as error:
            self._show(refused_paragraphs(error_text(error)))
            # Only the preview failed. The supervisor checks the scope again with the approval.
            return True
        self._show(covered_paragraphs(coverage, records, self._record, edited=self._edited is not None))
        return True

    async def _known(self, coverage: Coverage) -> dict[str, CallRecord]:
        """Return the records of the covered calls, which are fetched once."""
        if self._records is None and coverage.calls:
            query = HistoryQuery(limit=LOOKED_AT, session_id=all_sessions(self._record.host))
            found = await self._cockpit.supervision.history(query)
            self._records = {record.id: record for record in found}
        return self._records or {}

    def _show(self, paragraphs: tuple[Paragraph, ...]) -> None:
        """Draw the approved command with these paragraphs below it."""
        command = self._spec.command
        title = Paragraph(
            (Span("Approves", "label"), Span(f"  {command_title(command)}", "muted")), margin=(Span(" "),)
        )
        whole = command_paragraphs(command, ())
        if self._is_tool:
            # The card has shown all of it; here it would push what is covered out of a small screen.
            line = call_line(self._record) if self._edited is None else one_line(command)
            whole = (Paragraph(line, margin=(Span(" "),)),)
        shown = (title, *whole, BLANK, *paragraphs)
        # A loop, because an answer can arrive when the dialog has been left and has no widgets any more.
        for view in self.query(ParagraphsView):
            view.show(shown, from_top=False)

    def action_suggest(self) -> None:
        """Put the next suggested prefix into the field."""
        words = self.query_one("#words", Input)
        if not self._suggested:
            self.notify("No suggestion: no rule can be made of this command.", markup=False)
        elif not self.draft().has_words:
            which = "more than this call" if self._is_tool else "commands that start with some words"
            self.notify(f"A suggestion is for {which}: choose that first.", markup=False)
        elif words.value == self._suggested[self._next] and len(self._suggested) == 1:
            self.notify("There is no other suggestion.", markup=False)
        else:
            self._next = (self._next + 1) % len(self._suggested)
            words.value = self._suggested[self._next]

    async def action_sandbox(self) -> None:
        """Choose the next sandbox for the approved call and for all that the scope covers; after the last, none."""
        problem = await why_not_confined(self._cockpit.supervision, self._record)
        if problem:
            self.query_one("#scope-problems", Static).update(Content(problem))
            self.app.bell()
            return
        self._sandbox = SANDBOXES[(SANDBOXES.index(self._sandbox) + 1) % len(SANDBOXES)]
        self._show_sandbox()

    def _show_sandbox(self) -> None:
        words = self._sandbox.words() if self._sandbox is not None else "none: runs with your permissions"
        line = (Span("Sandbox ", "muted"), Span(words, "strong" if self._sandbox is not None else "text"))
        self.query_one("#sandbox", LineView).show(line)

    async def action_approve(self) -> None:
        """Approve with this scope, unless the supervisor refuses it."""
        scope = self._scope()
        self._cancel_lookup()
        # Checked here again, because Enter can come before the debounce has run out.
        if scope is None or not await self._look(scope):
            self.app.bell()
            return
        self.dismiss(Approve(edited=self._edited, remember=scope, sandbox=self._sandbox))
