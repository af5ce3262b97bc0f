"""A workspace of another group, whose files no view can change for an ordinary user."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from whisper_tui.model.ending import Exited
from whisper_tui.model.preview import PreviewReport
from whisper_tui.model.verdict import PreviewCondition
from whisper_tui.supervisor.runs.rule_on_effects import RuleOnEffects

ENDED = PreviewReport(ending=Exited(code=1), way="overlay", stopped="time")


def first_reason(workspace: Path) -> str:
    """Return the first reason why a command that has failed in the view is not decided by its effects."""
    store = cast(Any, SimpleNamespace(rows=(), flags=()))
    return next(iter(RuleOnEffects(PreviewCondition(), store, str(workspace)).beyond(ENDED)))


@pytest.mark.parametrize(
    ("user", "other", "why"),
    [
        (1000, True, "and a view cannot change files of another group"),
        (1000, False, "it was ended early"),
        (0, True, "it was ended early"),
    ],
)
def test_what_fails_there_is_not_told_as_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, other: bool, why: str
) -> None:
    group = tmp_path.stat().st_gid
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: group + other)
    assert first_reason(tmp_path).endswith(why)
