"""JSON text read with the place of every value in it, so that a change leaves all other text as it was."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = 200


class JsonProblem(ValueError):
    """Text that is no JSON: what is wrong, and in which line (from 1)."""

    def __init__(self, message: str, text: str, place: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, place) + 1


@dataclass(slots=True)
class Node:
    """One value: where it stands (`text[start:end]`), and what is in it.

    `members` are those of an object in their order, a key that stands twice included; `items` those of an array.
    """

    start: int
    end: int
    value: Any
    members: "list[Member] | None" = None
    items: "list[Node] | None" = None
    comma_after: bool = field(default=False)
    """Whether the last member or item is followed by a comma, as JSON with comments allows."""

    def member(self, key: str) -> "Member | None":
        """The member that holds: the last one of that key."""
        return next((member for member in reversed(self.members or []) if member.key == key), None)

    def parts(self) -> "list[Node] | list[Member]":
        """Members or items, whichever it has."""
        return self.members if self.members is not None else self.items or []


@dataclass(slots=True)
class Member:
    """A key and its value; `start` is where the key begins, `end` where the value ends."""

    key: str
    start: int
    node: Node

    @property
    def end(self) -> int:
        """Behind the value."""
        return self.node.end


def read_json(text: str, *, comments: bool) -> Node:
    """The value of a whole text. `comments` also allows commas before a closing bracket. Raises `JsonProblem`."""
    reader = _Reader(text, comments)
    node = reader.value(reader.skip(1 if text.startswith("\ufeff") else 0), 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise JsonProblem("there is more text behind the end", text, end)
    return node


def comments_in(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The comments between two values, as places."""
    return (match.span() for match in _COMMENT.finditer(text, start, end))


def behind_gap(text: str, place: int) -> int:
    """Behind the white space and comments that begin there."""
    while True:
        space = _SPACE.match(text, place)
        place = space.end() if space else place
        comment = _COMMENT.match(text, place)
        if comment is None:
            return place
        place = comment.end()


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self._text = text
        self._comments = comments

    def skip(self, place: int) -> int:
        """Behind white space and, where they are allowed, comments."""
        behind = behind_gap(self._text, place)
        first = self._text.find("/", place, behind)
        if first >= 0 and not self._comments:
            raise JsonProblem("there may be no comment here", self._text, first)
        return behind

    def value(self, place: int, depth: int) -> Node:
        """The value that begins here."""
        if depth > _DEEPEST:
            raise JsonProblem("it is nested too deeply", self._text, place)
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._array(place, depth)
            case '"':
                end = self._string(place)
                return Node(place, end, json.loads(self._text[place:end]))
        for word, value in _WORDS.items():
            if self._text.startswith(word, place):
                return Node(place, place + len(word), value)
        number = _NUMBER.match(self._text, place)
        if number is None:
            raise JsonProblem("a value is missing", self._text, place)
        return Node(place, number.end(), json.loads(number.group()))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
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
            members.append(Member(json.loads(self._text[place:behind]), place, node))
            place, comma = self._comma(node.end)
        self._check_comma(comma, place)
        value = {member.key: member.node.value for member in members}
        return Node(start, place + 1, value, members=members, comma_after=comma)

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        place = self.skip(start + 1)
        comma = False
        while not self._text.startswith("]", place):
            if items and not comma:
                raise JsonProblem("a comma or a closing bracket is missing", self._text, place)
            items.append(self.value(place, depth + 1))
            place, comma = self._comma(items[-1].end)
        self._check_comma(comma, place)
        return Node(start, place + 1, [item.value for item in items], items=items, comma_after=comma)

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
            raise JsonProblem("a text in double quotes has no end or holds what it may not", self._text, place)
        return found.end()
