"""Rules and memory: what decides without a human, how often it did, and what would be said to a command."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Footer, Input, OptionList
from textual.widgets.option_list import Option

from whisper_tui.export.calls import PAGE, newest_first
from whisper_tui.model.decision import Grant
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import RulesChanged
from whisper_tui.model.masking import masked
from whisper_tui.model.port import HistoryQuery
from whisper_tui.model.rule_entries import digest_of, untrusted
from whisper_tui.model.text import visible
from whisper_tui.tui.commands.rules import RULES
from whisper_tui.tui.editor import edit
from whisper_tui.tui.remembering.entries import (
    Entry,
    Heading,
    Hits,
    entries,
    grant_paragraphs,
    judgement_paragraphs,
    row,
    rule_paragraphs,
)
from whisper_tui.tui.rule_book import ProjectRules, RuleList, ShownRule
from whisper_tui.tui.screens.command_screen import CommandScreen
from whisper_tui.tui.screens.help import HelpScreen
from whisper_tui.tui.screens.remove_rule import RemoveRuleScreen
from whisper_tui.tui.screens.trust import TrustScreen
from whisper_tui.tui.spans import Line, Span, said
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

LOOKED_AT = 5000
"""Calls of the history in which the decisions of rules are counted."""


class TestBox(Input):
    """Where a command is typed; Esc gives the focus back to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "done", "To the list", show=False)]

    def action_done(self) -> None:
        """Look at the list again."""
        self.screen.query_one(OptionList).focus()


