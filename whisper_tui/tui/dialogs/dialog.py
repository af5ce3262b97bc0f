"""The base class of all dialogs: Enter confirms, Esc leaves, every key has a button; and a field for a few choices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from time import monotonic
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click, Mount
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, TextArea

Result = TypeVar("Result")
StyleFiles = str | PurePath | list[str | PurePath] | None
"""Style sheets as Textual takes them: names relative to the module of the screen."""
CONFIRMS = ("Enter", "Ctrl+S")
"""The keys that confirm, as a button shows them: it names the second one if the dialog has a field of several lines."""


class Dialog(ModalScreen[Result | None], Generic[Result]):
    """A question to the person; its result is None if the person leaves it."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss"]
    # Some widgets keep these keys for themselves, hence the priority: every dialog is confirmed and left in one way.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", priority=True),
        Binding("enter", "confirm('Enter')", show=False, priority=True),
        # No widget takes it, and with a priority it would overtake what is typed before it.
        Binding("ctrl+s", "confirm('Ctrl+S')", show=False),
        Binding("f1", "app.help_here", "Keys of this dialog", show=False),
    ]

    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """The buttons: key as shown, label, action. The one with a key of `CONFIRMS` is what both of them do."""
    LEAVE: ClassVar[str] = "Cancel"
    """The label of the button that changes nothing."""
    drawn_at = float("inf")
    """The time on the monotonic clock at which it came on the terminal."""

    @on(Mount)
    def _mounted(self) -> None:
        def drawn() -> None:
            self.drawn_at = monotonic()

        when_written: Callable[[Callable[[], object]], object] = getattr(self.app, "when_written", lambda then: then())
        self.call_after_refresh(when_written, drawn)

    def chooses(self, key: str) -> bool:
        """True for a key that ends the dialog with a choice, or makes one."""
        return key in {shown.lower() for shown in (*CONFIRMS, *(shown for shown, _, _ in self.CHOICES))}

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

    @property
    def confirms(self) -> str:
        """The action that confirms. Empty: there is nothing to confirm."""
        return next((action for shown, _, action in self.CHOICES if shown in CONFIRMS), "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False for Enter in a field: in one of several lines it begins another, and the other says that it came."""
        if action == "confirm":
            in_field = isinstance(self.focused, Input | TextArea)
            return bool(self.confirms) and not (parameters == ("Enter",) and in_field)
        return super().check_action(action, parameters)

    async def action_confirm(self, _key: str) -> None:
        """Do what the dialog asks about."""
        await self.run_action(self.confirms)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        """Confirm after what was typed before Enter, which a priority would let it overtake."""
        event.stop()
        if self.confirms:
            await self.run_action(self.confirms)

    def action_leave(self) -> None:
        """Leave and change nothing."""
        self.dismiss(None)


class FieldOverList(Dialog[Result]):
    """A dialog with a field that keeps the focus and filters the list below it; the keys that move act on the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"move('{action}')", show=False, priority=True)
        for key, action in (
            ("up", "cursor_up"),
            ("down", "cursor_down"),
            ("pageup", "page_up"),
            ("pagedown", "page_down"),
        )
    ]

    def action_move(self, action: str) -> None:
        """Move in the list."""
        listed = self.query_one(OptionList)
        if listed.highlighted is None and action == "page_down":
            listed.action_first()  # The list itself would go to its end.
        getattr(listed, f"action_{action}")()


def choice_label(key: str, label: str) -> Content:
    """Return the label of a button: its key in bold, and what it does."""
    return Content.assemble((f"{key} ", "bold"), label)


class ChoiceField(Widget, can_focus=True):
    """A field of one line for one of a few choices; the arrow keys, Space and a click choose the next one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "choose(1)", "Next", show=False),
        Binding("left", "choose(-1)", "Previous", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Another choice was made."""

        field: "ChoiceField"
        value: str

    def __init__(self, choices: Sequence[tuple[str, str]], value: str, *, id: str | None = None) -> None:
        """`choices`: values with the words that are shown for them."""
        super().__init__(id=id)
        self.choices = tuple(choices)
        self._at = max(0, next((at for at, (each, _) in enumerate(self.choices) if each == value), 0))

    @property
    def value(self) -> str:
        """The value that is chosen."""
        return self.choices[self._at][0]

    def choose(self, value: str) -> None:
        """Choose a value that is among the choices."""
        self._at = next(at for at, (each, _) in enumerate(self.choices) if each == value)
        self.refresh()
        self.post_message(self.Chosen(self, value))

    def action_choose(self, step: int) -> None:
        """Choose the next value, or the one before."""
        self.choose(self.choices[(self._at + step) % len(self.choices)][0])

    def on_click(self, event: Click) -> None:
        """Choose the next value, or with a click on the left arrow the one before."""
        self.focus()
        self.action_choose(-1 if event.x < 2 else 1)

    def render(self) -> Content:
        """Return the chosen words between arrows."""
        return Content.assemble(("◂ ", "$muted"), self.choices[self._at][1], (" ▸", "$muted"))
