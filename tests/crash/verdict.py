"""What the journal, the files and the agents say afterwards, and whether they contradict each other."""

from collections import Counter
from pathlib import Path

from tests.crash import work
from tests.crash.field import Field
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, Lost, Signalled, Withdrawn
from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.model.state import CallRecord, Ended, Held
from whisper_tui.supervisor.chain import check_file


async def violations(field: Field, door: Supervision) -> tuple[list[str], Counter[str]]:
    """Every contradiction, in a sentence, and how the calls ended."""
    ran = Counter(int(line) for line in _lines(field.root / work.RAN))
    found = [f"command {number} ran {times} times" for number, times in ran.items() if times > 1]
    endings: Counter[str] = Counter()
    started: set[int] = set()
    for record in await _all(door):
        number = work.number_in(record.call.spec.command.text)
        problem = await _problem(field, door, record, number, ran[number])
        if problem is not None:
            found.append(f"call {record.id} (command {number}): {problem}")
        if isinstance(record.state, Ended):
            endings[record.state.ending.kind] += 1
            if record.state.attempt is not None:
                started.add(number)
    found += [f"command {number} ran, and no call in the journal was started" for number in ran.keys() - started]
    found += [
        f"an agent was told exit {code} and {len(output)} bytes of command {number}"
        for number, (code, output) in field.told.items()
        if (code, output) != (work.code(number), work.output(number)) and number not in _lost(field)
    ]
    broken = check_file(Path(field.home.state) / "journal.sqlite").problem
    return found + ([broken] if broken else []), endings


def _lost(field: Field) -> set[int]:
    """Commands of which an agent may have been told that they are lost."""
    return {number for number, (code, _) in field.told.items() if code == 126}


async def _problem(field: Field, door: Supervision, record: CallRecord, number: int, ran: int) -> str | None:
    if isinstance(record.state, Held):
        return None
    if not isinstance(record.state, Ended):
        return f"it has no ending: it is {record.state.kind}"
    match record.state.ending:
        case Denied() | Withdrawn():
            return None if record.attempt is None else "it was started, and is journaled as one that never was"
        case _ if not isinstance(record.decision, Approve):
            return "it was started, and nobody had approved it"
        case _ if work.is_denied(number):
            return "it was approved, and the human says no to such numbers"
        case Exited(code=code):
            if code != work.code(number):
                return f"its exit code is {work.code(number)}, and the journal says {code}"
            return await _wrong_output(door, record, number) or (None if ran else "it exited, and it never ran")
        case Lost():
            return None if record.id in field.without_keeper else "it is lost, and its keeper was never killed"
        case Signalled(number=signal):
            known = (
                number in field.ended_by_agent or record.agent_gave_up is not None or record.id in field.without_keeper
            )
            return None if known else f"signal {signal} ended it, and nobody had sent one"
        case other:
            return f"it ended as {other.kind}"


async def _wrong_output(door: Supervision, record: CallRecord, number: int) -> str | None:
    for stream, expected in (("out", work.output(number)), ("err", work.errors(number))):
        chunk = await door.read_output(record.id, stream, 0, len(expected) + 1)
        if chunk.data != expected:
            return f"{len(chunk.data)} bytes of {stream} are there, and {len(expected)} were written"
    return None


async def _all(door: Supervision) -> list[CallRecord]:
    records: list[CallRecord] = []
    before: str | None = None
    while page := await door.history(HistoryQuery(limit=500, before=before)):
        records += page
        before = page[-1].id
    return records


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
