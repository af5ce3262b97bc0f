"""The base class of all dialogs: Esc leaves, and every key has a button."""

from pathlib import PurePath
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button

Result = TypeVar("Result")
StyleFiles = str | PurePath | list[str | PurePath] | None
"""Style sheets as Textual takes them: names relative to the module of the screen."""


class Dialog(ModalScreen[Result | None], Generic[Result]):
    """A question to the person; its result is None if the person leaves it."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss"]
    # Some widgets keep Esc for themselves, hence the priority: every dialog can be left without a decision.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", priority=True),
        Binding("f1", "app.help_here", "Keys of this dialog", show=False),
    ]

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """The buttons: key as shown, label, action."""
    LEAVE: ClassVar[str] = "Cancel"
    """The label of the button that changes nothing."""

    def buttons(self) -> ComposeResult:
        """Build the choices as buttons, and one that leaves."""
        with Horizontal(classes="dialog-buttons"):
            for key, label, action in (*self.CHOICES, ("Esc", self.LEAVE, "leave")):
                button = Button(choice_label(key, label), id=f"choose-{action}", compact=True)
                # A focused button would take Enter, which belongs to the field or list of the dialog.
                button.can_focus = False
                yield button

    @on(Button.Pressed)
    async def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        await self.run_action((event.button.id or "").removeprefix("choose-"))

    def action_leave(self) -> None:
        """Leave and change nothing."""
        self.dismiss(None)


def choice_label(key: str, label: str) -> Content:
    """Return the label of a button: its key in bold, and what it does."""
    return Content.assemble((f"{key} ", "bold"), label)
