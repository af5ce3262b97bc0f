"""How much runs unasked, in words."""

from whisper_tui.model.call import Unasked, UnaskedLevel
from whisper_tui.present.quantities import clock_time

MEANING: dict[Unasked, str] = {
    "nothing": "every call waits, unless your own rules allow it",
    "reading": "commands that only read run at once",
    "workspace": "also edits, and commands that change only its files",
}
"""The calls that each level lets run, as a clause."""
SHORT: dict[Unasked, str] = {
    "nothing": "nothing unasked",
    "reading": "only reading unasked",
    "workspace": "workspace unasked",
}


def level_words(level: UnaskedLevel) -> str:
    """Return a level and its end in short."""
    return SHORT[level.level] + (f" until {clock_time(level.until)[:5]}" if level.until is not None else "")
