"""One API over the supervisors of several machines: real supervisors at sockets of their own (decision 31)."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.model.build import one_of_each
from tests.mutations.conftest import Field, a_field
from tests.outside import outside_only
from whisper_tui.export.session_story import oldest_first
from whisper_tui.model.api import HistoryQuery, all_sessions
from whisper_tui.model.board import Board
from whisper_tui.model.call import SessionHello
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.errors import AlreadyDecided, InvalidRequest, Refused, Unavailable, UnknownCall, WhisperError
from whisper_tui.model.event import PhoneChanged, PhoneYes
from whisper_tui.model.protocol_version import VERSION
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire import client as client_module
from whisper_tui.wire import federation as module
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.federation import Federation, NewJournal
from whisper_tui.wire.rendezvous import connect

DESK = Decider(surface="cockpit", who="ada@desk")
pytestmark = outside_only


class Wire:
    """The way to a supervisor of this machine, which a test can cut."""

    def __init__(self, name: str, home: Directories) -> None:
        self.name, self._home = name, home
        self.whole = True
        """False: nothing gets through."""
        self.cut_after: list[int] = []
        """Lines of the supervisor after which each of the next connections is cut."""
        self.left: dict[str, int] = {}
        """Lines that may still pass in a direction, `sent` or `got`, of all connections; then all are cut."""
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    def client(self) -> SupervisorClient:
        return SupervisorClient.over(self._find)

    def explain(self, error: WhisperError) -> WhisperError:
        return error

    def close(self) -> None:
        self.cut()

    @property
    def connections(self) -> int:
        """How many have been made since the last cut."""
        return len(self._open) // 2

    def cut(self) -> None:
        cut, self._open = self._open, []
        for each in cut:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _find(self) -> socket.socket:
        far = connect(self._home) if self.whole else None
        if far is None:
            raise Unavailable("there is no way", hint="Make one")
        far.settimeout(None)
        near, ours = socket.socketpair()
        self._open.extend((near, far))
        lines = self.cut_after.pop(0) if self.cut_after else None
        threading.Thread(target=self._pass_on, args=(ours, far, "sent", None), daemon=True).start()
        threading.Thread(target=self._pass_on, args=(far, ours, "got", lines), daemon=True).start()
        return near

    def _may_pass(self, way: str) -> bool:
        """Count a line. False: the connections are cut before it."""
        with self._lock:
            if self.left.get(way) == 0:
                self.left.clear()
                self.cut()
                return False
            if way in self.left:
                self.left[way] -= 1
            return True

    def _pass_on(self, source: socket.socket, target: socket.socket, way: str, lines: int | None) -> None:
        """Copy bytes until either end closes, or so many lines have passed."""
        with suppress(OSError), source.makefile("rb") as reader:
            while lines is None or lines > 0:
                if not (line := reader.readline()) or not self._may_pass(way):
                    break
                target.sendall(line)
                lines = None if lines is None else lines - 1
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Desk:
    """A cockpit without a screen: what it knows of all machines."""

    def __init__(self, machines: dict[str, Field], clock: Callable[[], float]) -> None:
        self.machines = machines
        self.wires = {name: Wire(name, field.home) for name, field in machines.items()}
        self.api = Federation.of(tuple(self.wires.values()), clock)
        self.board = Board()
        self.following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for events in self.api.watch():
            self.board.apply_all(events)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for a condition, bounded."""
        async with asyncio.timeout(60):
            while not true():
                if self.following.done():
                    self.following.result()
                await asyncio.sleep(0.01)

    def reached(self, name: str) -> bool | None:
        return self.api.host_of(f"{name}:1").state.reached

    async def all_reached(self) -> None:
        await self.until(lambda: all(self.reached(name) for name in self.machines))

    async def approve(self, call_id: str) -> None:
        await self.api.decide(call_id, Approve(), DESK, self.board.calls[call_id].seen_digest())


@asynccontextmanager
async def a_desk(root: Path, *names: str, clock: Callable[[], float] = time.time) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        fields = {}
        for name in names:
            (root / name).mkdir(exist_ok=True)
            fields[name] = await stack.enter_async_context(a_field(root / name))
        desk = Desk(fields, clock)
        try:
            yield desk
        finally:
            desk.following.cancel()
            with suppress(asyncio.CancelledError, WhisperError):
                await desk.following
            desk.api.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(module, "RETRIES_S", (0.02,))


