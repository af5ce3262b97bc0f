"""Secrets stay out of what is kept, listed and printed; whoever decides sees all of what they decide about."""

import json
import logging
import sys

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only
from whisper_tui.cli.compose import MaskedLines
from whisper_tui.model.secrets import MASK

pytestmark = outside_only

SECRET = "hunter2hunter2"


@pytest.mark.slow
def test_a_call_is_shown_whole_while_it_waits_and_masked_from_then_on(instance: Instance) -> None:
    process = instance.call("execute_command", command="true", args=["--password", SECRET])
    assert SECRET in instance.run("list").stdout
    assert SECRET in instance.run("show", "1").stdout
    assert SECRET not in instance.run("approve", "1", "--yes", "--session").stdout
    process.communicate(timeout=90)
    for words in (["history"], ["show", "1"], ["approvals"], ["export", "1", "--format", "jsonl"]):
        assert SECRET not in instance.run(*words).stdout, words
    for words in (["history"], ["show", "1"]):
        printed = json.dumps(instance.rows(*words), ensure_ascii=False)
        assert SECRET not in printed and MASK in printed, words
    assert SECRET not in instance.run("export", "1", "--format", "markdown").stdout
    assert SECRET in instance.run("show", "1", "--unmasked").stdout
    assert SECRET in json.dumps(instance.rows("show", "1", "--unmasked"))
    assert [row["id"] for row in instance.rows("history", "--text", SECRET)] == ["1"]


def test_secrets_in_errors_are_masked_in_the_log() -> None:
    try:
        raise ValueError(f"cannot run --token {SECRET}")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "PASSWORD=%s failed", (SECRET,), sys.exc_info())
    line = MaskedLines().format(record)
    assert SECRET not in line and "ValueError" in line and line.count(MASK) >= 2
