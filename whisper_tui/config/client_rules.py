"""An agent client's own rules: what it denies or asks about by itself is denied or asked here too, as its files change.

With whisper_tui's hook the client judges `whisper-tui exec …` and no longer the command, so its own rules would not
hold any more. They are read when a call is judged. They only make things stricter; what the client allows says nothing.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.call import Session
from whisper_tui.policy.imports.own_rules import (
    OwnRules,
    claude_own,
    codex_own,
    gemini_lists_own,
    gemini_own,
    opencode_own,
)
from whisper_tui.policy.rules import NO_RULES, Rules

LONGEST = 1024 * 1024
"""Bytes of a file that is read at all."""

MOST_REMEMBERED = 64
"""Combinations of client and workspace whose rules are kept in memory."""

TITLES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "opencode": "OpenCode",
}
"""What the names begin with by which clients are known in sessions, and how they are called."""

VARIABLES = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG")
"""What moves the files of a client. It adds to the usual places, for a project may have set it."""


class Source(NamedTuple):
    """A file that may hold rules, and who reads it."""

    path: Path
    read: Callable[[str], OwnRules]
    """From its text to what it makes stricter. Raises `ValueError`."""


class ClientRules:
    """The rules of each client in each workspace, read again when one of the files changes."""

    def __init__(self, user_directory: Path) -> None:
        self._user_directory = user_directory
        self._known: dict[object, tuple[object, Rules]] = {}

    def of(self, session: Session, environment: Mapping[str, str]) -> Rules:
        """What the client of a session makes stricter there."""
        return self.of_client(session.client.name if session.client is not None else "", session.root, environment)

    def of_client(self, name: str, root: str, environment: Mapping[str, str]) -> Rules:
        """What a client makes stricter in a workspace, by the beginning of its name in sessions."""
        client = next((known for known in TITLES if name.startswith(known)), None)
        if client is None or not root.startswith("/"):
            return NO_RULES
        key = (client, root, tuple(environment.get(variable, "") for variable in VARIABLES))
        sources = tuple(dict.fromkeys(sources_of(client, Path(root), self._user_directory, environment)))
        stamp = tuple((source.path, _stamp(source.path)) for source in sources)
        known = self._known.get(key)
        if known is None or known[0] != stamp:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            known = self._known[key] = (stamp, _whole(client, sources))
        return known[1]


def sources_of(client: str, root: Path, own_home: Path, environment: Mapping[str, str]) -> Iterator[Source]:
    """The files in which a client has rules of its own: managed ones, the user's and the project's."""
    moved = {name: Path(value) for name in VARIABLES if (value := environment.get(name, "")).startswith("/")}
    homes = tuple(dict.fromkeys((own_home, moved.get("HOME", own_home))))

    def users(below: str, variable: str) -> tuple[Path, ...]:
        usual = tuple(home / below for home in homes)
        return (*usual, moved[variable]) if variable in moved else usual

    match client:
        case "claude-code":
            yield from _claude(root, users(".claude", "CLAUDE_CONFIG_DIR"))
        case "codex":
            for layer in (Path("/etc/codex"), *users(".codex", "CODEX_HOME"), root / ".codex"):
                for path in _in(layer / "rules", ".rules"):
                    yield Source(path, codex_own)
        case "gemini-cli":
            yield from _gemini(root, users("", "GEMINI_CLI_HOME"))
        case _:
            if "OPENCODE_CONFIG" in moved:
                yield Source(moved["OPENCODE_CONFIG"], _opencode_configuration)
            yield from _opencode(root, users(".config", "XDG_CONFIG_HOME"))


def _claude(root: Path, directories: Iterable[Path]) -> Iterator[Source]:
    managed = Path("/etc/claude-code")
    users = (directory / "settings.json" for directory in directories)
    mine = (root / ".claude" / "settings.json", root / ".claude" / "settings.local.json")
    for path in (managed / "managed-settings.json", *_in(managed / "managed-settings.d", ".json"), *users, *mine):
        yield Source(path, _claude_settings)


def _gemini(root: Path, homes: Iterable[Path]) -> Iterator[Source]:
    layers = (Path("/etc/gemini-cli"), *(home / ".gemini" for home in homes))
    for layer in layers:
        for path in _in(layer / "policies", ".toml"):
            yield Source(path, gemini_own)
    for layer in (*layers, root / ".gemini"):
        yield Source(layer / "settings.json", _gemini_settings)


def _opencode(root: Path, directories: Iterable[Path]) -> Iterator[Source]:
    for directory in directories:
        for name in ("opencode.json", "opencode.jsonc", "config.json"):
            yield Source(directory / "opencode" / name, _opencode_configuration)
    above = (root, *root.parents)
    repository = next((at for at, directory in enumerate(above) if (directory / ".git").exists()), 0)
    for layer in (*above[: repository + 1], root / ".opencode"):
        for name in ("opencode.json", "opencode.jsonc"):
            yield Source(layer / name, _opencode_configuration)


def _in(directory: Path, ending: str) -> list[Path]:
    """The files of a directory with this ending, in their order."""
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(ending))  # noqa: PTH208  half the time
    except OSError:
        return []
    return [directory / name for name in names]


def _whole(client: str, sources: Iterable[Source]) -> Rules:
    """What all files make stricter together. One that cannot be read makes everything be asked."""
    found: list[Rules] = []
    problems = []
    for path, read in sources:
        try:
            text = _text(path)
            if text is not None:
                found.append(read(text.removeprefix("\ufeff")).rules(TITLES[client], str(path)))
        except (OSError, ValueError, RecursionError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            problems.append(f"{path}, where {TITLES[client]} has rules of its own, cannot be read: {why}")
    return Rules(
        deny=tuple(rule for rules in found for rule in rules.deny),
        ask=tuple(rule for rules in found for rule in rules.ask),
        read_only=False if any(rules.read_only is False for rules in found) else None,
        broken="; ".join(problems) or None,
    )


def _text(path: Path) -> str | None:
    """The text of a file. None: there is none. Only an ordinary file is read, and never waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no ordinary file")
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST:,} bytes")
    return content.decode()


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        about = os.stat(path)  # noqa: PTH116  it is asked with every call
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)


def _with_comments(text: str) -> Any:
    """What JSON says that may hold comments. Raises `ValueError`."""
    from whisper_tui.install.json_text import read_json

    return read_json(text, comments=True).value if text.strip() else {}


def _claude_settings(text: str) -> OwnRules:
    return claude_own(text) if text.strip() else OwnRules()


def _gemini_settings(text: str) -> OwnRules:
    return gemini_lists_own(json.dumps(_with_comments(text)))


def _opencode_configuration(text: str) -> OwnRules:
    return opencode_own(_with_comments(text))