async def test_calls_of_all_machines_are_in_one_queue_and_each_is_decided_where_it_waits(tmp_path):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        calls = {name: await field.ask("touch", "made") for name, field in desk.machines.items()}
        assert set(calls.values()) == {"1"}
        await desk.until(lambda: set(desk.board.waiting) == {"gpu1:1", "gpu2:1"})
        await desk.approve("gpu2:1")
        await desk.until(lambda: set(desk.board.waiting) == {"gpu1:1"})
        await asyncio.wait_for(desk.machines["gpu2"].supervisor.outcome("1"), 60)
        assert [(tmp_path / name / "made").exists() for name in desk.machines] == [False, True]
        decided = await desk.machines["gpu2"].supervisor.record("1")
        assert decided.decided_by == DESK
        with pytest.raises(AlreadyDecided):
            await desk.approve("gpu2:1")
        assert (await desk.machines["gpu1"].supervisor.record("1")).state.kind == "waiting"


async def test_every_id_in_an_answer_has_its_machine_and_is_understood_again(tmp_path):
    async with a_desk(tmp_path, "gpu1") as desk:
        await desk.machines["gpu1"].ask("true")
        await desk.until(lambda: "gpu1:1" in desk.board.waiting)
        record = await desk.api.record("gpu1:1")
        assert record == desk.board.calls["gpu1:1"]
        assert (record.id, record.host, record.call.session_id) == ("gpu1:1", "gpu1", "gpu1:s1")
        assert (await desk.api.session("gpu1:s1")).id == "gpu1:s1"
        assert [each.id for each in await desk.api.history(HistoryQuery(session_id="gpu1:s1"))] == ["gpu1:1"]
        await desk.machines["gpu1"].ask("false")
        page = await desk.api.history(HistoryQuery(session_id=all_sessions("gpu1"), limit=1))
        older = HistoryQuery(session_id=all_sessions("gpu1"), before=str(page[0].number))
        assert [each.id for each in (*page, *await desk.api.history(older))] == ["gpu1:2", "gpu1:1"]
        assert [each.id async for each in oldest_first(desk.api, "gpu1:s1")] == ["gpu1:1"]
        denial = await desk.api.deny_for_session("gpu1:s1", ("true",), "no", DESK)
        assert [(each.id, each.session_id) for each in await desk.api.denials()] == [(denial, "gpu1:s1")]
        await desk.until(lambda: denial in desk.board.denials)
        await desk.api.lift_denial(denial, DESK)
        await desk.until(lambda: not desk.board.denials)
        for id_ in ("1", "gpu9:1", "gpu1:9"):
            with pytest.raises(UnknownCall):
                await desk.api.record(id_)


async def test_a_request_about_one_machine_is_refused_without_its_name(tmp_path):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        await desk.all_reached()
        hello = SessionHello(name="builder", root="/")
        for asked in (desk.api.rule_list(), desk.api.history(HistoryQuery()), desk.api.open_session(hello)):
            with pytest.raises(InvalidRequest):
                await asked


async def test_a_machine_that_is_away_keeps_its_last_state_and_is_never_said_to_have_nothing(tmp_path):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        for field in desk.machines.values():
            await field.ask("true")
        await desk.until(lambda: len(desk.board.waiting) == 2)
        wire = desk.wires["gpu2"]
        wire.whole = False
        wire.cut()
        await desk.until(lambda: desk.reached("gpu2") is False)
        assert set(desk.board.waiting) == {"gpu1:1", "gpu2:1"}
        await desk.until(lambda: "there is no way" in desk.api.host_of("gpu2:1").state.problem)
        assert [(host.name, host.reached) for host in (await desk.api.status()).hosts] == [
            ("gpu1", True),
            ("gpu2", False),
        ]
        with pytest.raises(Unavailable, match="gpu2 cannot be reached, so nothing was done"):
            await desk.approve("gpu2:1")
        await desk.approve("gpu1:1")
        # Meanwhile somebody decides there, and another call comes.
        there = desk.machines["gpu2"].supervisor
        await there.decide("1", Deny(reason="no"), DESK, (await there.record("1")).seen_digest())
        await desk.machines["gpu2"].ask("false")
        wire.whole = True
        await desk.until(lambda: desk.reached("gpu2") is True and set(desk.board.waiting) == {"gpu2:2"})
        assert desk.board.calls["gpu2:1"].state.kind == "ended"


