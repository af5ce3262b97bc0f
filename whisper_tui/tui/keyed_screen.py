"""Screens that draw the effect of a key at once, and their footer of keys."""

import time
from typing import NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from whisper_tui.tui.command_definition import in_force

URGENT_S = 0.1
"""Seconds after a key for which changes are drawn without waiting for the next frame."""


class KeyedScreen(Screen[None]):
    """A screen that draws the effect of a key at once, and lists commands in the order of their table."""

    _hasty_until = 0.0

    def redraw_now(self) -> None:
        """Draw changes at once for a moment, because a key was pressed."""
        self._hasty_until = time.monotonic() + URGENT_S

    def on_idle(self) -> None:
        """Draw what the key has changed so far."""
        if time.monotonic() < self._hasty_until:
            # Textual would draw at its next frame, one or two frames after the key. This is its private method; a
            # test guards its existence (decision 26).
            self._on_timer_update()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The bindings that are active now, in the order of the table of commands."""
        found = super().active_bindings
        # Textual puts remapped bindings behind all others, so a changed key would move its command in the footer.
        order = in_force(self.app).order
        return dict(sorted(found.items(), key=lambda item: order.get(item[1].binding.id or "", len(order))))


class _Content(NamedTuple):
    """The label and the action of a key in the footer."""

    key: str
    display: str
    description: str
    action: str
    disabled: bool
    tooltip: str

    @property
    def columns(self) -> int:
        """The columns that it takes, with one on each side."""
        return cell_len(self.display) + cell_len(self.description) + 3


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
    every key that it had ever shown, because keys are bound to its property `compact`. And it cut off a key in its
    middle, with all behind it, where not all fit.
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

    def on_resize(self) -> None:
        """Show as many keys as fit now."""
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
        found = active.get(self.app.COMMAND_PALETTE_BINDING)
        if found is None:
            return _fitting(list(shown.values()), self.size.width), None
        binding = found.binding
        palette = self._content(binding, found.enabled, binding.tooltip or binding.description)
        return _fitting(list(shown.values()), self.size.width - palette.columns), palette

    def _content(self, binding: Binding, enabled: bool, tooltip: str) -> _Content:
        display = self.app.get_key_display(binding)
        return _Content(binding.key, display, binding.description, binding.action, not enabled, tooltip)


def _fitting(contents: list[_Content], columns: int) -> list[_Content]:
    """Return the keys that fit, whole: those from the left, and the last one, which leaves the screen."""
    while len(contents) > 1 and sum(each.columns for each in contents) - 1 > columns:
        contents = [*contents[:-2], contents[-1]]
    return contents
