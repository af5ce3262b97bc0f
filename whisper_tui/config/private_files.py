"""Private files, whose content decides what runs: only their owner may change them, and writes are atomic.

A change of TOML touches only the lines that it is about: comments, order and everything else of the user stay.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.policy.rules.rules_toml import toml_value
from whisper_tui.system.file_owners import others_may_change


def read_private(path: Path) -> str | None:
    """Read a text file that only its owner can change. None: there is no file. Raises `BadConfiguration`."""
    try:
        with path.open("rb") as file:
            # The descriptor is checked, not the path, which could be swapped between the check and the read.
            about = os.fstat(file.fileno())
            if others_may_change(about, os.getuid()):
                raise BadConfiguration(
                    f"{path} can be changed by other users, so it is not used",
                    hint=f"Make it yours alone: chown {os.getuid()} and chmod go-w on it",
                )
            return file.read().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfiguration(f"{path} cannot be read: {error.strerror}", hint="Check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8") from error


def write_private(path: Path, text: str) -> None:
    """Replace a file. Raises `Refused` if it cannot be written."""
    # Renamed into place: a reader, or a crash in between, never sees half a file.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        unfinished.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Check its directory") from error


@dataclass(frozen=True)
class _Statement:
    """A header or a key of a TOML file, with the lines that it takes."""

    path: tuple[str, ...]
    """The names of its header; for a key, those of the header above it."""
    key: str | None
    """None: it is a header."""
    start: int
    end: int
    """The line behind it."""


class TomlText:
    """The text of a TOML file of the user, changed statement by statement. Raises `tomllib.TOMLDecodeError`.

    A change raises `Refused` if the file is written in a way in which more than the wanted change would happen.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = tomllib.loads(text)

    def set(self, table: str, key: str, value: object) -> None:
        """Set a key of a table. Empty: a key at the top."""
        expected, path = deepcopy(self._plain), (table,) if table else ()
        (expected.setdefault(table, {}) if table else expected)[key] = value
        self._become(expected, lambda: self._with_key(path, key, value), lambda: self._rewritten(path, key, value))

    def unset(self, table: str, key: str) -> None:
        """Remove a key of a table. Empty: a key at the top."""
        expected, path = deepcopy(self._plain), (table,) if table else ()
        if (expected.get(table, {}) if table else expected).pop(key, None) is None:
            return
        self._become(expected, lambda: self._without_key(path, key), lambda: self._rewritten(path, key, None))

    def append(self, array: str, entry: Mapping[str, object], text: str) -> None:
        """Append an entry to an array of tables; `text`: the entry as TOML."""
        expected = deepcopy(self._plain)
        expected.setdefault(array, []).append(dict(entry))
        gap = "" if not self.text.strip() else "\n" if self.text.endswith("\n") else "\n\n"
        self._become(expected, lambda: self.text + gap + text, lambda: self._with_inline(array, entry))

    def remove(self, array: str, at: int) -> None:
        """Remove an entry of an array of tables. Comments above and below it stay."""
        expected = deepcopy(self._plain)
        del expected[array][at]
        if not expected[array]:
            del expected[array]

        def cut() -> str:
            lines, block = self.text.splitlines(keepends=True), self._entry(array, at)
            start, end = block[0].start, block[-1].end
            # The blank line that was between it and the next entry goes with it, unless a comment stands above.
            if end < len(lines) and not lines[end].strip() and (start == 0 or not lines[start - 1].strip()):
                end += 1
            return "".join(lines[:start] + lines[end:])

        self._become(expected, cut, lambda: self._rewritten((array,), at, None))

    def change(self, array: str, at: int, entry: Mapping[str, object], moved_to: str | None = None) -> None:
        """Make an entry of an array of tables hold exactly these values; `moved_to`: another array that gets it."""
        expected = deepcopy(self._plain)
        new = moved_to or array
        self._entry(array, at)
        if new == array:
            expected[array][at] = dict(entry)
        else:
            header = self._entry(array, at)[0]
            before = sum(each.start < header.start for each in self._headers((new,)))
            del expected[array][at]
            expected.setdefault(new, []).insert(before, dict(entry))
            if not expected[array]:
                del expected[array]
        self._become(expected, lambda: self._exchanged(array, at, new, entry))

    def _exchanged(self, array: str, at: int, new: str, entry: Mapping[str, object]) -> str:
        block = self._entry(array, at)
        old = self._plain[array][at]
        lines = self.text.splitlines(keepends=True)
        header = lines[block[0].start]
        if new != array:
            lines[block[0].start] = header.replace(array, new, 1)
        behind = block[-1].end
        if not lines[behind - 1].endswith("\n"):
            lines[behind - 1] += "\n"
        lines[behind:behind] = [f"{key} = {toml_value(value)}\n" for key, value in entry.items() if key not in old]
        # From the end, so that the numbers of the lines before stay right.
        for each in reversed(block[1:]):
            key = each.key or ""
            if key not in entry:
                del lines[each.start : each.end]
            elif entry[key] != old[key]:
                lines[each.start : each.end] = [_with_value("".join(lines[each.start : each.end]), key, entry[key])]
        return "".join(lines)

    def _with_key(self, path: tuple[str, ...], key: str, value: object) -> str:
        lines = self.text.splitlines(keepends=True)
        own = [each for each in self._statements() if each.path == path]
        same = next((each for each in own if each.key == key), None)
        if same is not None:
            lines[same.start : same.end] = [_with_value("".join(lines[same.start : same.end]), key, value)]
            return "".join(lines)
        said = f"{key} = {toml_value(value)}\n"
        if not own and not path:
            # Whatever stands below a header belongs to that table.
            return f"{said}\n{self.text}" if self.text.strip() else said
        if not own:
            gap = "" if not self.text.strip() else "\n" if self.text.endswith("\n") else "\n\n"
            return f"{self.text}{gap}[{'.'.join(path)}]\n{said}"
        end = own[-1].end
        if not lines[end - 1].endswith("\n"):
            lines[end - 1] += "\n"
        return "".join([*lines[:end], said, *lines[end:]])

    def _without_key(self, path: tuple[str, ...], key: str) -> str:
        lines = self.text.splitlines(keepends=True)
        own = next(each for each in self._statements() if each.path == path and each.key == key)
        return "".join(lines[: own.start] + lines[own.end :])

    def _with_inline(self, array: str, entry: Mapping[str, object]) -> str:
        """The text with an entry in an array that is written in one value."""
        import tomlkit

        document: Any = tomlkit.parse(self.text)
        table = tomlkit.inline_table()
        table.update(dict(entry))
        document[array].append(table)
        return tomlkit.dumps(document)

    def _rewritten(self, path: tuple[str, ...], key: str | int, value: object | None) -> str:
        """The text as tomlkit changes it, for tables that are written inside of others."""
        import tomlkit

        document: Any = tomlkit.parse(self.text)
        inner = document
        for name in path:
            inner = inner[name]
        if value is None:
            del inner[key]
        else:
            inner[key] = tomlkit.value(toml_value(value))
        return tomlkit.dumps(document)

    def _entry(self, array: str, at: int) -> list[_Statement]:
        """The header of an entry of an array, and its keys."""
        found = self._statements()
        headers = self._headers((array,))
        if at >= len(headers):
            raise self._refused()
        header = headers[at]
        behind = found[found.index(header) + 1 :]
        end = next((number for number, each in enumerate(behind) if each.key is None), len(behind))
        return [header, *behind[:end]]

    def _headers(self, path: tuple[str, ...]) -> list[_Statement]:
        return [each for each in self._statements() if each.path == path and each.key is None]

    def _statements(self) -> list[_Statement]:
        """All headers and keys, in their order."""
        lines = self.text.splitlines(keepends=True)
        found: list[_Statement] = []
        path: tuple[str, ...] = ()
        at = 0
        while at < len(lines):
            if lines[at].lstrip()[:1] in {"", "#"}:
                at += 1
                continue
            end, plain = self._parsed(lines, at)
            is_header = lines[at].lstrip().startswith("[")
            if is_header:
                path = _names(plain)
            found.append(_Statement(path, None if is_header else next(iter(plain)), at, end))
            at = end
        return found

    def _parsed(self, lines: list[str], start: int) -> tuple[int, dict[str, Any]]:
        """The end and the content of the statement that begins in a line: the fewest lines that are valid."""
        for end in range(start + 1, len(lines) + 1):
            with suppress(tomllib.TOMLDecodeError):
                return end, tomllib.loads("".join(lines[start:end]))
        raise self._refused()

    def _become(self, expected: dict[str, Any], *ways: Callable[[], str]) -> None:
        """Take the first text with exactly the expected content. Raises `Refused` if there is none."""
        for way in ways:
            # tomlkit has errors of its own, and all of them are values that it cannot handle.
            with suppress(ValueError, KeyError, TypeError, AttributeError, IndexError, Refused, StopIteration):
                text = way()
                if tomllib.loads(text) == expected or _without_empty(tomllib.loads(text)) == _without_empty(expected):
                    self.text, self._plain = text, tomllib.loads(text)
                    return
        raise self._refused()

    def _refused(self) -> Refused:
        return Refused("the file is written in a way that cannot be changed here", hint="Change it in an editor")


def _with_value(statement: str, key: str, value: object) -> str:
    """Return the lines of a key with another value; a comment behind the value stays."""
    import tomlkit

    document: Any = tomlkit.parse(statement)
    document[key] = tomlkit.value(toml_value(value))
    return tomlkit.dumps(document)


def _names(header: dict[str, Any]) -> tuple[str, ...]:
    """The names of the header of which this is the content."""
    names: list[str] = []
    inner: Any = header
    while inner and inner != [{}]:
        name, inner = next(iter(inner.items()))
        names.append(name)
    return tuple(names)


def _without_empty(plain: dict[str, Any]) -> dict[str, Any]:
    """The content without empty tables and arrays, which may go or stay."""
    return {key: value for key, value in plain.items() if value not in ({}, [])}
