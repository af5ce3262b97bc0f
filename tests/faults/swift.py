"""An executor whose commands need no time: each runs, leaves something behind and ends as soon as it is asked for."""

from collections import Counter
from collections.abc import Callable

from tests.supervisor.hand_executor import HandExecutor
from whisper_tui.model.ending import Signalled
from whisper_tui.model.run import SignalTarget
from whisper_tui.supervisor.runs.executor import RunKey, StartOrder

LONG = "sleep"
"""The program that does not end by itself."""


class Machine:
    """What outlives the supervisors: which commands have run, and how often."""

    def __init__(self, is_journaled: Callable[[RunKey], bool]) -> None:
        """`is_journaled`: whether the disk says that a start was ordered."""
        self.is_journaled = is_journaled
        self.ran: Counter[str] = Counter()
        self.alive: set[RunKey] = set()
        self.over: dict[RunKey, int | None] = {}
        """What was run to its end, and the signal that ended it."""
        self.too_early: list[RunKey] = []
        """What was asked for before the journal knew it."""


class SwiftExecutor(HandExecutor):
    """One supervisor's way to the machine."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    async def start(self, order: StartOrder) -> None:
        """Run it."""
        await super().start(order)
        machine = self._machine
        if not machine.is_journaled(order.key):
            machine.too_early.append(order.key)
        machine.ran[order.key.call_id] += 1
        self.spawn(order.key)
        if order.spec.command.words()[0] == LONG:
            machine.alive.add(order.key)
        else:
            self._end(order.key, None)

    async def attach(self, key: RunKey) -> None:
        """Tell all about a run once more."""
        await super().attach(key)
        if key in self._machine.over:
            self.spawn(key)
            self._end(key, self._machine.over[key])
        elif key in self._machine.alive:
            self.spawn(key)
        else:
            self.never_ran(key)

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """End it."""
        await super().signal(key, number, target)
        if key in self._machine.alive:
            self._machine.alive.discard(key)
            self._end(key, number)

    def _end(self, key: RunKey, signal: int | None) -> None:
        self._machine.over[key] = signal
        self.leave_behind(key, 77)
        self.finish(key, None if signal is None else Signalled(number=signal, by_us=True), settle=False)
        self.leave_behind(key, 77, alive=False)
        self.settle(key)
