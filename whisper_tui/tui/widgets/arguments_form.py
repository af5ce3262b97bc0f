"""The arguments of a program, one field each, exactly as the program gets them: nothing is quoted, nothing is split."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Label, TextArea

MOST_FIELDS = 64
"""Arguments that get a field each; more of them are typed as lines in the quoting of a shell."""


class ArgumentField(TextArea):
    """One argument. It may hold line ends, so Enter is not one: it begins the next argument."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "wish('add')", "Add one below", show=False, priority=True),
        Binding("ctrl+j", "insert_line_end", "Begin another line of it", show=False),
        Binding("alt+up", "wish('up')", "Move it up", show=False),
        Binding("alt+down", "wish('down')", "Move it down", show=False),
        Binding("alt+x", "wish('remove')", "Remove it", show=False),
    ]

    @dataclass
    class Wish(Message):
        """Do something with this argument: add one below, move it up or down, remove it."""

        field: "ArgumentField"
        what: str

    def __init__(self, value: str) -> None:
        super().__init__(value, soft_wrap=True, tab_behavior="focus", compact=True, placeholder="(empty)")
        self.cursor_blink = False

    def action_wish(self, what: str) -> None:
        """Have it done by the form, which knows the others."""
        self.post_message(self.Wish(self, what))

    def action_insert_line_end(self) -> None:
        """A line end in the argument."""
        self.insert("\n")

    def action_cursor_up(self, select: bool = False) -> None:
        """Above the first row is the argument before."""
        if not select and self.cursor_at_first_line:
            self.screen.focus_previous(ArgumentField)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Below the last row is the next argument."""
        if not select and self.cursor_at_last_line:
            self.screen.focus_next(ArgumentField)
        else:
            super().action_cursor_down(select)


class _Row(Horizontal):
    """The number of an argument, its field, and what can be done with it."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self.field = ArgumentField(value)

    def compose(self) -> ComposeResult:
        """From left to right."""
        yield Label("", classes="argument-number")
        yield self.field
        for sign, what, words in (
            ("▲", "up", "Move it up"),
            ("▼", "down", "Move it down"),
            ("✕", "remove", "Remove it"),
        ):
            button = Button(sign, classes=f"argument-{what}", compact=True)
            button.can_focus = False
            button.tooltip = words
            yield button

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        for what in ("up", "down", "remove"):
            if event.button.has_class(f"argument-{what}"):
                self.post_message(ArgumentField.Wish(self.field, what))


class ArgumentsForm(VerticalScroll, can_focus=False):
    """Fields that can be added, removed and put in another order."""

    class Changed(Message):
        """The arguments are others now."""

    def __init__(self, values: tuple[str, ...], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._begun_with = values

    def compose(self) -> ComposeResult:
        """A row each, and a button for one more."""
        yield from map(_Row, self._begun_with)
        button = Button("+ Add an argument", id="argument-add", compact=True)
        button.can_focus = False
        yield button

    def on_mount(self) -> None:
        """Number them."""
        self._number()

    @property
    def fields(self) -> list[ArgumentField]:
        """In the order in which the program gets them."""
        return [row.field for row in self.query(_Row)]

    @property
    def values(self) -> tuple[str, ...]:
        """The arguments."""
        return tuple(field.text for field in self.fields)

    @on(Button.Pressed, "#argument-add")
    async def _add_last(self, event: Button.Pressed) -> None:
        event.stop()
        await self._add(after=None)

    @on(ArgumentField.Wish)
    async def _wished(self, message: ArgumentField.Wish) -> None:
        message.stop()
        row = message.field.parent
        if not isinstance(row, _Row) or row not in self.query(_Row):
            return
        if message.what == "add":
            await self._add(after=row)
        elif message.what == "remove":
            await self._remove(row)
        else:
            self._move(row, -1 if message.what == "up" else 1)

    async def _add(self, after: Widget | None) -> None:
        row = _Row("")
        await self.mount(row, after=after) if after is not None else await self.mount(row, before="#argument-add")
        row.field.focus()
        self._number()

    async def _remove(self, row: _Row) -> None:
        fields = self.fields
        at = fields.index(row.field)
        await row.remove()
        left = self.fields
        if left:
            left[min(at, len(left) - 1)].focus()
        self._number()

    def _move(self, row: _Row, by: int) -> None:
        rows = list(self.query(_Row))
        at = rows.index(row) + by
        if 0 <= at < len(rows):
            self.move_child(row, before=rows[at]) if by < 0 else self.move_child(row, after=rows[at])
            row.scroll_visible(animate=False)
            self._number()

    def _number(self) -> None:
        for number, row in enumerate(self.query(_Row), start=1):
            row.query_one(".argument-number", Label).update(f"{number:>2}")
        self.post_message(self.Changed())

    @on(TextArea.Changed)
    def _typed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())
