"""`whisper-tui places`: it lists them, reaches one or says what is wrong, and lets one go."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Instance
from tests.cli.test_other_machines import FAKE_SSH
from tests.outside import outside_only

pytestmark = outside_only


@pytest.fixture
def with_places(instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    """An instance with two places, one of which cannot be reached."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(FAKE_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    tables = [f'[places.{name}]\nby = "ssh"\ndirectory = "{tmp_path}/{name}"\n' for name in ("gpu1", "away")]
    (instance.root / "config" / "config.toml").write_text("".join(tables))
    return instance


def test_places_are_listed_reached_and_let_go(with_places: Instance) -> None:
    with_places.run("restart")
    listed = with_places.run("places").stdout.splitlines()
    assert listed == [f"Place {name} (ssh {name}): connected when a call needs it" for name in ("gpu1", "away")]
    assert with_places.run("places", "test", "gpu1").stdout.startswith("Place gpu1 (ssh gpu1): reached for ")
    assert with_places.run("places", "release", "gpu1").stdout == f"{listed[0]}\n"
    failed = with_places.run("places", "test", "away")
    assert failed.returncode == 3 and failed.stdout.startswith("Place away (ssh away): unreachable for ")
    assert "No route to host" in failed.stdout


def test_a_place_that_is_not_named_or_not_there_is_refused_with_what_to_do(with_places: Instance) -> None:
    with_places.run("restart")
    unnamed, unknown = with_places.run("places", "release"), with_places.run("places", "test", "gpu9")
    assert (unnamed.returncode, unknown.returncode) == (2, 3)
    assert "elease needs the name of a place. whisper-tui places lists them" in unnamed.stderr
    assert "here is no place gpu9 in the configuration" in unknown.stderr
