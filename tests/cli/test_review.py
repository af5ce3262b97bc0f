"""`whisper-tui review`: what was changed, unasked or at all, by call and by file, and marked as seen."""

import json

import pytest

from tests.outside import needs_overlays, outside_only

pytestmark = [outside_only, needs_overlays]


@pytest.mark.slow
def test_it_lists_them_and_marks_them_as_seen(changed):
    told = changed.run("review").stdout
    assert "2 calls changed files unasked" in told and "echo one > a.txt" in told and "a.txt" in told
    assert [line.split()[1:] for line in changed.run("review", "--files").stdout.splitlines()] == [["1", "2"], ["2"]]
    assert [row["id"] for row in json.loads(changed.run("review", "--json").stdout)] == ["1", "2"]
    assert "Marked as seen" in changed.run("review", "--done").stdout
    assert changed.run("review").stdout == "Nothing was changed unasked since the last review\n"
