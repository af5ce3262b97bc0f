"""Output of commands for a terminal: colours are kept, whatever else controls it is left out, the unseen is shown."""

import codecs
import re

from whisper_tui.model.text import replace_hidden, show_characters

_CONTROLS = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]*m)"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # strings: titles, clipboard, pictures
    r"|\x1b[ -/]*[0-~]"  # short escapes
    r"|\r(?!\n)"  # back over what was shown
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_PALETTE = re.compile(r"[345]8;(?:5;\d*|2(?:;\d*){3})")
"""A colour by number, in which no number means anything else."""
_CONCEAL = "8"
_UNFINISHED = re.compile(r"\r\Z|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_](?:(?!\x07|\x1b\\).)*|[ -/]*)$", re.DOTALL)
_KEPT = frozenset("\n\r\t\x1b")

LONGEST_ESCAPE = 65_536
"""Characters of an unfinished escape that are waited for; a longer one is let go."""


class TerminalText:
    """Filters a stream piece by piece; an escape cut by the end of a piece is finished by the next one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes) -> bytes:
        """What may be shown of the next piece."""
        text = self._held + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        self._held = unfinished.group() if unfinished else ""
        ready = text[: unfinished.start()] if unfinished else text
        kept = _CONTROLS.sub(_shown, ready)
        return (kept if kept.isascii() else replace_hidden(kept, show_characters, keep=_KEPT, printed=True)).encode()


def _shown(found: "re.Match[str]") -> str:
    """A colour stays, unless it hides what it colours; what would be written over stays in a line of its own."""
    if found.group() == "\r":
        return "\n"
    colour = found.group("colour") or ""
    parts = _PALETTE.sub("", colour[2:-1]).split(";")
    return "" if any(part.partition(":")[0].lstrip("0") == _CONCEAL for part in parts) else colour
