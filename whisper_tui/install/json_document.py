"""A JSON file of somebody else's, changed in place: indentation, order, comments and line ends stay."""

import json
import re
from collections.abc import Sequence
from typing import Any

from whisper_tui.install.documents import Key, WrongShape, nested
from whisper_tui.install.json_text import Member, Node, behind_gap, comments_in, read_json

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
        """What the file says; an empty file says `{}`."""
        return root.value if (root := self._root()) else {}

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Let the value stand there; objects on the way are made. Raises `WrongShape`."""
        node = self._root()
        if node is None:
            self.text = f"{self.text.strip()}{self._drawn(nested(path, value), '')}{self._newline}"
            return
        for depth, key in enumerate(path):
            below = _child(node, key)
            if below is None:
                self._insert(node, key, nested(path[depth + 1 :], value), path[:depth])
                return
            node = below
        self._replace(node.start, node.end, self._drawn(value, self._line_indent(node.start)))

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Let the value be the last of the array there. Raises `WrongShape`."""
        node = self._at(path)
        if node is None:
            self.put(path, [value])
        elif node.items is None:
            raise WrongShape(path, "an array")
        else:
            self._add(node, self._drawn(value, self._indent_of(node)))

    def delete(self, path: Sequence[Key]) -> None:
        """Take away what stands there, with its comma and its line."""
        container = self._at(path[:-1])
        part = _part(container, path[-1]) if container else None
        if container is None or part is None:
            return
        parts = container.parts()
        place = next(number for number, other in enumerate(parts) if other is part)
        start, end = part.start, part.end
        if place < len(parts) - 1 or container.comma_after:
            end = behind_gap(self.text, end) + 1
        elif place:
            comma = behind_gap(self.text, parts[place - 1].end)
            self._replace(comma, comma + 1, "")
            start, end = start - 1, end - 1
        self._cut(start, end, last=place == len(parts) - 1)
        emptied = self._at(path[:-1])
        if emptied and not emptied.parts() and not self.text[emptied.start + 1 : emptied.end - 1].strip():
            self._replace(emptied.start + 1, emptied.end - 1, "")

    def _root(self) -> Node | None:
        return read_json(self.text, comments=self._comments) if self.text.strip("\ufeff \t\r\n") else None

    def _at(self, path: Sequence[Key]) -> Node | None:
        node = self._root()
        for key in path:
            node = _child(node, key) if node else None
        return node

    def _insert(self, container: Node, key: Key, value: Any, path: Sequence[Key]) -> None:
        if container.members is None or not isinstance(key, str):
            raise WrongShape(path, "an object")
        drawn = self._drawn(value, self._indent_of(container))
        self._add(container, f"{json.dumps(key, ensure_ascii=False)}: {drawn}")

    def _add(self, container: Node, piece: str) -> None:
        """Write one more member or item at the end of an object or array."""
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
        comma = behind_gap(self.text, end) + 1 if container.comma_after else 0
        behind = comma or end
        if self._starts_line(parts[0].start):
            rest = self._end_of_comments(behind)
            self._replace(rest, rest, f"{line}{piece}{',' if comma else ''}")
            if not comma:
                self._replace(end, end, ",")
        else:
            self._replace(behind, behind, f" {piece}" if comma else f", {piece}")

    def _drawn(self, value: Any, indent: str) -> str:
        if self._flat:
            return json.dumps(value, ensure_ascii=False)
        return _lines(value, self._unit, indent).replace("\n", self._newline)

    def _indent_of(self, container: Node) -> str:
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
        """Behind the comments that stand in the same line."""
        for start, end in comments_in(self.text, place, len(self.text)):
            if self.text[place:start].strip(" \t") or "\n" in self.text[start:end]:
                break
            place = end
        return place

    def _cut(self, start: int, end: int, *, last: bool) -> None:
        """Remove a stretch: its whole line if nothing else stands there, or the blanks beside it."""
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
    """A value as text: a line for each member, and one line for an array of words."""
    inner = indent + unit
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(value[key], unit, inner)}" for key in value)
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        items = (f"{inner}{_lines(item, unit, inner)}" for item in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def _part(container: Node, key: Key) -> Member | Node | None:
    if isinstance(key, str):
        return container.member(key)
    items = container.items or []
    return items[key] if key < len(items) else None


def _child(node: Node, key: Key) -> Node | None:
    part = _part(node, key)
    return part.node if isinstance(part, Member) else part
