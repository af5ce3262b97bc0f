"""What is there and cannot be read is never taken for what is not there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.swift import Machine, SwiftExecutor
from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.runs.executor import Report, RunKey
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.supervisor.sessions import Environments
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system import run_files
from whisper_tui.system.state_directory import Directories

KEY = RunKey("1", 1)


def test_output_that_cannot_be_read_is_not_told_as_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "1.1" / run_files.OUT).mkdir(parents=True)
    with pytest.raises(Unavailable, match="output of call 1 cannot be read") as told:
        OutputFiles(tmp_path).read_output(KEY, "out", 0, 100)
    assert "try again" in told.value.hint
    assert OutputFiles(tmp_path).read_output(RunKey("2", 1), "out", 0, 100).data == b""


def test_an_environment_that_cannot_be_read_is_not_replaced_by_another_one(tmp_path: Path) -> None:
    (tmp_path / "s1.json").mkdir()
    environments = Environments(tmp_path, {"OWN": "1"})
    with pytest.raises(Unavailable, match="environment of session s1 cannot be read"):
        environments.of("s1")
    assert environments.of("s2") == {"OWN": "1"}


class _Failing(SwiftExecutor):
    """An executor that has an error nobody has thought of."""

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        raise RuntimeError("nobody has thought of this")
        yield ()


async def test_a_supervisor_of_which_a_part_has_failed_stops_rather_than_record_nothing_more(
    tmp_path: Path, home: Directories
) -> None:
    supervisor = Supervisor(home, _Failing(Machine(lambda _: True)))
    await supervisor.open()
    await asyncio.wait_for(supervisor.stopped.wait(), 60)
    await supervisor.close()
