"""Moving a run that lasts into its control group, beside the keeper's other work: the kernel takes its time for it."""

import _thread

from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.processes import Descendants

ROUNDS = 20
"""Looks at the tree in a row: what a process forks after it was moved is in the group already, so few are needed."""


class Mover:
    """Has a thread, once, which waits in the kernel for some milliseconds."""

    def __init__(self, descendants: Descendants, group: RunGroup) -> None:
        self._descendants = descendants
        self._group = group
        self._moving = _thread.allocate_lock()

    def begin(self) -> None:
        """Move what there is of the run, and what that forks meanwhile."""
        if self._group.path is None or not self._moving.acquire(blocking=False):
            return
        try:
            _thread.start_new_thread(self._move, ())
        except RuntimeError:
            self._moving.release()

    @property
    def moves(self) -> bool:
        """Whether it has not come to an end."""
        return self._moving.locked()

    def wait(self) -> None:
        """Until nothing is moved any more."""
        with self._moving:
            return

    def _move(self) -> None:
        try:
            for _ in range(ROUNDS):
                inside = {seen.pid for seen in self._group.members()}
                outside = [seen.pid for seen in self._descendants.now() if seen.pid not in inside]
                if not outside:
                    return
                for pid in outside:
                    self._group.take(pid)
        finally:
            self._moving.release()
