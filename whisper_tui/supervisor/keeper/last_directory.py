"""The directory in which a command's bash ends: told by bash itself, without a change to the command that it is given.

Bash reads the file that `BASH_ENV` names before its command. Here that is a pipe with a few words that set a trap for
its exit, which writes the directory into a file without a name. Both are open before the start, so that this works
where a command may open nothing. A command that sets an exit trap of its own, or is replaced by `exec`, tells nothing.
"""

import os
import shlex
import tempfile
from typing import Any

_SCRIPT, _REPORT = 240, 241
"""Descriptors in the command: high ones, for which nobody has a use of their own. The first is closed at once."""

_TRAP = f"{{ builtin set +x; builtin pwd -P >&{_REPORT}; }} 2>/dev/null || builtin :"
"""Traced nowhere, and without an effect on the exit code."""

LONGEST = 4096
"""Bytes of a path, and characters of a `BASH_ENV` that is passed on: both fit into a pipe that nobody reads yet."""


class LastDirectory:
    """Asks the bash of one command where it ends."""

    def __init__(self, environment: dict[str, str]) -> None:
        """`environment`: of the command; a `BASH_ENV` of its own still counts. Raises `OSError`."""
        self._report = os.memfd_create("last directory") if hasattr(os, "memfd_create") else _temporary()
        self._script, writer = os.pipe()
        try:
            os.set_blocking(writer, False)
            os.write(writer, os.fsencode(_script(environment.get("BASH_ENV"))))
        finally:
            os.close(writer)
        self.environment = {**environment, "BASH_ENV": f"/dev/fd/{_SCRIPT}"}
        """What the command is started with; bash takes the variable back before it begins."""

    @property
    def actions(self) -> list[tuple[Any, ...]]:
        """File actions for posix_spawn."""
        return [(os.POSIX_SPAWN_DUP2, self._script, _SCRIPT), (os.POSIX_SPAWN_DUP2, self._report, _REPORT)]

    def has_started(self) -> None:
        """Let go of what only bash reads."""
        os.close(self._script)
        self._script = -1

    def read(self) -> str | None:
        """Where it ended. None: it did not say."""
        told = os.pread(self._report, LONGEST + 1, 0)
        if not told.startswith(b"/") or not told.endswith(b"\n"):
            return None
        return os.fsdecode(told[:-1])

    def close(self) -> None:
        """Let go of everything."""
        if self._script >= 0:
            self.has_started()
        os.close(self._report)


def _temporary() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _script(own: str | None) -> str:
    """What bash reads first. `own`: what it would have read, whose name it expands like a word in double quotes."""
    lines = [f"exec {_SCRIPT}<&-", f"trap {shlex.quote(_TRAP)} EXIT"]
    if own is None:
        return "\n".join(("builtin unset BASH_ENV", *lines, ""))
    read = shlex.quote(f'[ ! -e "{own}" ] || . "{own}"')
    return "\n".join((f"export BASH_ENV={shlex.quote(own)}", *lines, f"eval {read}" if '"' not in own else ":", ""))
