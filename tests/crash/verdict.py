"""What the journal, the files and everybody's memory say afterwards, and whether they contradict each other."""

from collections import Counter
from collections.abc import AsyncIterator
from math import inf
from pathlib import Path

from tests.crash import work
from tests.crash.field import Field
from tests.crash.human import HUMAN
from tests.crash.work import REFUSED, Work, typed_input
from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended, Held
from whisper_tui.supervisor.journal.sqlite_file import check_file

GUARDIAN_S = 10.0
"""Seconds in which the keepers of a killed guardian have surely noticed, and take nothing any more."""
SHOWN = 100
"""Bytes of an output that a contradiction names."""


class Verdict:
    """Every contradiction, in a sentence, and how the calls ended."""

    def __init__(self, field: Field, door: Supervision) -> None:
        self._field = field
        self._door = door
        self._started: Counter[int] = Counter()
        """How many calls with each number were started."""
        self._exited: Counter[int] = Counter()
        self._records: dict[str, CallRecord] = {}
        self.endings: Counter[str] = Counter()
        self.violations: list[str] = []

    async def find(self) -> None:
        """Compare everything with everything."""
        ran = Counter(map(int, _lines(self._field.root / work.RAN)))
        async for record in self._every_call():
            self._records[record.id] = record
            if (typed := typed_input(record.call.spec.command)) is not None:
                if problem := self._typed_wrongly(record, typed):
                    self.violations.append(f"call {record.id} (types {typed!r}): {problem}")
                continue
            asked = Work.asked_by(record)
            problem = await self._problem(record, Work.found_in(record.spec.command.text), asked)
            if problem is not None:
                self.violations.append(f"call {record.id} ({asked.kind} command {asked.number}): {problem}")
        self.violations += self._field.told.untrue
        self._compare_with_what_ran(ran)
        self._compare_with_what_was_confirmed()
        if broken := check_file(Path(self._field.home.state) / "journal.sqlite").problem:
            self.violations.append(broken)

    async def _problem(self, record: CallRecord, ran: Work, asked: Work) -> str | None:
        if isinstance(record.state, Held):
            return None
        if not isinstance(record.state, Ended):
            return f"it has no ending: it is {record.state.kind}"
        ending = record.state.ending
        self.endings[ending.kind] += 1
        if isinstance(ending, Denied) and ending.by.surface == "cockpit" and ending.reason != f"no {asked.number}":
            return f"its denial says {ending.reason!r}, which nobody had entered for it"
        if isinstance(ending, Denied | Withdrawn):
            return None if record.attempt is None else "it was started, and is journaled as one that never was"
        self._started[ran.number] += 1
        return self._not_approved(record, ran, asked) or await self._wrong_end(record, ran)

    def _typed_wrongly(self, record: CallRecord, typed: str) -> str | None:
        """What is wrong about a call that types into a task. That nothing is typed twice, the task's output shows."""
        if not isinstance(record.state, Ended):
            return None if isinstance(record.state, Held) else f"it has no ending: it is {record.state.kind}"
        ending = record.state.ending
        self.endings[f"typed input, {ending.kind}"] += 1
        if isinstance(ending, Denied | Withdrawn):
            return None if record.attempt is None else "it was typed, and is journaled as one that never was"
        if typed == REFUSED:
            return f"it ended as {ending.kind}, and the human says no to it"
        return None if record.decided_by == HUMAN else f"{record.decided_by} approved it"

    def _not_approved(self, record: CallRecord, ran: Work, asked: Work) -> str | None:
        if not isinstance(record.decision, Approve) or record.decided_by is None:
            return "it was started, and nobody had approved it"
        if asked.kind == "denied":
            return "it was approved, and the human says no to such commands"
        if ran != asked.edited():
            return f"what ran is of the kind {ran.kind}, which the human has not made of it"
        if record.decided_by.surface == "memory" and asked.kind != "again":
            return "it was approved from memory, and no such approval was to be remembered"
        if record.decided_by.surface == "cockpit":
            by_keys = asked.kind == "keyed" and not asked.denied_by_keys
            return None if by_keys else "it was approved in the cockpit, whose human says no to it, or never saw it"
        return None if record.decided_by == HUMAN or asked.kind == "again" else f"{record.decided_by} approved it"

    async def _wrong_end(self, record: CallRecord, ran: Work) -> str | None:
        assert isinstance(record.state, Ended)
        match record.state.ending:
            case Exited(code=code) if ran.kind != "late":
                self._exited[ran.number] += 1
                if code != ran.code:
                    return f"its exit code is {ran.code}, and the journal says {code}"
                return await self._wrong_output(record, ran)
            case TimedOut() if ran.kind == "late":
                return None
            case Lost():
                return (
                    None
                    if self._lost_its_keeper(record)
                    else "it is lost, and its guardian and keeper were not both killed"
                )
            case Signalled(number=signal):
                return None if self._was_ended(record, ran) else f"signal {signal} ended it, and nobody had sent one"
            case other:
                return f"it ended as {other.kind}"

    def _was_ended(self, record: CallRecord, ran: Work) -> bool:
        field = self._field
        by_agent = ran.number in field.ended_by_agent or record.agent_gave_up is not None
        return by_agent or record.id in field.without_leader or self._lost_its_keeper(record)

    def _lost_its_keeper(self, record: CallRecord) -> bool:
        """Whether a keeper was killed that may just have taken it, or together with its guardian."""
        assert isinstance(record.state, Ended)
        began, ended = record.decided_at or 0.0, record.state.at
        if not any(began <= at <= ended for at in self._field.keepers_killed.values()):
            return False
        # Its guardian knows of it before it is announced. One that was just killed may have been that of its keeper.
        since = began - GUARDIAN_S
        return record.process is None or any(since <= at <= ended for at in self._field.guardians_killed)

    async def _wrong_output(self, record: CallRecord, ran: Work) -> str | None:
        written: dict[Stream, set[bytes]] = {"out": ran.outputs(), "err": {ran.errors()}}
        for stream, possible in written.items():
            chunk = await self._door.read_output(record.id, stream, 0, max(map(len, possible)) + SHOWN)
            if chunk.data not in possible and not self._was_cut(record, ran, chunk.data):
                lengths = " or ".join(str(len(each)) for each in possible)
                end = chunk.data[-SHOWN:]
                return f"{len(chunk.data)} bytes of {stream} are there ({end!r}), and {lengths} were written"
        return None

    def _was_cut(self, record: CallRecord, ran: Work, found: bytes) -> bool:
        """Whether a process left behind was ended, or what it wrote had nobody any more who could keep it."""
        return ran.kind == "behind" and found == ran.answered() and self._was_ended(record, ran)

    def _compare_with_what_ran(self, ran: Counter[int]) -> None:
        for number in ran.keys() | self._exited.keys():
            if ran[number] > self._started[number]:
                told = f"{self._started[number]} calls of it were started"
                self.violations.append(f"command {number} ran {ran[number]} times, and {told}")
            if ran[number] < self._exited[number]:
                told = f"{self._exited[number]} calls of it have exited"
                self.violations.append(f"command {number} ran {ran[number]} times, and {told}")

    def _compare_with_what_was_confirmed(self) -> None:
        told = self._field.told
        for call_id, asked in told.submitted.items():
            record = self._records.get(call_id)
            if record is None or Work.asked_by(record) != asked:
                self.violations.append(f"call {call_id} was confirmed as command {asked.number}, and is not that")
        for call_id, (decision, at) in told.decided.items():
            record = self._records.get(call_id)
            found = record.decision if record is not None else None
            if record is None:
                confirmed = False
            else:
                # Whoever is asked again may decide otherwise.
                other = found is None or found.kind != decision or (record.decided_at or 0.0) > at
                confirmed = not other or (decision == "approve" and self._was_asked_again(record, at))
            if not confirmed:
                self.violations.append(f"to {decision} call {call_id} was confirmed; the journal has {found}, or later")

    def _was_asked_again(self, record: CallRecord, confirmed_at: float) -> bool:
        """Whether a supervisor was killed after an approval was confirmed: what had not started waits again then."""
        until = record.decided_at or inf
        return any(confirmed_at - 1.0 <= at <= until for at in self._field.supervisors_killed)

    async def _every_call(self) -> AsyncIterator[CallRecord]:
        before: str | None = None
        while page := await self._door.history(HistoryQuery(limit=500, before=before)):
            for record in page:
                yield record
            before = page[-1].id


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
