"""The commands at the edges of the screen: rows of buttons for the mouse, and the line of keys at the bottom."""

from collections.abc import Iterable
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Button, Footer
from textual.widgets._footer import FooterKey

from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandRequested

AROUND_LABEL = 2
"""Columns of a button besides its label."""
MORE = 3
"""Columns of the last button."""
EVERYTHING = "All commands that are available now."
"""The tooltip of the palette."""


class ButtonBar(Horizontal):
    """As many buttons as fit, from the left. They take no focus, because the keyboard has keys for them."""

    def __init__(self, ids: Iterable[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ids = tuple(ids)

    def compose(self) -> ComposeResult:
        """Yield all buttons, and the one of the palette."""
        with Horizontal(classes="bar-buttons"):
            for command in map(in_force(self.app).by_id, self._ids):
                button = Button(
                    label(command),
                    id=f"do-{command.id}",
                    classes=f"-{command.group.lower()}",
                    compact=True,
                )
                # A click must not take the focus from the list, or the next key would go to the button.
                button.can_focus = False
                button.tooltip = command.help
                yield button
        more = Button(Content("⋯"), classes="bar-more", compact=True)
        more.can_focus = False
        more.tooltip = EVERYTHING
        yield more

    @property
    def buttons(self) -> list[Button]:
        """The buttons of commands, from the left."""
        return list(self.query(".bar-buttons Button").results(Button))

    def on_resize(self) -> None:
        """Show as many buttons as fit now."""
        self.fit()

    def fit(self) -> None:
        """Hide the buttons that would be cut off."""
        room = self.content_size.width - MORE
        for button in self.buttons:
            if not button.has_class("-meaningless"):
                room -= Content.from_text(button.label).cell_length + AROUND_LABEL
                button.set_class(room < 0, "-no-room")
                room -= 1

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.has_class("bar-more"):
            self.app.action_command_palette()
        else:
            self.post_message(CommandRequested((event.button.id or "").removeprefix("do-")))


def label(command: Command) -> Content:
    """Return the label of a button: the key in bold, and the name of the command."""
    key = f"{command.key_name} " if command.key else ""
    return Content.assemble((key, "bold"), command.label)


class _Content(NamedTuple):
    """The label and the action of a key in the footer."""

    key: str
    display: str
    description: str
    action: str
    disabled: bool
    tooltip: str


class _Key(FooterKey):
    compact = reactive(False)

    def __init__(self, content: _Content) -> None:
        super().__init__(*content)
        self._content = content

    def become(self, content: _Content) -> None:
        """Show another key, or the same one."""
        self.display = True
        if content == self._content:
            return
        self._content = content
        self.key, self.key_display, self.description, self.action, self._disabled, tooltip = content
        self.tooltip = tooltip or None
        self.set_class(content.disabled, "-disabled")
        self.refresh(layout=True)


class KeyFooter(Footer):
    """A footer for a program that runs all day.

    Textual's makes all its keys anew whenever other keys may hold, that is several times with every call that is
    selected, and matching the styles of new widgets costs more than anything else that a selection does. It also held
    every key that it had ever shown, because keys are bound to its property `compact`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[_Key] = []
        self._palette: FooterKey | None = None

    def compose(self) -> ComposeResult:
        """Yield nothing: the keys come with the first news about bindings."""
        return iter(())

    def on_mount(self) -> None:
        """Show the keys, also if the first news about bindings came before."""
        self.call_after_refresh(self._show_keys)

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Show the keys that hold now."""
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._show_keys)

    async def _show_keys(self) -> None:
        # A program can be ended while it starts: then the footer is never mounted, or already gone.
        if not (self.is_mounted and self.is_attached):
            return
        contents, palette = self._wanted()
        for key, content in zip(self._keys, contents, strict=False):
            key.become(content)
        for key in self._keys[len(contents) :]:
            key.display = False
        new = [_Key(content) for content in contents[len(self._keys) :]]
        self._keys += new
        if new:
            await self.mount_all(new, before=self._palette)
        if self._palette is not None:
            self._palette.display = palette is not None
        elif palette is not None and self.is_attached:
            self._palette = FooterKey(*palette, classes="-command-palette")
            await self.mount(self._palette)

    def _wanted(self) -> tuple[list[_Content], _Content | None]:
        """Return the keys from the left, one for each action, and the key of the command palette."""
        active = self.screen.active_bindings
        shown: dict[str, _Content] = {}
        for _, binding, enabled, tooltip in active.values():
            if binding.show:
                shown.setdefault(binding.action, self._content(binding, enabled, tooltip))
        palette = active.get(self.app.COMMAND_PALETTE_BINDING)
        if palette is None:
            return list(shown.values()), None
        binding = palette.binding
        tooltip = binding.tooltip or binding.description
        return list(shown.values()), self._content(binding, palette.enabled, tooltip)

    def _content(self, binding: Binding, enabled: bool, tooltip: str) -> _Content:
        display = self.app.get_key_display(binding)
        return _Content(binding.key, display, binding.description, binding.action, not enabled, tooltip)