async def test_wherever_the_connection_is_cut_the_queue_becomes_that_of_the_machine(tmp_path):
    async with a_desk(tmp_path, "gpu1") as desk:
        field = desk.machines["gpu1"]
        await desk.all_reached()
        wire = desk.wires["gpu1"]
        for lines in range(8):
            wire.cut_after = [lines, lines]
            wire.cut()
            call_id = await field.ask("true", str(lines))
            await desk.until(lambda call_id=call_id: f"gpu1:{call_id}" in desk.board.waiting)
            if lines % 2:
                await field.approve(call_id)
        there = field.supervisor._store.board
        waiting = {f"gpu1:{id_}" for id_ in there.waiting}
        await desk.until(lambda: set(desk.board.waiting) == waiting)
        assert [id_.removeprefix("gpu1:") for id_ in desk.board.calls] == list(there.calls)


@pytest.mark.parametrize("way", ["sent", "got"])
async def test_wherever_a_decision_is_cut_it_is_made_once_and_then_known(tmp_path, way):
    async with a_desk(tmp_path, "gpu1") as desk:
        field, wire = desk.machines["gpu1"], desk.wires["gpu1"]
        for lines in range(4):
            made = tmp_path / "gpu1" / f"made-{lines}"
            call_id = await field.ask("sh", "-c", f"echo once >> {made}")
            here = f"gpu1:{call_id}"
            await desk.until(lambda here=here: here in desk.board.waiting and desk.reached("gpu1") is True)
            wire.left = {way: lines}
            try:
                await desk.approve(here)
            except Unavailable:
                # Nobody knows here; so the human looks, and tries again.
                await desk.until(lambda: desk.reached("gpu1") is True)
                with suppress(AlreadyDecided):
                    await desk.approve(here)
            assert (await field.supervisor.record(call_id)).decided_by == DESK
            wire.left = {}
            wire.cut()
            await asyncio.wait_for(field.supervisor.outcome(call_id), 60)
            await desk.until(lambda here=here: desk.board.calls[here].state.kind == "ended")
            assert made.read_text() == "once\n"


async def test_a_supervisor_of_another_version_is_unreachable_and_says_what_to_do(tmp_path):
    async with a_desk(tmp_path, "gpu1") as desk:
        await desk.machines["gpu1"].ask("true")
        await desk.until(lambda: "gpu1:1" in desk.board.waiting)

        def newer() -> socket.socket:
            near, far = socket.socketpair()
            far.sendall(b'{"ok": true, "version": 99, "supervisor": "9.0.0", "pid": 1}\n')
            return near

        desk.wires["gpu1"]._find = newer
        desk.wires["gpu1"].cut()
        await desk.until(lambda: "whisper-tui bring gpu1" in desk.api.host_of("gpu1:1").state.problem)
        assert (desk.reached("gpu1"), set(desk.board.waiting)) == (False, {"gpu1:1"})
        with pytest.raises(Unavailable, match="nothing was done"):
            await desk.approve("gpu1:1")


async def test_an_incomplete_queue_is_not_shown_as_complete(tmp_path):
    async with a_desk(tmp_path, "gpu1") as before:
        for _ in range(3):
            await before.machines["gpu1"].ask("true")
        desk = Desk(before.machines, time.time)
        # A greeting and a status; then a greeting and the first of the lines that make up the board.
        desk.wires["gpu1"].cut_after = [2, 2]
        try:
            await desk.until(lambda: desk.reached("gpu1") is False)
            assert not desk.board.sessions
            await desk.until(lambda: len(desk.board.waiting) == 3)
            assert desk.reached("gpu1") is True
        finally:
            desk.following.cancel()
            desk.api.close()


async def test_times_are_those_of_our_clock_however_wrong_theirs_is(tmp_path):
    async with a_desk(tmp_path, "gpu1", clock=lambda: time.time() - 7200) as desk:
        await desk.all_reached()
        await desk.machines["gpu1"].ask("true")
        await desk.until(lambda: "gpu1:1" in desk.board.waiting)
        record = await desk.api.record("gpu1:1")
        for at in (record.call.submitted_at, record.state.since, desk.board.sessions["gpu1:s1"].opened_at):
            assert abs(at - (time.time() - 7200)) < 600
        await desk.approve("gpu1:1")
        await asyncio.wait_for(desk.machines["gpu1"].supervisor.outcome("1"), 60)


