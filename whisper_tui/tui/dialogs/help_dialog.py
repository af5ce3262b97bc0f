"""The help: all keys with their commands, and the signs of the list."""

from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Paragraph, Role, Span
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.keymap import PANE_KEYS, in_force
from whisper_tui.tui.paragraphs_view import ParagraphsView

SIGNS: tuple[tuple[str, Role, str], ...] = (
    ("◆", "waiting", "Waiting for your decision."),
    ("◇", "running", "Approved; waiting for a free worker."),
    ("▶", "running", "Running."),
    ("●", "behind", "Ended, but a process that it started is still alive."),
    ("✔", "good", "Ended with exit code 0."),
    ("✘", "bad", "Ended in any other way."),
    ("▲", "risk", "Flagged: a risk."),
    ("▲▲", "bad", "Flagged: a grave risk; the command destroys something for good, or misleads the reader."),
    ("✓", "strong", "Marked by you."),
    ("▸", "muted", "The line is longer: → scrolls, w wraps."),
    ("↺", "risk", "Asked again, because something changed after the approval."),
)


class HelpScreen(Dialog[None]):
    """Shows all keys and signs."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/help.tcss"]
    LEAVE = "Close"
    # The key that opened the help closes it, too, and `q` must not quit the cockpit from here.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,q", "leave", "Close")]

    def __init__(self, commands: tuple[Command, ...]) -> None:
        """`commands`: those of the screen below the dialog."""
        super().__init__()
        self._commands = commands

    def compose(self) -> ComposeResult:
        """Build the text and the buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Keys and signs")
            yield ParagraphsView(id="help-text")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Show the text and focus it, so that keys scroll it."""
        view = self.query_one(ParagraphsView)
        # With the keys of this user, which may differ from the table (decision 31).
        view.show(help_paragraphs(in_force(self.app).commands(self._commands)), from_top=True)
        view.focus()

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Show how many lines are below."""
        more = f" ▼ {count(message.below, 'more line')} " if message.below else ""
        self.query_one(".dialog").border_subtitle = Content(more)


def help_paragraphs(commands: tuple[Command, ...]) -> tuple[Paragraph, ...]:
    """Return the whole text."""
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
    """Return the tables of the documentation: a title and rows of key and text."""
    # The keys of panes and dialogs are written once, as the Markdown of docs/keys.md, and read back here.
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in lines:
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("| `"):
            key, words = line.strip("| ").split(" | ")
            found[-1][1].append((key.replace("`", ""), words[:1].upper() + words[1:] + "."))
    return [(title, rows) for title, rows in found if rows]
