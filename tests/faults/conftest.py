"""Instances for the tests of faults."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.instance import Instance


@pytest.fixture
async def instance(tmp_path: Path) -> AsyncIterator[Instance]:
    made = Instance(tmp_path / "home", tmp_path / "workspace")
    (tmp_path / "home").mkdir()
    await made.open()
    yield made
    await made.close()
