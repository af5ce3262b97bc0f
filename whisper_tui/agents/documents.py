"""Files of other programs, edited in place (decision 20): JSON, with or without comments, and TOML.

Indentation, order, comments and line endings stay; what is new in a TOML file is appended."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from whisper_tui.agents.file_entries import Key, WrongShape, nested, value_at

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_LITERALS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 200


class JsonProblem(ValueError):
    """A text is not JSON. The error has the problem and its line, from 1."""

    def __init__(self, message: str, text: str, place: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, place) + 1


@dataclass(slots=True)
class JsonNode:
    """One value: its location in the text, `text[start:end]`, and its content.

    `members` are those of an object in their order, including duplicate keys; `items` are those of an array.
    """

    start: int
    end: int
    value: Any
    members: "list[JsonMember] | None" = None
    items: "list[JsonNode] | None" = None
    comma_after: bool = field(default=False)
    """True if a comma follows the last member or item, as JSON with comments allows."""

    def member(self, key: str) -> "JsonMember | None":
        """Return the member of a key."""
        # Of duplicate keys every reader takes the last.
        return next((member for member in reversed(self.members or []) if member.key == key), None)

    def parts(self) -> "list[JsonNode] | list[JsonMember]":
        """Return the members of an object, or the items of an array."""
        return self.members if self.members is not None else self.items or []


@dataclass(slots=True)
class JsonMember:
    """A key and its value; `start` is the beginning of the key, `end` the end of the value."""

    key: str
    start: int
    node: JsonNode

    @property
    def end(self) -> int:
        """The end of the value."""
        return self.node.end


def read_json(text: str, *, comments: bool) -> JsonNode:
    """Parse a whole text. `comments` also allows commas before a closing bracket. Raises `JsonProblem`."""
    reader = _JsonReader(text, comments)
    node = reader.value(reader.skip(1 if text.startswith("\ufeff") else 0), 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise JsonProblem("there is more text after the end", text, end)
    return node


def comments_in(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each comment in a range of the text."""
    return (match.span() for match in _COMMENT.finditer(text, start, end))


def skip_gap(text: str, place: int) -> int:
    """Return the offset after the white space and the comments at an offset."""
    while True:
        space = _SPACE.match(text, place)
        place = space.end() if space else place
        comment = _COMMENT.match(text, place)
        if comment is None:
            return place
        place = comment.end()


class _JsonReader:
    def __init__(self, text: str, comments: bool) -> None:
        self._text = text
        self._comments = comments

    def skip(self, place: int) -> int:
        """Return the offset after white space and, if they are allowed, comments."""
        behind = skip_gap(self._text, place)
        first = self._text.find("/", place, behind)
        if first >= 0 and not self._comments:
            raise JsonProblem("there may be no comment here", self._text, first)
        return behind

    def value(self, place: int, depth: int) -> JsonNode:
        """Parse the value that begins at an offset."""
        # The parser is recursive. A file of a project must not make it exceed the interpreter's recursion limit.
        if depth > _MAX_DEPTH:
            raise JsonProblem("it is nested too deeply", self._text, place)
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._array(place, depth)
            case '"':
                end = self._string(place)
                return JsonNode(place, end, json.loads(self._text[place:end]))
        for word, value in _LITERALS.items():
            if self._text.startswith(word, place):
                return JsonNode(place, place + len(word), value)
        number = _NUMBER.match(self._text, place)
        if number is None:
            raise JsonProblem("a value is missing", self._text, place)
        return JsonNode(place, number.end(), json.loads(number.group()))

    def _object(self, start: int, depth: int) -> JsonNode:
        members: list[JsonMember] = []
        place = self.skip(start + 1)
        comma = False
        while not self._text.startswith("}", place):
            if members and not comma:
                raise JsonProblem("a comma or a closing brace is missing", self._text, place)
            if not self._text.startswith('"', place):
                raise JsonProblem("a name in double quotes is missing", self._text, place)
            behind = self._string(place)
            colon = self.skip(behind)
            if not self._text.startswith(":", colon):
                raise JsonProblem("a colon is missing", self._text, colon)
            node = self.value(self.skip(colon + 1), depth + 1)
            members.append(JsonMember(json.loads(self._text[place:behind]), place, node))
            place, comma = self._comma(node.end)
        self._check_comma(comma, place)
        value = {member.key: member.node.value for member in members}
        return JsonNode(start, place + 1, value, members=members, comma_after=comma)

    def _array(self, start: int, depth: int) -> JsonNode:
        items: list[JsonNode] = []
        place = self.skip(start + 1)
        comma = False
        while not self._text.startswith("]", place):
            if items and not comma:
                raise JsonProblem("a comma or a closing bracket is missing", self._text, place)
            items.append(self.value(place, depth + 1))
            place, comma = self._comma(items[-1].end)
        self._check_comma(comma, place)
        return JsonNode(start, place + 1, [item.value for item in items], items=items, comma_after=comma)

    def _comma(self, place: int) -> tuple[int, bool]:
        place = self.skip(place)
        if not self._text.startswith(",", place):
            return place, False
        return self.skip(place + 1), True

    def _check_comma(self, comma: bool, place: int) -> None:
        if comma and not self._comments:
            raise JsonProblem("there is a comma before the closing bracket", self._text, place)

    def _string(self, place: int) -> int:
        found = _STRING.match(self._text, place)
        if found is None:
            raise JsonProblem("a text in double quotes has no end or contains a forbidden character", self._text, place)
        return found.end()


