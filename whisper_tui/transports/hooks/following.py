"""An agent's own shell goes where an approved command ended: `cd build`, and the next command is in build.

The command runs in a shell of ours, so the agent's shell is told: what it was given to run ends in `cd -P LINK`, and
the link, which is made once the command has succeeded, leads to the directory. Plain words, whatever it is called.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from whisper_tui.model.command import Command
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import CallRecord, Ended

REMOVED_AFTER_S = 60.0
"""Seconds after the command's end in which the agent's shell has long read the link."""

SAYS_CD = re.compile(r"(?<![\w-])(cd|pushd|popd)(?![\w-])")

LastDirectory = Callable[[str], str | None]
"""The directory in which a call's shell has ended. None: it is not known."""

MayLeave = Callable[[Command], bool]
"""Whether a command's shell may end in another directory than it began in."""


class Following:
    """Makes the links, in one directory of its own."""

    def __init__(self, directory: Path, last_directory: LastDirectory, may_leave: MayLeave) -> None:
        """Links that an earlier supervisor left are removed."""
        self._directory = directory
        self._last_directory = last_directory
        self._may_leave = may_leave
        for link in directory.glob("*-*"):
            link.unlink(missing_ok=True)

    def applies(self, record: CallRecord) -> bool:
        """Whether the agent's shell can be somewhere else after this command."""
        return record.call.follows and self._may_leave(record.spec.command)

    def after(self, ticket: str) -> str:
        """What a shell has to do once the command of a ticket has succeeded."""
        return f"cd -P {shlex.quote(str(self._directory / ticket))}"

    def point(self, ticket: str, record: CallRecord) -> str:
        """Make the link of a call that has ended. Returns what its agent has to know, as a sentence; mostly nothing."""
        if not isinstance(record.state, Ended) or record.state.ending != Exited(code=0) or not self.applies(record):
            return ""
        home = record.call.spec.cwd
        last = self._last_directory(record.id)
        began = os.path.realpath(record.spec.cwd)
        # A human may have sent the command elsewhere: the agent's shell follows it only if it went on from there.
        there = last if last is not None and last != began and Path(last).is_dir() else home
        try:
            self._make(self._directory / ticket, there)
        except OSError as error:
            return f"the next command starts in {home}: where this one ended cannot be told ({error.strerror})"
        said = record.spec.command.words()[-1]
        if (last is None or (there == home and last != began)) and SAYS_CD.search(said):
            return f"the next command starts in {home}: where this one ended is not known, or gone"
        return ""

    def _make(self, link: Path, there: str) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(there)
        asyncio.get_running_loop().call_later(REMOVED_AFTER_S, lambda: link.unlink(missing_ok=True))
