"""Each real client with what `whisper-tui install` wrote: the doctor proves it, and `uninstall` undoes it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.clients.stage import Stage

NO_MODEL = "http://127.0.0.1:9"


@pytest.fixture
def stage(program: Program, tmp_path: Path) -> Iterator[Stage]:
    """A client with settings of its own, and no model."""
    made = Stage(tmp_path, program, NO_MODEL)
    yield made
    made.stop()


def settings(home: Path) -> dict[str, bytes]:
    """The files that a user's settings are in, without what clients keep for themselves and without backups."""
    kinds = {".json", ".jsonc", ".toml", ".js", ".rules"}
    files = [path for path in home.rglob("*") if path.suffix in kinds and "cache" not in path.parts]
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


def test_the_doctor_proves_the_gate_of_the_installed_client_with_a_canary(program, stage):
    stage.whisper_tui("install", program.name, "--yes")
    report = json.loads(stage.whisper_tui("doctor", program.name, "--json"))
    (client,) = report["clients"]
    assert client["proved"]
    (gate,) = (check for check in client["checks"] if check["check"] == "gate")
    assert gate["state"] == "good"
    assert "stopped a test command" in gate["sentence"]


def test_an_installation_can_be_reverted_to_the_byte(program, stage):
    before = settings(stage.user_home)
    stage.whisper_tui("install", program.name, "--yes")
    assert settings(stage.user_home) != before
    stage.whisper_tui("uninstall", program.name, "--yes")
    assert settings(stage.user_home) == before
