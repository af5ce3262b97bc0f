"""Records in little memory: what is packed comes back as it was."""

import pytest

from tests.model.build import a_board, a_spec, one_of_each, whole_life
from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, Function, Shell, ToolCall
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Finished, PreviewStarted
from whisper_tui.model.packed_calls import FIRST_PACKED, PACKED_AT_ONCE, CallRecords, call_line
from whisper_tui.model.state import CallRecord


def lives() -> dict[str, CallRecord]:
    """A call at each step of its life, and calls of every kind."""
    steps = range(1, len(whole_life()) + 1)
    found = {f"step {step}": a_board(*whole_life()[:step]).record("1") for step in steps}
    whole = a_board(*one_of_each())
    found |= {f"each {call_id}": whole.record(call_id) for call_id in whole.calls}
    odd = Argv(program="printf", args=("", "\x00\x1b[31m", "\u202e", "𝄞" * 500))
    mail = Function(tool="send_mail", arguments={"to": None, "copies": [1, 2.5, True, {"a": "ü"}]})
    for name, command in (("odd", odd), ("function", mail)):
        call = found["step 2"].call.model_copy(update={"spec": a_spec(command)})
        found[name] = found["step 2"].model_copy(update={"call": call})
    return found


def test_records_that_were_packed_are_what_they_were() -> None:
    plain = lives()
    records = CallRecords(kept_whole=2)
    records.update(plain)
    assert dict(records) == plain
    assert list(records) == list(plain)
    assert list(reversed(records)) == [*plain][::-1]


def test_a_packed_record_that_is_replaced_is_the_new_one() -> None:
    plain = lives()
    records = CallRecords(kept_whole=1)
    records.update(plain)
    records["step 1"] = plain["step 2"]
    records["step 3"] = records["step 4"]
    assert records["step 1"] == plain["step 2"]
    assert records["step 3"] == plain["step 4"]
    assert list(records) == list(plain)


def test_a_record_that_is_taken_out_is_gone_whole_and_packed() -> None:
    records = CallRecords(kept_whole=1)
    records.update(lives())
    first, *_, last = records
    for gone in (first, last):
        del records[gone]
        assert gone not in records
        with pytest.raises(KeyError):
            records[gone]
    assert len(records) == len(lives()) - 2


def test_packed_records_take_little_room() -> None:
    records = CallRecords(kept_whole=1)
    records.update(lives())
    sizes = {name: len(packed) for name, packed in records._packed.items() if packed}
    assert max(size for name, size in sizes.items() if name.startswith("step")) < 700


def test_the_facts_for_lists_are_those_of_the_record_whole_or_packed() -> None:
    plain = lives()
    plain["long"] = plain["odd"].model_copy(update={"call": a_call_of("x" * 5000)})
    records = CallRecords(kept_whole=1)
    records.update(plain)
    for name, record in plain.items():
        assert records.line(name) == call_line(record)
    assert records.line("none") is None and records.lines(["none"]) == {"none": None}


def a_call_of(text: str) -> ToolCall:
    return lives()["step 2"].call.model_copy(update={"spec": a_spec(Shell(text=text))})


def test_a_board_of_packed_calls_is_the_board_that_they_come_from() -> None:
    whole, packed, first = a_board(*whole_life()[:2]), Board(), lives()["step 2"]
    for changed in ({"id": "2", "ticket": "secret", "dedup_key": None}, {"id": "3", "session_id": "s9"}, {"id": "4"}):
        whole._place(None, first.model_copy(update={"call": first.call.model_copy(update=changed)}))
    whole.apply(PreviewStarted(at=8.0, call_id="4", attempt=1, by=Decider(surface="library", who="me")))
    taken = {call_id: whole.record(call_id) for call_id in ("1", "2", "3")}
    parts = whole.packed_waiting()
    # What happens from here on is told by events, so it is not in what was packed before.
    for call_id in (*taken, "4"):
        whole.apply(Finished(at=9.0, call_id=call_id, ending=Withdrawn(why="later")))
    for part in parts:
        packed.add_packed(part)
    assert dict(packed.calls) == taken and [*packed.waiting] == [*taken]
    session_id = first.call.session_id
    assert packed.open_in == {session_id: {"1": None, "2": None}, "s9": {"3": None}}
    assert ([*packed.ticketed], [*packed.deduplicated]) == (["2"], ["1", "3"])


def test_many_packed_calls_come_in_parts_of_which_the_first_is_short() -> None:
    board = Board()
    step = lives()["step 2"]
    for number in range(FIRST_PACKED + PACKED_AT_ONCE + 1):
        call = step.call.model_copy(update={"id": str(number)})
        board._place(None, step.model_copy(update={"call": call}))
    sizes = [len(part.ids) for part in board.packed_waiting()]
    assert sizes == [FIRST_PACKED, PACKED_AT_ONCE, 1]
    assert [id_ for part in board.packed_waiting() for id_ in part.ids] == [*board.waiting]
    assert list(Board().packed_waiting()) == []
