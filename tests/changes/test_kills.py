"""A transition that is killed at any point is finished or has not begun: never are only some changes real."""

import os
import subprocess
import sys

import pytest

from tests.changes import kills
from tests.outside import EXHAUSTIVE, needs_overlays
from whisper_tui.changes import transition

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]


@pytest.fixture(autouse=True)
def unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process leaves the caches of the kernel as they are."""
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)


SOME = (5, 23)
"""The first call that is killed, and how many calls later the next one is."""
MORE = [(start, 3) for start in range(3)] if EXHAUSTIVE else [(2, 7)]


@pytest.mark.parametrize(("first", "every"), [SOME, *(pytest.param(*more, marks=pytest.mark.slow) for more in MORE)])
@pytest.mark.parametrize("other", [None, pytest.param("/dev/shm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kill", [kills.kill_apply, kills.kill_undo])
@pytest.mark.few(1)
def test_killed_before_a_changing_call(kill, other, first, every):
    assert kills.kill_each(kill, other, first, every) >= 2


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("first", "every"), [(1, 7) if EXHAUSTIVE else SOME])
def test_killed_as_an_ordinary_user(first, every):
    # A process of its own: what forks for so long must not begin with the threads of other tests.
    words = ("-m", "tests.changes.kills", "--first", str(first), "--every", str(every), "--user", "nobody")
    done = subprocess.run([sys.executable, *words], check=True, stdout=subprocess.PIPE, text=True)
    assert [int(line.split()[-1]) >= 2 for line in done.stdout.splitlines()] == [True] * 4


@pytest.mark.parametrize("runs", [8, pytest.param(100 if EXHAUSTIVE else 20, marks=pytest.mark.slow)])
def test_random_sequences_killed_at_random_calls(runs):
    assert kills.failures_of_random_kills(runs) == []


def test_an_engine_that_never_resumes_is_found(monkeypatch):
    """The checks of this file must be able to fail: here nothing is finished after a kill."""
    monkeypatch.setattr(transition, "resume", transition.load_plan)
    with pytest.raises(AssertionError):
        kills.kill_each(kills.kill_apply, None, 20, 30)