_BLANK = re.compile(r"[ \t]*")
_INDENTED = re.compile(r"[\[{]\r?\n([ \t]+)\S")
_USUAL_INDENT = "  "


class JsonDocument:
    """The text of a JSON file, and changes to it. `text` is always whole and valid. Raises `JsonProblem`."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self._comments = comments
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._unit = found.group(1) if (found := _INDENTED.search(text)) else _USUAL_INDENT
        self._flat = (
            bool(text.strip()) and "\n" not in text.strip() and text.strip("\ufeff \r\n\t") not in {"{}", "{ }"}
        )
        self._root()

    def plain(self) -> Any:
        """Return the content; `{}` for an empty file."""
        return root.value if (root := self._root()) else {}

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Set the value; create the objects around it. Raises `WrongShape`."""
        node = self._root()
        if node is None:
            self.text = f"{self.text.strip()}{self._formatted(nested(path, value), '')}{self._newline}"
            return
        for depth, key in enumerate(path):
            below = _child(node, key)
            if below is None:
                self._insert(node, key, nested(path[depth + 1 :], value), path[:depth])
                return
            node = below
        self._replace(node.start, node.end, self._formatted(value, self._line_indent(node.start)))

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Append the value to an array. Raises `WrongShape`."""
        node = self._at(path)
        if node is None:
            self.put(path, [value])
        elif node.items is None:
            raise WrongShape(path, "an array")
        else:
            self._add(node, self._formatted(value, self._indent_of(node)))

    def delete(self, path: Sequence[Key]) -> None:
        """Delete a value with its comma and its line."""
        container = self._at(path[:-1])
        part = _part(container, path[-1]) if container else None
        if container is None or part is None:
            return
        parts = container.parts()
        place = next(number for number, other in enumerate(parts) if other is part)
        start, end = part.start, part.end
        # The comma after the value is removed with it. The last value has none, so the comma before it is removed.
        if place < len(parts) - 1 or container.comma_after:
            end = skip_gap(self.text, end) + 1
        elif place:
            comma = skip_gap(self.text, parts[place - 1].end)
            self._replace(comma, comma + 1, "")
            start, end = start - 1, end - 1
        self._cut(start, end, last=place == len(parts) - 1)
        emptied = self._at(path[:-1])
        if emptied and not emptied.parts() and not self.text[emptied.start + 1 : emptied.end - 1].strip():
            self._replace(emptied.start + 1, emptied.end - 1, "")

    def _root(self) -> JsonNode | None:
        return read_json(self.text, comments=self._comments) if self.text.strip("\ufeff \t\r\n") else None

    def _at(self, path: Sequence[Key]) -> JsonNode | None:
        node = self._root()
        for key in path:
            node = _child(node, key) if node else None
        return node

    def _insert(self, container: JsonNode, key: Key, value: Any, path: Sequence[Key]) -> None:
        if container.members is None or not isinstance(key, str):
            raise WrongShape(path, "an object")
        formatted = self._formatted(value, self._indent_of(container))
        self._add(container, f"{json.dumps(key, ensure_ascii=False)}: {formatted}")

    def _add(self, container: JsonNode, piece: str) -> None:
        """Insert a member or an item at the end of an object or array."""
        parts = container.parts()
        line = f"{self._newline}{self._indent_of(container)}"
        if not parts:
            inner = self.text[container.start + 1 : container.end - 1].rstrip()
            closing = "" if self._flat else f"{self._newline}{self._line_indent(container.start)}"
            self._replace(
                container.start + 1, container.end - 1, f"{inner}{'' if self._flat else line}{piece}{closing}"
            )
            return
        end = parts[-1].end
        comma = skip_gap(self.text, end) + 1 if container.comma_after else 0
        behind = comma or end
        # The new line comes after comments in the last value's line, because they belong to that value.
        if self._starts_line(parts[0].start):
            rest = self._end_of_comments(behind)
            self._replace(rest, rest, f"{line}{piece}{',' if comma else ''}")
            if not comma:
                self._replace(end, end, ",")
        else:
            self._replace(behind, behind, f" {piece}" if comma else f", {piece}")

    def _formatted(self, value: Any, indent: str) -> str:
        if self._flat:
            return json.dumps(value, ensure_ascii=False)
        return _lines(value, self._unit, indent).replace("\n", self._newline)

    def _indent_of(self, container: JsonNode) -> str:
        parts = container.parts()
        if parts and self._starts_line(parts[0].start):
            return self._line_indent(parts[0].start)
        return self._line_indent(container.start) + self._unit

    def _line_indent(self, place: int) -> str:
        found = _BLANK.match(self.text, self.text.rfind("\n", 0, place) + 1)
        return found.group().lstrip("\ufeff") if found else ""

    def _starts_line(self, place: int) -> bool:
        begin = self.text.rfind("\n", 0, place) + 1
        return begin > 0 and not self.text[begin:place].strip()

    def _end_of_comments(self, place: int) -> int:
        """The offset after the comments in the same line."""
        for start, end in comments_in(self.text, place, len(self.text)):
            if self.text[place:start].strip(" \t") or "\n" in self.text[start:end]:
                break
            place = end
        return place

    def _cut(self, start: int, end: int, *, last: bool) -> None:
        """Remove a range of text, with its whole line if that is empty then, otherwise with the spaces beside it."""
        behind = _BLANK.match(self.text, end)
        stop = behind.end() if behind else end
        line = self.text.rfind("\n", 0, start)
        if self._starts_line(start) and self.text[stop : stop + 1] in {"\r", "\n"}:
            self._replace(line - (self.text[line - 1] == "\r"), stop, "")
        elif last:
            self._replace(len(self.text[:start].rstrip(" \t")), end, "")
        else:
            self._replace(start, stop, "")

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]


def _lines(value: Any, unit: str, indent: str) -> str:
    """Format a value with a line for each member. An array of words takes one line."""
    inner = indent + unit
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(value[key], unit, inner)}" for key in value)
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        items = (f"{inner}{_lines(item, unit, inner)}" for item in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def _part(container: JsonNode, key: Key) -> JsonMember | JsonNode | None:
    if isinstance(key, str):
        return container.member(key)
    items = container.items or []
    return items[key] if key < len(items) else None


def _child(node: JsonNode, key: Key) -> JsonNode | None:
    part = _part(node, key)
    return part.node if isinstance(part, JsonMember) else part


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
