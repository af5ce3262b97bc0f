"""The commands that go from call to call and from pane to pane."""

from whisper_tui.tui.commands.command import Command

MOVE: tuple[Command, ...] = (
    Command("up", "up", "Up", "Go to the call above; in a pane that has the focus, one line up.", "Move"),
    Command("down", "down", "Down", "Go to the call below; in a pane that has the focus, one line down.", "Move"),
    Command(
        "next-waiting", "n", "Next waiting", "Go to the next call that waits for a decision.", "Move", in_footer=True
    ),
    Command("focus-next", "tab", "Next pane", "Give the focus to the next pane.", "Move"),
    Command("focus-previous", "shift+tab", "Previous pane", "Give the focus to the pane before.", "Move"),
    Command("scroll-up", "shift+up", "Call up", "Scroll the call in full one line up.", "Move"),
    Command("scroll-down", "shift+down", "Call down", "Scroll the call in full one line down.", "Move"),
    Command("page-call-up", "ctrl+u", "Call page up", "Show the part before of the call in full.", "Move"),
    Command("page-call-down", "ctrl+d", "Call page down", "Show the next part of the call in full.", "Move"),
    Command("top", "g", "Top", "Show the beginning of the pane that has the focus.", "Move"),
    Command("bottom", "G", "End", "Show the end of the pane that has the focus.", "Move"),
)
