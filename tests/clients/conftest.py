"""The clients are installed before anything is tested, and each conversation is played once for all of its tests."""

from pathlib import Path

import pytest

from tests.clients.install import install
from tests.clients.programs import PROGRAMS, Program

SLOWEST_S = 240
"""Seconds for the slowest test: the one for which a whole conversation is played."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time, and keep the tests of one conversation in one process."""
    for item in items:
        if Path(__file__).parent in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.timeout(SLOWEST_S))
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {item.callspec.params['program'].name}"))


@pytest.fixture(scope="session")
def installed() -> None:
    """The clients, at the versions that the expectations were measured with. One that cannot be had is a failure."""
    install()


@pytest.fixture(scope="session", params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest, installed: None) -> Program:
    """One client after the other."""
    return request.param
