"""The rules screen: rules and standing approvals, with tests, changes, trust and removal."""

import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.css.query import NoMatches
from textual.widgets import Input
from textual.widgets.option_list import Option

from whisper_tui.export.session_story import PAGE, newest_first
from whisper_tui.model.api import MOST_ROOTS, HistoryQuery
from whisper_tui.model.call import Unasked
from whisper_tui.model.decision import Grant, SessionDenial
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.event import RulesChanged, entries_digest, untrusted_entries
from whisper_tui.model.secrets import masked
from whisper_tui.model.shown_rules import ProjectRules, RuleDraft, RuleList, ShownRule
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import Line, Span, said
from whisper_tui.present.unasked_text import MEANING
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.notices import FirstHints
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.help_dialog import screen_help
from whisper_tui.tui.keyed_screen import KeyFooter
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList
from whisper_tui.tui.screens.command_screen import RULES, CommandScreen
from whisper_tui.tui.screens.rule_dialogs import RemoveRuleScreen, RuleForm, TrustScreen
from whisper_tui.tui.screens.rule_list import (
    ALLOWANCES,
    ASKING,
    BuiltIn,
    Entry,
    Heading,
    Hits,
    ReadOnlyList,
    allowance_paragraphs,
    asking_about,
    asking_rule,
    denial_paragraphs,
    entries,
    grant_paragraphs,
    judgement_paragraphs,
    listed_readers,
    read_only_paragraphs,
    reader_rule,
    row,
    rule_paragraphs,
    why_paragraphs,
)

ON_RULES = frozenset(
    f"rules-{name}" for name in ("test", "add", "change", "switch", "starter", "readers", "trust", "why", "edit")
)
"""The commands that are about the rules of one machine."""
VARIABLES = ("VISUAL", "EDITOR")
DEFAULT_EDITOR = "vi"


def edit(app: App[None], path: Path) -> None:
    """Open a private file in the user's editor. Raises `Refused` without a terminal or an editor."""
    named = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), DEFAULT_EDITOR)
    by_hand = f"Edit {path} by hand"
    try:
        words = shlex.split(named)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Created here, because an editor would create it with the umask and others could read it.
        path.touch(mode=0o600, exist_ok=True)
        with app.suspend():
            subprocess.run([*words, str(path)], check=False)
    except SuspendNotSupported:
        raise Refused("there is no terminal for an editor here", hint=by_hand) from None
    except (OSError, ValueError) as error:
        raise Refused(f"the editor {named!r} cannot be started: {error}", hint=by_hand) from error


LOOKED_AT = 5000
"""Calls of the history over which decisions of rules are counted."""


