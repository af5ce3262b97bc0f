"""Any input of `whisper-tui call` is answered in lines, and nothing runs without being asked."""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.profile import fuzzed
from tests.fuzz.target import Target, lines
from tests.fuzz.values import anything, spoilt, texts

pytestmark = pytest.mark.slow


def hellos(target: Target) -> st.SearchStrategy[Any]:
    right = {
        "door": st.just("call"),
        "version": st.just(1),
        "name": texts(),
        "root": st.just(str(target.workspace)),
        "pid": st.just(os.getpid()) | st.none(),
        "environment": st.dictionaries(texts(), texts(), max_size=2),
        "nonce": st.uuids().map(lambda one: one.hex),
        "tool": st.sampled_from(["execute_command", "TaskList", "read_file", "wait", "nothing"]),
        "arguments": anything(4) | st.just({"command": "touch", "args": ["ran"]}),
    }
    made = st.fixed_dictionaries(right)
    return made | spoilt(made)


def test_no_hello_runs_a_command_or_goes_unanswered(target: Target):
    @fuzzed(25)
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        said = data.draw(hellos(target))
        if not isinstance(said, dict) or said.get("door") != "call":
            return
        for content in lines(target.exchange(json.dumps(said).encode() + b"\n")):
            assert isinstance(content, dict) and content.keys() & {"error", "call", "result"}

    attack()
    target.check()
    assert not (target.workspace / "ran").exists()
