"""The dialog that edits a call before it runs: shell text, or one field per argument."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Static, TextArea
from textual.widgets.text_area import TextAreaTheme

from whisper_tui.model.call import Argv, CarriedOut, Command, CommandSpec, FileEdits, Shell, paths_of
from whisper_tui.model.decision import Approve, Scope
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.present.call_text import place_paragraphs
from whisper_tui.present.command_text import command_paragraphs, command_title
from whisper_tui.present.diff_text import THIS_MACHINE, change_paragraphs
from whisper_tui.present.quantities import count, limit
from whisper_tui.present.spans import BLANK, Paragraph, Role, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import places_of
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import ChoiceField, Dialog, StyleFiles
from whisper_tui.tui.dialogs.drafts import Checked, Draft, checked, draft_of, hidden_count, seen
from whisper_tui.tui.dialogs.scope_dialog import ScopeScreen
from whisper_tui.tui.edit_diff import EditedResult
from whisper_tui.tui.paragraphs_view import ParagraphsView

MOST_FIELDS = 64
"""Most arguments with a field of their own; longer lists are edited as lines in shell quoting."""


class ArgumentField(TextArea):
    """The field of one argument, which may contain line feeds."""

    # Terminals do not tell Shift+Enter from Enter. Enter adds an argument, as in a list of them, and Ctrl+J, which is
    # the line feed itself, breaks the line.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "request_row('add')", "Add one below", show=False, priority=True),
        Binding("ctrl+j", "insert_line_end", "Begin another line of it", show=False),
        Binding("alt+up", "request_row('up')", "Move it up", show=False),
        Binding("alt+down", "request_row('down')", "Move it down", show=False),
        Binding("alt+x", "request_row('remove')", "Remove it", show=False),
    ]

    @dataclass
    class RowRequest(Message):
        """Do something with this argument: add one below, move it up or down, remove it."""

        field: "ArgumentField"
        what: str

    def __init__(self, value: str) -> None:
        super().__init__(value, soft_wrap=True, tab_behavior="focus", compact=True, placeholder="(empty)")
        self.cursor_blink = False

    def action_request_row(self, what: str) -> None:
        """Ask the form to do it."""
        self.post_message(self.RowRequest(self, what))

    def action_insert_line_end(self) -> None:
        """Insert a line feed into the argument."""
        self.insert("\n")

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up, from the first row to the previous argument."""
        if not select and self.cursor_at_first_line:
            self.screen.focus_previous(ArgumentField)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down, from the last row to the next argument."""
        if not select and self.cursor_at_last_line:
            self.screen.focus_next(ArgumentField)
        else:
            super().action_cursor_down(select)


class _Row(Horizontal):
    """The number of an argument, its field and its buttons."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self.field = ArgumentField(value)

    def compose(self) -> ComposeResult:
        """Build the row from left to right."""
        yield Label("", classes="argument-number")
        yield self.field
        for sign, what, words in (
            ("▲", "up", "Move it up"),
            ("▼", "down", "Move it down"),
            ("✕", "remove", "Remove it"),
        ):
            button = Button(sign, classes=f"argument-{what}", compact=True)
            # Tab goes from argument to argument; each button has a key.
            button.can_focus = False
            button.tooltip = words
            yield button

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        for what in ("up", "down", "remove"):
            if event.button.has_class(f"argument-{what}"):
                self.post_message(ArgumentField.RowRequest(self.field, what))


