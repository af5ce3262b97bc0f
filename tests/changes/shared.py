"""Let a second process take part in transitions of any size, so that small examples try what large ones do."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from whisper_tui.changes import shared_steps
from whisper_tui.changes.shared_steps import SecondProcess

LONGEST_START_S = 60.0


@contextmanager
def everything_shared() -> Iterator[None]:
    """Start a second process for each transition, wait until it is there, and divide the work into single changes."""
    start = SecondProcess.start

    def started(*arguments: Any, **named: Any) -> SecondProcess:
        second = start(*arguments, **named)
        assert second is not None
        deadline = time.monotonic() + LONGEST_START_S
        while not second.is_free():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return second

    with (
        mock.patch.object(shared_steps, "FEWEST", 1),
        mock.patch.object(shared_steps, "_PART", 1),
        mock.patch.object(SecondProcess, "start", started),
        mock.patch.object(os, "sched_getaffinity", lambda pid: {0, 1}),
    ):
        yield
