"""Words as a program would receive them where a text runs; what is only known when it runs is None, never a guess."""

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from whisper_tui.policy.shell.syntax import Word, WordPiece

_PATTERN = "*?["


class Values(Protocol):
    """The values that words have at one point of a text. None: only known when it runs."""

    def home(self, sign: str) -> str | None:
        """The directory that `~`, `~+` or `~USER` stands for."""
        ...

    def variable(self, piece: WordPiece) -> str | None:
        """The value of a variable; of one that is not quoted, see `is_split`."""
        ...

    def files(self, pattern: str) -> list[str] | None:
        """The files that match a pattern."""
        ...


def expanded(word: Word, values: Values) -> list[str | None]:
    """The words that a word becomes, unless braces are a part of it."""
    parts = [(value_of(piece, values), piece.kind == "glob") for piece in word.pieces]
    known = [(value, has_signs) for value, has_signs in parts if value is not None]
    if len(known) < len(parts):
        return [None]
    if any(has_signs for _, has_signs in known):
        pattern = "".join(value if has_signs else glob_literal(value) for value, has_signs in known)
        found = values.files(pattern)
        # bash without nullglob passes an unmatched pattern on as it is
        return [None] if found is None else [*found] or [pattern]
    value = "".join(value for value, _ in known)
    # an unquoted empty variable disappears from the command; a quoted one stays as an empty word
    bare = all(piece.kind == "variable" and not piece.quoted for piece in word.pieces)
    return [] if bare and not value else [value]


def value_of(piece: WordPiece, values: Values) -> str | None:
    """The value of a part of a word."""
    match piece.kind:
        case "text" | "glob":
            return piece.text
        case "tilde":
            sign, slash, rest = piece.text.partition("/")
            home = values.home(sign)
            return home + slash + rest if home else None
        case "variable" if piece.text.isidentifier():
            return values.variable(piece)
        case _:
            return None


def is_split(value: str) -> bool:
    """True if bash may split a value that is not quoted into words, or expand patterns in it."""
    return any(each in value for each in " \t\n*?[\\")


def glob_literal(text: str) -> str:
    """Text in which no character is a pattern."""
    return "".join(f"[{character}]" if character in _PATTERN else character for character in text)


def paths_matching(
    pattern: str, names: Callable[[str], Iterable[str]], exists: Callable[[str], bool], before: str = ""
) -> Iterator[str]:
    """The paths that match a file name pattern of bash, of which the names in a directory and single files are asked.

    Without the options dotglob and nullglob: `*` matches no hidden file, and a pattern without a match has no path.
    """
    if pattern.startswith("/"):
        before, pattern = "/", pattern.lstrip("/")
    part, _, rest = pattern.partition("/")
    rest = rest.strip("/")
    found: Iterable[str]
    if not any(character in part for character in _PATTERN):
        found = (part,) if exists(before + part) else ()
    else:
        hidden = part.startswith(".")
        found = (
            name for name in names(before) if fnmatch.fnmatchcase(name, part) and (hidden or not name.startswith("."))
        )
    for name in found:
        yield from paths_matching(rest, names, exists, f"{before}{name}/") if rest else (before + name,)