class TestBox(Input):
    """The field for a command to test; Esc returns the focus to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "done", "To the list", show=False)]

    def action_done(self) -> None:
        """Focus the list."""
        self.screen.query_one(RowList).focus()


class RuleChanges:
    """Adds, changes, disables and removes rules of the user, for the rules screen."""

    def __init__(self, cockpit: CockpitContext, screen: "RulesScreen", hints: FirstHints) -> None:
        self._cockpit = cockpit
        self._screen = screen
        self._hints = hints

    def own_rule(self) -> ShownRule | None:
        """The highlighted rule, if it may be changed here; else say why not."""
        entry = self._screen.highlighted
        match entry:
            case ShownRule() if entry.removable:
                return entry
            case ShownRule():
                self._cockpit.tell(f"The rule {entry.name} is defined in {self._screen.where(entry)}: change it there.")
            case ReadOnlyList() | BuiltIn():
                words = "What is built in cannot be edited. Your rules that ask or deny beat it; a adds one."
                self._cockpit.tell(words)
            case Grant() | SessionDenial():
                self._cockpit.tell("This is no rule; x revokes it.")
            case _:
                self._cockpit.tell("No rule is selected.")
        return None

    def change(self) -> None:
        """Open the form with the highlighted rule."""
        if (rule := self.own_rule()) is not None:
            self.open_form(RuleDraft(effect=rule.effect, definition=rule.definition))

    def open_form(self, replaced: RuleDraft | None = None) -> None:
        """Open the form for a new rule, or for another version of one."""

        async def saved(name: str) -> None:
            self._cockpit.tell(f"Rule {name} saved; it applies at once.")
            await self._screen.reload()
            self._screen.highlight(name)

        def answered(name: str | None) -> None:
            if name is not None:
                self._screen.run_worker(saved(name), name="saved rule")

        self._screen.app.push_screen(RuleForm(self._cockpit, replaced, self._screen.directory()), answered)

    def offer_starters(self) -> None:
        """Offer the rules that the files of the project propose, and save those that the person ticks."""
        root = self._screen.directory()
        offered = next((each for each in self._screen.rules.starters if each.root == root), None)
        if offered is None:
            self._cockpit.tell(f"The files of {root} name no tests, builds or checks that have no rule yet.")
            return
        from whisper_tui.tui.dialogs.starter_dialog import StarterScreen

        async def save(rules: tuple[ShownRule, ...]) -> None:
            try:
                for rule in rules:
                    await self._cockpit.supervision.add_rule("allow", rule.definition, self._cockpit.me)
                self._cockpit.tell(f"{count(len(rules), 'rule')} saved for {root}; they apply at once.")
            except WhisperError as error:
                self._cockpit.tell(error_text(error), severity="error")
            await self._screen.reload()

        def answered(rules: tuple[ShownRule, ...] | None) -> None:
            if rules:
                self._screen.run_worker(save(rules), name="save starter set")

        self._screen.app.push_screen(StarterScreen(offered), answered)

    def offer_once(self) -> None:
        """Offer them the first time that the rules are looked at in a project that has any."""
        root = self._screen.directory()
        if any(each.root == root for each in self._screen.rules.starters) and self._hints.first(f"starter:{root}"):
            self.offer_starters()

    async def switch(self) -> None:
        """Disable the highlighted rule, or enable it again; switch what is built in off or on."""
        match self._screen.highlighted:
            case ReadOnlyList(runs=runs):
                await self._set_level("nothing" if runs else "reading")
                return
            case BuiltIn(kind="held-back", runs=runs):
                await self._set_level("reading" if runs else "workspace")
                return
            case BuiltIn() as entry:
                await self._switch_asking(entry)
                return
        rule = self.own_rule()
        if rule is None:
            return
        before = RuleDraft(effect=rule.effect, definition=rule.definition)
        after = before.model_copy(update={"definition": {**rule.definition, "disabled": not rule.disabled}})
        if await self._replace(before, after):
            self._cockpit.tell(f"Rule {rule.name} {'enabled' if rule.disabled else 'disabled'}.")

    async def _set_level(self, level: Unasked) -> None:
        """Set how much runs unasked, in all sessions and from now on."""
        try:
            await self._cockpit.supervision.set_unasked(level, self._cockpit.me)
            self._cockpit.tell(f"{level!r} holds in all sessions: {MEANING[level]}.")
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        await self._screen.reload()

    async def _switch_asking(self, entry: BuiltIn) -> None:
        """Add the rule of the user that asks about what is built in, or remove it."""
        title = ALLOWANCES[entry.kind].title
        asking = asking_rule(entry.kind, self._screen.rules)
        if asking is not None and not asking.removable:
            self._cockpit.tell(f"The rule {asking.name} is defined in {self._screen.where(asking)}: change it there.")
        elif asking is not None:
            if await self._replace(RuleDraft(effect="ask", definition=asking.definition), None):
                self._cockpit.tell(f"No rule of yours asks about {title} any more.")
        elif not entry.runs:
            self._cockpit.tell(f"Approval is not needed for {title} at the level 'workspace': switch that on below.")
        else:
            await self._ask_about(ASKING[entry.kind], title)

    def list_readers(self) -> None:
        """Show the read-only list with a switch for each of its commands."""
        if not self._screen.rules.read_only:
            self._cockpit.tell("The read-only list cannot be read here.")
            return
        from whisper_tui.tui.dialogs.readers_dialog import ReadersScreen

        runs = self._screen.rules.read_only_runs and self._screen.rules.broken is None
        self._screen.app.push_screen(
            ReadersScreen(lambda: listed_readers(self._screen.rules), self._switch_reader, runs=runs)
        )

    async def _switch_reader(self, command: str) -> None:
        """Add the rule of the user that asks about a command of the read-only list, or remove it."""
        asking = reader_rule(command, self._screen.rules)
        if asking is None:
            await self._ask_about(asking_about(command), command)
        elif not asking.removable:
            self._cockpit.tell(f"The rule {asking.name} is defined in {self._screen.where(asking)}: change it there.")
        elif await self._replace(RuleDraft(effect="ask", definition=asking.definition), None):
            self._cockpit.tell(f"No rule of yours asks about {command} any more.")

    async def _ask_about(self, definition: dict[str, Any], title: str) -> None:
        try:
            await self._cockpit.supervision.add_rule("ask", definition, self._cockpit.me)
            self._cockpit.tell(f"A rule of yours asks about {title} from now on.")
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        await self._screen.reload()

    def ask_to_remove(self, rule: ShownRule) -> None:
        """Remove a rule once the person has confirmed it."""
        if self.own_rule() is None:
            return
        before = RuleDraft(effect=rule.effect, definition=rule.definition)

        async def remove() -> None:
            if await self._replace(before, None):
                self._cockpit.tell(f"Rule {rule.name} removed.")

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._screen.run_worker(remove(), name="remove rule")

        self._screen.app.push_screen(RemoveRuleScreen(rule, Path(self._screen.rules.path)), answered)

    async def _replace(self, before: RuleDraft, after: RuleDraft | None) -> bool:
        """Put a rule in the place of another. Returns True if that is done; else it says why not."""
        try:
            await self._cockpit.supervision.replace_rule(before, after, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
            return False
        finally:
            await self._screen.reload()
        return True


class RulesScreen(CommandScreen):
    """Connects the list, the test field and the details."""

    TABLE = RULES
    BINDINGS = [command.binding() for command in RULES]  # noqa: RUF012
    CSS_PATH = "../styles/rules.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012
    AUTO_FOCUS = "#remembered"

    def __init__(
        self, cockpit: CockpitContext, machines: Collection[str] = (), hints: FirstHints | None = None
    ) -> None:
        """`machines`: those of a cockpit over several, each of which has its own rules; `hints`: what was offered."""
        super().__init__()
        self._cockpit = cockpit
        self._machines = machines
        self.rules = RuleList()
        self._files: tuple[RulesChanged, ...] = ()
        self._grants: tuple[Grant, ...] = ()
        self._denials: tuple[SessionDenial, ...] = ()
        self._entries: list[Entry] = []
        self._hits = Hits(0, Counter())
        changes = self.changes = RuleChanges(cockpit, self, hints or FirstHints())
        self.does: dict[str, Callable[[], object]] = {
            "rules-test": lambda: self.set_focus(self.query_one(TestBox)),
            "rules-add": changes.open_form,
            "rules-change": changes.change,
            "rules-switch": changes.switch,
            "rules-revoke": self._revoke,
            "rules-starter": changes.offer_starters,
            "rules-readers": changes.list_readers,
            "rules-trust": self._trust,
            "rules-why": self._why,
            "rules-edit": self._edit,
            "rules-reload": self.reload,
            "rules-help": lambda: screen_help(self, "rules", RULES, self.why_not),
            "rules-leave": lambda: self.dismiss(None),
        }

    def compose(self) -> ComposeResult:
        """The test field, the list, the details and the keys."""
        yield LineView(id="rules-status")
        yield TestBox(placeholder="/ tests a command against the rules", compact=True, id="rules-test")
        with Horizontal(id="rules-body"):
            yield RowList(id="remembered")
            yield ParagraphsView(id="rules-words")
        yield KeyFooter()

    async def on_mount(self) -> None:
        """Read the rules, then count their decisions in the history."""
        self.query_one(TestBox).cursor_blink = False
        self.query_one(TestBox).display = not self._machines
        await self.reload()
        if not self._machines:
            self.changes.offer_once()
            # Reading 5,000 calls takes a while; the list is there before their counts.
            self.run_worker(self._count_hits(), name="hits")

    def means_something(self, command_id: str) -> bool:
        """False for commands about rules where several machines have their own."""
        return super().means_something(command_id) and not (self._machines and command_id in ON_RULES)

    async def reload(self) -> None:
        """Read rules and approvals again."""
        supervision = self._cockpit.supervision
        try:
            self._grants, self._denials = await supervision.grants(), await supervision.denials()
            if not self._machines:
                self.rules = await supervision.rule_list(self._roots())
                self._files = await supervision.rule_files()
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        self._draw()

    def _roots(self) -> tuple[str, ...]:
        """The workspaces of the sessions that are open."""
        sessions = self._cockpit.board.sessions.values()
        found = {session.root for session in sessions if session.closed_at is None and not session.relayed}
        # The project that the cockpit is about comes first, also where no session is open.
        here = self.directory()
        return (here, *sorted(found - {here}))[:MOST_ROOTS]

    async def _count_hits(self) -> None:
        try:
            async for page in newest_first(self._cockpit.supervision, HistoryQuery(limit=PAGE)):
                self._hits.looked_at += len(page)
                self._hits.by_rule.update(r.verdict.rule for r in page if r.verdict is not None and r.verdict.rule)
                if self._hits.looked_at >= LOOKED_AT:
                    break
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        # Widgets go one after the other when the screen closes, and this may still be counting then.
        with suppress(NoMatches):
            self._draw()

    def _draw(self) -> None:
        """Draw the list, and keep the highlighted entry."""
        listed = self.query_one(RowList)
        at = listed.highlighted
        self._entries = entries(self._grants, self._denials, None if self._machines else self.rules)
        options = [
            Option(_content(row(entry, self._hits)), disabled=isinstance(entry, Heading)) for entry in self._entries
        ]
        listed.clear_options().add_options(options)
        # Headings cannot be highlighted; after a removal, the entry that took the row of the removed one is.
        possible = [number for number, entry in enumerate(self._entries) if not isinstance(entry, Heading)]
        if possible:
            listed.highlighted = next((number for number in possible if at is not None and number >= at), possible[-1])
            if at is None:
                listed.highlighted = possible[0]
        self._draw_status()
        self._show_highlighted()

    def _draw_status(self) -> None:
        rules = self.rules
        left: Line = (
            Span(" whisper_tui ", "strong"),
            Span("  rules ", "running"),
            Span(f" {count(len(self._grants), 'approval')}"),
            *(() if self._machines else (Span(f", {count(len(rules.rules), 'rule')}"),)),
        )
        looking = "run without approval" if rules.read_only_runs else "need approval"
        right: Line = (Span(f"read-only commands {looking} ", "muted"),)
        if rules.broken is not None:
            right = (*said(f"every command needs approval: {rules.broken} ", "bad"),)
        elif self._machines:
            right = (Span("rules of a machine: whisper-tui rules list --host NAME ", "muted"),)
        elif not rules.path:
            right = (Span("rules cannot be read here ", "muted"),)
        self.query_one("#rules-status", LineView).show(left, right)

    @property
    def highlighted(self) -> Entry | None:
        """The entry that is highlighted."""
        at = self.query_one(RowList).highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    @on(RowList.OptionSelected, "#remembered")
    def _open_highlighted(self) -> None:
        if isinstance(self.highlighted, ReadOnlyList):
            self.changes.list_readers()

    @on(RowList.OptionHighlighted)
    def _show_highlighted(self) -> None:
        now, entry = self._cockpit.clock(), self.highlighted
        match entry:
            case Grant():
                words = grant_paragraphs(entry, self._cockpit.board.sessions.get(entry.session_id), now)
            case ReadOnlyList():
                words = read_only_paragraphs(entry, self._hits)
            case BuiltIn():
                words = allowance_paragraphs(entry, self._hits)
            case SessionDenial():
                words = denial_paragraphs(entry, self._cockpit.board.sessions.get(entry.session_id), now)
            case ShownRule():
                words = rule_paragraphs(entry, self._hits, self.where(entry), now)
            case _:
                words = ()
        self.query_one(ParagraphsView).show(words, from_top=True)

    @on(Input.Submitted, "#rules-test")
    async def _test(self, event: Input.Submitted) -> None:
        text = event.value
        if not text.strip():
            return
        directory = self.directory()
        try:
            found = await self._cockpit.supervision.judge_command(text, directory)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
            return
        self.query_one(ParagraphsView).show(judgement_paragraphs(text, directory, found), from_top=True)

    def directory(self) -> str:
        """The workspace in which commands are tested: that of the call that is selected in the cockpit."""
        shown = self._cockpit.shown
        session = self._cockpit.board.sessions.get(shown.call.session_id) if shown is not None else None
        return session.root if session is not None else str(Path.cwd())

    def _why(self) -> None:
        """Show which rule, approval or denial decided about the call that is selected in the cockpit."""
        if (record := self._cockpit.shown) is None:
            self._cockpit.tell("No call is selected in the cockpit.")
            return
        # A grant or denial that holds no more is still what decided then.
        board = self._cockpit.board
        words = why_paragraphs(record, self.rules, tuple(board.grants.values()), self._denials)
        self.query_one(ParagraphsView).show(words, from_top=True)

    async def _revoke(self) -> None:
        entry = self.highlighted
        if isinstance(entry, Grant):
            try:
                await self._cockpit.supervision.revoke(entry.id, self._cockpit.me)
            except WhisperError as error:
                self._cockpit.tell(error_text(error), severity="warning")
            else:
                self._cockpit.tell(f"Standing approval {entry.id} revoked; its commands need approval again.")
            await self.reload()
        elif isinstance(entry, SessionDenial):
            try:
                await self._cockpit.supervision.lift_denial(entry.id, self._cockpit.me)
            except WhisperError as error:
                self._cockpit.tell(error_text(error), severity="warning")
            else:
                self._cockpit.tell(f"Session denial {entry.id} lifted; its commands need approval again.")
            await self.reload()
        elif isinstance(entry, ShownRule):
            self.changes.ask_to_remove(entry)

    def highlight(self, name: str) -> None:
        """Highlight the rule of a name."""
        found = (at for at, each in enumerate(self._entries) if isinstance(each, ShownRule) and each.name == name)
        self.query_one(RowList).highlighted = next(found, self.query_one(RowList).highlighted)

    def where(self, rule: ShownRule) -> str:
        """The file of a rule, in words."""
        project = self.rules.project_of(rule)
        if project is not None:
            return visible(project.path)
        return visible(self.rules.path if rule.removable else rule.file or "the configuration file")

    async def _trust(self) -> None:
        """Trust the project of the selected rule after showing its file, or withdraw that trust."""
        rule = self.highlighted
        project = self.rules.project_of(rule) if isinstance(rule, ShownRule) else None
        if project is None and any(map(untrusted_entries, self._files)):
            self._ask_to_trust_own()
        elif project is None:
            self._cockpit.tell("Select a rule of a project; your own rules need no trust.")
        elif project.trusted:
            await self._set_trust(project, trusted=False)
        else:

            def answered(trust: bool | None) -> None:
                if trust:
                    self.run_worker(self._set_trust(project, trusted=True), name="trust")

            self.app.push_screen(TrustScreen(project), answered)

    def _ask_to_trust_own(self) -> None:
        """Show the untrusted entries of the user's own files, and trust them."""
        files = [file for file in self._files if untrusted_entries(file)]
        said = [
            f"{file.path}\n" + "\n".join(f"  {entry.rpartition(' #')[0]}" for entry in untrusted_entries(file))
            for file in files
        ]
        shown = ProjectRules(
            root="", path=", ".join(file.path for file in files), text=masked("\n".join(said)), trusted=False
        )

        async def trust() -> None:
            try:
                for file in files:
                    # The digest of what was shown: a file that has changed meanwhile is not trusted (decision 10).
                    digest = entries_digest(file.entries)
                    await self._cockpit.supervision.trust_rules(file.path, self._cockpit.me, digest=digest)
            except WhisperError as error:
                self._cockpit.tell(error_text(error), severity="error")
            await self.reload()

        def answered(agreed: bool | None) -> None:
            if agreed:
                self.run_worker(trust(), name="trust")

        self.app.push_screen(TrustScreen(shown), answered)

    async def _set_trust(self, project: ProjectRules, *, trusted: bool) -> None:
        supervision, by = self._cockpit.supervision, self._cockpit.me
        try:
            await supervision.trust_project(project.root, by, project.digest, trusted=trusted)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        else:
            until = (
                "is trusted until it changes"
                if trusted
                else "is no longer trusted: commands that it allows need approval"
            )
            self._cockpit.tell(f"{project.path} {until}.")
        await self.reload()

    async def _edit(self) -> None:
        if not self.rules.path:
            return
        try:
            edit(self.app, Path(self.rules.path))
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        await self.reload()


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
"""The theme colours of the roles in the list."""
