"""Entries of whisper_tui in a client's file. Each kind can find, write and remove itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

Key = str | int
"""A name in an object or table, or an index in an array."""


class WrongShape(ValueError):
    """A value has another type than the client expects. The message names its path."""

    def __init__(self, path: Sequence[Key], expected: str) -> None:
        where = ".".join(map(str, path)) or "the whole file"
        super().__init__(f"{where} is not {expected}")


class Document(Protocol):
    """The text of a file that can be changed in place. Everything else stays byte for byte where possible."""

    text: str

    def plain(self) -> Any:
        """Return the content as dicts and lists."""
        ...

    def put(self, path: Sequence[Key], value: Any) -> None:
        """Set the value; create the tables around it. Raises `WrongShape`."""
        ...

    def append(self, path: Sequence[Key], value: Any) -> None:
        """Append the value to an array. Raises `WrongShape`."""
        ...

    def delete(self, path: Sequence[Key]) -> None:
        """Delete a value."""
        ...


def nested(path: Sequence[Key], value: Any) -> Any:
    """Return the value nested in an object for each key of the path. Raises `WrongShape` for an array index."""
    for depth in range(len(path) - 1, -1, -1):
        if not isinstance(path[depth], str):
            raise WrongShape(path[:depth], "an array")
        value = {path[depth]: value}
    return value


def value_at(plain: Any, path: Sequence[Key]) -> Any:
    """Return the value at a path. None: there is none, or null."""
    for key in path:
        if isinstance(key, str) and isinstance(plain, dict):
            plain = plain.get(key)
        elif isinstance(key, int) and isinstance(plain, list) and key < len(plain):
            plain = plain[key]
        else:
            return None
    return plain


Path = tuple[Key, ...]
ALLOW = "allow"


class FileEntry(Protocol):
    """One entry in a file."""

    proves_install: ClassVar[bool]
    """True if the entry proves that whisper_tui was installed, because nobody else writes it."""

    def holds(self, plain: Any) -> bool:
        """True if the file has the entry with the wanted value."""
        ...

    def found(self, plain: Any) -> "FileEntry | None":
        """Return the entry as the file has it, perhaps from an earlier version. None: it is missing."""
        ...

    def write(self, document: Document) -> None:
        """Write the entry. Raises `WrongShape`."""
        ...

    def remove(self, document: Document, original: Any) -> None:
        """Remove the entry and restore the value of `original`, the earlier file. None: that is unknown."""
        ...


@dataclass(frozen=True)
class Member:
    """An object under our own name. `write` keeps keys that the user has added, such as `env`."""

    proves_install: ClassVar[bool] = True

    path: Path
    value: dict[str, Any]

    def holds(self, plain: Any) -> bool:
        """True if it has all our values."""
        there = value_at(plain, self.path)
        return isinstance(there, dict) and all(there.get(key) == value for key, value in self.value.items())

    def found(self, plain: Any) -> "Member | None":
        """Return the object as it is."""
        there = value_at(plain, self.path)
        return Member(self.path, there) if isinstance(there, dict) else None

    def write(self, document: Document) -> None:
        """Write the object."""
        there = value_at(document.plain(), self.path)
        document.put(self.path, {**self.value, **_without_keys(there, self.value)})

    def remove(self, document: Document, original: Any) -> None:
        """Remove the object."""
        if value_at(document.plain(), self.path) is not None:
            document.delete(self.path)
            _prune(document, self.path[:-1], original)


@dataclass(frozen=True)
class Item:
    """A word in an array of words."""

    proves_install: ClassVar[bool] = True
    path: Path
    value: str
    ours: Callable[[str], bool] | None = None
    """True for a word that any installation of whisper_tui wrote. None: only the value itself is ours."""

    def holds(self, plain: Any) -> bool:
        """True if the word is in the array, and no other word of ours."""
        return set(self._words(plain)) == {self.value}

    def found(self, plain: Any) -> "Item | None":
        """Return the word as it is."""
        return replace(self, value=words[0]) if (words := self._words(plain)) else None

    def write(self, document: Document) -> None:
        """Add the word, and remove those of other installations."""
        self._drop(document, keep=())
        document.append(self.path, self.value)

    def remove(self, document: Document, original: Any) -> None:
        """Remove the word, unless the original had it."""
        if self._drop(document, keep=self._words(original)):
            _prune(document, self.path, original)

    def _drop(self, document: Document, keep: Sequence[str]) -> bool:
        dropped = [word for word in self._words(document.plain()) if word not in keep]
        for word in dropped:
            document.delete((*self.path, value_at(document.plain(), self.path).index(word)))
        return bool(dropped)

    def _words(self, plain: Any) -> list[str]:
        there = value_at(plain, self.path)
        among = [word for word in there if isinstance(word, str)] if isinstance(there, list) else []
        return [word for word in among if word == self.value or (self.ours is not None and self.ours(word))]


@dataclass(frozen=True)
class Setting:
    """A setting of the client that users may also have set themselves."""

    proves_install: ClassVar[bool] = False
    path: Path
    value: bool | str
    ours: Callable[[object], bool] | None = None
    """True for a value that any installation of whisper_tui wrote. None: only the value itself is ours."""

    def holds(self, plain: Any) -> bool:
        """True if the setting has the value."""
        there = value_at(plain, self.path)
        # In Python, 1 equals True.
        return type(there) is type(self.value) and there == self.value

    def found(self, plain: Any) -> "Setting | None":
        """Return the setting as it is, if the value is ours."""
        return replace(self, value=value_at(plain, self.path)) if self._is_ours(plain) else None

    def write(self, document: Document) -> None:
        """Set the value."""
        document.put(self.path, self.value)

    def remove(self, document: Document, original: Any) -> None:
        """Restore the value of the original."""
        if not self._is_ours(document.plain()) or self._is_ours(original):
            return
        before = value_at(original, self.path)
        if before is not None:
            document.put(self.path, before)
            return
        document.delete(self.path)
        _prune(document, self.path[:-1], original)

    def _is_ours(self, plain: Any) -> bool:
        return self.holds(plain) or (self.ours is not None and self.ours(value_at(plain, self.path)))


@dataclass(frozen=True)
class Handler:
    """A hook of an event: a group with a matcher and one handler, which is recognized by its command."""

    proves_install: ClassVar[bool] = True

    path: Path
    group: dict[str, Any]
    ours: Callable[[Any], bool]

    def places(self, plain: Any) -> list[tuple[int, int]]:
        """Return the indexes of group and handler for every handler of ours."""
        return [(group, place) for group, place, handler in handlers(plain, self.path) if self.ours(handler)]

    def holds(self, plain: Any) -> bool:
        """True if the file has the hook exactly once, with the wanted value."""
        places = self.places(plain)
        return len(places) == 1 and value_at(plain, (*self.path, places[0][0])) == self.group

    def found(self, plain: Any) -> "Handler | None":
        """Return the first group with a handler of ours."""
        places = self.places(plain)
        return Handler(self.path, value_at(plain, (*self.path, places[0][0])), self.ours) if places else None

    def write(self, document: Document) -> None:
        """Write the hook."""
        # The new hook replaces the old one in its position, because Codex stores its trust under the hook's indexes.
        places = self.places(document.plain())
        if len(places) == 1 and len(value_at(document.plain(), (*self.path, places[0][0], "hooks"))) == 1:
            try:
                document.put((*self.path, places[0][0]), self.group)
            except WrongShape:
                pass
            else:
                return
        self._drop(document)
        document.append(self.path, self.group)

    def remove(self, document: Document, original: Any) -> None:
        """Remove every handler of ours; others of the same group stay."""
        if self.places(document.plain()):
            self._drop(document)
            _prune(document, self.path, original)

    def _drop(self, document: Document) -> None:
        for group, place in reversed(self.places(document.plain())):
            among = value_at(document.plain(), (*self.path, group, "hooks"))
            document.delete((*self.path, group) if len(among) == 1 else (*self.path, group, "hooks", place))


@dataclass(frozen=True)
class Element:
    """An object in an array, recognized by `ours`, whichever installation of whisper_tui wrote it."""

    proves_install: ClassVar[bool] = True

    path: Path
    value: dict[str, Any]
    ours: Callable[[Any], bool]

    def holds(self, plain: Any) -> bool:
        """True if the array has the object, and no other one of ours."""
        return [value for _, value in self._ours_in(plain)] == [self.value]

    def found(self, plain: Any) -> "Element | None":
        """Return the object as it is."""
        return replace(self, value=there[0][1]) if (there := self._ours_in(plain)) else None

    def write(self, document: Document) -> None:
        """Append the object, and remove those of other installations."""
        self._drop(document)
        document.append(self.path, self.value)

    def remove(self, document: Document, original: Any) -> None:
        """Remove every object of ours."""
        if self._ours_in(document.plain()):
            self._drop(document)
            _prune(document, self.path, original)

    def _drop(self, document: Document) -> None:
        for place, _ in reversed(self._ours_in(document.plain())):
            document.delete((*self.path, place))

    def _ours_in(self, plain: Any) -> list[tuple[int, Any]]:
        there = value_at(plain, self.path)
        return [(place, each) for place, each in enumerate(there if isinstance(there, list) else ()) if self.ours(each)]


@dataclass(frozen=True)
class Permission:
    """A rule in a table of rules. A single word instead of the table is the rule for everything."""

    proves_install: ClassVar[bool] = True

    path: Path
    pattern: str
    ours: Callable[[str], bool]
    """True for a pattern that any installation of whisper_tui wrote."""
    left_alone: str | None = None
    """The single word with which everything is already allowed."""

    def holds(self, plain: Any) -> bool:
        """True if the rule is the only one of ours in the file, or if everything is already allowed."""
        return self._patterns(plain) == [self.pattern] or self._is_left_alone(plain)

    def found(self, plain: Any) -> "Permission | None":
        """Return the rule as it is."""
        return replace(self, pattern=patterns[0]) if (patterns := self._patterns(plain)) else None

    def write(self, document: Document) -> None:
        """Write the rule."""
        # After all others, because the last rule that matches wins.
        for pattern in self._patterns(document.plain()):
            document.delete((*self.path, pattern))
        plain = document.plain()
        there, above = value_at(plain, self.path), value_at(plain, self.path[:-1])
        if isinstance(there, str):
            document.put(self.path, {"*": there, self.pattern: ALLOW})
        elif isinstance(above, str):
            document.put(self.path[:-1], {"*": above, self.path[-1]: {"*": above, self.pattern: ALLOW}})
        else:
            document.put((*self.path, self.pattern), ALLOW)

    def remove(self, document: Document, original: Any) -> None:
        """Remove the rule, and restore a single word."""
        kept = self._patterns(original)
        for pattern in self._patterns(document.plain()):
            if pattern not in kept:
                document.delete((*self.path, pattern))
        before, above = value_at(original, self.path), value_at(original, self.path[:-1])
        if isinstance(before, str) and value_at(document.plain(), self.path) == {"*": before}:
            document.put(self.path, before)
        if isinstance(above, str) and value_at(document.plain(), self.path) == {"*": above}:
            document.delete(self.path)
            if value_at(document.plain(), self.path[:-1]) == {"*": above}:
                document.put(self.path[:-1], above)
        _prune(document, self.path, original)

    def _patterns(self, plain: Any) -> list[str]:
        rules = value_at(plain, self.path)
        ours = rules.items() if isinstance(rules, dict) else ()
        return [pattern for pattern, word in ours if word == ALLOW and self.ours(pattern)]

    def _is_left_alone(self, plain: Any) -> bool:
        return self.left_alone is not None and any(
            value_at(plain, self.path[:depth]) == self.left_alone for depth in range(1, len(self.path) + 1)
        )


def handlers(plain: Any, path: Sequence[Key]) -> Iterator[tuple[int, int, Any]]:
    """Yield every handler of an event, with the indexes of its group and in it."""
    groups = value_at(plain, path)
    for number, group in enumerate(groups if isinstance(groups, list) else []):
        among = group.get("hooks") if isinstance(group, dict) else None
        for place, handler in enumerate(among if isinstance(among, list) else []):
            yield number, place, handler


def _without_keys(there: Any, ours: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in there.items() if key not in ours} if isinstance(there, dict) else {}


def _prune(document: Document, path: Sequence[Key], original: Any) -> None:
    """Delete the containers that were created for an entry alone."""
    for depth in range(len(path), 0, -1):
        if value_at(document.plain(), path[:depth]) not in ({}, []) or value_at(original, path[:depth]) is not None:
            return
        document.delete(path[:depth])
