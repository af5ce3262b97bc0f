"""The settings screen: what a person changes in the configuration file, with its default and its allowed values."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from whisper_tui.model.api import SettingList, ShownSetting
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import limit, size
from whisper_tui.present.spans import BLANK, Paragraph, Span, labelled, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import ChoiceField, Dialog, StyleFiles
from whisper_tui.tui.dialogs.help_dialog import screen_help
from whisper_tui.tui.keyed_screen import KeyFooter
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList
from whisper_tui.tui.screens.command_screen import SETTINGS, CommandScreen

THEME = "cockpit.theme"
TITLES = {
    "cockpit": "Cockpit",
    "calling": "Notifications",
    "supervisor": "Supervisor",
    "retention": "Recorded output",
    "undo": "Contents kept for undo",
    "limits": "Limits of each run",
    "mcp": "MCP",
}
"""The tables of the configuration file as people call them."""
RESTART = {
    "supervisor": "Read by the supervisor when it starts: whisper-tui restart applies it; running commands go on.",
    "cockpit": "Read by the cockpit when it opens.",
    "both": "Read by the cockpit when it opens, and by the supervisor when it starts: whisper-tui restart.",
}
AFTER = {
    "supervisor": "whisper-tui restart applies it; running commands go on.",
    "cockpit": "The cockpit reads it when it opens the next time.",
    "both": "The next cockpit reads it, and the supervisor after whisper-tui restart.",
}


def setting_paragraphs(setting: ShownSetting, path: str) -> tuple[Paragraph, ...]:
    """Return a setting in full."""
    where = path if setting.in_file else "the default: the file does not set it"
    return (
        Paragraph((Span(_title(setting), "strong"), Span(f"  {setting.name}", "muted")), margin=(Span(" "),)),
        BLANK,
        Paragraph(said(setting.about), margin=(Span(" "),)),
        BLANK,
        labelled("Value", said(_in_words(setting, setting.value), "strong")),
        labelled("From", said(where)),
        labelled("Default", said(_in_words(setting, setting.default))),
        labelled("Allowed", said(setting.allowed)),
        BLANK,
        Paragraph(said(RESTART[setting.restart], "muted"), margin=(Span(" "),)),
    )


def _shown(value: str) -> str:
    return value or "(none)"


def _title(setting: ShownSetting) -> str:
    return setting.title or setting.name.partition(".")[2]


def _in_words(setting: ShownSetting, value: str) -> str:
    """Return a value with its unit, which the name of its key has."""
    unit = setting.name.rpartition("_")[2]
    if not value.isdecimal():
        return _shown(value)
    return {"bytes": size(int(value)), "s": limit(int(value))}.get(unit, value)


class SettingSearch(Input):
    """The field for words to search for; Enter and Esc return to the list, Esc without the words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "done(True)", "All settings", show=False),
        Binding("enter,down", "done(False)", "To the list", show=False, priority=True),
    ]

    def action_done(self, empty: bool) -> None:
        """Focus the list, with all settings again if this is `empty`."""
        if empty:
            self.value = ""
        self.display = bool(self.value)
        self.screen.query_one(RowList).focus()


def is_found(setting: ShownSetting, words: str) -> bool:
    """Return True if a setting has all of these words in its title, its key, its table or what it means."""
    table = TITLES.get(setting.name.partition(".")[0], "")
    text = f"{setting.title} {setting.name} {table} {setting.about}".casefold()
    return all(word in text for word in words.casefold().split())


