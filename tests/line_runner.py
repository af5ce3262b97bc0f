"""Runs lines that a test has made up: as nobody, where this is root, and until all that they started has ended."""

import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.as_user import NOBODY

USER = NOBODY if os.geteuid() == 0 else None
"""The user of the lines. None: the one of this process."""


class Ran(NamedTuple):
    """What is known of a line that ran."""

    output: bytes
    ended: bool
    """False if it was killed, because its time was over."""


def own(path: Path) -> None:
    """Give a path to the user of the lines."""
    if USER is not None:
        os.chown(path, USER, USER, follow_symlinks=False)


def tracer(calls: str, trace: Path, *options: str) -> list[str]:
    """The words before a line with which strace writes these system calls of it into a file."""
    return ["strace", "-f", "-qq", *options, "-e", f"trace={calls}", "-o", str(trace)]


def run_line(
    words: Sequence[str], directory: Path, environment: Mapping[str, str], longest_s: float, largest: int | None = None
) -> Ran:
    """Run a line for at most so many seconds. `largest`: the bytes of the largest file that it may write."""

    def limit() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    started = subprocess.Popen(
        words,
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        user=USER,
        group=USER,
        extra_groups=None if USER is None else [],
        start_new_session=True,
        preexec_fn=limit,  # noqa: PLW1509
    )
    output, ended = b"", False
    with started:
        with suppress(subprocess.TimeoutExpired):
            output = started.communicate(timeout=longest_s)[0]
            ended = True
        # The whole group, because strace alone would leave behind what it traces.
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        if not ended:
            with suppress(subprocess.TimeoutExpired):
                output = started.communicate(timeout=longest_s)[0]
    return Ran(output, ended)
