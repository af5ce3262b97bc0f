"""Lists in which `j`, `k`, `g` and `G` move like the arrow keys, `Home` and `End`."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import OptionList

LIST_KEYS: tuple[Binding, ...] = (
    Binding("up,k", "cursor_up", "Up", show=False),
    Binding("down,j", "cursor_down", "Down", show=False),
    Binding("pageup", "page_up", "Page up", show=False),
    Binding("pagedown", "page_down", "Page down", show=False),
    Binding("home,g", "first", "First", show=False),
    Binding("end,G", "last", "Last", show=False),
)
"""The keys of every list but that of the cockpit, whose keys can be changed."""


class RowList(OptionList):
    """The list of a dialog or of a screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]
