"""What a session comes to: who decided, how long it took, and what memory has saved."""

from tests.model.build import HUMAN, a_call, a_spec
from whisper_tui.export.session_story import Statistics
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import CallRecord, Ended, Waiting

ENDED = Ended(at=9.0, ending=Exited(code=0))


def decided(by, after_s, decision=None):
    """A call of second 2 that was decided so much later."""
    return CallRecord(
        call=a_call(), state=ENDED, decision=decision or Approve(), decided_by=by, decided_at=2.0 + after_s
    )


def of(*records):
    found = Statistics()
    for record in records:
        found.add(record)
    return found


def test_deciders_are_counted_separately():
    memory, rule = Decider(surface="memory", who="g1"), Decider(surface="rule", who="status")
    found = of(
        decided(HUMAN, 4),
        decided(HUMAN, 2, Deny(reason="no")),
        decided(HUMAN, 4, Approve(edited=a_spec(cwd="/elsewhere"))),
        decided(memory, 0),
        decided(rule, 0),
        decided(rule, 0, Deny(reason="no")),
        CallRecord(call=a_call(), state=Waiting(since=2.0)),
    )
    assert (found.calls, found.asked, found.approved, found.denied, found.edited, found.waiting) == (7, 4, 2, 1, 1, 1)
    assert (found.allowed_by_memory, found.allowed_by_rule, found.refused_by_rule) == (1, 1, 1)


def test_the_time_saved_is_the_median_for_each_call_that_memory_let_through():
    memory = Decider(surface="memory", who="g1")
    found = of(*(decided(HUMAN, wait) for wait in (1, 5, 60)), *[decided(memory, 0)] * 10)
    assert found.median_wait_s == 5
    assert found.saved_s == 50


def test_without_decisions_there_are_no_times():
    found = of(CallRecord(call=a_call(), state=Waiting(since=2.0)))
    assert found.median_wait_s is None
    assert found.saved_s is None
