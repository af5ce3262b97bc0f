"""The work of one transition, of which a second process does a part if there are thousands.

The steps of a large transition are system calls of a few microseconds each, most of them in different directories: two
processors make them in little more than half of the time. The second process asks for nothing and decides nothing. It
is given numbers of changes, a hundred at a time, and answers with what it found or made. It inherits the lock of the
store, so that no other transition begins before it has ended, whoever else is killed; and it ends when nobody can give
it numbers any more. If it is killed itself, its part is done here: each step knows if it is still due.
"""

import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from types import TracebackType
from typing import Any, Protocol, Self

import whisper_tui
from whisper_tui.changes.change_checks import changed_before_apply, changed_before_undo, parents_of
from whisper_tui.changes.change_records import (
    ADD,
    DELETE,
    MOVE,
    REPLACE,
    WRITE,
    FileChange,
    Plan,
    Result,
    load_plan,
    load_results,
    packed_stamps,
    unpacked_stamps,
)
from whisper_tui.changes.change_steps import ChangeSteps, is_alone, is_kept_with_others
from whisper_tui.changes.file_trees import Stamp
from whisper_tui.changes.real_paths import Conflict, RealPaths
from whisper_tui.system import run_files

FEWEST = 5000
"""Changes from which a second process is faster, though it starts for 40 ms."""
_PART = 100
"""Changes that are given to the second process at once, two parts ahead."""
_AHEAD = 2
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from whisper_tui.changes.shared_steps import main
main(*sys.argv[2:])
"""

_SINGLE = (ADD, DELETE, REPLACE, WRITE, MOVE)
"""The changes that concern one file alone, if it has a single name."""

Made = dict[int, Stamp | None]
"""Files after their steps, by the number of the change. None: a later step may change it, or there is none."""
Answer = dict[str, Any]
"""The outcome of a part: the paths that were `changed`, how many steps were `made`, their `stamps`, and an `error`."""


class Work:
    """The checks and steps of one process. `results`: what an undo must find; None: the changes are made real."""

    def __init__(self, store: str, plan: Plan, results: Mapping[int, Result] | None, *, resumed: bool = False) -> None:
        self._store = store
        self._plan = plan
        self._results = results
        self._resumed = resumed
        self._checked: RealPaths | None = None
        self._real: RealPaths | None = None
        self._keeping: ChangeSteps | None = None
        self._steps: ChangeSteps | None = None

    @property
    def real(self) -> RealPaths:
        """The opened parents of the steps: they are opened anew after the checks."""
        if self._real is None:
            self._real = RealPaths(self._store, self._plan.directories)
        return self._real

    @property
    def checked(self) -> RealPaths:
        """The opened parents of the checks."""
        if self._checked is None:
            self._checked = RealPaths(self._store, self._plan.directories)
        return self._checked

    def check(self, numbers: Sequence[int]) -> list[str]:
        """Return the paths of these changes that somebody else has changed."""
        if self._results is None:
            return changed_before_apply(self._plan, numbers, self.checked)
        return changed_before_undo(self._plan, numbers, self.checked, self._results)

    @property
    def keeping(self) -> ChangeSteps:
        """The steps that keep what others overwrite."""
        if self._keeping is None:
            self._keeping = ChangeSteps(self._store, self.checked)
            self._keeping.contents.assign(
                {
                    number: change.before.size
                    for number, change in enumerate(self._plan.changes)
                    if change.before is not None and is_kept_with_others(change)
                }
            )
        return self._keeping

    def keep(self, part: Sequence[int], *, again: bool = False) -> None:
        """Keep what the steps of these changes overwrite. Raises `OSError`."""
        for number in part:
            self.keeping.keep(number, self._plan.changes[number], again=again)
        self.keeping.contents.flush()

    def step(self, number: int, *, again: bool = False) -> Stamp | None:
        """Make one step. Raises `OSError` and `Conflict`. `again`: a process that was killed may have begun it."""
        if self._steps is None:
            self._steps = ChangeSteps(self._store, self.real, resumed=self._resumed)
        if again:
            self._steps.expect_begun()
        change = self._plan.changes[number]
        if self._results is None:
            return self._steps.make_real(number, change)
        return self._steps.take_back(number, change, self._results[number].found)

    def step_again(self, number: int) -> Stamp | None:
        """Make a step of an undo undone. Raises `OSError` and `Conflict`."""
        steps = ChangeSteps(self._store, self.real, resumed=True)
        found = None if self._results is None else self._results[number].found
        return steps.make_again(number, self._plan.changes[number], found)

    def close(self) -> None:
        """Close the directories that are open."""
        for real in (self._checked, self._real):
            if real is not None:
                real.close()
        self._checked = self._real = self._keeping = self._steps = None


class SharedWork:
    """The work of a transition in this process and, if it is large, in a second one."""

    def __init__(
        self,
        store: str,
        plan: Plan,
        numbers: Sequence[int],
        results: Mapping[int, Result] | None = None,
        *,
        resumed: bool = False,
        lock: int,
    ) -> None:
        """`numbers`: the changes, in the order of their steps. `lock`: the opened store, which is locked."""
        self.begun: set[int] = set()
        """The changes whose steps may have been done, or begun."""
        self._changes = plan.changes
        self._numbers = numbers
        self._work = Work(store, plan, results, resumed=resumed)
        self._second: SecondProcess | None = None
        if len(numbers) >= FEWEST and len(os.sched_getaffinity(0)) > 1:
            self._second = SecondProcess.start(store, is_undo=results is not None, resumed=resumed, lock=lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._work.close()
        if self._second is not None:
            self._second.close()

    @property
    def real(self) -> RealPaths:
        """The opened parents of the steps."""
        return self._work.real

    def check(self) -> list[str]:
        """Return the paths that somebody else has changed. Raises `OSError`."""
        found: dict[int, list[str]] = {}

        def here(part: Sequence[int], *, again: bool = False) -> None:
            found[part[0]] = self._work.check(part)

        def note(part: Sequence[int], answer: Answer | None) -> None:
            found[part[0]] = answer["changed"] if answer is not None else []

        if self._numbers:
            self._share("check", sorted(self._numbers), here, note)
        return [path for first in sorted(found) for path in found[first]]

    def keep(self) -> None:
        """Keep what the steps overwrite. Raises `OSError`."""
        contents = self._work.keeping.contents
        if any(change.op == DELETE for change in self._changes):
            contents.make_groups(len(self._changes))
        if self._numbers:
            self._share("keep", self._numbers, self._work.keep, lambda part, answer: None)
        contents.save()

    def make(self) -> Made:
        """Make all steps. Raises `OSError` and `Conflict`: then those that `begun` names may be done."""
        made: Made = {}

        def here(part: Sequence[int], *, again: bool = False) -> None:
            for number in part:
                self.begun.add(number)
                made[number] = self._work.step(number, again=again)

        def note(part: Sequence[int], answer: Answer | None) -> None:
            count = answer["made"] if answer is not None else len(part)
            self.begun.update(part[: count + 1])
            made.update(dict.fromkeys(part[:count]))
            made.update(unpacked_stamps(answer["stamps"]) if answer is not None else {})

        if self._second is None:
            here(self._numbers)
            return made
        for numbers, is_free in steps_in_order(self._changes, self._numbers):
            if is_free:
                self._share("step", numbers, here, note)
            else:
                here(numbers)
        return made

    def make_again(self) -> Made:
        """Make the changes real again whose undoing was begun, in their order. Raises `OSError` and `Conflict`."""
        return {number: self._work.step_again(number) for number in sorted(self.begun)}

    def _share(self, job: str, numbers: Sequence[int], here: "_Here", note: "_Note") -> None:
        """Do the first parts here and the last ones there, until they meet. Raises what fails on either side."""
        second = self._second
        if second is None:
            here(numbers)
            return
        waiting = deque(numbers[begin : begin + _PART] for begin in range(0, len(numbers), _PART))
        try:
            while waiting or second.is_busy:
                while len(waiting) > 1 and second.is_free():
                    second.give(job, waiting.pop())
                if waiting:
                    here(waiting.popleft())
                for part, answer in second.answers(wait=not waiting):
                    if answer is None:
                        here(part, again=True)
                        continue
                    note(part, answer)
                    if answer["error"] is not None:
                        raise _error_from(answer["error"])
        finally:
            # After a failure nothing more begins, and what was given comes to its end.
            while second.is_busy:
                for part, answer in second.answers(wait=True):
                    note(part, answer)


class _Here(Protocol):
    """Does a part in this process. `again`: a second process that was killed may have begun it."""

    def __call__(self, part: Sequence[int], *, again: bool = False) -> None: ...


class _Note(Protocol):
    """Notes what the second process has done of a part. None: it was killed meanwhile."""

    def __call__(self, part: Sequence[int], answer: Answer | None) -> None: ...


def steps_in_order(changes: Sequence[FileChange], numbers: Sequence[int]) -> list[tuple[Sequence[int], bool]]:
    """Divide steps into those that follow each other. True beside some: their order among each other is free."""
    bound = _bound_to_others(changes)
    if not bound:
        return [(numbers, True)]
    return [(list(run), not is_bound) for is_bound, run in groupby(numbers, bound.__contains__)]


def _bound_to_others(changes: Sequence[FileChange]) -> set[int]:
    """Return the changes whose steps keep their place among the others.

    They have to do with a directory, with several names of one file, with a name that another step needs as well, or
    with something below a directory that comes or goes.
    """
    names = Counter(name for change in changes for name in change.paths)
    found: set[int] = set()
    tops: set[str] = set()
    for number, change in enumerate(changes):
        if change.op not in _SINGLE or not is_alone(change):
            found.add(number)
            tops.update(change.paths)
    inside = {parent for parent in parents_of(changes) if _is_within(parent, tops)} if tops else set()
    is_repeated = len(names) != names.total()
    if is_repeated or inside:
        for number, change in enumerate(changes):
            if any(names[name] > 1 for name in change.paths) or parents_of([change]) & inside:
                found.add(number)
    return found


def _is_within(path: str, tops: set[str]) -> bool:
    while path:
        if path in tops:
            return True
        path = path.rpartition("/")[0]
    return False


# The second process, as the first one sees it


class SecondProcess:
    """A process that does parts of a transition. It is given one part more than it is at work on."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._parts: deque[Sequence[int]] = deque()
        """Those that it was given and has not answered yet."""
        self._unread = b""
        self._is_ready, self._is_there = False, True

    @classmethod
    def start(cls, store: str, *, is_undo: bool, resumed: bool, lock: int) -> "Self | None":
        """Start it. None: that is not possible now, so that everything is done here."""
        package = os.path.dirname(os.path.dirname(os.path.abspath(whisper_tui.__file__)))
        words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, package, store]
        words += ["undo" if is_undo else "apply", "resumed" if resumed else ""]
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    words, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL, pass_fds=[lock]
                )
            except OSError:
                ours.close()
                return None
        return cls(process, ours)

    @property
    def is_busy(self) -> bool:
        """True if it was given parts that it has not answered."""
        return bool(self._parts)

    def is_free(self) -> bool:
        """True if it can be given one more part."""
        if not self._is_ready and self._is_there and self._has_said():
            self._is_ready = self._line() is not None
        return self._is_ready and self._is_there and len(self._parts) < _AHEAD

    def give(self, job: str, part: Sequence[int]) -> None:
        """Give it a part: to `check`, to `keep` or to `step` these changes."""
        self._parts.append(part)
        # What cannot be given to it is not answered either.
        with suppress(ConnectionError):
            self._connection.sendall(json.dumps([job, list(part)]).encode() + b"\n")

    def answers(self, *, wait: bool) -> "Iterator[tuple[Sequence[int], Answer | None]]":
        """Yield parts with what was answered; with `wait` at least one. None: it was killed."""
        while self._parts and (wait or self._has_said()):
            line = self._line()
            part = self._parts.popleft()
            yield part, json.loads(line) if line is not None else None
            wait = False

    def close(self) -> None:
        """End it: whoever waits for a part does nothing that a kill could interrupt."""
        self._process.kill()
        self._process.wait()
        self._connection.close()

    def _has_said(self) -> bool:
        return not self._is_there or b"\n" in self._unread or bool(self._poll.poll(0))

    def _line(self) -> bytes | None:
        """Wait for a line, and return it. None: the process is gone."""
        while b"\n" not in self._unread and self._is_there:
            piece = b""
            with suppress(ConnectionError):
                piece = self._connection.recv(1 << 16)
            self._unread += piece
            if not piece:
                self._process.wait()
                self._is_there = False
        if b"\n" not in self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line