class ArgumentsForm(VerticalScroll, can_focus=False):
    """The fields of all arguments, which can be added, removed and reordered."""

    class Changed(Message):
        """The arguments have changed."""

    def __init__(self, values: tuple[str, ...], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._begun_with = values

    def compose(self) -> ComposeResult:
        """Build a row per argument, and a button that adds one."""
        yield from map(_Row, self._begun_with)
        button = Button("+ Add an argument", id="argument-add", compact=True)
        button.can_focus = False
        yield button

    def on_mount(self) -> None:
        """Number the rows."""
        self._number()

    @property
    def fields(self) -> list[ArgumentField]:
        """The fields in the order of the arguments."""
        # The query walks the children as they are now: `_move` reorders widgets, nothing else.
        return [row.field for row in self.query(_Row)]

    @property
    def values(self) -> tuple[str, ...]:
        """The arguments."""
        return tuple(field.text for field in self.fields)

    @on(Button.Pressed, "#argument-add")
    async def _add_last(self, event: Button.Pressed) -> None:
        event.stop()
        await self._add(after=None)

    @on(ArgumentField.RowRequest)
    async def _row_requested(self, message: ArgumentField.RowRequest) -> None:
        message.stop()
        row = message.field.parent
        # The row can be gone: keys that were typed before its removal arrive after it.
        if not isinstance(row, _Row) or row not in self.query(_Row):
            return
        if message.what == "add":
            await self._add(after=row)
        elif message.what == "remove":
            await self._remove(row)
        else:
            self._move(row, -1 if message.what == "up" else 1)

    async def _add(self, after: Widget | None) -> None:
        row = _Row("")
        await self.mount(row, after=after) if after is not None else await self.mount(row, before="#argument-add")
        row.field.focus()
        self._number()

    async def _remove(self, row: _Row) -> None:
        fields = self.fields
        at = fields.index(row.field)
        await row.remove()
        left = self.fields
        if left:
            left[min(at, len(left) - 1)].focus()
        self._number()

    def _move(self, row: _Row, by: int) -> None:
        rows = list(self.query(_Row))
        at = rows.index(row) + by
        if 0 <= at < len(rows):
            self.move_child(row, before=rows[at]) if by < 0 else self.move_child(row, after=rows[at])
            row.scroll_visible(animate=False)
            self._number()

    def _number(self) -> None:
        for number, row in enumerate(self.query(_Row), start=1):
            row.query_one(".argument-number", Label).update(f"{number:>2}")
        self.post_message(self.Changed())

    @on(TextArea.Changed)
    def _typed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())


NAME = "whisper"

_PARTS: dict[str, tuple[str, str]] = {
    "string": ("success", ""),
    "function": ("primary", "bold"),
    "property": ("edited", ""),
    "keyword": ("waiting", "bold"),
    "comment": ("muted", "italic"),
    "number": ("behind", ""),
    "operator": ("running", "bold"),
    "constant": ("foreground", "underline"),
    "embedded": ("risk", ""),
}
"""The theme colour and the text style of each part of the grammar."""


def shell_theme(colours: Mapping[str, str]) -> TextAreaTheme:
    """Return the theme of the text area for shell text; `colours` by the names of the style sheets."""
    return TextAreaTheme(
        name=NAME,
        syntax_styles={
            part: Style.parse(f"{written} {colours[colour]}".strip()) for part, (colour, written) in _PARTS.items()
        },
    )


def _label(command: Command) -> str:
    """Return the label of the field with the words of a call."""
    match command:
        case Argv():
            return "Arguments, one per line, in shell quoting"
        case Shell():
            return "Shell text"
        case _:
            return "Arguments, as a JSON object"


