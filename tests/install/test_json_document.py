"""JSON files are changed in place: what is put in can be taken out, and everything else stays to the letter."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rows import each_row
from whisper_tui.agents.documents import JsonDocument, JsonProblem, read_json
from whisper_tui.agents.file_entries import WrongShape

GROUP = {"matcher": "Bash", "hooks": [{"type": "command"}]}

TEXTS = {
    "two spaces": '{\n  "model": "x",\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    "tabs": '{\n\t"a": {"b": [1, 2]},\n\t"hooks": {\n\t\t"PreToolUse": [\n\t\t\t{"x": 1}\n\t\t]\n\t}\n}',
    "four spaces and carriage returns": '{\r\n    "a": 1\r\n}\r\n',
    "one line": '{"a":1}',
    "comments": '// top\n{\n  // one\n  "a": 1, // two, three\n  "hooks": {}, /* four */\n}\n',
    "comment behind the last member": '{\n  "a": 1 // why, not\n}\n',
    "only a comment in it": '{\n  "hooks": {\n    // nothing, yet\n  }\n}',
    "byte order mark": '\ufeff{\n  "a": 1\n}\n',
    "commas in texts": '{\n  "a": "x, // y",\n  "b": "/* , */"\n}\n',
}


@each_row("text", TEXTS.values(), ids=TEXTS)
def test_an_added_value_can_be_removed_to_the_byte(text: str) -> None:
    document = JsonDocument(text, comments=True)
    before = document.plain()
    document.put(("mcpServers", "whisper"), {"command": "x", "args": ["mcp"]})
    document.append(("hooks", "PreToolUse"), GROUP)
    assert document.plain()["hooks"]["PreToolUse"][-1] == GROUP
    assert document.plain()["mcpServers"]["whisper"]["args"] == ["mcp"]
    place = len(document.plain()["hooks"]["PreToolUse"]) - 1
    document.delete(("hooks", "PreToolUse", place))
    if "PreToolUse" not in before.get("hooks", {}):
        document.delete(("hooks", "PreToolUse"))
    if "hooks" not in before:
        document.delete(("hooks",))
    document.delete(("mcpServers",))
    assert document.plain() == before
    if text != TEXTS["only a comment in it"]:
        assert document.text == text


def test_new_text_is_indented_as_the_rest_and_ends_its_lines_as_the_rest() -> None:
    document = JsonDocument(TEXTS["four spaces and carriage returns"], comments=False)
    document.put(("b", "c"), ["d", {}])
    inner = '        "c": [\r\n            "d",\r\n            {}\r\n        ]\r\n'
    assert document.text == f'{{\r\n    "a": 1,\r\n    "b": {{\r\n{inner}    }}\r\n}}\r\n'


def test_an_array_of_words_takes_one_line() -> None:
    document = JsonDocument("{\n}\n", comments=False)
    document.put(("args",), ["mcp", "x", 1])
    assert document.text == '{\n  "args": ["mcp", "x", 1]\n}\n'


def test_a_file_in_one_line_stays_in_one_line() -> None:
    document = JsonDocument('{"a":1}', comments=False)
    document.put(("b",), {"c": [1]})
    assert document.text == '{"a":1, "b": {"c": [1]}}'


def test_a_comment_stays_with_the_line_that_it_is_about() -> None:
    document = JsonDocument(TEXTS["comment behind the last member"], comments=True)
    document.put(("b",), 2)
    assert document.text == '{\n  "a": 1, // why, not\n  "b": 2\n}\n'


def test_a_value_is_replaced_in_place() -> None:
    document = JsonDocument('{\n  "a": [1, 2], // two\n  "b": {"c": 1}\n}', comments=True)
    document.put(("a", 1), 3)
    document.put(("b", "c"), None)
    assert document.text == '{\n  "a": [1, 3], // two\n  "b": {"c": null}\n}'


def test_an_empty_file_is_begun() -> None:
    document = JsonDocument("", comments=False)
    assert document.plain() == {}
    document.put(("a",), 1)
    assert document.text == '{\n  "a": 1\n}\n'


def test_letters_of_all_languages_stay_themselves() -> None:
    document = JsonDocument('{"ä": "\\u00e4ö"}', comments=False)
    document.put(("ß",), "é")
    assert document.text == '{"ä": "\\u00e4ö", "ß": "é"}'


@each_row(
    ("text", "line"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3),
        ('{\n  "a": 1,\n}', 3),
        ("{\n  // no\n}", 2),
        ('{\n  "a": "x\n}', 2),
        ('{"a": 1}\n\n}', 3),
        ("{\n  'a': 1\n}", 2),
        ('{\n  "a" 1\n}', 2),
        ('{\n  "a": nil\n}', 2),
        ('{\n  "a": 01\n}', 2),
        ('{\n  "a": [1\n', 3),
        ("[" * 300, 1),
    ],
)
def test_invalid_json_is_reported_with_its_line(text: str, line: int) -> None:
    with pytest.raises(JsonProblem) as told:
        JsonDocument(text, comments=False)
    assert told.value.line == line


def test_the_last_of_two_members_with_one_name_wins() -> None:
    document = JsonDocument('{"a": {"x": 1}, "a": {"y": 1}}', comments=False)
    document.put(("a", "z"), 1)
    assert document.text == '{"a": {"x": 1}, "a": {"y": 1, "z": 1}}'


@each_row("text", ['{"hooks": 1}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": []}'])
def test_a_place_of_another_shape_is_left_alone(text: str) -> None:
    document = JsonDocument(text, comments=False)
    with pytest.raises(WrongShape):
        document.append(("hooks", "PreToolUse"), GROUP)
    assert document.text == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A machine may be busy."""


@patient
@given(json_values, st.sampled_from([None, 0, 1, 2, 4, "\t"]), st.booleans())
@pytest.mark.slow
def test_every_json_is_read_as_the_standard_library_reads_it(value: object, indent: object, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)  # type: ignore[arg-type]
    assert read_json(text, comments=False).value == value


@patient
@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([None, 1, 2, 4, "\t"]))
def test_adding_and_taking_away_leaves_any_file_as_it_was(value: dict[str, object], indent: object) -> None:
    value.pop("ours", None)
    text = json.dumps(value, indent=indent) + "\n"  # type: ignore[arg-type]
    document = JsonDocument(text, comments=False)
    document.put(("ours", "x"), [1, {"y": 2}])
    assert json.loads(document.text) == {**value, "ours": {"x": [1, {"y": 2}]}}
    document.delete(("ours",))
    assert document.text == text
