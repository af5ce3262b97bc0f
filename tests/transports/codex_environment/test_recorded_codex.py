"""What the real Codex sent to its environment when it was recorded is sent again, and answered as it was then."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.clients.human import Human
from tests.clients.record import EDIT, IN_ENVIRONMENT, RECORDINGS, RULES, TYPED, in_short, written_by_commands
from tests.clients.test_edits import OLD
from tests.outside import outside_only
from whisper_tui.cli.dispatch import parser

pytestmark = outside_only


def here(value: Any, stage: Path) -> Any:
    """Return a recorded value with the paths of the replay."""
    return json.loads(re.sub(r"(?<![\w/.-])/stage\b|(?<=file://)/stage\b", str(stage), json.dumps(value)))


@pytest.mark.slow
async def test_the_environment_answers_codex_as_when_it_was_recorded(place, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = place.workspace.parent
    recorded = here(json.loads((RECORDINGS / "codex.json").read_text())["executor"], stage)
    assert parser(words := shlex.split(recorded["command"])).parse(words).input == "ask"
    for name in ("HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(stage / "user"))
    (stage / "user").mkdir()
    (place.workspace / EDIT.command).write_text(OLD)
    (place.home / "config" / "rules.toml").write_text(f"read_only = false\n{RULES}")
    async with Human(place.home, (*IN_ENVIRONMENT, TYPED), lambda _: True) as human, place.codex(begins=False) as codex:
        for exchange in recorded["exchanges"]:
            method, params = exchange["client"]["method"], exchange["client"]["params"]
            if "server" not in exchange:
                await codex.notify(method, params)
                continue
            if method == "process/terminate":
                await codex.closed(params["processId"])
            assert in_short(await codex.ask(method, **params)) == exchange["server"], method
        for process in recorded["commands"]:
            await codex.closed(process)
        assert written_by_commands(codex.lines) == recorded["commands"]
        assert [len(human.records(scene)) for scene in (*IN_ENVIRONMENT, TYPED)] == [1] * 6 and human.problems == []
