"""What most of these tests begin with."""

import pytest

from tests.hostile.evil import Evil


@pytest.fixture
def evil(text: str) -> Evil:
    """An agent that fills in `text`, which the test is given, wherever it may fill in anything."""
    return Evil(text)
