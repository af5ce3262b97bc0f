"""What whisper_tui writes into a client's file: each entry can tell itself there, be put in and be taken back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from whisper_tui.install.documents import Document, Key, WrongShape, value_at

Path = tuple[Key, ...]
ALLOW = "allow"


class Entry(Protocol):
    """One thing that is to stand in a file."""

    is_a_sign: ClassVar[bool]
    """Whether its being there tells that whisper_tui was installed; nobody else would write it."""

    def holds(self, plain: Any) -> bool:
        """Whether it stands there as it should."""
        ...

    def found(self, plain: Any) -> "Entry | None":
        """The entry as it stands there, perhaps as an earlier version or somebody else wrote it. None: it does not."""
        ...

    def write(self, document: Document) -> None:
        """Let it stand there as it should. Raises `WrongShape`."""
        ...

    def remove(self, document: Document, original: Any) -> None:
        """Take it back; what `original`, the file before, had in its place comes back. None: not known."""
        ...


@dataclass(frozen=True)
class Member:
    """A member whose name is ours. What a user added to its value, such as an `env`, is kept by `write`."""

    is_a_sign: ClassVar[bool] = True

    path: Path
    value: dict[str, Any]

    def holds(self, plain: Any) -> bool:
        """Whether all that we say is said there."""
        there = value_at(plain, self.path)
        return isinstance(there, dict) and all(there.get(key) == value for key, value in self.value.items())

    def found(self, plain: Any) -> "Member | None":
        """As it stands there."""
        there = value_at(plain, self.path)
        return Member(self.path, there) if isinstance(there, dict) else None

    def write(self, document: Document) -> None:
        """Put it in."""
        there = value_at(document.plain(), self.path)
        document.put(self.path, {**self.value, **_besides(there, self.value)})

    def remove(self, document: Document, original: Any) -> None:
        """Take it back."""
        if value_at(document.plain(), self.path) is not None:
            document.delete(self.path)
            _prune(document, self.path[:-1], original)


@dataclass(frozen=True)
class Item:
    """A word in an array of words."""

    is_a_sign: ClassVar[bool] = True
    path: Path
    value: str
    ours: Callable[[str], bool] | None = None
    """Whether a word is ours, perhaps of another installation. None: only the value itself is."""

    def holds(self, plain: Any) -> bool:
        """Whether the word is among them, and no other of ours."""
        return set(self._words(plain)) == {self.value}

    def found(self, plain: Any) -> "Item | None":
        """The word as it stands there."""
        return replace(self, value=words[0]) if (words := self._words(plain)) else None

    def write(self, document: Document) -> None:
        """Add the word, in the place of one of another installation."""
        self._drop(document, keep=())
        document.append(self.path, self.value)

    def remove(self, document: Document, original: Any) -> None:
        """Take the word away, unless it was there before."""
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
    """A setting of the client's own that users may have chosen themselves."""

    is_a_sign: ClassVar[bool] = False
    path: Path
    value: bool

    def holds(self, plain: Any) -> bool:
        """Whether it is set so."""
        return value_at(plain, self.path) is self.value

    def found(self, plain: Any) -> "Setting | None":
        """The setting, if it is set so."""
        return self if self.holds(plain) else None

    def write(self, document: Document) -> None:
        """Set it."""
        document.put(self.path, self.value)

    def remove(self, document: Document, original: Any) -> None:
        """Let it be as it was before."""
        if not self.holds(document.plain()) or self.holds(original):
            return
        before = value_at(original, self.path)
        if before is not None:
            document.put(self.path, before)
            return
        document.delete(self.path)
        _prune(document, self.path[:-1], original)


@dataclass(frozen=True)
class Handler:
    """A hook of an event: a group with a matcher and one handler, told by its command to be ours."""

    is_a_sign: ClassVar[bool] = True

    path: Path
    group: dict[str, Any]
    ours: Callable[[Any], bool]

    def places(self, plain: Any) -> list[tuple[int, int]]:
        """Group and place in it of every handler that is ours."""
        return [(group, place) for group, place, handler in handlers(plain, self.path) if self.ours(handler)]

    def holds(self, plain: Any) -> bool:
        """Whether it stands there once, as it should."""
        places = self.places(plain)
        return len(places) == 1 and value_at(plain, (*self.path, places[0][0])) == self.group

    def found(self, plain: Any) -> "Handler | None":
        """The first group that is ours."""
        places = self.places(plain)
        return Handler(self.path, value_at(plain, (*self.path, places[0][0])), self.ours) if places else None

    def write(self, document: Document) -> None:
        """Put it in: in the place of the one that is there, for clients may know hooks by their place."""
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
        """Take every one that is ours away; other handlers of the same group stay."""
        if self.places(document.plain()):
            self._drop(document)
            _prune(document, self.path, original)

    def _drop(self, document: Document) -> None:
        for group, place in reversed(self.places(document.plain())):
            among = value_at(document.plain(), (*self.path, group, "hooks"))
            document.delete((*self.path, group) if len(among) == 1 else (*self.path, group, "hooks", place))


@dataclass(frozen=True)
class Permission:
    """A rule in a table of rules that may also be a single word, which is then the rule for everything."""

    is_a_sign: ClassVar[bool] = True

    path: Path
    pattern: str
    ours: Callable[[str], bool]
    """Whether a pattern is ours, perhaps of another installation."""
    left_alone: str | None = None
    """A single word beside which the rule would have no sense."""

    def holds(self, plain: Any) -> bool:
        """Whether the rule is there and no other of ours, or it has no place there."""
        return self._patterns(plain) == [self.pattern] or self._senseless(plain)

    def found(self, plain: Any) -> "Permission | None":
        """The rule as it stands there."""
        return replace(self, pattern=patterns[0]) if (patterns := self._patterns(plain)) else None

    def write(self, document: Document) -> None:
        """Add the rule behind the others, for the last one that matches decides."""
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
        """Take the rule away, and let a single word be one again."""
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

    def _senseless(self, plain: Any) -> bool:
        return self.left_alone is not None and any(
            value_at(plain, self.path[:depth]) == self.left_alone for depth in range(1, len(self.path) + 1)
        )


def handlers(plain: Any, path: Sequence[Key]) -> Iterator[tuple[int, int, Any]]:
    """Every handler of an event, with its group and its place in it."""
    groups = value_at(plain, path)
    for number, group in enumerate(groups if isinstance(groups, list) else []):
        among = group.get("hooks") if isinstance(group, dict) else None
        for place, handler in enumerate(among if isinstance(among, list) else []):
            yield number, place, handler


def _besides(there: Any, ours: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in there.items() if key not in ours} if isinstance(there, dict) else {}


def _prune(document: Document, path: Sequence[Key], original: Any) -> None:
    """Take away what was made only to hold an entry."""
    for depth in range(len(path), 0, -1):
        if value_at(document.plain(), path[:depth]) not in ({}, []) or value_at(original, path[:depth]) is not None:
            return
        document.delete(path[:depth])
