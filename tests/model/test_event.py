"""Events as JSON: what is written is what is read, and what was written years ago is still read."""

import json
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from tests.model.build import a_call, a_shell, numbered, one_of_each, submitted
from tests.rows import each_row
from whisper_tui.model.board import Board
from whisper_tui.model.call import ToolCall
from whisper_tui.model.ending import Ending
from whisper_tui.model.event import EVENT, Event, Submitted

JOURNALS = Path(__file__).parent.parent / "journals"
KINDS = {arm.model_fields["kind"].default for arm in get_args(get_args(Event)[0])}

ENDINGS = {arm.model_fields["kind"].default for arm in get_args(get_args(Ending)[0])}


def test_there_is_an_example_of_every_kind_of_event() -> None:
    assert {event.kind for event in one_of_each()} == KINDS


@each_row("event", numbered(one_of_each()), ids=lambda event: event.kind)
def test_an_event_survives_json(event: Event) -> None:
    assert EVENT.validate_json(EVENT.dump_json(event)) == event


def test_text_that_is_not_ascii_and_control_characters_survive_json() -> None:
    event = submitted(spec=a_shell("echo 'naïve \u202e ⏳ \x1b[31m \x00'"))
    assert EVENT.validate_json(EVENT.dump_json(event)) == event


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        submitted().at = 9.0


@each_row(
    "line",
    [
        '{"kind": "settled", "at": 1.0, "call_id": "1", "colour": "red"}',
        '{"kind": "exploded", "at": 1.0, "call_id": "1"}',
        '{"kind": "settled", "at": 1.0}',
    ],
)
def test_an_event_with_unknown_or_missing_parts_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(line)


@pytest.mark.parametrize("journal", sorted(JOURNALS.glob("*.jsonl")), ids=lambda path: path.stem)
class TestOldJournals:
    """Journals as released versions wrote them. They are never edited; a new format adds a file."""

    def test_every_event_is_still_read(self, journal: Path) -> None:
        lines = journal.read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["kind"] for line in lines} <= KINDS
        assert [EVENT.validate_json(line).seq for line in lines] == list(range(1, len(lines) + 1))

    def test_everything_that_was_written_is_read_again(self, journal: Path) -> None:
        for line in journal.read_text(encoding="utf-8").splitlines():
            written, read = json.loads(line), json.loads(EVENT.dump_json(EVENT.validate_json(line)))
            # Sessions had a mode of edits, always the usual one where they were opened.
            assert _without(written, read) in ({}, {"session": {"edits": "rules"}})

    def test_the_board_folds_every_event_of_the_journal(self, journal: Path) -> None:
        board = Board()
        board.apply_all(EVENT.validate_json(line) for line in journal.read_text(encoding="utf-8").splitlines())
        assert board.calls and all(not record.is_open for record in board.calls.values())


def _without(written: object, read: object) -> object:
    """What of the first value the second does not hold."""
    if isinstance(written, dict) and isinstance(read, dict):
        missing = {name: _without(value, read.get(name)) for name, value in written.items()}
        return {name: value for name, value in missing.items() if value not in ({}, None)}
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        lost = [_without(before, now) for before, now in zip(written, read, strict=True)]
        return lost if any(each not in ({}, None) for each in lost) else {}
    return {} if written == read else written


def test_there_is_an_old_journal_with_every_kind_of_event_and_of_ending() -> None:
    newest = max(JOURNALS.glob("*.jsonl"))
    facts = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    assert {fact["kind"] for fact in facts} == KINDS
    assert {fact["ending"]["kind"] for fact in facts if "ending" in fact} == ENDINGS


def test_the_deduplication_fields_keep_their_stored_names() -> None:
    stored = a_call().model_copy(update={"dedup_key": "same", "join_open": True}).model_dump(mode="json")
    assert stored["twin"] == "same"
    assert stored["join_twin"] is True
    assert not {"dedup_key", "join_open"} & stored.keys()
    assert ToolCall.model_validate(stored).dedup_key == "same"


def test_an_event_of_an_older_journal_loads_its_deduplication_key() -> None:
    event = Submitted(at=2.0, call=a_call().model_copy(update={"dedup_key": "same"}))
    line = event.model_dump_json()
    assert '"twin":"same"' in line
    assert Submitted.model_validate_json(line) == event
