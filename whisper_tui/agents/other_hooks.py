"""Hooks and plugins beside ours that may replace a call after its approval, in the files of a client (decision 34).

A client takes the answer of one hook alone. So each other hook of the same event is named, with its file and its place
there. What it does is not known: it may only write a log.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from whisper_tui.agents.client_files import JSON, Opener, plain_of
from whisper_tui.agents.file_entries import handlers
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.text import one_line_beginning

LONGEST_COMMAND = 120
"""Characters of the command line of another hook that are shown."""

MOST_NAMED = 10
"""Other hooks of a client that are named; of further ones only the number is."""

MOST_FILES = 200
"""Files of plugins in one directory that are read."""

LARGEST_FRONT_MATTER = 1 << 14
"""Bytes at the beginning of a file of an agent or a skill in which its hooks may stand."""

IF_LATER = "it wins if it answers later"
IF_BEHIND = "it wins if it stands behind"
BEHIND = "it stands behind ours and wins"
ALWAYS_LOADED = "it may change what was approved, and wins if it is loaded later"


@dataclass(frozen=True)
class OtherHook:
    """One hook or plugin of somebody else."""

    path: Path
    place: str
    """Where in the file it is. Empty: the file itself is it."""
    command: str
    """The program that it starts, in a few words. Empty: the file itself."""
    wins: str
    """When its answer counts instead of ours, as a clause."""

    def sentence(self) -> str:
        """Name it."""
        where = f"{self.path} ({self.place})" if self.place else str(self.path)
        started = f" starts {one_line_beginning(self.command, LONGEST_COMMAND)!r}" if self.command else ""
        return f"{where}{started}: {self.wins}"


def in_groups(
    path: Path,
    plain: Any,
    events: Iterable[str],
    *,
    is_ours: Callable[[Any], bool],
    seen: Callable[[Any], bool],
    wins: str,
) -> Iterator[OtherHook]:
    """Yield the other hooks of these events in groups with a matcher. `seen` returns True for one of our tools."""
    for event in events:
        found = list(handlers(plain, ("hooks", event)))
        ours = [number for number, _, handler in found if is_ours(handler)]
        groups = plain["hooks"][event] if found else []
        for number, place, handler in found:
            # What a client does not wait for cannot change anything.
            if is_ours(handler) or not isinstance(handler, dict) or handler.get("async"):
                continue
            if seen(groups[number].get("matcher")):
                stands = BEHIND if wins == IF_BEHIND and ours and number > ours[-1] else wins
                yield OtherHook(path, f"hooks.{event}[{number}].hooks[{place}]", _command_of(handler), stands)


def _command_of(handler: dict[str, Any]) -> str:
    """Return what a handler starts: a program, an address, a tool of a server, or the words for a model."""
    for key in ("command", "bash", "url", "prompt", "tool"):
        if isinstance(said := handler.get(key), str) and said:
            return said
    return str(handler.get("type") or "something")


def sees_any(tools: Sequence[str], matches: Callable[[Any, str], bool]) -> Callable[[Any], bool]:
    """Return a function that is true for a matcher that lets a hook see one of these tools, or tools of servers."""

    def seen(matcher: Any) -> bool:
        servers = isinstance(matcher, str) and "mcp" in matcher
        return servers or any(matches(matcher, tool) for tool in tools)

    return seen


def plugin_files(directory: Path, pattern: str = "**/hooks/hooks.json") -> list[Path]:
    """Return the files with hooks of the plugins in a directory."""
    try:
        return sorted(islice((path for path in directory.glob(pattern) if path.is_file()), MOST_FILES))
    except OSError:
        return []


def read_or_nothing(path: Path, opener: Opener = JSON) -> Any:
    """Return the content of a file of somebody else. Empty: it cannot be read, or is no object."""
    try:
        plain = plain_of(path, opener)
    except (BadConfiguration, OSError):
        return {}
    return plain if isinstance(plain, dict) else {}


_HOOKS_OF_TEXT = re.compile(r"^hooks\s*:", re.MULTILINE)


def in_front_matter(files: Iterable[Path], events: Sequence[str]) -> Iterator[OtherHook]:
    """Yield the files of agents and skills whose first lines declare hooks of these events."""
    for path in files:
        try:
            with path.open("rb") as file:
                text = file.read(LARGEST_FRONT_MATTER).decode(errors="replace")
        except OSError:
            continue
        head = text.split("\n---", 1)[0] if text.startswith("---") else ""
        named = next((event for event in events if event in head), None)
        if named is not None and _HOOKS_OF_TEXT.search(head):
            yield OtherHook(path, f"hooks.{named}", "", IF_LATER)


def listed_plugins(path: Path, plain: Any, key: str) -> Iterator[OtherHook]:
    """Yield the plugins that a configuration names."""
    named = plain.get(key) if isinstance(plain, dict) else None
    for number, each in enumerate(named if isinstance(named, list) else []):
        word = each[0] if isinstance(each, list) and each else each
        text = word if isinstance(word, str) else json.dumps(word)
        yield OtherHook(path, f"{key}[{number}]", text, ALWAYS_LOADED)


def named_hooks(others: Sequence[OtherHook]) -> list[str]:
    """Return a sentence about each, and one about the number of those that are left out."""
    unique = list(dict.fromkeys(others))
    said = [other.sentence() for other in unique[:MOST_NAMED]]
    return [*said, f"{len(unique) - MOST_NAMED:,} more"] if len(unique) > MOST_NAMED else said
