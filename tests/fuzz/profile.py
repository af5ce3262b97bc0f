"""Profiles of fuzzing: short and deterministic in the suite, random and longer by `python -m tests.fuzz`."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
FLOOD_BYTES = (1024 if LONG else 64) * 1024 * 1024
"""Thrown at one process."""
ATTEMPTS = 10_000 if LONG else 500
"""Connections that are tried at once."""
LONGER = 50
"""So many times as many examples."""


def fuzzed(examples: int, **more: Any) -> settings:
    """The settings of one test."""
    return settings(
        max_examples=examples * (LONGER if LONG else 1),
        derandomize=not LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        **more,
    )
