"""A power failure during or after an apply or an undo: afterwards all changes are there, or none, and can be undone."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.changes.overlay import previewed
from tests.changes.power import Disk, on_a_disk
from tests.changes.trees import described
from tests.outside import needs_overlays
from whisper_tui.changes import transition
from whisper_tui.changes.change_records import FileChange, load_state
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.overlay_diff import read_changes

pytestmark = [needs_overlays, pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux")]


class Garden:
    """A tree and the changes of a preview, which are on a disk whose power can fail."""

    def __init__(self, disk: Disk, place: Path | None = None) -> None:
        """`place`: where the tree is, if not on the same disk."""
        self.top, self.store = (place or disk.top) / "work", str(disk.top / "store")
        (self.top / "old").mkdir(parents=True)
        for number in range(6):
            (self.top / f"written{number}").write_text(f"before {number}\n")
            (self.top / "old" / f"{number}").write_text("old\n")
        os.sync()
        self.before = described(self.top)
        self.after = previewed(Path(self.store), self.top, self._work)
        read_changes(self.store)

    @staticmethod
    def _work() -> None:
        for number in range(6):
            Path(f"written{number}").write_text(f"after {number}\n" * 9)
            Path(f"new{number}").write_text("new\n")
        shutil.rmtree("old")

    def tree(self) -> dict[str, tuple[object, ...]]:
        return described(self.top)


def test_what_was_applied_or_taken_back_survives(tmp_path: Path) -> None:
    def work(disk: Disk) -> None:
        garden = Garden(disk)
        transition.apply(garden.store)
        disk.fail()
        assert (garden.tree(), load_state(garden.store)["state"]) == (garden.after, "applied")
        transition.undo(garden.store)
        disk.fail()
        assert (garden.tree(), load_state(garden.store)["state"]) == (garden.before, "undone")
        transition.apply(garden.store)
        assert garden.tree() == garden.after

    on_a_disk(tmp_path, work)


class PowerCut(BaseException):
    """The power fails now."""


@pytest.mark.parametrize(
    "steps", [pytest.param(0, marks=pytest.mark.slow), 3, pytest.param(10, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("direction", ["apply", "undo"])
@pytest.mark.parametrize("place", ["same disk", "another disk"])
def test_what_was_begun_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, direction: str, steps: int
) -> None:
    def work(disk: Disk) -> None:
        garden = Garden(disk, None if place == "same disk" else tmp_path)
        if direction == "undo":
            transition.apply(garden.store)
        name = "make_real" if direction == "apply" else "take_back"
        step, done = getattr(ChangeSteps, name), []

        def counted(self: ChangeSteps, number: int, change: FileChange, *more: object) -> None:
            if len(done) == steps:
                raise PowerCut
            done.append(number)
            step(self, number, change, *more)

        with monkeypatch.context() as patched, pytest.raises(PowerCut):
            patched.setattr(ChangeSteps, name, counted)
            getattr(transition, direction)(garden.store)
        disk.fail()
        transition.resume(garden.store)
        assert garden.tree() == (garden.after if direction == "apply" else garden.before)

    on_a_disk(tmp_path, work)
