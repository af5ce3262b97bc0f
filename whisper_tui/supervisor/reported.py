"""What an executor reports, as facts for the journal. What an earlier supervisor recorded already is no news."""

from collections.abc import Mapping, Sequence

from whisper_tui.model.advance import advance
from whisper_tui.model.event import BackgroundSeen, Finished, Settled, Spawned
from whisper_tui.model.state import CallRecord, Ended, Running, Starting
from whisper_tui.supervisor.executor import HasBackground, HasEnded, HasSettled, HasSpawned, Report

Fact = Spawned | BackgroundSeen | Finished | Settled


def facts(reports: Sequence[Report], calls: Mapping[str, CallRecord], at: float) -> tuple[Fact, ...]:
    """The news in these reports about runs of these calls, in order; each is judged by what those before it change."""
    news: list[Fact] = []
    ahead: dict[str, CallRecord] = {}
    for report in reports:
        call_id = report.key.call_id
        record = ahead.get(call_id) or calls.get(call_id)
        if record is None or record.attempt != report.key.attempt:
            continue
        if (fact := _fact(record, report, at)) is not None:
            news.append(fact)
            ahead[call_id] = advance(record, fact)
    return tuple(news)


def _fact(record: CallRecord, report: Report, at: float) -> Fact | None:
    state = record.state
    match report:
        case HasSpawned(process=process) if isinstance(state, Starting):
            return Spawned(at=at, call_id=record.id, attempt=report.key.attempt, process=process)
        case HasBackground(processes=processes) if record.background != processes:
            return BackgroundSeen(at=at, call_id=record.id, processes=processes)
        case HasEnded() if isinstance(state, Starting | Running):
            return Finished(
                at=at,
                call_id=record.id,
                ending=report.ending,
                output=report.output,
                usage=report.usage,
                blocked=report.blocked,
            )
        case HasSettled(digest=digest) if isinstance(state, Ended) and not state.settled:
            return Settled(at=at, call_id=record.id, digest=digest)
        case _:
            return None
