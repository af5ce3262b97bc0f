"""Random work that is previewed, applied, undone and applied again has the effects of a real run, and undo is exact."""

import os
import subprocess
import sys

import pytest

from tests.changes import random_runs
from tests.outside import EXHAUSTIVE, needs_overlays
from whisper_tui.changes import transition

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]

FEW, MANY = 12, 1000 if EXHAUSTIVE else 30


@pytest.fixture(autouse=True)
def unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disks of the tests need not survive a power cut."""
    monkeypatch.setattr(transition, "flush_file_system", lambda path: None)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_as_the_user_of_the_tests(runs):
    assert random_runs.failures(runs) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_as_an_ordinary_user():
    # A process of its own: what forks for so long must not begin with the threads of other tests.
    words = ("-m", "tests.changes.random_runs", "--runs", str(MANY), "--user", "nobody")
    subprocess.run([sys.executable, *words], check=True)


def test_the_same_seed_is_the_same_sequence(tmp_path, monkeypatch):
    logs = []
    for name in ("one", "two"):
        random_runs.make_tree(7, tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        work = random_runs.RandomWork(7, 10)
        work()
        logs.append(work.log)
    assert logs[0] == logs[1]
    assert len(logs[0]) > 10
