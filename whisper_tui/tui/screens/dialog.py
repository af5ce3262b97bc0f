"""What all dialogs over the cockpit share: Esc leaves, and keys and buttons do the same."""

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
"""As Textual takes them: names relative to the module of the screen."""


class Dialog(ModalScreen[Result | None], Generic[Result]):
    """A question. Its result is None if the person leaves it."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel", priority=True)]

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Buttons: the key as it is shown, the label, the action."""
    LEAVE: ClassVar[str] = "Cancel"
    """The label of the button that changes nothing."""

    def buttons(self) -> ComposeResult:
        """The choices as buttons, and one to leave."""
        with Horizontal(classes="dialog-buttons"):
            for key, label, action in (*self.CHOICES, ("Esc", self.LEAVE, "leave")):
                button = Button(Content.assemble((f"{key} ", "bold"), label), id=f"choose-{action}", compact=True)
                button.can_focus = False
                yield button

    @on(Button.Pressed)
    async def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        await self.run_action((event.button.id or "").removeprefix("choose-"))

    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)
