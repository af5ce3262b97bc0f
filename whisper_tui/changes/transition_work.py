"""The checks and steps of one transition, in the order of its changes."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from whisper_tui.changes.change_checks import changed_before_apply, changed_before_undo
from whisper_tui.changes.change_records import DELETE, Plan, Result
from whisper_tui.changes.change_steps import ChangeSteps
from whisper_tui.changes.file_trees import Stamp
from whisper_tui.changes.real_paths import RealPaths

Made = dict[int, Stamp | None]
"""Files after their steps, by the number of the change. None: a later step may change it, or there is none."""


class TransitionWork:
    """The work of a transition. `numbers`: the changes, in the order of their steps.

    `results`: what an undo must find; None: the changes are made real.
    """

    def __init__(
        self,
        store: str,
        plan: Plan,
        numbers: Sequence[int],
        results: Mapping[int, Result] | None = None,
        *,
        resumed: bool = False,
    ) -> None:
        self.begun: set[int] = set()
        """The changes whose steps may have been done, or begun."""
        self.left: set[int] = set()
        """The changes that could not be taken back, since somebody has changed their files."""
        self.real = RealPaths(store, plan.directories)
        """The opened parents of the steps. Checks open their own: a parent is looked at again before the first step."""
        self._store = store
        self._plan = plan
        self._numbers = numbers
        self._results = results
        self._resumed = resumed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.real.close()

    def check(self) -> list[str]:
        """Return the paths that somebody else has changed. Raises `OSError`."""
        numbers = sorted(self._numbers)
        with RealPaths(self._store, self._plan.directories) as checked:
            if self._results is None:
                return changed_before_apply(self._plan, numbers, checked)
            return changed_before_undo(self._plan, numbers, checked, self._results)

    def keep(self) -> None:
        """Keep what the steps overwrite. Raises `OSError`."""
        changes = self._plan.changes
        with RealPaths(self._store, self._plan.directories) as checked:
            steps = ChangeSteps(self._store, checked)
            if any(change.op == DELETE for change in changes):
                steps.contents.make_groups(len(changes))
            for number in self._numbers:
                steps.keep(number, changes[number])
            steps.contents.save()

    def make(self) -> Made:
        """Make all steps. Raises `OSError` and `Conflict`: then those that `begun` names may be done."""
        made: Made = {}
        steps = ChangeSteps(self._store, self.real, resumed=self._resumed)
        for number in self._numbers:
            self.begun.add(number)
            change = self._plan.changes[number]
            if self._results is None:
                made[number] = steps.make_real(number, change)
            else:
                made[number] = steps.take_back(number, change, self._results[number])
        self.left = steps.left
        return made

    def make_again(self) -> Made:
        """Make the changes real again whose undoing was begun, in their order. Raises `OSError` and `Conflict`."""
        steps = ChangeSteps(self._store, self.real, resumed=True)
        found = self._results or {}
        return {
            number: steps.make_again(number, self._plan.changes[number], found[number].found)
            for number in sorted(self.begun)
        }