class RulesScreen(CommandScreen):
    """Routes between the list, the field and the words on the right."""

    TABLE = RULES
    BINDINGS = [command.binding() for command in RULES]  # noqa: RUF012
    CSS_PATH = "rules.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012
    AUTO_FOCUS = "#remembered"

    def __init__(self, cockpit: "CockpitScreen") -> None:
        super().__init__()
        self._cockpit = cockpit
        self._book = cockpit.rule_book
        self._rules = RuleList()
        self._files: tuple[RulesChanged, ...] = ()
        self._grants: tuple[Grant, ...] = ()
        self._entries: list[Entry] = []
        self._hits = Hits(0, Counter())
        self.does: dict[str, Callable[[], object]] = {
            "rules-test": lambda: self.set_focus(self.query_one(TestBox)),
            "rules-revoke": self._revoke,
            "rules-trust": self._trust,
            "rules-edit": self._edit,
            "rules-reload": self._reload,
            "rules-help": lambda: self.app.push_screen(HelpScreen(RULES)),
            "rules-leave": lambda: self.dismiss(None),
        }

    def compose(self) -> ComposeResult:
        """A field, the list, the words, keys."""
        yield LineView(id="rules-status")
        yield TestBox(placeholder="a command to test: press /, type it, Enter", compact=True, id="rules-test")
        with Horizontal(id="rules-body"):
            yield OptionList(id="remembered")
            yield ParagraphsView(id="rules-words")
        yield Footer()

    async def on_mount(self) -> None:
        """Read everything, then count what rules decided."""
        self.query_one(TestBox).cursor_blink = False
        await self._reload()
        self.run_worker(self._count_hits(), name="hits")

    async def _reload(self) -> None:
        try:
            self._grants = await self._cockpit.supervision.grants()
            if self._book is not None:
                self._rules = await asyncio.to_thread(self._book.rules, self._roots())
                self._files = await self._cockpit.supervision.rule_files()
                kept_out = {entry for file in self._files for entry in untrusted(file)}
                rules = tuple(replace(rule, holds=rule.entry not in kept_out) for rule in self._rules.rules)
                self._rules = replace(self._rules, rules=rules)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="error")
        self._draw()

    def _roots(self) -> tuple[str, ...]:
        """The workspaces of the sessions that are open."""
        sessions = self._cockpit.board.sessions.values()
        return tuple(sorted({session.root for session in sessions if session.closed_at is None}))

    async def _count_hits(self) -> None:
        try:
            async for page in newest_first(self._cockpit.supervision, HistoryQuery(limit=PAGE)):
                self._hits.looked_at += len(page)
                self._hits.by_rule.update(r.verdict.rule for r in page if r.verdict is not None and r.verdict.rule)
                if self._hits.looked_at >= LOOKED_AT:
                    break
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="warning")
        self._draw()

    def _draw(self) -> None:
        """Draw the list; what is highlighted stays so."""
        listed = self.query_one(OptionList)
        at = listed.highlighted
        self._entries = entries(self._grants, self._rules)
        options = [
            Option(_content(row(entry, self._hits)), disabled=isinstance(entry, Heading)) for entry in self._entries
        ]
        listed.clear_options().add_options(options)
        possible = [number for number, entry in enumerate(self._entries) if not isinstance(entry, Heading)]
        if possible:
            listed.highlighted = next((number for number in possible if at is not None and number >= at), possible[-1])
            if at is None:
                listed.highlighted = possible[0]
        self._draw_status()
        self._show_highlighted()

    def _draw_status(self) -> None:
        rules = self._rules
        left: Line = (
            Span(" whisper_tui ", "strong"),
            Span("  rules and memory ", "running"),
            Span(f" {count(len(self._grants), 'approval')}, {count(len(rules.rules), 'rule')}"),
        )
        looking = "runs unasked" if rules.looking_runs else "is asked"
        right: Line = (Span(f"what only looks {looking} ", "muted"),)
        if rules.broken is not None:
            right = (*said(f"everything is asked: {rules.broken} ", "bad"),)
        elif self._book is None:
            right = (Span("rules cannot be read here ", "muted"),)
        self.query_one("#rules-status", LineView).show(left, right)

    @property
    def _highlighted(self) -> Entry | None:
        at = self.query_one(OptionList).highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    @on(OptionList.OptionHighlighted)
    def _show_highlighted(self) -> None:
        now, entry = self._cockpit.clock(), self._highlighted
        match entry:
            case Grant():
                words = grant_paragraphs(entry, self._cockpit.board.sessions.get(entry.session_id), now)
            case ShownRule():
                words = rule_paragraphs(entry, self._hits, self._where(entry), now)
            case _:
                words = ()
        self.query_one(ParagraphsView).show(words, from_top=True)

    @on(Input.Submitted, "#rules-test")
    async def _test(self, event: Input.Submitted) -> None:
        text = event.value
        if not text.strip() or self._book is None:
            return
        shown = self._cockpit.shown
        session = self._cockpit.board.sessions.get(shown.call.session_id) if shown is not None else None
        directory = session.root if session is not None else str(Path.cwd())
        try:
            found = await asyncio.to_thread(self._book.judge, text, directory)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="error")
            return
        self.query_one(ParagraphsView).show(judgement_paragraphs(text, directory, found), from_top=True)

    async def _revoke(self) -> None:
        entry = self._highlighted
        if isinstance(entry, Grant):
            try:
                await self._cockpit.supervision.revoke(entry.id, self._cockpit.me)
            except WhisperError as error:
                self._cockpit.tell(told(error), severity="warning")
            else:
                self._cockpit.tell(f"Approval {entry.id} is forgotten; the command is asked again.")
            await self._reload()
        elif isinstance(entry, ShownRule):
            self._ask_to_remove(entry)

    def _ask_to_remove(self, rule: ShownRule) -> None:
        if self._book is None or not rule.removable:
            self._cockpit.tell(f"The rule {rule.name} stands in {self._where(rule)}: change it there.")
            return

        def answered(remove: bool | None) -> None:
            if remove:
                self.run_worker(self._remove(rule), name="remove rule")

        self.app.push_screen(RemoveRuleScreen(rule, self._book.path), answered)

    async def _remove(self, rule: ShownRule) -> None:
        if self._book is not None:
            try:
                await asyncio.to_thread(self._book.remove, rule.name)
            except WhisperError as error:
                self._cockpit.tell(told(error), severity="error")
            else:
                self._cockpit.tell(f"The rule {rule.name} is removed.")
            await self._reload()

    def _where(self, rule: ShownRule) -> str:
        """The file that a rule stands in, in words."""
        project = self._rules.project_of(rule)
        if project is not None:
            return visible(project.path)
        return str(self._book.path) if rule.removable and self._book is not None else "the configuration file"

    async def _trust(self) -> None:
        """Trust the project of the selected rule after it was read, or trust it no more."""
        rule = self._highlighted
        project = self._rules.project_of(rule) if isinstance(rule, ShownRule) else None
        if project is None and any(map(untrusted, self._files)):
            self._ask_to_trust_own()
        elif project is None:
            self._cockpit.tell("Select a rule that a project brings along; all others are your own, and hold.")
        elif project.trusted:
            await self._set_trust(project, trusted=False)
        else:

            def answered(trust: bool | None) -> None:
                if trust:
                    self.run_worker(self._set_trust(project, trusted=True), name="trust")

            self.app.push_screen(TrustScreen(project), answered)

    def _ask_to_trust_own(self) -> None:
        """Show what would be allowed by the user's own files, which somebody has changed, and trust it."""
        files = [file for file in self._files if untrusted(file)]
        said = [
            f"{file.path}\n" + "\n".join(f"  {entry.rpartition(' #')[0]}" for entry in untrusted(file))
            for file in files
        ]
        shown = ProjectRules("", ", ".join(file.path for file in files), masked("\n".join(said)), trusted=False)

        async def trust() -> None:
            try:
                for file in files:
                    digest = digest_of(file.entries)
                    await self._cockpit.supervision.trust_rules(file.path, self._cockpit.me, digest=digest)
            except WhisperError as error:
                self._cockpit.tell(told(error), severity="error")
            await self._reload()

        def answered(agreed: bool | None) -> None:
            if agreed:
                self.run_worker(trust(), name="trust")

        self.app.push_screen(TrustScreen(shown), answered)

    async def _set_trust(self, project: ProjectRules, *, trusted: bool) -> None:
        if self._book is None:
            return
        try:
            await asyncio.to_thread(self._book.trust, project, trusted=trusted)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="error")
        else:
            until = "is trusted until it changes" if trusted else "is not trusted any more: what it allows is asked"
            self._cockpit.tell(f"{project.path} {until}.")
        await self._reload()

    async def _edit(self) -> None:
        if self._book is None:
            return
        try:
            edit(self.app, self._book.path)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="warning")
        await self._reload()


def _content(line: Line) -> Content:
    return Content.assemble(*((span.text, _STYLES.get(span.role, "")) for span in line))


_STYLES = {
    "running": "bold $running",
    "muted": "$muted",
    "good": "bold $success",
    "bad": "bold $error",
    "waiting": "bold $waiting",
    "risk": "bold $risk",
    "hidden": "bold $hidden-text on $hidden-back",
}
"""The roles that rows of the list have, in the colours of the theme."""
