"""Each shape that events have had has a number, by which older programs know that they cannot read them."""

import copy
import json

import pytest

from tests.journals.shape import NOTED, fingerprint
from whisper_tui.model.event import EVENT
from whisper_tui.supervisor.journal.sqlite_file import FORMAT


def test_events_have_the_shape_of_their_format() -> None:
    noted = json.loads(NOTED.read_text())
    assert noted.get(str(FORMAT)) == fingerprint(), (
        "what events may say has changed: raise FORMAT in whisper_tui/supervisor/journal/sqlite_file.py, then note the "
        "new shape: python -m tests.journals.shape"
    )
    assert max(map(int, noted)) == FORMAT


def test_a_new_field_and_a_new_word_change_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    known, schema = fingerprint(), EVENT.json_schema()
    for change in ({"lunch": {"type": "string"}}, {"call_id": {"enum": ["new"], "type": "string"}}):
        changed = copy.deepcopy(schema)
        changed["$defs"]["Settled"]["properties"] |= change
        monkeypatch.setattr(type(EVENT), "json_schema", lambda _self, found=changed: copy.deepcopy(found))
        assert fingerprint() != known
