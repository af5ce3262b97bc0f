"""Each client is tested if it is installed, and each conversation is played once for all of its tests."""

from pathlib import Path

import pytest

from tests.clients.install import missing
from tests.clients.programs import PROGRAMS, Program

SLOWEST_S = 1800
"""Seconds for the slowest test: the one for which a whole conversation is played. One that is stuck ends earlier."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time, and keep the tests of one conversation in one process."""
    for item in items:
        if Path(__file__).parent in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.timeout(SLOWEST_S))
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {item.callspec.params['program'].name}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the clients about which these tests say nothing."""
    if absent := missing():
        terminalreporter.write_line(f"Not installed, and so not tested: {', '.join(absent)}.", red=True)


@pytest.fixture(scope="session", params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """One client after the other, at the versions that the expectations were measured with.

    One that cannot be had is a failure, and no hindrance for the others.
    """
    if request.param.name in missing():
        pytest.fail(f"{request.param.name} is not installed: python tests/clients/install.py installs it, or says why")
    return request.param
