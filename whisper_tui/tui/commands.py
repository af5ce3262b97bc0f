"""Every command of the cockpit, declared once: its key, its place in the footer, the help and the palette."""

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

from whisper_tui.model.state import CallRecord, Ended, Running, Waiting

Need = Literal["nothing", "call", "waiting", "alive", "reads"]
"""What must be selected: nothing, any call, one that waits for a decision, one of which something is alive, one that
reads what is typed."""

Group = Literal["Decide", "Run", "Move", "View", "Cockpit"]


@dataclass(frozen=True)
class Command:
    """One thing that a person can tell the cockpit to do."""

    id: str
    """Stable: keys are remapped by it."""
    key: str
    label: str
    """One or two words, for the footer and for buttons."""
    help: str
    """One sentence, for the help, the palette and the documentation."""
    group: Group
    need: Need = "nothing"
    in_footer: bool = False

    def binding(self) -> Binding:
        """The key as Textual knows it."""
        return Binding(self.key, f"command('{self.id}')", self.label, show=self.in_footer, id=f"cockpit.{self.id}")

    @property
    def key_name(self) -> str:
        """The key as it is written for people."""
        names = {"slash": "/", "question_mark": "?", "escape": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab"}
        words = {"up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn"}
        parts = self.key.replace("shift+up", "Shift+↑").replace("shift+down", "Shift+↓").split(",")
        return " ".join((names | words | {"home": "Home", "end": "End"}).get(part, part) for part in parts)


COMMANDS: tuple[Command, ...] = (
    Command("approve", "a", "Approve", "Let the command run as it is shown.", "Decide", "waiting", True),
    Command(
        "approve-session",
        "s",
        "For session",
        "Let it run, and the same command in the same directory for the rest of this session.",
        "Decide",
        "waiting",
        True,
    ),
    Command(
        "edit", "e", "Edit", "Change the command, directory or timeout, and approve that.", "Decide", "waiting", True
    ),
    Command("deny", "d", "Deny", "Do not let it run; the agent is given your reason.", "Decide", "waiting", True),
    Command(
        "deny-session",
        "D",
        "Deny all",
        "Deny it and every other waiting call of its session.",
        "Decide",
        "waiting",
        True,
    ),
    Command("type", "i", "Type", "Send a line to a command that reads its input.", "Run", "reads", True),
    Command("signal", "x", "Signal", "Send any signal to what runs, or to what it left behind.", "Run", "alive", True),
    Command(
        "kill", "k", "Kill", "End it with everything it started: TERM, its grace, then KILL.", "Run", "alive", True
    ),
    Command("up", "up", "Up", "Go to the call above; in a pane that has the focus, one line up.", "Move"),
    Command("down", "down", "Down", "Go to the call below; in a pane that has the focus, one line down.", "Move"),
    Command("next-waiting", "n", "Next waiting", "Go to the next call that waits for a decision.", "Move"),
    Command("focus-next", "tab", "Next pane", "Give the focus to the next pane.", "Move"),
    Command("focus-previous", "shift+tab", "Previous pane", "Give the focus to the pane before.", "Move"),
    Command("scroll-up", "shift+up", "Call up", "Scroll the call in full one line up.", "Move"),
    Command("scroll-down", "shift+down", "Call down", "Scroll the call in full one line down.", "Move"),
    Command("top", "g", "Top", "Show the beginning of the pane that has the focus.", "Move"),
    Command("bottom", "G", "End", "Show the end of the pane that has the focus.", "Move"),
    Command(
        "follow", "f", "Follow", "Keep the end of the output in view while it grows, or stop that.", "View", "call"
    ),
    Command("layout", "o", "Output", "Show both streams, only stdout, or only stderr.", "View", "call"),
    Command("filter", "slash", "Filter", "List only the calls that hold some words.", "View", in_footer=True),
    Command(
        "clear-filter", "escape", "All calls", "List all calls again, and give the focus back to the list.", "View"
    ),
    Command("theme", "t", "Theme", "Change between the dark and the light theme.", "Cockpit"),
    Command("help", "question_mark", "Help", "Show what every key does.", "Cockpit", in_footer=True),
    Command("quit", "q", "Quit", "Leave the cockpit; everything goes on without it.", "Cockpit", in_footer=True),
)
BY_ID = {command.id: command for command in COMMANDS}
GROUPS: tuple[Group, ...] = ("Decide", "Run", "Move", "View", "Cockpit")


def available(command: Command, record: CallRecord | None) -> bool:
    """Whether a command means anything for the call that is selected."""
    match command.need:
        case "nothing":
            return True
        case "call":
            return record is not None
        case "waiting":
            return record is not None and isinstance(record.state, Waiting)
        case "alive":
            return record is not None and is_alive(record)
        case "reads":
            return record is not None and reads_input(record)


def reads_input(record: CallRecord) -> bool:
    """Whether the command runs and can be typed to."""
    return isinstance(record.state, Running) and (record.spec.tty or record.spec.accepts_input)


def is_alive(record: CallRecord) -> bool:
    """Whether there is a process that a signal could reach."""
    return isinstance(record.state, Running) or (isinstance(record.state, Ended) and not record.state.settled)


def keys_page() -> str:
    """The page of the documentation about keys."""
    lines = [
        "# Keys",
        "",
        "This page is written from the table of commands in `whisper_tui/tui/commands.py`:"
        " `python -m whisper_tui.tui.commands > docs/keys.md`.",
        "",
        "Letters are commands, arrows move: `k` kills, so there is no `j` and `k` for down and up."
        " Every command is also in the palette (`Ctrl+P`), and each has an id that its key can be changed by.",
        "",
    ]
    for group in GROUPS:
        lines += [f"## {group}", "", "| key | command | what it does | id |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{command.key_name}` | {command.label} | {command.help} | `cockpit.{command.id}` |"
            for command in COMMANDS
            if command.group == group
        ]
        lines.append("")
    return "\n".join(lines + PANE_KEYS)


PANE_KEYS = [
    "## In the pane that has the focus",
    "",
    "| key | what it does |",
    "| --- | --- |",
    "| `↑` `↓` | one row |",
    "| `PgUp` `PgDn` | one page |",
    "| `Home` `End` | the beginning, the end; the end of output is followed again |",
    "| `←` `→` | sideways in long lines of output |",
    "",
    "## Mouse",
    "",
    "Click a call to select it, a button to decide, a key in the footer to press it."
    " The wheel scrolls what is under it; with Shift, sideways.",
    "",
    "## In dialogs",
    "",
    "`Esc` leaves a dialog and changes nothing. `Enter` sends a reason or a signal. While editing, `Ctrl+S` approves"
    " what will run and `Ctrl+R` approves it for the session.",
    "",
]

if __name__ == "__main__":
    print(keys_page(), end="")