class SettingDialog(Dialog[str]):
    """Asks for the value of one setting, and stays open until it is written; its result is the value."""

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Save", "save"),)
    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss"]

    def __init__(self, cockpit: CockpitContext, setting: ShownSetting) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._setting = setting

    def compose(self) -> ComposeResult:
        """Build the field with what it means, and what is allowed."""
        setting = self._setting
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"{_title(setting)} ({setting.name})")
            yield Static(Content(visible(setting.about)), classes="dialog-text")
            if setting.choices:
                yield ChoiceField([(each, each) for each in setting.choices], setting.value, id="setting-value")
            else:
                yield Input(setting.value, placeholder=_shown(setting.default), id="setting-value", compact=True)
            note = f"Allowed: {setting.allowed}. Default: {_shown(setting.default)}. {RESTART[setting.restart]}"
            yield Static(Content(visible(note)), classes="dialog-note")
            yield Static("", id="setting-problem", classes="dialog-problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin at the field."""
        for field in self.query(Input):
            field.cursor_blink = False
        self.query_one("#setting-value").focus()

    async def action_save(self) -> None:
        """Write the setting, or say why that is not possible."""
        field = self.query_one("#setting-value")
        value = field.value if isinstance(field, Input | ChoiceField) else ""
        try:
            await self._cockpit.supervision.change_setting(
                self._setting.name, value, self._setting.value, self._cockpit.me
            )
        except WhisperError as error:
            self.query_one("#setting-problem", Static).update(Content(visible(error_text(error))))
            self.app.bell()
        else:
            self.dismiss(value)


class SettingsScreen(CommandScreen):
    """Lists the settings beside the one that is highlighted, and changes them."""

    TABLE = SETTINGS
    BINDINGS = [command.binding() for command in SETTINGS]  # noqa: RUF012
    CSS_PATH = "../styles/settings.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012
    AUTO_FOCUS = "#settings-list"

    def __init__(self, cockpit: CockpitContext, themes: Sequence[str], use_theme: Callable[[str], None]) -> None:
        """`themes`: the names that `use_theme` takes."""
        super().__init__()
        self._cockpit = cockpit
        self._themes = tuple(themes)
        self._use_theme = use_theme
        self._list = SettingList(path="")
        self._entries: list[ShownSetting | None] = []
        """The setting of each row of the list. None: a heading."""
        self.does: dict[str, Callable[[], object]] = {
            "settings-change": self._change,
            "settings-reset": self._reset,
            "settings-search": self._search,
            "settings-reload": self._reload,
            "settings-help": lambda: screen_help(self, "settings", SETTINGS, self.why_not),
            "settings-leave": lambda: self.dismiss(None),
        }

    def compose(self) -> ComposeResult:
        """The file, the list, the details and the keys."""
        yield LineView(id="settings-status")
        yield SettingSearch(placeholder="words of a setting", compact=True, id="settings-search")
        with Horizontal(id="settings-body"):
            yield RowList(id="settings-list")
            yield ParagraphsView(id="settings-words")
        yield KeyFooter()

    async def on_mount(self) -> None:
        """Read the settings."""
        box = self.query_one(SettingSearch)
        box.cursor_blink, box.display = False, False
        await self._reload()

    def _search(self) -> None:
        box = self.query_one(SettingSearch)
        box.display = True
        box.focus()

    async def _reload(self) -> None:
        try:
            found = await self._cockpit.supervision.settings()
            settings = tuple(self._with_themes(setting) for setting in found.settings)
            self._list = found.model_copy(update={"settings": settings})
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        self._draw()

    def _with_themes(self, setting: ShownSetting) -> ShownSetting:
        """Return a setting with the themes as its choices, which only the cockpit knows, if it is the theme."""
        if setting.name != THEME:
            return setting
        return setting.model_copy(update={"choices": self._themes, "allowed": ", ".join(self._themes)})

    def _draw(self) -> None:
        """Draw the list, and keep the highlighted setting."""
        listed = self.query_one(RowList)
        at = listed.highlighted
        self._entries = []
        options: list[Option] = []
        words = self.query_one(SettingSearch).value
        found = [setting for setting in self._list.settings if is_found(setting, words)]
        for table, settings in groupby(found, key=lambda each: each.name.partition(".")[0]):
            options.append(Option(Content.styled(TITLES.get(table, table), "bold $running"), disabled=True))
            self._entries.append(None)
            for setting in settings:
                options.append(Option(_row(setting)))
                self._entries.append(setting)
        listed.clear_options().add_options(options)
        if options:
            possible = at is not None and at < len(options) and self._entries[at] is not None
            listed.highlighted = at if possible else 1
        left = (
            Span(" whisper_tui ", "strong"),
            Span("  settings ", "running"),
            Span(f" {visible(self._list.path)}"),
            *((Span("  no setting has these words", "muted"),) if words and not found else ()),
        )
        right = said(f"the file is not used: {self._list.problem} ", "bad") if self._list.problem else ()
        self.query_one("#settings-status", LineView).show(left, right)
        self._show_highlighted()

    @property
    def _highlighted(self) -> ShownSetting | None:
        at = self.query_one(RowList).highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    @on(Input.Changed, "#settings-search")
    def _searched(self) -> None:
        self._draw()

    @on(RowList.OptionHighlighted)
    def _show_highlighted(self) -> None:
        setting = self._highlighted
        words = setting_paragraphs(setting, self._list.path) if setting is not None else ()
        self.query_one(ParagraphsView).show(words, from_top=True)

    @on(RowList.OptionSelected)
    def _change(self) -> None:
        setting = self._highlighted
        if setting is None:
            return

        def answered(value: str | None) -> None:
            if value is not None:
                self.run_worker(self._changed(setting, value), name="setting")

        self.app.push_screen(SettingDialog(self._cockpit, setting), answered)

    async def _changed(self, setting: ShownSetting, value: str) -> None:
        """Say what the change needs, and use it at once if that is possible."""
        if setting.name == THEME and value in self._themes:
            self._use_theme(value)
            self._cockpit.tell(f"{setting.name} is {value}.")
        else:
            self._cockpit.tell(f"{setting.name} is {_shown(value)}. {AFTER[setting.restart]}")
        await self._reload()

    async def _reset(self) -> None:
        setting = self._highlighted
        if setting is None or not setting.in_file:
            self._cockpit.tell("The default is in force already.")
            return
        try:
            await self._cockpit.supervision.change_setting(setting.name, None, setting.value, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
        else:
            self._cockpit.tell(f"{setting.name} has its default. {AFTER[setting.restart]}")
        await self._reload()


def _row(setting: ShownSetting) -> Content:
    """Return a setting as one line; a value from the file stands out."""
    style = "bold $foreground" if setting.in_file else "$muted"
    return Content.assemble(f"{_title(setting):<26} ", (visible(_in_words(setting, setting.value)), style))
