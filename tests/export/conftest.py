"""Exports of real runs: a supervisor in process, and short words for what is done through its port."""

from pathlib import Path

import pytest

from tests.port.conftest import Desk, home, supervisor
from whisper_tui.model.call import SessionHello
from whisper_tui.supervisor.supervisor import Supervisor

__all__ = ["home", "supervisor"]


@pytest.fixture
async def desk(supervisor: Supervisor, tmp_path: Path) -> Desk:
    root = tmp_path / "workspace"
    root.mkdir()
    return Desk(supervisor, await supervisor.open_session(SessionHello(name="agent", root=str(root))))
