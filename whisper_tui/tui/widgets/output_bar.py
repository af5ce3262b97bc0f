"""Buttons for what has been printed: showing it otherwise, finding something in it, taking it elsewhere."""

from whisper_tui.tui.commands import BY_ID
from whisper_tui.tui.widgets.button_bar import ButtonBar

BUTTONS = (
    *("search", "next-match", "previous-match", "errors", "follow", "layout", "wrap", "interleave"),
    *("save", "copy", "pager", "timestamps", "arrange", "bytes"),
)


class OutputBar(ButtonBar):
    """Below the panes, where there is room for it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__((BY_ID[id_] for id_ in BUTTONS), id=id)
