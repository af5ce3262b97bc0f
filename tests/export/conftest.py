"""Exports of real runs: a supervisor in process, and shortcuts for its API."""

from pathlib import Path

import pytest

from tests.api.conftest import Harness, supervisor
from whisper_tui.model.call import SessionHello
from whisper_tui.supervisor.supervisor import Supervisor

__all__ = ["supervisor"]


@pytest.fixture
async def harness(supervisor: Supervisor, tmp_path: Path) -> Harness:
    root = tmp_path / "workspace"
    root.mkdir()
    return Harness(supervisor, await supervisor.open_session(SessionHello(name="agent", root=str(root))))
