"""A defence counts as proven only if all tests of it ran and failed."""

import pytest

from tests.mutations.__main__ import Outcomes

TESTS = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_that_fails(number):
    assert number == 1

@pytest.fixture
def broken():
    raise OSError

def test_with_an_error(broken):
    pass

def test_that_passes():
    pass

@pytest.mark.skip(reason="not here")
def test_that_is_skipped():
    pass
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    root = tmp_path_factory.mktemp("project")
    (root / "test_some.py").write_text(TESTS)
    return Outcomes.of(root, ["test_some.py"], longest_s=60)


@pytest.mark.slow
def test_a_defence_is_proven_if_each_of_its_tests_fails(outcomes: Outcomes):
    assert outcomes.problem(["test_some.py::test_that_fails", "test_some.py::test_with_an_error"]) == ""
    assert outcomes.problem(["test_some.py::test_that_fails[2]"]) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("test_that_passes", "still passes"),
        ("test_that_fails[1]", "still passes"),
        ("test_that_is_skipped", "skipped here, which shows nothing"),
    ],
)
def test_a_test_that_passes_or_is_skipped_proves_nothing(outcomes: Outcomes, test: str, problem: str):
    said = outcomes.problem(["test_some.py::test_that_fails", f"test_some.py::{test}"])
    assert said == f"{problem}: test_some.py::{test}"
