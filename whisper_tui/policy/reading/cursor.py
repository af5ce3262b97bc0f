"""A position in shell text; a backslash before a line end joins the lines, as it does in bash."""

import re
from typing import NamedTuple

from whisper_tui.policy.reading.syntax import Script, Unreadable

DEEPEST = 40
"""How deep constructs may be nested before the text counts as unreadable."""

MOST_RETRIES = 16
"""How often a part may be read again as something else, for one text."""

MOST_WORDS = 1500
"""Words of one text that are read. Nobody reads more either."""

MOST_PIECES = 500
"""Quoted parts and expansions of one word that are read."""

BLANK = " \t"

_KEYWORD = re.compile(r"(?:[a-z]+|[!{}]|\[\[)(?=[ \t\n;&|()<>]|\Z)")
_KEYWORD_WINDOW = 60
"""Characters looked at for a keyword that joined lines may interrupt."""


class Mark(NamedTuple):
    """A place to come back to, with what had been found until there."""

    at: int
    depth: int
    commands: int
    redirections: int
    substitutions: int
    evaluations: int


class Cursor:
    """Walks over a text. Offsets that leave it count in the whole text, wherever this part stands in it."""

    def __init__(self, text: str, found: Script, *, base: int = 0, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.base = base
        self.depth = depth
        self.found = found
        self._joins = "\\\n" in text

    def peek(self) -> str:
        """The character that comes next. Empty at the end."""
        if self._joins:
            while self.text.startswith("\\\n", self.at):
                self.at += 2
        return self.text[self.at] if self.at < self.end else ""

    def take(self) -> str:
        """The character that comes next, passed."""
        character = self.peek()
        self.at += 1
        return character

    def ahead(self, expected: str) -> bool:
        """Whether these characters come next, lines joined. Nothing is passed."""
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
        """The unquoted word of letters, or the brace, that comes next and ends where a word ends. Empty: none does."""
        self.peek()
        if not self._joins:
            match = _KEYWORD.match(self.text, self.at)
        else:
            match = _KEYWORD.match(self.text[self.at : self.at + _KEYWORD_WINDOW].replace("\\\n", ""))
        return match[0] if match else ""

    def skip_blank(self) -> None:
        """Pass spaces and tabs, nothing else that looks empty."""
        while (character := self.peek()) and character in BLANK:
            self.at += 1

    def mark(self) -> Mark:
        """Remember this place."""
        found = self.found
        return Mark(
            self.at,
            self.depth,
            len(found.commands),
            len(found.redirections),
            len(found.substitutions),
            len(found.evaluations),
        )

    def rewind(self, mark: Mark) -> None:
        """Come back to a place, and forget what was found after it."""
        self.found.retries += 1
        if self.found.retries > MOST_RETRIES:
            raise Unreadable("it can be read in too many ways")
        self.at, self.depth = mark.at, mark.depth
        del self.found.commands[mark.commands :]
        del self.found.redirections[mark.redirections :]
        del self.found.substitutions[mark.substitutions :]
        del self.found.evaluations[mark.evaluations :]

    def place(self, start: int) -> tuple[int, int]:
        """From there to here, in the whole text."""
        return (self.base + start, self.base + min(self.at, self.end))

    def enter(self) -> None:
        """One level deeper. Raises `Unreadable` where it gets too deep."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} levels deep")

    def leave(self) -> None:
        """One level up again."""
        self.depth -= 1
