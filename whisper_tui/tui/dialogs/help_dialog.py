"""The help: first the keys of the place that one is in, then all of them, with a search that can run what it finds."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input
from textual.widgets.option_list import Option

from whisper_tui.present.quantities import count
from whisper_tui.tui.command_definition import PANE_KEYS, Command, Keymap, Place, in_force, written
from whisper_tui.tui.dialogs.dialog import Dialog, FieldOverList, StyleFiles
from whisper_tui.tui.row_list import RowList

SIGNS: tuple[tuple[str, str, str], ...] = (
    ("…", "muted", "Being judged."),
    ("◆", "waiting", "Waiting for your decision."),
    ("◈", "muted", "Set aside: still waiting, without an answer, out of the way."),
    ("◇", "running", "Approved; waiting for a worker, for memory or for its agent."),
    ("▷", "running", "Starting, or running held back: its changes are not real yet."),
    ("▶", "running", "Running."),
    ("‖", "waiting", "Paused."),
    ("●", "behind", "Ended, but a process that it started is still alive."),
    ("✔", "success", "Ended with exit code 0."),
    ("✘", "error", "Ended in any other way."),
    ("⊘", "risk", "Its sandbox blocked it."),
    ("!", "error", "Alarm: something else ran than was approved, or what was approved did not come."),
    ("○", "muted", "On a machine that is not reached: as it was when it was last seen."),
    ("▲", "risk", "Flagged: a risk."),
    ("▲▲", "error", "Flagged: a severe risk; the effect cannot be undone, or the command misleads the reader."),
    ("+1", "risk", "Behind a risk: so many other risks, which the card names."),
    ("?", "risk", "Behind a risk: code that it runs was not read; the card says which."),
    ("✓", "foreground", "Marked by you."),
    ("▸", "muted", "The line is longer: → scrolls, w wraps."),
    ("↺", "risk", "Asked again, because something changed after the approval."),
)
HERE: dict[Place, str] = {
    "queue": "Here: the list of calls",
    "call": "Here: the selected call",
    "output": "Here: the output",
    "terminal": "Here: the terminal of the command",
    "history": "Here: the history",
    "rules": "Here: the rules",
    "settings": "Here: the settings",
    "dialog": "Here: this dialog",
}
KEY_COLUMNS, NAME_COLUMNS, WIDEST, BESIDE = 13, 20, 108, 10
"""Columns of the keys, of the names, of the whole dialog, and of what is beside the text."""


@dataclass(frozen=True)
class HelpEntry:
    """One row of the help."""

    key: str
    name: str
    words: str
    run: str = ""
    """The effect of Enter: the id of a command, or an action of a dialog. Empty: none."""
    why_not: str = ""
    """The reason for which Enter does nothing."""
    color: str = "primary"
    also: str = ""
    """Further words by which it is found."""


Sections = tuple[tuple[str, tuple[HelpEntry, ...]], ...]
"""Entries below their headings."""


def cockpit_sections(
    keys: Keymap, place: Place, table: Iterable[Command], why_not: Callable[[Command], str]
) -> Sections:
    """Return the help of a screen with commands: those of the place that can be used now, then all there are.

    `why_not` returns the reason for which a command of `table` cannot be used now, or an empty text.
    """
    mine = keys.commands(table)
    here = tuple(_entry(command, why_not) for command in mine if place in command.places)
    found = [(HERE[place], tuple(entry for entry in here if entry.run or not entry.why_not))]
    found += [
        (group, tuple(_entry(command, why_not) for command in of_group))
        for group, of_group in groupby(mine, key=lambda command: command.group)
    ]
    others = [keys.commands(other) for other in keys.tables if not {c.id for c in other} & {c.id for c in mine}]
    elsewhere = "It belongs to another screen."
    for other in others:
        found += [
            (
                f"Elsewhere: {group}",
                tuple(replace(_entry(c, lambda _: ""), run="", why_not=elsewhere) for c in of_group),
            )
            for group, of_group in groupby(other, key=lambda command: command.group)
        ]
    return (*found, *_ending())


def dialog_sections(dialog: Dialog[Any]) -> Sections:
    """Return the help of a dialog: its buttons, then its other keys."""
    buttons = [
        HelpEntry(key, label, "", action) for key, label, action in (*dialog.CHOICES, ("Esc", dialog.LEAVE, "leave"))
    ]
    # Bindings that the toolkit gives to every screen, such as the one that copies selected text, are of no use here.
    toolkit = {binding.action for binding in Screen.BINDINGS if isinstance(binding, Binding)}
    named = {entry.run for entry in buttons} | {"help_here"} | {action.removeprefix("app.") for action in toolkit}
    others = [
        HelpEntry(written(binding.key), binding.description, "", binding.action)
        for bindings in dialog._bindings.key_to_bindings.values()
        for binding in bindings
        if binding.description and binding.action.removeprefix("app.") not in named
    ]
    return ((HERE["dialog"], (*buttons, *others)), *_ending())


def _entry(command: Command, why_not: Callable[[Command], str]) -> HelpEntry:
    reason = why_not(command)
    entry = HelpEntry(command.key_name, command.label, command.help, also=command.also)
    if not reason and command.group == "Decide" and command.need in {"waiting", "waiting here", "previewable"}:
        # The help covers the call, and nobody decides about what is out of sight (decision 23).
        reason = f"{command.key_name} decides when the call is in view: Esc, then {command.key_name}."
        return replace(entry, run=command.id, why_not=reason)
    return replace(entry, run="" if reason else command.id, why_not=reason)


def _ending() -> Sections:
    signs = tuple(HelpEntry(sign, "", words, color=color) for sign, color, words in SIGNS)
    return (*_tables(PANE_KEYS), ("Signs", signs))


def _tables(lines: list[str]) -> Sections:
    """Return the tables of the documentation: a title, and rows of key and text."""
    # The keys of panes and dialogs are written once, as the Markdown of docs/keys.md, and read back here.
    found: list[tuple[str, list[HelpEntry]]] = []
    for line in lines:
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("| `"):
            key, words = line.strip("| ").split(" | ")
            found[-1][1].append(HelpEntry(key.replace("`", ""), "", words[:1].upper() + words[1:] + "."))
    return tuple((title, tuple(entries)) for title, entries in found if entries)


def matching(sections: Sections, query: str) -> tuple[HelpEntry, ...]:
    """Return the entries with all words of a query in their key, name or description, each once, the closest first."""
    words = query.casefold().split()
    every: dict[tuple[str, str, str], HelpEntry] = {}
    for _, entries in sections:
        for entry in entries:
            every.setdefault((entry.key, entry.name, entry.words), entry)
    found = [
        entry
        for entry in every.values()
        if all(word in f"{entry.key} {entry.name} {entry.words} {entry.also}".casefold() for word in words)
    ]

    def distance(entry: HelpEntry) -> int:
        if query.strip() in entry.key.split():
            return 0
        return 1 if entry.name.casefold().startswith(query.strip().casefold()) else 2

    return tuple(sorted(found, key=distance))


class HelpScreen(FieldOverList[str]):
    """Shows keys and signs; its result is what to run, empty for nothing."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/help.tcss"]
    LEAVE = "Close"
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Run it", "run"),)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "leave", "Close", show=False),
    ]

    def __init__(self, sections: Sections) -> None:
        super().__init__()
        self._sections = sections
        self._entries: list[HelpEntry | None] = []
        """The entry of each row; None for a heading."""

    def compose(self) -> ComposeResult:
        """Build the field, the list and the buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Keys and signs")
            yield Input(placeholder="Type to search names, keys and descriptions", id="help-search", compact=True)
            yield RowList(id="help-list")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the field, so that typing searches."""
        self.query_one(RowList).can_focus = False
        self.query_one(Input).focus()

    def on_resize(self) -> None:
        """Break the texts for the width that there is."""
        self._show(self.query_one(Input).value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        # The key that opened the help closes it, too.
        if event.value == "?":
            self.action_leave()
            return
        self._show(event.value)

    def _show(self, query: str) -> None:
        width = min(WIDEST, self.size.width * 96 // 100) - BESIDE
        rows: list[tuple[HelpEntry | None, Content]] = []
        if query.strip():
            found = matching(self._sections, query)
            title = count(len(found), "match", "matches") if found else "Nothing matches"
            rows += [(None, _heading(title)), *((entry, _row(entry, width)) for entry in found)]
        else:
            for title, entries in self._sections:
                rows += [(None, _heading(title)), *((entry, _row(entry, width)) for entry in entries)]
        self._entries = [entry for entry, _ in rows]
        listed = self.query_one(RowList)
        listed.clear_options()
        listed.add_options([Option(content, disabled=entry is None) for entry, content in rows])
        # Without a search nothing is chosen: Enter right after the key of the help must not run the first command.
        listed.highlighted = 1 if query.strip() and len(rows) > 1 else None
        self.query_one(".dialog").border_subtitle = Content("")

    @on(RowList.OptionSelected)
    def action_run(self) -> None:
        """Close the help and run the chosen entry, or say why that is not possible."""
        at = self.query_one(RowList).highlighted
        entry = self._entries[at] if at is not None else None
        if entry is None:
            return
        if entry.run and not entry.why_not:
            self.dismiss(entry.run)
            return
        self.query_one(".dialog").border_subtitle = Content(
            f" {entry.why_not or 'Nothing to run: press the key itself.'} "
        )


def _heading(title: str) -> Content:
    return Content.styled(title, "bold $running")


def _row(entry: HelpEntry, width: int) -> Content:
    """One entry: its key, its name, and its description in a column of its own."""
    head = KEY_COLUMNS + (NAME_COLUMNS if entry.name else 0)
    lines = textwrap.wrap(entry.words, max(20, width - head)) or [""]
    muted = "$muted" if entry.why_not and not entry.run else "$foreground"
    text = ("\n" + " " * head).join(lines)
    return Content.assemble(
        (f" {entry.key:<{KEY_COLUMNS - 1}}", f"bold ${entry.color}"),
        (f"{entry.name:<{NAME_COLUMNS}}" if entry.name else "", f"bold {muted}"),
        (text, muted),
    )


def screen_help(screen: Screen[Any], place: Place, table: Iterable[Command], why_not: Callable[[Command], str]) -> None:
    """Show the help of a screen with commands, and run the chosen one on it."""

    async def run(command_id: str | None) -> None:
        if command_id:
            await screen.run_action(f"command('{command_id}')")

    screen.app.push_screen(HelpScreen(cockpit_sections(in_force(screen.app), place, table, why_not)), run)


def dialog_help(dialog: Dialog[Any]) -> None:
    """Show the help of a dialog, and run the chosen action on it."""

    async def run(action: str | None) -> None:
        if action:
            await dialog.run_action(action)

    dialog.app.push_screen(HelpScreen(dialog_sections(dialog)), run)
