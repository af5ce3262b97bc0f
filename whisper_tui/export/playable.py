"""Output as a recording may hold it: what draws is kept, what talks to a terminal beyond its screen is left out."""

import codecs
import re

_LEFT_OUT = re.compile(
    r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c)"  # strings: titles, links, clipboard, device control
    r"|[\x90\x98\x9d-\x9f].*?(?:\x07|\x1b\\|\x9c)"  # the same, in one character
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[cntqx]"  # questions that the terminal would answer, windows, keyboard lights
    r"|(?:\x1b\[|\x9b)\?[0-9;]*u"  # which keys are told how
    # Modes in which a terminal tells of the mouse, of focus, of what is pasted and of its size.
    r"|(?:\x1b\[|\x9b)\?(?:[0-9]+;)*(?:9|100[0-7]|1015|1016|2004|2031|2048)(?:;[0-9]+)*[hl]"
    r"|(?:\x1b\[|\x9b)\?[0-9;]*\$p|(?:\x1b\[|\x9b)[>=][0-?]*[ -/]*[@-~]"  # questions about modes, private forms
    r"|\x1bZ|\x05|\x07",  # identify yourself, answer back, bell
    re.DOTALL,
)
_UNFINISHED = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:(?!\x07|\x1b\\|\x9c).)*$"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*$|\x1b[ -/]*$",
    re.DOTALL,
)
LONGEST_ESCAPE = 65_536
"""Characters of an unfinished escape that are waited for; a longer one is let go."""


class Playable:
    """Filters one stream piece by piece; a character or an escape cut by the end of a piece is finished by the next."""

    def __init__(self, *, terminal: bool) -> None:
        """`terminal`: whether the command wrote to a terminal, which has made line ends of line feeds already."""
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """What may be played of the next piece."""
        text = self._held + self._decoder.decode(data, final=last)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        self._held = unfinished.group() if unfinished and not last else ""
        ready = _LEFT_OUT.sub("", text[: unfinished.start()] if unfinished else text)
        return ready if self._terminal else ready.replace("\r\n", "\n").replace("\n", "\r\n")
