"""What files of JSON and TOML have in common where they are changed: values at a path."""

from collections.abc import Sequence
from typing import Any, Protocol

Key = str | int
"""A name in an object or table, or a place in an array."""


class WrongShape(ValueError):
    """Something stands where the client itself would not read it. The message names it."""

    def __init__(self, path: Sequence[Key], expected: str) -> None:
        where = ".".join(map(str, path)) or "the whole file"
        super().__init__(f"{where} is not {expected}")


class Document(Protocol):
    """A file's text with changes to it; everything that is not named stays as it is, to the letter where possible."""

    text: str

    def plain(self) -> Any:
        """What the file says, as dicts and lists."""
        ...

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Let the value stand there; tables on the way are made. Raises `WrongShape`."""
        ...

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Let the value be the last of the array there. Raises `WrongShape`."""
        ...

    def delete(self, path: Sequence[Key]) -> None:
        """Take away what stands there."""
        ...


def nested(path: Sequence[Key], value: Any) -> Any:
    """The value inside as many objects as the path names. Raises `WrongShape` for a place in an array."""
    for depth in range(len(path) - 1, -1, -1):
        if not isinstance(path[depth], str):
            raise WrongShape(path[:depth], "an array")
        value = {path[depth]: value}
    return value


def value_at(plain: Any, path: Sequence[Key]) -> Any:
    """What stands at a path. None: nothing (or null)."""
    for key in path:
        if isinstance(key, str) and isinstance(plain, dict):
            plain = plain.get(key)
        elif isinstance(key, int) and isinstance(plain, list) and key < len(plain):
            plain = plain[key]
        else:
            return None
    return plain
