"""Which files of a command decide what runs later, or who may decide: found by what its paths really are."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from whisper_tui.model.command import CommandSpec
from whisper_tui.policy.sensitive_paths import holds_sensitive, kind_of_path, read_paths, written_paths
from whisper_tui.policy.view import view
from whisper_tui.policy.wrappers.peeled import Argv
from whisper_tui.supervisor.meaning import Explainer

MOST = 5
"""Files that are named for one call."""


def sensitive_files(spec: CommandSpec, cwd: str, environment: Mapping[str, str], own: Sequence[str]) -> dict[str, str]:
    """What each of these files is, by its path with links followed; `own`: directories of this instance.

    Every path is looked at as it is written and as it resolves: a link may lead there, and may be made to.
    """
    found: dict[str, str] = {}
    looked = _Looked(cwd, environment.get("HOME") or os.path.expanduser("~"), tuple(map(os.path.realpath, own)))  # noqa: PTH111
    for words, targets in _commands(spec, cwd, environment):
        looked.moves(words)
        written = [*written_paths(words), *((target, False) for target in targets)]
        for path, kind in looked.kinds(written, read_paths(words)):
            found.setdefault(path, kind)
            if len(found) >= MOST:
                return found
    return found


def _commands(spec: CommandSpec, cwd: str, environment: Mapping[str, str]) -> Iterator[tuple[Argv, tuple[str, ...]]]:
    seen = view(spec.command)
    return Explainer(cwd, {**environment, **spec.environment}, {}).every_word(seen)


class _Looked:
    """Looks at the paths of one call, from the directories that it may be in."""

    def __init__(self, cwd: str, home: str, own: tuple[str, ...]) -> None:
        self._bases = [cwd]
        self._home = home
        self._own = own
        self._runs = tuple(each + "/runs" for each in own)

    def moves(self, words: Argv) -> None:
        """Take a change of directory into account: what follows may be relative to it."""
        if words[:1] in {("cd",), ("pushd",)}:
            to = next((word for word in words[1:] if word is None or not word.startswith("-")), self._home)
            if to is not None:
                self._bases += [os.path.join(base, to) for base in self._bases[:4]]  # noqa: PTH118

    def kinds(self, written: Iterable[tuple[str, bool]], read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Each file that counts, and what it is."""
        for path, fills in written:
            for place in self._places(path):
                kind = kind_of_path(place, self._home, self._own)
                if kind is None and fills and holds_sensitive(place, self._home, self._own):
                    kind = "a directory that holds start-up files or settings"
                if kind is not None:
                    yield place, kind
        for path in read:
            for place in self._places(path):
                # Output of commands lies there, which agents are told to look at.
                if not place.startswith(self._runs) and kind_of_path(place, "", self._own) and self._is_own(place):
                    yield place, "the configuration or the state of whisper_tui"

    def _is_own(self, path: str) -> bool:
        return any(path == each or path.startswith(each + "/") for each in self._own)

    def _places(self, path: str) -> Iterator[str]:
        if "\0" in path or len(path) > 4096:
            return
        if path.startswith("~/"):
            path = self._home + path[1:]  # in code, or in a text that no shell reads: some program will expand it
        for base in self._bases:
            place = os.path.normpath(os.path.join(base, path))  # noqa: PTH118
            yield place
            real = os.path.realpath(place)
            if real != place:
                yield real
