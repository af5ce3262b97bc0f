"""What is written to the terminal itself to call somebody; text in it holds nothing that a terminal obeys."""

from typing import Literal

from whisper_tui.model.text import visible

BELL = "\a"
SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
LONGEST = 200
"""Characters of a notification."""


def harmless(text: str) -> str:
    """Text of anybody in one short line, with every control character shown and no field separator left."""
    shown = visible(text).replace(";", ",")
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def notification(kind: Literal["osc9", "osc777"], title: str, body: str, *, tmux: bool = False) -> str:
    """A request to the terminal to show a notification."""
    fields = ("9", f"{harmless(title)}: {harmless(body)}")
    if kind == "osc777":
        fields = ("777;notify", f"{harmless(title)};{harmless(body)}")
    return _through(f"\x1b]{fields[0]};{fields[1]}\a", tmux=tmux)


def terminal_title(text: str) -> str:
    """The title of the terminal's window."""
    return f"\x1b]2;{harmless(text)}\a"


def _through(sequence: str, *, tmux: bool) -> str:
    """A terminal multiplexer passes on what is wrapped for it, if it is set to."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else sequence
