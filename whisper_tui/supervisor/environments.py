"""What the commands of each session inherit: kept in private files, because an environment holds secrets."""

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from whisper_tui.model.errors import Unavailable

KNOWN = 50
"""Environments that are held in memory."""


class Environments:
    """One file for each session that still needs one, readable by the user alone."""

    def __init__(self, directory: Path, own: Mapping[str, str]) -> None:
        self._directory = directory
        self._own = dict(own)
        """What a session without an environment of its own inherits."""
        self._known: OrderedDict[str, dict[str, str]] = OrderedDict()
        """Those that were used last; the others are read again when they are needed."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(self, session_id: str, environment: Mapping[str, str]) -> None:
        """Remember a session's environment beyond the life of this process. Raises `Unavailable`."""
        self._know(session_id, dict(environment) or self._own)
        if not environment:
            return
        path = self._path(session_id)
        unfinished = path.with_suffix(".new")
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(dict(environment), file)
            unfinished.replace(path)
        except (OSError, UnicodeEncodeError) as error:
            raise Unavailable(f"the environment of session {session_id} cannot be kept: {error}") from error

    def of(self, session_id: str) -> dict[str, str]:
        """The environment of a session; the supervisor's own where the session brought none. Raises `Unavailable`."""
        return self._know(session_id, self._known.get(session_id) or self._read(session_id))

    def forget(self, session_id: str) -> None:
        """A session that is closed and has nothing left to start needs it no longer."""
        self._known.pop(session_id, None)
        with suppress(OSError):
            self._path(session_id).unlink(missing_ok=True)

    def _know(self, session_id: str, environment: dict[str, str]) -> dict[str, str]:
        self._known[session_id] = environment
        self._known.move_to_end(session_id)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return environment

    def _read(self, session_id: str) -> dict[str, str]:
        try:
            loaded = json.loads(self._path(session_id).read_text())
        except (FileNotFoundError, ValueError):
            return self._own
        except OSError as error:
            message = f"the environment of session {session_id} cannot be read: {error.strerror}"
            raise Unavailable(message, hint="Check the disk and the limit of open files, then try again") from error
        return {str(name): str(value) for name, value in loaded.items()} if isinstance(loaded, dict) else self._own

    def _path(self, session_id: str) -> Path:
        return self._directory / f"{session_id}.json"
