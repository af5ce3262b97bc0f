"""Changes a command before it is approved; what was asked, and every change, stays visible beside what will run."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Static, TextArea

from whisper_tui.model.command import Argv, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Scope
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.changes_text import change_paragraphs
from whisper_tui.tui.command_text import command_paragraphs, command_title
from whisper_tui.tui.drafts import Draft, checked, draft_of, hidden_count, seen
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.screens.scope import ScopeScreen
from whisper_tui.tui.shell_colours import NAME, shell_theme
from whisper_tui.tui.spans import BLANK, Paragraph, Role, Span, said
from whisper_tui.tui.widgets.arguments_form import MOST_FIELDS, ArgumentsForm
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count, limit

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class EditScreen(Dialog[Approve]):
    """Fields on the left; asked and what will run on the right, or below where it is narrow."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "edit.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "approve", "Approve this", priority=True),
        Binding("ctrl+r", "approve_session", "Approve for the session", priority=True),
        Binding("ctrl+o", "approve_scope", "Approve more", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Ctrl+S", "Approve this", "approve"),
        ("Ctrl+R", "For session", "approve_session"),
        ("Ctrl+O", "More", "approve_scope"),
    )

    def __init__(self, cockpit: "CockpitScreen", record: CallRecord) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._record = record
        self._unread: CommandSpec | None = None
        """What was to be approved before all of it had been on the screen."""
        self._asked = record.call.spec
        returned = getattr(record.state, "edited_before", None)
        self._start: CommandSpec = returned or self._asked

    def compose(self) -> ComposeResult:
        """The fields, and the two commands."""
        draft = draft_of(self._start)
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Edit call {self._record.id} before it runs")
            with Horizontal(id="edit-body"):
                with VerticalScroll(id="edit-fields", can_focus=False):
                    yield from self._fields(draft)
                with Vertical(id="edit-result"):
                    yield ParagraphsView(id="edit-asked")
                    yield ParagraphsView(id="edit-runs")
            yield Static("", id="edit-problems", classes="dialog-problem")
            yield from self.buttons()

    def _fields(self, draft: Draft) -> ComposeResult:
        command = self._start.command
        if isinstance(command, Argv):
            yield Label("Program")
            yield Input(draft.program, id="program", compact=True)
        if isinstance(command, Argv) and len(command.args) <= MOST_FIELDS:
            yield Label("Arguments: Enter adds, Alt+↑↓ moves, Alt+X removes")
            yield ArgumentsForm(tuple(map(seen, command.args)), id="arguments")
        else:
            words = {Argv: "Arguments, one a line, quoted as for a shell", Shell: "Shell text"}
            yield Label(words.get(type(command), "Arguments, as a JSON object"))
            numbers = isinstance(command, Argv)
            yield TextArea(draft.text, id="text", soft_wrap=True, show_line_numbers=numbers, tab_behavior="focus")
        yield Label("Directory")
        yield Input(draft.cwd, id="cwd", compact=True)
        yield Label("Timeout in seconds, empty for none")
        yield Input(draft.timeout, id="timeout", compact=True)

    def on_mount(self) -> None:
        """Type in the command at once."""
        for field in self.query(Input):
            field.cursor_blink = False
        for area in self.query(TextArea):
            area.cursor_blink = False
            self._colour(area)
            area.focus()
            area.move_cursor(area.document.end)
        self._check()

    def _colour(self, area: TextArea) -> None:
        """Tell the parts of a shell's text apart, where the grammar is installed."""
        kind = {Shell: "bash", Argv: None}.get(type(self._asked.command), "json")
        if kind is not None and kind in area.available_languages:
            area.register_theme(shell_theme(self.app.theme_variables))
            area.theme = NAME
            area.language = kind

    def draft(self) -> Draft:
        """The fields as they are typed."""
        forms = self.query(ArgumentsForm)
        return Draft(
            program=self.query_one("#program", Input).value if isinstance(self._asked.command, Argv) else "",
            text="" if forms else self.query_one("#text", TextArea).text,
            cwd=self.query_one("#cwd", Input).value,
            timeout=self.query_one("#timeout", Input).value,
            args=forms.first().values if forms else None,
        )

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(ArgumentsForm.Changed)
    def _check(self) -> CommandSpec | None:
        """Show what the fields mean. Returns the specification, or None as long as something is wrong."""
        result = checked(self.draft(), self._asked)
        runs = self.query_one("#edit-runs", ParagraphsView)
        self.query_one("#edit-asked", ParagraphsView).show(_asked(self._asked, result.spec), from_top=False)
        if result.spec is None:
            runs.show((Paragraph((Span(" Will run: nothing yet", "bad"),)),), from_top=False)
        else:
            same = result.spec == self._asked
            title = "Will run: as asked" if same else "Will run: edited"
            runs.show(_shown(title, result.spec, "label" if same else "edited"), from_top=False)
        notes = list(result.problems)
        if hidden := hidden_count(self._start):
            notes.append(f"{count(hidden, 'character')} that cannot be seen was left out of the fields.")
        self.query_one("#edit-problems", Static).update(Content(" ".join(notes)))
        return result.spec

    def action_approve(self) -> None:
        """Approve what will run."""
        self._approve(None)

    def action_approve_session(self) -> None:
        """Approve what will run, and the same again in this session."""
        self._approve("exact_for_session")

    def action_approve_scope(self) -> None:
        """Choose what else the approval of what will run answers for."""
        spec = self._ready()
        if spec is not None:
            edited = None if spec == self._asked else spec

            def chosen(approval: Approve | None) -> None:
                if approval is not None:
                    self.dismiss(approval)

            self.app.push_screen(ScopeScreen(self._cockpit, self._record, edited), chosen)

    def _approve(self, remember: Scope | None) -> None:
        spec = self._ready()
        if spec is not None:
            self.dismiss(Approve(edited=None if spec == self._asked else spec, remember=remember))

    def _ready(self) -> CommandSpec | None:
        """What may be approved now. None: it is told what is wrong, or not seen yet."""
        spec = self._check()
        if spec is None:
            self.app.bell()
            return None
        rows = self.query_one("#edit-runs", ParagraphsView).unseen
        if rows and self._unread != spec:
            self._unread = spec
            words = f"{count(rows, 'line')} of what will run not seen yet. Press again to approve it all the same."
            self.query_one("#edit-problems", Static).update(Content(words))
            return None
        return spec


def _asked(asked: CommandSpec, runs: CommandSpec | None) -> tuple[Paragraph, ...]:
    """What was asked; with what was changed about it, once there is anything."""
    if runs is None or runs == asked:
        return _shown("Asked", asked, "label")
    title = Paragraph((Span("Asked, and what you changed", "label"),), margin=(Span(" "),))
    return (title, *change_paragraphs(asked, runs))


def _shown(title: str, spec: CommandSpec, role: Role) -> tuple[Paragraph, ...]:
    timeout = limit(spec.timeout_s) if spec.timeout_s is not None else "none"
    return (
        Paragraph((Span(title, role), Span(f"  {command_title(spec.command)}", "muted")), margin=(Span(" "),)),
        *(replace(paragraph, decides=True) for paragraph in command_paragraphs(spec.command, ())),
        BLANK,
        Paragraph(said(spec.cwd), margin=(Span(" Directory  ", "label"),), at_words=False),
        Paragraph((Span(timeout),), margin=(Span(" Timeout    ", "label"),)),
    )
