"""A line over everything while more is being decided than is on the screen: unsent approvals, marks, refusals."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from whisper_tui.tui.commands import BY_ID
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandWanted
from whisper_tui.tui.spans import Span
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.words import count

BUTTONS = ("undo", "review")


class DecisionBar(Horizontal):
    """Shown only as long as there is something to say."""

    def compose(self) -> ComposeResult:
        """The words, and what can be done about them."""
        yield LineView(id="decision-words")
        for command in (in_force(self.app).command(BY_ID[id_]) for id_ in BUTTONS):
            label = Content.assemble((f"{command.key_name} ", "bold"), command.label)
            button = Button(label, id=f"now-{command.id}", compact=True)
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def on_mount(self) -> None:
        """There is nothing to say yet."""
        self.display = False

    def show(self, promised: str, marked: int, refused: str) -> None:
        """Say what will be sent and what is denied by itself, in words, and how many calls are marked."""
        parts = [part for part in (promised, f"{count(marked, 'call')} marked" if marked else "", refused) if part]
        self.display = bool(parts)
        self.query_one("#now-undo").display = bool(promised)
        self.query_one("#now-review").display = bool(marked)
        self.query_one(LineView).show((Span(" ◆ ", "waiting"), Span(" · ".join(parts), "strong")))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandWanted((event.button.id or "").removeprefix("now-")))
