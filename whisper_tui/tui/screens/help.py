"""Every key and what it does, from the table of commands."""

from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from whisper_tui.tui.commands import COMMANDS, Command
from whisper_tui.tui.commands.page import PANE_KEYS
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.spans import BLANK, Paragraph, Role, Span
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count

SIGNS: tuple[tuple[str, Role, str], ...] = (
    ("◆", "waiting", "It waits for you."),
    ("◇", "running", "It is approved and waits for a free worker."),
    ("▶", "running", "It runs."),
    ("●", "behind", "It has ended, but something that it started is alive."),
    ("✔", "good", "It ended with exit code 0."),
    ("✘", "bad", "It ended in any other way."),
    ("▲", "risk", "There is a risk to look at."),
    ("▲▲", "bad", "There is a grave one: it cannot be taken back, or it leads you astray."),
    ("✓", "strong", "You have marked it."),
    ("▸", "muted", "The line goes on: → shows the rest, w breaks it."),
    ("↺", "risk", "It is asked again, because something changed after it was approved."),
)


class HelpScreen(Dialog[None]):
    """It scrolls where it is longer than the screen."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "help.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,q", "leave", "Close")]

    def __init__(self, commands: tuple[Command, ...] = COMMANDS) -> None:
        """`commands`: those of the screen that is below."""
        super().__init__()
        self._commands = commands

    def compose(self) -> ComposeResult:
        """Groups of keys, then signs."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Keys and signs")
            yield ParagraphsView(id="help-text")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Scroll at once."""
        view = self.query_one(ParagraphsView)
        view.show(help_paragraphs(in_force(self.app).commands(self._commands)), from_top=True)
        view.focus()

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Say that there is more."""
        more = f" ▼ {count(message.below, 'more line')} " if message.below else ""
        self.query_one(".dialog").border_subtitle = Content(more)


def help_paragraphs(commands: tuple[Command, ...] = COMMANDS) -> tuple[Paragraph, ...]:
    """The whole text."""
    found: list[Paragraph] = []
    for group, of_group in groupby(commands, key=lambda command: command.group):
        found += [Paragraph((Span(group, "running"),))]
        found += [_row(command.key_name, command.help) for command in of_group]
        found.append(BLANK)
    for title, rows in _tables(PANE_KEYS):
        found += [Paragraph((Span(title, "running"),)), *(_row(key, words) for key, words in rows), BLANK]
    found.append(Paragraph((Span("Signs", "running"),)))
    return (*found, *(_row(sign, words, role) for sign, role, words in SIGNS))


def _row(key: str, words: str, role: Role = "strong") -> Paragraph:
    return Paragraph((Span(words),), margin=(Span(f"  {key:<12}", role),))


def _tables(lines: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The tables of the documentation: a title and rows of key and words."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in lines:
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("| `"):
            key, words = line.strip("| ").split(" | ")
            found[-1][1].append((key.replace("`", ""), words[:1].upper() + words[1:] + "."))
    return [(title, rows) for title, rows in found if rows]
