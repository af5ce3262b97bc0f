"""One supervisor for all tests of a worker, whose health is checked after each test."""

from collections.abc import Iterator

import pytest

from tests.fuzz.target import Target


@pytest.fixture(scope="session")
def _attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    made = Target(tmp_path_factory.mktemp("f") / "home")
    yield made
    made.close()


@pytest.fixture
def target(_attacked: Target) -> Iterator[Target]:
    """It must be well afterwards."""
    yield _attacked
    _attacked.check()


@pytest.fixture
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A supervisor for one test alone."""
    made = Target(tmp_path_factory.mktemp("f") / "home")
    yield made
    made.check()
    made.close()
