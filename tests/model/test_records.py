"""Records in little memory: what is packed comes back as it was."""

import pytest

from tests.model.build import a_board, a_spec, one_of_each, whole_life
from whisper_tui.model.call import Argv, Function
from whisper_tui.model.state import CallRecord, CallRecords


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
