"""A position in shell text; a backslash before a line end joins the lines, as it does in bash."""

import re
from typing import NamedTuple

from whisper_tui.policy.shell.syntax import Script, Unreadable

DEEPEST = 40
"""How deep constructs may be nested before the text counts as unreadable."""

MOST_RETRIES = 16
"""Backtracks allowed for one text."""

MOST_WORDS = 1500
"""Words of one text that are read; a human does not read more either."""

MOST_PIECES = 500
"""Quoted parts and expansions of one word that are read."""

# bash splits words at these two alone: a no-break space is a letter of a word
BLANK = " \t"

_KEYWORD = re.compile(r"(?:[a-z]+|[!{}]|\[\[)(?=[ \t\n;&|()<>]|\Z)")
_KEYWORD_WINDOW = 60
"""Characters that are searched for a keyword if joined lines may interrupt it."""


class TextMark(NamedTuple):
    """A position to rewind to, with the number of findings made before it."""

    at: int
    depth: int
    commands: int
    redirections: int
    substitutions: int
    evaluations: int
    loops: int


class TextCursor:
    """A position in a text. Offsets that it hands out count in the whole text, of which this text may be a part."""

    def __init__(self, text: str, found: Script, *, base: int = 0, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.base = base
        self.depth = depth
        self.found = found
        # most texts join no lines, and then `ahead` and `keyword` need no copies
        self._joins = "\\\n" in text

    def peek(self) -> str:
        """Return the next character, empty at the end."""
        if self._joins:
            # bash removes a backslash before a line end even in the middle of a keyword or an operator
            while self.text.startswith("\\\n", self.at):
                self.at += 2
        return self.text[self.at] if self.at < self.end else ""

    def take(self) -> str:
        """Pass and return the next character."""
        character = self.peek()
        self.at += 1
        return character

    def ahead(self, expected: str) -> bool:
        """True if these characters come next, joined lines included. Does not move."""
        if not self._joins:
            return self.text.startswith(expected, self.at)
        before = self.at
        found = all(self.take() == character for character in expected)
        self.at = before
        return found

    def accept(self, expected: str) -> bool:
        """Pass these characters if they come next."""
        before = self.at
        for character in expected:
            if self.take() != character:
                self.at = before
                return False
        return True

    def keyword(self) -> str:
        """Return the unquoted word of letters, or the brace, that comes next, or an empty text. Does not move."""
        self.peek()
        if not self._joins:
            match = _KEYWORD.match(self.text, self.at)
        else:
            match = _KEYWORD.match(self.text[self.at : self.at + _KEYWORD_WINDOW].replace("\\\n", ""))
        return match[0] if match else ""

    def skip_blank(self) -> None:
        """Pass spaces and tabs."""
        while (character := self.peek()) and character in BLANK:
            self.at += 1

    def mark(self) -> TextMark:
        """Return a mark of this position."""
        found = self.found
        return TextMark(
            self.at,
            self.depth,
            len(found.commands),
            len(found.redirections),
            len(found.substitutions),
            len(found.evaluations),
            len(found.loops),
        )

    def rewind(self, mark: TextMark) -> None:
        """Return to a mark, and drop the findings made after it."""
        # every rewind reads a part twice; nested ones multiply, so `((((…` would take exponential time
        self.found.retries += 1
        if self.found.retries > MOST_RETRIES:
            raise Unreadable("it can be read in too many ways")
        self.at, self.depth = mark.at, mark.depth
        del self.found.commands[mark.commands :]
        del self.found.redirections[mark.redirections :]
        del self.found.substitutions[mark.substitutions :]
        del self.found.evaluations[mark.evaluations :]
        del self.found.loops[mark.loops :]

    def place(self, start: int) -> tuple[int, int]:
        """Return the span from `start` to this position in the whole text."""
        return (self.base + start, self.base + min(self.at, self.end))

    def enter(self) -> None:
        """Enter a nested construct. Raises `Unreadable` beyond the limit."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} levels deep")

    def leave(self) -> None:
        """Leave a nested construct."""
        self.depth -= 1