async def test_the_phones_of_a_machine_and_what_they_say_have_its_name_and_our_time(tmp_path):
    async with a_desk(tmp_path, "gpu1", clock=lambda: time.time() - 7200) as desk:
        await desk.all_reached()
        there = desk.machines["gpu1"]
        await there.ask("true")
        phone, now = Decider(surface="phone", who="pixel"), time.time()
        changed = next(each for each in one_of_each() if isinstance(each, PhoneChanged))
        yes = PhoneYes(at=now, call_id="1", until=now + 3, by=phone)
        there.supervisor._store.record(yes, changed.model_copy(update={"may_approve_from": now + 600}))
        await desk.until(lambda: "gpu1:p1" in desk.board.phones and "gpu1:1" in desk.board.promised)
        known, record = desk.board.phones["gpu1:p1"], desk.board.calls["gpu1:1"]
        assert known.name == "gpu1:pixel" and record.pending_yes.by == phone
        for at in (
            known.may_approve_from,
            record.pending_yes.until,
            (await desk.api.record("gpu1:1")).pending_yes.until,
        ):
            assert abs(at - (time.time() - 7200)) < 1200
        with pytest.raises(Refused, match="takes no decisions from phones"):
            await desk.api.withdraw_yes("gpu1:1", DESK)


async def test_a_machine_with_another_journal_is_loaded_again(tmp_path):
    async with a_desk(tmp_path, "gpu1") as desk:
        await desk.machines["gpu1"].ask("true")
        await desk.until(lambda: "gpu1:1" in desk.board.waiting)
        other = tmp_path / "other"
        other.mkdir()
        async with a_field(other) as field:
            await field.ask("false")
            desk.wires["gpu1"]._home = field.home
            desk.wires["gpu1"].cut()
            with pytest.raises(NewJournal):
                await asyncio.wait_for(desk.following, 60)


async def test_a_pause_lasts_until_the_last_machine_resumes(tmp_path):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        await desk.all_reached()
        await desk.api.pause(DESK)
        await desk.until(lambda: all(host.paused for host in desk.api._hosts.values()))
        await desk.until(lambda: desk.board.paused is not None)
        await desk.machines["gpu1"].supervisor.resume(DESK)
        await desk.until(lambda: desk.api.host_of("gpu1:1").paused is None)
        assert desk.board.paused is not None
        await desk.api.resume(DESK)
        await desk.until(lambda: desk.board.paused is None)
        desk.wires["gpu2"].whole = False
        desk.wires["gpu2"].cut()
        await desk.until(lambda: desk.reached("gpu2") is False)
        with pytest.raises(Unavailable, match="not done on gpu2"):
            await desk.api.pause(DESK)


async def test_a_machine_that_does_not_answer_delays_no_request_for_ever(tmp_path, monkeypatch):
    async with a_desk(tmp_path, "gpu1") as desk:
        await desk.all_reached()
        monkeypatch.setattr(module, "ANSWER_S", 0.1)

        async def never(**_):
            await asyncio.Event().wait()

        desk.api.host_of("gpu1:1").client.record = never
        with pytest.raises(Unavailable, match="may have received"):
            await desk.api.record("gpu1:1")


async def test_a_machine_that_does_not_answer_delays_no_measurement_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STATUS_S", 0.5)
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        for field in desk.machines.values():
            await field.runs("sleep", "1000")
        await desk.all_reached()

        async def never(**_):
            await asyncio.Event().wait()

        desk.api.host_of("gpu1:1").client.usage = never
        # It gets less time than an answer that somebody waits for.
        async with asyncio.timeout(module.ANSWER_S):
            while set(await desk.api.usage(("gpu1:1", "gpu2:1"))) != {"gpu2:1"}:
                pass


GREETING = f'{{"ok": true, "version": {VERSION}, "supervisor": "9", "pid": 1}}\n'.encode()


