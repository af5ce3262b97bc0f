"""Files of clients: what is to stand in them, what that changes, and how the change is taken back to the letter."""

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.install.documents import Document, WrongShape
from whisper_tui.install.entries import Entry
from whisper_tui.install.json_document import JsonDocument
from whisper_tui.install.json_text import JsonProblem
from whisper_tui.install.toml_document import TomlDocument
from whisper_tui.model.errors import BadConfiguration, Refused

BACKUP = ".whisper-tui-backup"
"""What the name of a backup ends with; it stands beside the file."""

Opener = Callable[[str], Document]
JSON: Opener = partial(JsonDocument, comments=False)
JSON_WITH_COMMENTS: Opener = partial(JsonDocument, comments=True)
TOML: Opener = TomlDocument


@dataclass(frozen=True)
class Shared:
    """A file of the client's, in which some entries are ours. Those in `unwanted` are taken out."""

    path: Path
    opener: Opener
    wanted: tuple[Entry, ...] = ()
    unwanted: tuple[Entry, ...] = ()
    blank: str = ""
    """The text to begin with where there is no such file."""


@dataclass(frozen=True)
class Own:
    """A file that is ours alone. `text` None: it is to go. Its first line says whose it is."""

    path: Path
    mark: str
    text: str | None


ClientFile = Shared | Own


@dataclass(frozen=True)
class Change:
    """What becomes of one file. None: there is no such file before, or none afterwards."""

    path: Path
    before: str | None
    after: str | None
    backup: str | None = None
    """What to keep beside the file; None leaves an earlier backup as it is."""
    drops_backup: bool = False


def backup_of(path: Path) -> Path:
    """Where the backup of a file is."""
    return path.with_name(path.name + BACKUP)


def read_file(path: Path) -> str | None:
    """The text of a file, its line ends as they are. None: there is none. Raises `BadConfiguration`."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path} is not UTF-8 text", hint="Nothing was changed. Correct it first") from error
    except OSError as error:
        raise BadConfiguration(
            f"{path} cannot be read: {error.strerror}", hint="Nothing was changed. Check its permissions"
        ) from error


def opened(path: Path, opener: Opener, text: str) -> Document:
    """A document. Raises `BadConfiguration` with the file and the line for text that cannot be read."""
    try:
        document = opener(text)
    except JsonProblem as error:
        raise _broken(path, f"line {error.line}", f"is not valid JSON: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, "", f"is not valid TOML: {error}") from error
    if not isinstance(document.plain(), dict):
        raise _broken(path, "line 1", "does not hold an object")
    return document


def plain_of(path: Path, opener: Opener) -> Any:
    """What a file says; `{}` where there is none. Raises `BadConfiguration`."""
    text = read_file(path)
    return {} if text is None else opened(path, opener, text).plain()


def misshapen(path: Path, error: WrongShape) -> BadConfiguration:
    """The same, told with its file."""
    return BadConfiguration(f"{path}: {error}", hint="Nothing was changed. Correct it first")


def changes(files: Iterable[ClientFile]) -> list[Change]:
    """What has to be changed so that the files are as wanted. Raises `WhisperError`; nothing is written here."""
    found = [_own(file) if isinstance(file, Own) else _shared(file) for file in files]
    return [change for change in found if change is not None]


def _own(file: Own) -> Change | None:
    before = read_file(file.path)
    if before is not None and not before.startswith(file.mark):
        if file.text is None:
            return None
        raise Refused(f"{file.path} was not written by whisper_tui", hint="Move it away first")
    return None if before == file.text else Change(file.path, before, file.text)


def _shared(file: Shared) -> Change | None:
    text = read_file(file.path)
    if text is None and not file.wanted:
        return None
    document = opened(file.path, file.opener, text or file.blank)
    plain = document.plain()
    unwanted = [entry for entry in file.unwanted if entry.found(plain) is not None] if _is_ours(file, plain) else []
    if not unwanted and all(entry.holds(plain) for entry in file.wanted):
        return None
    try:
        return _extended(file, text, document) if file.wanted else _taken_back(file, text or "", document)
    except WrongShape as error:
        raise misshapen(file.path, error) from error


def _extended(file: Shared, text: str | None, document: Document) -> Change:
    was_ours = _is_ours(file, document.plain())
    saved = read_file(backup_of(file.path))
    backup = text if text is None or not was_ours else None
    if was_ours and saved is None and text is not None:
        without = opened(file.path, file.opener, text)
        _remove_all(file, without, None)
        backup = None if _is_empty(without) else without.text
    original = opened(file.path, file.opener, saved).plain() if saved is not None and was_ours else None
    for entry in file.unwanted if was_ours else ():
        entry.remove(document, original)
    for entry in file.wanted:
        if not entry.holds(document.plain()):
            entry.write(document)
    return Change(file.path, text, document.text, backup=backup, drops_backup=text is None)


def _is_ours(file: Shared, plain: Any) -> bool:
    """Whether whisper_tui was installed there before."""
    return any(entry.is_a_sign and entry.found(plain) is not None for entry in (*file.wanted, *file.unwanted))


def _taken_back(file: Shared, text: str, document: Document) -> Change:
    """The file as it was, if nobody has edited it since; without our entries otherwise."""
    saved = read_file(backup_of(file.path))
    ours = [entry for entry in (known.found(document.plain()) for known in file.unwanted) if entry is not None]
    if _written_again(file, saved, ours) == text:
        return Change(file.path, text, saved, drops_backup=True)
    _remove_all(file, document, None if saved is None else opened(file.path, file.opener, saved).plain())
    nothing_left = saved is None and _is_empty(document)
    return Change(file.path, text, None if nothing_left else document.text, drops_backup=True)


def _written_again(file: Shared, saved: str | None, entries: list[Entry]) -> str | None:
    """What our entries, as they stand in the file, make of the backup."""
    try:
        document = opened(file.path, file.opener, saved or file.blank)
        for entry in entries:
            if not entry.holds(document.plain()):
                entry.write(document)
    except (BadConfiguration, WrongShape):
        return None
    return document.text


def _remove_all(file: Shared, document: Document, original: Any) -> None:
    for entry in reversed((*file.wanted, *file.unwanted)):
        entry.remove(document, original)


def _is_empty(document: Document) -> bool:
    """Whether nothing is left that anybody would miss."""
    return set(document.plain()) <= {"$schema"}


def _broken(path: Path, line: str, problem: str) -> BadConfiguration:
    return BadConfiguration(
        f"{path}{', ' if line else ''}{line} {problem}", hint="Nothing was changed. Correct it, then try again"
    )
