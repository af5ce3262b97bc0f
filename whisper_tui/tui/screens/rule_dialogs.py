"""The dialogs about rules: the form of a rule, its removal, trust, and why a call was decided as it was."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Label, Static

from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.decision import LOOKED_AT
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import ChangedSinceSeen, WhisperError
from whisper_tui.model.shown_rules import ProjectRules, RuleDraft, RuleEffect, RuleList, RuleTrial, ShownRule
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Paragraph, Role, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import places_of
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import ChoiceField, Dialog, StyleFiles
from whisper_tui.tui.dialogs.drafts import (
    EFFECTS,
    KINDS,
    ONLY_ALLOW,
    SANDBOXES,
    RuleFields,
    fields_of,
    kept_of,
    place_choices,
)
from whisper_tui.tui.dialogs.scope_dialog import command_counts
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.screens.rule_list import verdict_paragraphs, why_paragraphs

_HINTS = {
    "prefix": "npm run build",
    "text": "git status --short",
    "program": "pytest",
    "pattern": "git log *",
    "anything": "",
    "path": "docs/**/*.md",
    "host": "*.example.org",
    "argv": "git status",
}


def trial_paragraphs(draft: RuleDraft, trial: RuleTrial, records: Mapping[str, CallRecord]) -> Iterator[Paragraph]:
    """Yield what a rule would have decided, the verdict on the tested command, and the commands that it covers."""
    calls, looked = trial.coverage.calls, count(trial.coverage.looked_at, "call")
    does = {
        "allow": "would have run without approval",
        "ask": "it would have asked about",
        "deny": "it would have denied",
    }
    role: Role = "good" if calls else "label"
    yield _line(f"Of the last {looked}, {len(calls):,} {does[draft.effect]}.", role)
    if draft.definition.get("disabled"):
        yield _line("The rule is disabled: it decides nothing.", "muted")
    against = [id_ for id_ in calls if id_ in records and _was_otherwise(draft.effect, records[id_])]
    if against:
        yield _line(f"{len(against):,} of them you {'denied' if draft.effect == 'allow' else 'approved'}.", "risk")
    if trial.warning:
        yield _line(trial.warning, "risk")
    if trial.judgement is not None:
        yield _line("With this rule, the tested command is", "label")
        yield from verdict_paragraphs(trial.judgement.verdict)
    if calls:
        yield BLANK
        yield from command_counts(calls, records)


def _was_otherwise(effect: RuleEffect, record: CallRecord) -> bool:
    """True if a human decided about a call against what the rule would have done."""
    if not record.decided_by_human:
        return False
    was_denied = isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    return was_denied if effect == "allow" else effect == "deny" and not was_denied


def _line(text: str, role: Role) -> Paragraph:
    return Paragraph(said(text, role), margin=(Span(" "),))


PAUSE_S = 0.25
"""The debounce of the preview: seconds after the last typed character."""


class RuleForm(Dialog[str]):
    """Asks for a rule, and saves it; its result is the name of the rule.

    It stays open until the rule is saved, so that nothing that was typed is lost with an error.
    """

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/rule_form.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "save_new", "Save as new", priority=True),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Previous field", show=False),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Save", "save"),
        ("Ctrl+N", "Save as new", "save_new"),
    )

    def __init__(self, cockpit: CockpitContext, replaced: RuleDraft | None, directory: str) -> None:
        """`replaced`: the rule that is changed, None for a new one; `directory`: where commands are tested."""
        super().__init__()
        self._cockpit = cockpit
        self._replaced = replaced
        self._directory = directory
        self._kept = kept_of(replaced) if replaced is not None else {}
        self._began = fields_of(replaced) if replaced is not None else RuleFields()
        self._records: dict[str, CallRecord] | None = None
        self._resting: Timer | None = None
        """The debounce timer of the preview."""
        self._may_leave = False
        self._failed: RuleFields | None = None
        """The fields that could not be saved."""

    def compose(self) -> ComposeResult:
        """Build the fields beside the preview."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Add a rule" if self._replaced is None else "Edit a rule")
            with Horizontal(id="rule-body"):
                with VerticalScroll(id="rule-fields", can_focus=False):
                    yield from self._fields(self._began)
                yield ParagraphsView(id="rule-preview")
            yield Static("", id="rule-problem", classes="dialog-problem")
            yield from self.buttons()

    def _fields(self, now: RuleFields) -> ComposeResult:
        kinds = KINDS if now.kind == "argv" else KINDS[:-1]
        yield from _row("effect", "Effect", ChoiceField(EFFECTS, now.effect, id="rule-effect"))
        yield from _row("kind", "Commands", ChoiceField(kinds, now.kind, id="rule-kind"))
        yield from _row("words", "", _field("words", now.words, _HINTS[now.kind]))
        yield from _row("options", "Options", _field("options", now.options, "any that is harmless; - for none"))
        files = ChoiceField(
            (("no", "without < and > for files"), ("yes", "also with < and > for files")), now.redirections
        )
        files.id = "rule-redirections"
        yield from _row("redirections", "Files", files)
        yield from _row("directory", "Directory", _field("directory", now.directory, "everywhere"))
        yield from _row("tool", "Tool", _field("tool", now.tool, "any"))
        # The names of places of other machines begin with theirs.
        here = (name for name in places_of(self._cockpit.screen) if ":" not in name)
        if choices := place_choices(here, now.place):
            yield from _row("place", "Place", ChoiceField(choices, now.place, id="rule-place"))
        yield from _row("sandbox", "Sandbox", ChoiceField(SANDBOXES, now.sandbox, id="rule-sandbox"))
        yield from _row("justification", "Why", _field("because", now.because, "shown where the rule decides"))
        yield from _row("name", "Name", _field("name", now.name, "as its words"))
        state = ChoiceField((("no", "enabled"), ("yes", "disabled: decides nothing")), now.disabled, id="rule-disabled")
        yield from _row("disabled", "State", state)
        yield from _row("test", "Test", _field("test", "", "a command, which is not run"))
        if self._kept:
            kept = ", ".join(f"{key} = {value!r}" for key, value in self._kept.items())
            yield Static(Content(f"Kept as it is: {visible(kept)}"), classes="dialog-note")

    def on_mount(self) -> None:
        """Show the preview, and begin at the commands."""
        for field in self.query(Input):
            field.cursor_blink = False
        for name in ("choose-save_new", "row-disabled"):
            self.query_one(f"#{name}").display = self._replaced is not None
        self.query_one("#rule-words").focus()
        self._changed()

    def fields(self) -> RuleFields:
        """Return the fields as they are now."""
        typed = {name: self.query_one(f"#rule-{name}", Input).value for name in _TYPED}
        chosen = {name: self.query_one(f"#rule-{name}", ChoiceField).value for name in _CHOSEN}
        for field in self.query("#rule-place").results(ChoiceField):
            chosen["place"] = field.value
        return RuleFields(**{**typed, **chosen})  # type: ignore[arg-type]

    def draft(self, problems: dict[str, str]) -> RuleDraft:
        """Return the rule that the fields make; what is wrong with them is put into `problems`."""
        fields = self.fields()
        definition = fields.definition(problems)
        kept = {key: value for key, value in self._kept.items() if fields.effect == "allow" or key not in ONLY_ALLOW}
        return RuleDraft(effect=fields.effect, definition={**kept, **definition})

    @on(Input.Changed)
    @on(ChoiceField.Chosen)
    def _changed(self) -> None:
        """Show the fields that mean something, the problems at once, and the preview after the debounce."""
        fields = self.fields()
        self._may_leave = False
        self.query_one("#row-words").display = fields.kind != "anything"
        self.query_one("#rule-words", Input).placeholder = _HINTS[fields.kind]
        self.query_one("#row-options").display = fields.effect == "allow" and fields.kind == "prefix"
        for name in ("redirections", "sandbox"):
            self.query_one(f"#row-{name}").display = fields.effect == "allow"
        problems: dict[str, str] = {}
        draft = self.draft(problems)
        # A key that was typed just before Enter must not clear the answer to it.
        if fields != self._failed:
            self._say("")
            self._show_problems(problems if fields.words else {**problems, "words": ""})
        self._cancel_lookup()
        if problems:
            self._show(())
        else:
            self._resting = self.set_timer(PAUSE_S, lambda: self._begin_to_look(draft))

    def _begin_to_look(self, draft: RuleDraft) -> None:
        async def look() -> None:
            await self._look(draft)

        # A function, because a coroutine that is cancelled before it begins would be reported as never awaited.
        self.run_worker(look, name="try rule", group="try", exclusive=True)  # type: ignore[arg-type]

    def _cancel_lookup(self) -> None:
        """Cancel the preview of an earlier draft, which would be drawn over that of the present one."""
        if self._resting is not None:
            self._resting.stop()
        self.workers.cancel_group(self, "try")

    async def _look(self, draft: RuleDraft) -> bool:
        """Show what a rule would do. Returns False if it is none, and says what is wrong."""
        supervision = self._cockpit.supervision
        tested = self.query_one("#rule-test", Input).value
        directory = draft.definition.get("directory") or self._directory
        try:
            trial = await supervision.try_rule(draft, self._replaced, tested, directory)
            if trial.coverage.calls and self._records is None:
                found = await supervision.history(HistoryQuery(limit=LOOKED_AT))
                self._records = {record.id: record for record in found}
        except WhisperError as error:
            # Only the preview failed. The supervisor checks the rule again when it is saved.
            self._show((_line(error_text(error), "bad"),))
            return True
        if trial.problems:
            self._show_problems(
                {_ROW_OF.get(each.field, each.field): _sentence(each.clause) for each in trial.problems}
            )
            self._show(())
            return False
        self._show_problems({})
        self._show(trial_paragraphs(draft, trial, self._records or {}))
        return True

    def _show(self, paragraphs: Iterable[Paragraph]) -> None:
        # A loop, because an answer can arrive when the dialog has been left and has no widgets any more.
        for view in self.query("#rule-preview").results(ParagraphsView):
            view.show(tuple(paragraphs), from_top=True)

    def _show_problems(self, problems: Mapping[str, str]) -> None:
        """Show each problem below its field, and those of fields that the form does not have below all of them."""
        for label in self.query(".form-problem").results(Static):
            text = problems.get((label.id or "").removeprefix("problem-"), "")
            label.update(Content(visible(text)))
            label.display = bool(text)
        rows = {(label.id or "").removeprefix("problem-") for label in self.query(".form-problem")}
        others = " ".join(text for field, text in problems.items() if field not in rows)
        if others:
            self._say(others)

    def _say(self, text: str) -> None:
        for label in self.query("#rule-problem").results(Static):
            label.update(Content(visible(text)))

    async def action_save(self) -> None:
        """Save the rule, in the place of the one that is edited."""
        await self._save(self._replaced)

    async def action_save_new(self) -> None:
        """Save the rule beside the one that is edited."""
        if self._replaced is not None:
            await self._save(None)

    async def _save(self, replaced: RuleDraft | None) -> None:
        problems: dict[str, str] = {}
        draft, self._failed = self.draft(problems), self.fields()
        self._cancel_lookup()
        if problems:
            self._show_problems(problems)
        if problems or not await self._look(draft):
            self.app.bell()
            return
        supervision, me = self._cockpit.supervision, self._cockpit.me
        try:
            if replaced is None:
                await supervision.add_rule(draft.effect, draft.definition, me)
            else:
                await supervision.replace_rule(replaced, draft, me)
        except ChangedSinceSeen as error:
            self._say(f"{error_text(error)} Ctrl+N saves yours as a new rule.")
            self.app.bell()
        except WhisperError as error:
            self._say(f"Not saved. {error_text(error)}")
            self.app.bell()
        else:
            self.dismiss(str(draft.definition["name"]))

    def action_leave(self) -> None:
        """Leave; with unsaved changes, only at the second time."""
        if self.fields() == self._began or self._may_leave:
            self.dismiss(None)
            return
        self._may_leave = True
        self._say("This is not saved. Esc again discards it, Enter saves it.")