class EditScreen(Dialog[Approve]):
    """Edits a call: the fields, and beside or below them the requested command and the one that will run."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/edit.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "preview", "Preview this", priority=True),
        Binding("ctrl+r", "approve_session", "Approve for the session", priority=True),
        Binding("ctrl+o", "approve_scope", "Approve more", priority=True),
        Binding("ctrl+home", "go_to_edge('start')", "To the beginning", show=False),
        Binding("ctrl+end", "go_to_edge('end')", "To the end", show=False),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Ctrl+S", "Approve this", "approve"),
        ("Ctrl+L", "Preview", "preview"),
        ("Ctrl+R", "For session", "approve_session"),
        ("Ctrl+O", "More", "approve_scope"),
    )

    def __init__(
        self,
        cockpit: CockpitContext,
        record: CallRecord,
        result: EditedResult | None = None,
        entered: CommandSpec | None = None,
    ) -> None:
        """`result`: the file of an edit whose content is edited. None: the call is not an edit of files. `entered`:
        what a person has made of the call before, without that it was sent.
        """
        super().__init__()
        self._cockpit = cockpit
        self._record = record
        self._unread: CommandSpec | None = None
        """The specification whose approval was tried before all of it had been on the screen (decision 23)."""
        self._result = result
        self._asked = record.call.spec if result is None else result.spec
        # A call that is asked again after an edit, or was previewed as edited, starts from that edit and not from the
        # agent's request.
        preview = record.preview
        previewed = preview.edited if preview is not None and not preview.dropped else None
        returned = previewed or getattr(record.state, "edited_before", None)
        if entered is not None and _files(entered) == _files(self._asked):
            returned = entered
        elif result is not None:
            returned = None
        self._start: CommandSpec = returned or self._asked
        self._file = 0 if result is None else result.file
        self._at = self._start.place
        self._places = self._places_of(record)
        """The places to choose from, with the words for each. Empty: there is no choice."""

    def _places_of(self, record: CallRecord) -> tuple[tuple[str, str], ...]:
        prefix = f"{record.host}:" if record.host else ""
        places = places_of(self._cockpit.screen)
        named = {name.removeprefix(prefix): name for name in places if name.startswith(prefix) or not prefix}
        if isinstance(self._asked.command, CarriedOut) or record.call.by_agent or not (named or self._start.place):
            return ()
        away = {name for name, key in named.items() if places[key].is_away}
        choices = {"": THIS_MACHINE, **{name: name for name in (*named, self._start.place) if name}}
        return tuple((name, f"{words} (unreachable)" if name in away else words) for name, words in choices.items())

    def compose(self) -> ComposeResult:
        """Build the fields and the two commands."""
        draft = draft_of(self._start, self._file)
        with Vertical(classes="dialog -command" if self._result is None else "dialog -file") as dialog:
            title = f"Edit call {self._record.id} before it runs" if self._result is None else self._result.title
            dialog.border_title = Content(title)
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
            yield Label(_label(command) if self._result is None else f"Content of {self._result.name}")
            numbers = isinstance(command, Argv | FileEdits)
            yield TextArea(draft.text, id="text", soft_wrap=True, show_line_numbers=numbers, tab_behavior="focus")
        if self._result is not None:
            return
        if self._places:
            yield Label("Place: ← → choose; the directory is one there")
            yield ChoiceField(self._places, self._start.place, id="place")
        yield Label("Directory")
        yield Input(draft.cwd, id="cwd", compact=True)
        yield Label("Timeout in seconds, empty for none")
        yield Input(draft.timeout, id="timeout", compact=True)

    def on_mount(self) -> None:
        """Focus the command, with the cursor at its end."""
        self.query_one("#choose-preview").display = self._can_preview
        for field in self.query(Input):
            field.cursor_blink = False
        for area in self.query(TextArea):
            area.cursor_blink = False
            self._colour(area)
            area.focus()
            if self._result is None:
                area.move_cursor(area.document.end)
            else:
                area.move_cursor((self._result.first_changed, 0), center=True)
        self._check()

    def on_resize(self) -> None:
        """Lay out anew what is laid out for a width."""
        if self._result is not None:
            self.call_after_refresh(self._check)

    def _colour(self, area: TextArea) -> None:
        """Highlight the syntax of shell text and JSON."""
        kind = {Shell: "bash", Argv: None, FileEdits: None}.get(type(self._asked.command), "json")
        # Textual offers only the grammars that are installed; without one the text has one colour.
        if kind is not None and kind in area.available_languages:
            area.register_theme(shell_theme(self.app.theme_variables))
            area.theme = NAME
            area.language = kind

    def draft(self) -> Draft:
        """The fields as they are typed."""
        if self._result is not None:
            start = draft_of(self._start, self._file)
            return replace(start, text=self.query_one("#text", TextArea).text)
        forms = self.query(ArgumentsForm)
        return Draft(
            program=self.query_one("#program", Input).value if isinstance(self._asked.command, Argv) else "",
            text="" if forms else self.query_one("#text", TextArea).text,
            cwd=self.query_one("#cwd", Input).value,
            timeout=self.query_one("#timeout", Input).value,
            args=forms.first().values if forms else None,
            place=self.query_one("#place", ChoiceField).value if self._places else None,
        )

    @on(ChoiceField.Chosen)
    def _moved(self, event: ChoiceField.Chosen) -> None:
        """Put the directory into the field that stands for the former one at the place that was chosen."""
        field, session = self.query_one("#cwd", Input), self._cockpit.board.sessions.get(self._record.call.session_id)
        root = session.root if session is not None else ""
        before, after = (self._workspace(place) or root for place in (self._at, event.value))
        self._at = event.value
        if root and f"{field.value.rstrip('/')}/".startswith(f"{before.rstrip('/')}/"):
            field.value = after.rstrip("/") + field.value[len(before.rstrip("/")) :] or "/"
        self._check()

    def _workspace(self, place: str) -> str:
        host = f"{self._record.host}:" if self._record.host else ""
        known = places_of(self._cockpit.screen).get(f"{host}{place}") if place else None
        return known.workspace if known is not None else ""

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(ArgumentsForm.Changed)
    def _check(self) -> CommandSpec | None:
        """Show the result of the fields. Returns its specification, or None while there are problems."""
        result = checked(self.draft(), self._asked)
        if self._result is not None and (problem := self._result.problem(result.spec)):
            result = Checked(None, (problem,))
        runs = self.query_one("#edit-runs", ParagraphsView)
        asked = self.query_one("#edit-asked", ParagraphsView)
        changed = _asked if self._result is None else self._result.changed
        asked.show(changed(self._asked, result.spec, asked.columns), from_top=False)
        if result.spec is None:
            runs.show((Paragraph((Span(" Will run: nothing until the fields are valid", "bad"),)),), from_top=False)
        else:
            same = result.spec == self._asked
            if self._result is not None:
                shown = self._result.written(result.spec, runs.columns)
            else:
                shown = _shown(f"Will run: {'as requested' if same else 'edited'}", result.spec, _ROLE_OF[same])
            runs.show(shown, from_top=False)
        notes = list(result.problems)
        if hidden := hidden_count(self._start, self._file):
            notes.append(f"{count(hidden, 'invisible character')} left out of the fields.")
        self.query_one("#edit-problems", Static).update(Content(" ".join(notes)))
        return result.spec

    def action_go_to_edge(self, edge: Literal["start", "end"]) -> None:
        """Move to the beginning or to the end of the text that has the focus."""
        if isinstance(self.focused, TextArea):
            self.focused.move_cursor(getattr(self.focused.document, edge))

    def action_approve(self) -> None:
        """Approve the command as edited."""
        self._approve(None)

    def action_approve_session(self) -> None:
        """Approve the command as edited, and the same again in this session."""
        self._approve("exact_for_session")

    def action_approve_scope(self) -> None:
        """Choose further calls that the approval covers."""
        spec = self._ready()
        if spec is not None:
            edited = None if spec == self._asked else spec

            def chosen(approval: Approve | None) -> None:
                if approval is not None:
                    self.dismiss(approval)

            self.app.push_screen(ScopeScreen(self._cockpit, self._record, edited), chosen)

    @property
    def _can_preview(self) -> bool:
        return not isinstance(self._asked.command, CarriedOut)

    async def action_preview(self) -> None:
        """Preview the command as edited, and go back to the card, which shows what it changes."""
        spec = self._check() if self._can_preview else None
        if spec is None:
            self.app.bell()
            return
        try:
            await self._cockpit.supervision.preview(
                self._record.id, self._cockpit.me, None if spec == self._asked else spec
            )
        except WhisperError as error:
            self.query_one("#edit-problems", Static).update(Content(error_text(error)))
        else:
            self.dismiss(None)

    def _approve(self, remember: Scope | None) -> None:
        spec = self._ready()
        if spec is not None:
            self.dismiss(Approve(edited=None if spec == self._asked else spec, remember=remember))

    def _ready(self) -> CommandSpec | None:
        """The specification to approve; None while it is invalid or not all of it was on the screen."""
        spec = self._check()
        if spec is None:
            self.app.bell()
            return None
        rows = self.query_one("#edit-runs", ParagraphsView).unseen
        # The warning counts for this specification only: another edit has other lines (decision 23).
        if rows and self._unread != spec:
            self._unread = spec
            words = f"{count(rows, 'line')} of the command not shown. Press again to approve anyway."
            self.query_one("#edit-problems", Static).update(Content(words))
            return None
        return spec


def _files(spec: CommandSpec) -> tuple[str, ...]:
    """Return the files that an edit leaves; of other commands none."""
    changes = spec.command.changes if isinstance(spec.command, FileEdits) else ()
    return tuple(path for change in changes for path in paths_of(change))


_ROLE_OF: dict[bool, Role] = {True: "label", False: "edited"}


def _asked(asked: CommandSpec, runs: CommandSpec | None, _columns: int) -> tuple[Paragraph, ...]:
    """The requested command, as a diff once it is edited."""
    if runs is None or runs == asked:
        return _shown("Requested", asked, "label")
    title = Paragraph((Span("Your changes to the request", "label"),), margin=(Span(" "),))
    return (title, *change_paragraphs(asked, runs))


def _shown(title: str, spec: CommandSpec, role: Role) -> tuple[Paragraph, ...]:
    timeout = limit(spec.timeout_s) if spec.timeout_s is not None else "none"
    return (
        Paragraph((Span(title, role), Span(f"  {command_title(spec.command)}", "muted")), margin=(Span(" "),)),
        *(replace(paragraph, decides=True) for paragraph in command_paragraphs(spec.command, ())),
        BLANK,
        *(replace(paragraph, decides=True) for paragraph in place_paragraphs(spec)),
        Paragraph(said(spec.cwd), margin=(Span(" Directory  ", "label"),), at_words=False),
        Paragraph((Span(timeout),), margin=(Span(" Timeout    ", "label"),)),
    )
