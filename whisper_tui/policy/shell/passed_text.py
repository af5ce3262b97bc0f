"""Text that an agent passes as `"$(cat <<'EOF' … EOF)"`: it is certain, although a substitution stands there.

Claude Code writes the messages of its commits and pull requests in this way.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from whisper_tui.policy.shell.syntax import Script, SimpleCommand, Word

_FORM = re.compile(
    r"\"\$\(cat <<[ ]?(['\"])([A-Za-z_][A-Za-z0-9_]*)\1[ \t]*\n((?:[^\x00-\x08\x0b-\x1f\x7f]*?\n)?)\2\n[ \t\n]*\)\""
)


class PassedText(NamedTuple):
    """A word that consists of nothing else."""

    start: int
    """Its start in the text of the call, with the quote."""
    end: int
    value: str
    """The word as the program receives it."""


def passed_texts(text: str, script: Script) -> tuple[PassedText, ...]:
    """Return the words of a text that pass the text of a here-document; empty if anything else is substituted."""
    # bash 3.2, which macOS has, ends a substitution at any parenthesis in a here-document
    if script.problem or not script.substitutions or script.evaluations or sys.platform == "darwin":
        return ()
    inside = [command for command in script.commands if command.nested]
    words = [
        word for command in script.commands if not command.nested for word in command.words[1:] if _substitutes(word)
    ]
    if not len(inside) == len(words) == len(script.substitutions):
        return ()
    found = []
    for word, span, command in zip(words, script.substitutions, inside, strict=True):
        made = _FORM.fullmatch(text, word.start, word.end)
        if made is None or span != (word.start + 1, word.end - 1) or not _is_cat(command, made[3]):
            return ()
        # bash ends the text at the first line that is the delimiter, and drops empty lines at its end
        if made[2] in made[3].split("\n"):
            return ()
        found.append(PassedText(word.start, word.end, made[3].rstrip("\n")))
    return tuple(found)


def _substitutes(word: Word) -> bool:
    pieces = [piece for piece in word.pieces if piece.text]
    return len(pieces) == 1 and pieces[0].kind == "substitution" and pieces[0].quoted


def _is_cat(command: SimpleCommand, body: str) -> bool:
    """True if a command does nothing but print the body of its here-document."""
    if command.argv != ("cat",) or command.assignments or command.background or len(command.redirections) != 1:
        return False
    (only,) = command.redirections
    return only.operator == "<<" and only.body == body


def written_out(text: str, passed: Sequence[PassedText]) -> str:
    """Return the text with these words in quotes instead."""
    for each in reversed(passed):
        text = text[: each.start] + shlex.quote(each.value) + text[each.end :]
    return text
