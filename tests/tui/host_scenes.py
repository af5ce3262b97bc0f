"""One cockpit over the supervisors of three machines."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from tests.in_memory.supervisor import InMemorySupervisor
from tests.in_memory.world import ManualClock
from tests.tui.scenes import Scenario, building, crowd, workday
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.event import Event
from whisper_tui.wire.federation import Federation

NO_WAY = Unavailable("ssh: connect to host gpu2 port 22: No route to host", hint="Try: ssh gpu2 true")


class Connection:
    """A client of a supervisor, which ends while the supervisor goes on."""

    def __init__(self, supervisor: InMemorySupervisor) -> None:
        self._supervisor = supervisor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._supervisor, name)

    async def close(self) -> None:
        """Nothing has to be ended."""


class BrokenConnection(Connection):
    """A client of a supervisor that is lost as soon as all calls have come."""

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        async for events in self._supervisor.watch(after):
            yield events
            if not events:
                raise NO_WAY


class Way:
    """The way to a supervisor. `lost`: it is there only once."""

    def __init__(self, name: str, supervisor: InMemorySupervisor, *, lost: bool = False) -> None:
        self.name, self.supervisor = name, supervisor
        self._lost = lost

    def client(self) -> Any:
        if not self._lost:
            return Connection(self.supervisor)
        connection = BrokenConnection(self.supervisor)
        # The next one finds a supervisor that answers nothing.
        self.supervisor = InMemorySupervisor(self.supervisor.clock)
        self.supervisor.break_down(NO_WAY)
        return connection

    def explain(self, error: WhisperError) -> WhisperError:
        return error

    def close(self) -> None:
        """Nothing has to be ended."""


class Desk(Federation):
    """The supervisors of several machines as one; `machines` has the scenario of each."""

    machines: dict[str, Scenario]
    written: dict[str, Any]
    rule_book: Any = None

    @property
    def board(self) -> Any:
        """As far as the tests ask for it: the number of the last event, and that there are calls."""
        return SimpleNamespace(
            seq=sum(len(scenario.supervisor.events) for scenario in self.machines.values()), calls={"gpu1:1": None}
        )


def one_away() -> Scenario:
    """The same, and one of them cannot be reached any more."""
    return three_machines(away="gpu2")


def three_machines(away: str = "") -> Scenario:
    """Three machines, whose clocks are two hours behind that of the desk."""
    machines = {"gpu1": workday(), "gpu2": building(), "ci-runner": crowd()}
    clock = ManualClock(1_700_007_200.0)
    desk = Desk([Way(name, scenario.supervisor, lost=name == away) for name, scenario in machines.items()], clock)
    desk.machines = machines
    desk.written = {}
    return Scenario(supervisor=desk, clock=clock)  # type: ignore[arg-type]
