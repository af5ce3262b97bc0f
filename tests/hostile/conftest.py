"""What most of these tests begin with."""

import pytest

from tests.hostile.adversarial import Adversary


@pytest.fixture
def adversary(text: str) -> Adversary:
    """An agent that fills in `text`, which the test is given, wherever it may fill in anything."""
    return Adversary(text)