def hostile(*lines: bytes) -> Callable[[], socket.socket]:
    """The way to a machine that answers each connection with the same lines, whatever it is asked."""

    def find() -> socket.socket:
        near, far = socket.socketpair()

        def say() -> None:
            with far, suppress(OSError), far.makefile("rb") as reader:
                far.sendall(GREETING)
                reader.readline()
                reader.readline()
                for line in lines:
                    far.sendall(line)

        threading.Thread(target=say, daemon=True).start()
        return near

    return find


ABOUT_NOTHING = (
    b'{"id":1,"item":[{"kind":"finished","seq":7,"at":1.0,"call_id":"9","ending":{"kind":"exited","code":0}}]}\n'
)


@pytest.mark.parametrize(
    "lines",
    [
        (b"[1]\n",),
        (b"no json\n",),
        (b'{"id": []}\n',),
        (b'{"id": 1, "error": {"message": ' + b'"' + b"x" * 1_000_000 + b'"}}\n',),
        (b"[" * 200_000 + b"\n",),
        (b"x" * (17 * 1024 * 1024) + b"\n",),
    ],
)
async def test_whatever_a_machine_answers_it_alone_is_unreachable(tmp_path, lines):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        await desk.all_reached()
        real, state = desk.wires["gpu2"]._find, desk.api.host_of("gpu2:1")
        for connections in range(2):
            # The first connection is that of requests, and the second that of events. A machine is reached before the
            # second one is there, which would then be the first of these.
            await desk.until(lambda: desk.wires["gpu2"].connections == 2)
            ways = iter([real] * connections + [hostile(*lines)] * 1000)
            desk.wires["gpu2"]._find = lambda ways=ways: next(ways)()
            desk.wires["gpu2"].cut()
            await desk.until(lambda: desk.reached("gpu2") is False and state.state.problem != "")
            assert len(state.state.problem) < 10_000
            await desk.machines["gpu1"].ask("true")
            await desk.until(lambda n=connections: f"gpu1:{n + 1}" in desk.board.waiting)
            desk.wires["gpu2"]._find = real
            desk.wires["gpu2"].cut()
            await desk.all_reached()


async def test_a_machine_whose_events_make_up_no_board_breaks_no_other_one(tmp_path, monkeypatch):
    async with a_desk(tmp_path, "gpu1", "gpu2") as desk:
        await desk.all_reached()
        await desk.machines["gpu2"].ask("true")
        await desk.until(lambda: "gpu2:1" in desk.board.waiting)
        real = desk.wires["gpu2"]._find
        for lines in ((ABOUT_NOTHING,), (ABOUT_NOTHING, b'{"id":1,"item":[]}\n')):
            ways = iter([real, hostile(*lines)] * 1000)
            desk.wires["gpu2"]._find = lambda ways=ways: next(ways)()
            desk.wires["gpu2"].cut()
            await desk.until(lambda: "is not sound: no call 9" in desk.api.host_of("gpu2:1").state.problem)
            assert not desk.following.done() and "gpu2:1" in desk.board.waiting
        desk.wires["gpu2"]._find = real
        desk.wires["gpu2"].cut()
        await desk.all_reached()
        monkeypatch.setattr(module, "MOST_CALLS", 2)
        for _ in range(3):
            await desk.machines["gpu2"].ask("true")
        await desk.until(lambda: "more than 2 calls" in desk.api.host_of("gpu2:1").state.problem)
        await desk.machines["gpu1"].ask("true")
        await desk.until(lambda: "gpu1:1" in desk.board.waiting)
        assert "gpu2:4" not in desk.board.waiting


async def test_a_first_board_that_never_becomes_whole_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "LARGEST_BOARD", 100_000)
    async with a_desk(tmp_path, "gpu1") as before:
        part = b'{"id":1,"item":[{"kind":"paused","seq":1,"at":1.0,"by":{"surface":"cockpit","who":"%s"}}]}\n' % (
            b"x" * 9000
        )
        desk = Desk(before.machines, time.time)
        real = desk.wires["gpu1"]._find
        ways = iter([real, hostile(*[part] * 50)] * 1000)
        desk.wires["gpu1"]._find = lambda ways=ways: next(ways)()
        try:
            await desk.until(
                lambda: "100,000 bytes before its board is whole" in desk.api.host_of("gpu1:1").state.problem
            )
        finally:
            desk.following.cancel()
            desk.api.close()
