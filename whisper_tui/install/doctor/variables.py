"""Variables that a project's files give to whatever a client starts: some would move a hook, or change its code."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from whisper_tui.install.doctor.report import Check, bad, note

MOVING = frozenset({"WHISPER_TUI_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"})
"""What says where the directories of whisper_tui are, to programs that nobody tells. Hooks and servers are told."""

LOADING = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "LD_PRELOAD", "LD_LIBRARY_PATH"})
"""What makes a program load other code than its own; no program can defend itself against that."""

_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*[=:]", re.MULTILINE)
LONGEST = 1 << 20
"""Bytes of a file of variables that is read at all."""


def set_in(settings: Any) -> list[str]:
    """The variables that settings with an object `env` give."""
    given = settings.get("env") if isinstance(settings, dict) else None
    return [name for name in given if isinstance(name, str)] if isinstance(given, dict) else []


def dotenv_files(project: Path) -> Iterator[tuple[Path, list[str]]]:
    """The files of variables that a client finds from a project upwards, with the names of their variables."""
    for directory in (project, *project.parents):
        for path in (directory / ".gemini" / ".env", directory / ".env"):
            try:
                with path.open("rb") as file:
                    text = file.read(LONGEST).decode(errors="replace")
            except OSError:
                continue
            yield path, _ASSIGNED.findall(text)


def checks(path: Path, names: Iterable[str], title: str) -> list[Check]:
    """What is to be said about the variables that a file gives to what a client starts."""
    found = []
    for name in dict.fromkeys(names):
        if name in LOADING:
            sentence = (
                f"{path} sets {name}, with which {title} starts the hook: other code may then answer in its stead"
            )
            found.append(bad("variables", sentence, "Take it out"))
        elif name in MOVING:
            sentence = f"{path} sets {name}, which moves the directories of programs that are not told theirs"
            found.append(note("variables", sentence, "Take it out, unless you put it there"))
    return found
