"""What keeps the supervisor from working is said by whatever a person asks first."""

import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only

pytestmark = outside_only


@pytest.mark.slow
def test_list_status_and_the_doctor_say_what_is_wrong_and_what_to_do_as_long_as_it_lasts(instance: Instance) -> None:
    assert instance.run("restart").returncode == 0
    assert instance.run("list").stderr == ""
    with closing(sqlite3.connect(instance.home.state / "journal.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "locked" in instance.run("pause").stderr
        listed = instance.run("list")
        assert listed.returncode == 0
        assert listed.stderr.startswith("whisper-tui: The supervisor cannot work as it should: ")
        assert "locked" in listed.stderr and "backup" in listed.stderr
        assert instance.rows("list") == []
        assert "cannot work as it should" in instance.run("status").stdout
        examined = instance.run("doctor", "gemini")
        assert examined.returncode == 1
        assert "Supervisor" in examined.stdout and "locked" in examined.stdout
        other.execute("ROLLBACK")
    assert instance.run("pause").returncode == 0
    assert instance.run("list").stderr == ""
    assert "cannot work" not in instance.run("doctor", "gemini").stdout
    assert instance.run("resume").returncode == 0
