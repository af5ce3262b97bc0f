"""Programs outside of the directories from which the sandbox executes, and which of them it may run by themselves.

A version manager or `pip install --user` puts programs into a home directory, which the sandbox keeps closed. One that
is a binary needs nothing beside itself and the system, so that opening this one file is enough (decision 7).
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from whisper_tui.model.verdict import OutsideProgram
from whisper_tui.system import host_files
from whisper_tui.system.closed_paths import lies_below
from whisper_tui.system.landlock_rules import PROGRAM_DIRECTORIES
from whisper_tui.system.own_binaries import is_own_binary

_START_ANOTHER = frozenset({"rustup", "mise"})
"""Programs that go by many names and start another program of that name, which is not opened with them."""


def outside_programs(programs: Iterable[str], workspaces: Sequence[str]) -> tuple[OutsideProgram, ...]:
    """Return those of the programs of a command that lie neither in the system nor in a workspace.

    What lies in a workspace is the agent's: no sandbox runs it because of its name.
    """
    found = []
    for program in dict.fromkeys(programs):
        real = host_files.realpath(program)
        if not lies_below(real, PROGRAM_DIRECTORIES) and not any(lies_below(p, workspaces) for p in (program, real)):
            alone = PurePath(real).name not in _START_ANOTHER and is_own_binary(program)
            found.append(OutsideProgram(path=program, real=real, runs_alone=alone))
    return tuple(found)
