"""A TOML file of another program, edited in place: new tables are appended, everything else stays (decision 20)."""

import tomllib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from whisper_tui.agents.file_entries import Key, WrongShape, nested, value_at


class TomlDocument:
    """The text of a TOML file, and changes to it. Raises `tomllib.TOMLDecodeError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = tomllib.loads(text.removeprefix("\ufeff"))

    def plain(self) -> Any:
        """Return the content."""
        return self._plain

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Set the value. Raises `WrongShape`."""
        expected = deepcopy(self._plain)
        there = _make(expected, path)
        if isinstance(there, dict) is not isinstance(path[-1], str):
            raise WrongShape(path[:-1], "a table")
        is_new = value_at(expected, path) is None
        there[path[-1]] = value
        ways = [lambda: self._with_value(path, value)]
        if is_new:
            ways.insert(0, lambda: self._with_block(nested(path, value)))
        self._become(expected, *ways)

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Append the value to an array of tables. Raises `WrongShape`."""
        expected = deepcopy(self._plain)
        found = _make(expected, path).setdefault(path[-1], [])
        if not isinstance(found, list):
            raise WrongShape(path, "an array")
        found.append(value)
        self._become(expected, lambda: self._with_block(nested(path, [value])), lambda: self._with_value(path, found))

    def delete(self, path: Sequence[Key]) -> None:
        """Delete a value."""
        expected = deepcopy(self._plain)
        container = value_at(expected, path[:-1])
        if value_at(expected, path) is None:
            return
        del container[path[-1]]
        self._become(expected, lambda: self._cut(path), lambda: self._without(path))

    def _cut(self, path: Sequence[Key]) -> str:
        """The text without the lines that `put` or `append` wrote, if nobody has edited them."""
        block = self._lines(_enclosing(self._plain, path))
        before, found, behind = self.text.partition(block)
        if not found or (before and not before.endswith("\n")):
            raise ValueError(path)
        newline = self._newline()
        return (before[: -len(newline)] if before.endswith(newline * 2) else before) + behind

    def _without(self, path: Sequence[Key]) -> str:
        document: Any = tomlkit.parse(self.text)
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        return tomlkit.dumps(document)

    def _with_block(self, value: Any) -> str:
        """The text with new tables appended, which leave everything before them unchanged."""
        newline = self._newline()
        gap = "" if not self.text.strip() else newline if self.text.endswith("\n") else newline * 2
        return self.text + gap + self._lines(value)

    def _lines(self, value: Any) -> str:
        return ("\n".join(_tables((), value)).lstrip("\n") + "\n").replace("\n", self._newline())

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _with_value(self, path: Sequence[Key], value: Any) -> str:
        """The text with the value set by tomlkit, for inline tables."""
        document: Any = tomlkit.parse(self.text)
        inner = document
        for key in path[:-1]:
            if isinstance(key, str) and key not in inner:
                inner[key] = tomlkit.table(is_super_table=True)
            inner = inner[key]
        inner[path[-1]] = value
        return tomlkit.dumps(document)

    def _become(self, expected: Any, *ways: Callable[[], str]) -> None:
        """Take the first text with exactly the expected content. Raises `WrongShape` if there is none."""
        # The standard library parses each text, and the result must equal the old content plus the change: tomlkit may
        # drop or move something in an unusual file, and then nothing may be written (decision 20).
        for way in ways:
            try:
                text = way()
                plain = tomllib.loads(text.removeprefix("\ufeff"))
            except (TOMLKitError, ValueError, TypeError, AttributeError, KeyError):
                continue
            if _without_empty(plain) == _without_empty(expected):
                self.text, self._plain = text, plain
                return
        raise WrongShape((), "in a form that can be changed without side effects")


def _make(plain: Any, path: Sequence[Key]) -> Any:
    """The table of the last key; it is created if it is missing. Raises `WrongShape`."""
    for depth, key in enumerate(path[:-1]):
        plain = plain.setdefault(key, {}) if isinstance(plain, dict) else plain[key]
        if not isinstance(plain, dict | list):
            raise WrongShape(path[: depth + 1], "a table")
    return plain


def _enclosing(plain: Any, path: Sequence[Key]) -> Any:
    """The value at a path inside its containers, as they were written: an array has this item only."""
    value = value_at(plain, path)
    return nested(path[:-1], [value]) if isinstance(path[-1], int) else nested(path, value)


def _without_empty(plain: Any) -> Any:
    """The content without empty tables and arrays, which do not count in the comparison."""
    if isinstance(plain, dict):
        kept = {key: _without_empty(item) for key, item in plain.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    return [_without_empty(item) for item in plain] if isinstance(plain, list) else plain


def _tables(names: tuple[str, ...], value: dict[str, Any]) -> list[str]:
    """The lines of a table and the tables in it, each under its own header."""
    own = [key for key, item in value.items() if not _has_header(item)]
    return ["", f"[{_dotted(names)}]", *_body(names, value)] if own and names else _body(names, value)


def _body(names: tuple[str, ...], value: dict[str, Any]) -> list[str]:
    lines = [
        f"{_dotted((key,))} = {tomlkit.item(item).as_string()}" for key, item in value.items() if not _has_header(item)
    ]
    for key, item in value.items():
        inner = (*names, key)
        if isinstance(item, dict):
            lines += _tables(inner, item)
        elif _has_header(item):
            for table in item:
                lines += ["", f"[[{_dotted(inner)}]]", *_body(inner, table)]
    return lines


def _has_header(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _dotted(names: Sequence[str]) -> str:
    return ".".join(tomlkit.key(name).as_string() for name in names)
