"""The targets of calls that an agent carries out itself: tools by their names, files by patterns, hosts by names."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from whisper_tui.model.call import CarriedOut, FileEdits
from whisper_tui.model.edits import EditedFile

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

EDIT, WEB, SUBAGENT = "edit", "web", "subagent"
"""Names of kinds of tools in rules, for every client."""

_HOST = re.compile(r"(?:\*\.)?[^\s/*?\[\]@]+")


def tool_names(command: CarriedOut) -> tuple[str, ...]:
    """Return the names by which a rule may call the tool of a call."""
    if isinstance(command, FileEdits):
        return (command.tool, EDIT)
    if command.about == "server" and len(command.targets) == 2:
        return (command.tool, f"mcp__{command.targets[0]}__{command.targets[1]}")
    return (command.tool, *((command.about,) if command.about in {WEB, SUBAGENT} else ()))


def path_problem(pattern: str) -> str:
    """Return why a text cannot be the pattern of a rule for files, as a clause, or an empty text."""
    if not pattern.strip() or "\0" in pattern or "\n" in pattern:
        return "needs a pattern in path"
    if pattern.startswith(("!", "#")):
        # In a .gitignore these make an exception and a comment; a rule has one pattern.
        return f"has a path that begins with {pattern[0]!r}"
    return ""


def host_problem(host: str) -> str:
    """Return why a text cannot be the host of a rule, as a clause, or an empty text."""
    return "" if _HOST.fullmatch(host) else "needs the name of a host, as in example.org or *.example.org"


def host_matches(rule_host: str, host: str, *, any_port: bool = False) -> bool:
    """True if a host is the one of a rule. `any_port`: also on a port that the rule does not name."""
    wanted, given = rule_host.lower().rstrip("."), host.lower().rstrip(".")
    if fnmatchcase(given, wanted):
        return True
    bare, colon, port = given.rpartition(":")
    return any_port and bool(colon) and port.isdecimal() and fnmatchcase(bare, wanted)


def file_matches(pattern: str, file: EditedFile, root: str, home: str, *, wide: bool) -> bool:
    """True if a pattern matches an edited file: by where its links lead and by its name, or with `wide` by either."""
    if pattern.startswith("//"):
        return _each(pattern.lstrip("/"), "/", file, wide)
    if pattern.startswith("~/"):
        return bool(home) and _each(pattern[2:], home, file, wide)
    named = _below(file.path, root) if root else ""
    found = [bool(path) and _spec(pattern).match_file(path) for path in (file.inside, named)]
    return any(found) if wide else found[0]


def _each(pattern: str, base: str, file: EditedFile, wide: bool) -> bool:
    paths = [_below(path, base) for path in dict.fromkeys((file.real, file.path))]
    found = [bool(path) and _spec("/" + pattern).match_file(path) for path in paths]
    return any(found) if wide else all(found)


def literal_pattern(path: str) -> str:
    """Return the pattern that matches just this path from the workspace on."""
    return "/" + re.sub(r"([\\*?\[\]!#])", r"\\\1", path).replace("\n", "?")


def _below(path: str, directory: str) -> str:
    """Return a path from a directory on. Empty: it is not below that directory."""
    above = directory.rstrip("/") + "/"
    return path[len(above) :] if path.startswith(above) else ""


@lru_cache(maxsize=512)
def _spec(pattern: str) -> "GitIgnoreSpec":
    # Only rules for files need the library, which takes longer to load than most of the policy.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