# The second process itself


def main(store: str, direction: str, resumed: str) -> None:
    """Do the parts that standard input names, and answer each of them."""
    gc.disable()
    plan = load_plan(store)
    work = Work(store, plan, load_results(store) if direction == "undo" else None, resumed=bool(resumed))
    run_files.write_all(1, b"\n")
    with suppress(ConnectionError), open(0, "rb", closefd=False) as orders:
        for line in orders:
            job, numbers = json.loads(line)
            run_files.write_all(1, json.dumps(_answer(work, job, numbers)).encode() + b"\n")
    os._exit(0)


def _answer(work: Work, job: str, numbers: list[int]) -> Answer:
    made: Made = {}
    answer: Answer = {"changed": [], "made": 0, "stamps": packed_stamps({}), "error": None}
    try:
        if job == "check":
            answer["changed"] = work.check(numbers)
        elif job == "keep":
            work.keep(numbers)
        else:
            for number in numbers:
                made[number] = work.step(number)
    except Conflict as conflict:
        answer["error"] = {"conflict": conflict.paths}
    except OSError as error:
        answer["error"] = {"errno": error.errno, "text": error.strerror, "path": error.filename}
    answer["made"] = len(made)
    answer["stamps"] = packed_stamps({number: each for number, each in made.items() if each is not None})
    return answer


def _error_from(said: dict[str, Any]) -> OSError | Conflict:
    if "conflict" in said:
        return Conflict(said["conflict"])
    return OSError(said["errno"], said["text"], said["path"])
