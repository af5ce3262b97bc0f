"""The channel for the last directory of a command, in a process with any number of open files."""

import os
import shutil

import pytest

from whisper_tui.supervisor.keeper.limited_start import ProcessLimits, fork_limited
from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.spawn import LastDirectory

BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_its_numbers_in_the_command_may_be_taken_in_the_process_that_starts_it() -> None:
    assert BASH is not None
    fillers = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while fillers[-1] < 230:
            fillers.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(14):
            asked = LastDirectory(dict(os.environ))
            pid, _ = fork_limited(
                BASH,
                ["bash", "-c", "cd /usr"],
                asked.environment,
                files=asked.actions,
                limits=ProcessLimits(None, None),
                group=RunCgroup(),
            )
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert asked.read() == "/usr", fillers[-1]
            asked.close()
            fillers.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for fd in fillers:
            os.close(fd)