_TYPED = ("words", "options", "directory", "tool", "because", "name")
_CHOSEN = ("effect", "kind", "redirections", "sandbox", "disabled")
_ROW_OF = {**dict.fromkeys(("subject", *(kind for kind, _ in KINDS)), "words"), "network": "sandbox", "run_at": "place"}
"""The row of the form where a problem of a field of the rule is shown."""


def _row(name: str, label: str, field: Input | ChoiceField) -> ComposeResult:
    """Build a field with its label before it, and the line for its problem below it."""
    with Vertical(id=f"row-{name}", classes="form-row"):
        with Horizontal():
            yield Label(label)
            yield field
        yield Static("", id=f"problem-{name}", classes="form-problem")


def _field(name: str, value: str, hint: str) -> Input:
    return Input(value, placeholder=hint, id=f"rule-{name}", compact=True)


def _sentence(clause: str) -> str:
    if clause.startswith("it "):
        return f"It fails one of its examples: {clause}."
    return f"It {clause}." if clause[:1].islower() else f"{clause}."


class RemoveRuleScreen(Dialog[bool]):
    """Confirms the removal of a rule."""

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Remove it", "remove"),)

    def __init__(self, rule: ShownRule, path: Path) -> None:
        super().__init__()
        self._rule = rule
        self._path = path

    def compose(self) -> ComposeResult:
        """The rule and its file."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Remove a rule")
            words = f"{self._rule.effect}: {visible(self._rule.subject)}"
            yield Static(Content(words), classes="dialog-text")
            note = f"The rule {visible(self._rule.name)!r} is removed from {self._path} at once."
            yield Static(Content(note), classes="dialog-note")
            yield from self.buttons()

    def action_remove(self) -> None:
        """Remove the rule."""
        self.dismiss(True)


class TrustScreen(Dialog[bool]):
    """Shows a whole rules file: trust is in its exact content (decision 10)."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/failures.tcss"]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Trust this", "trust"),)

    def __init__(self, project: ProjectRules) -> None:
        super().__init__()
        self._project = project

    def compose(self) -> ComposeResult:
        """The content, and the effect of trust."""
        with Vertical(classes="dialog") as dialog:
            whose = "Trust the rules of a project" if self._project.root else "Trust what your rules allow"
            dialog.border_title = Content(whose)
            with VerticalScroll():
                yield Static(Content(visible(self._project.text, keep_lines=True)), classes="dialog-text")
            where = " there" if self._project.root else ""
            note = (
                f"This is {visible(self._project.path)}. Commands that it allows will run{where} without approval,"
                " until the file changes."
            )
            yield Static(Content(note), classes="dialog-note")
            yield from self.buttons()

    def action_trust(self) -> None:
        """Trust the file."""
        self.dismiss(True)


class WhyScreen(Dialog[None]):
    """Answers why the policy allowed, asked or denied a call, and who decided about it."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/statistics.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("Y,q", "leave", "Close")]

    def __init__(self, cockpit: CockpitContext, record: CallRecord) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._record = record

    def compose(self) -> ComposeResult:
        """The answer, which scrolls."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Why was call {self._record.id} decided like this?")
            yield ParagraphsView(id="why")
            yield from self.buttons()

    async def on_mount(self) -> None:
        """Look up the rule, approval or denial that decided."""
        board, session_id = self._cockpit.board, self._record.call.session_id
        rules, denials, problem = RuleList(), tuple(board.denials.values()), ""
        try:
            # With the rules of its own workspace; those of others cannot have decided about it.
            root = (await self._cockpit.supervision.session(session_id)).root
            rules = await self._cockpit.supervision.rule_list((root,) if root else ())
        except WhisperError as error:
            problem = error_text(error)
        words = why_paragraphs(self._record, rules, tuple(board.grants.values()), denials)
        if problem:
            words = (*words, BLANK, _line(f"The rules cannot be read now: {problem}", "risk"))
        self.query_one("#why", ParagraphsView).show(words, from_top=True)
