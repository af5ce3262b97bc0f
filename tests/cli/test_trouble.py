"""What keeps the supervisor from working is said by whatever a person asks first."""

import os
import resource
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only
from whisper_tui.system.processes import peer_process
from whisper_tui.system.state_directory import is_occupied
from whisper_tui.wire.rendezvous import connect

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


@pytest.mark.slow
def test_a_supervisor_is_stopped_also_where_nothing_can_be_written(instance: Instance) -> None:
    assert instance.run("restart").returncode == 0
    stop = instance.start("stop", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    out, err = stop.communicate(timeout=90)
    assert stop.returncode == 0 and "Stopped the supervisor" in out, err
    assert not is_occupied(instance.home.state)


@pytest.mark.slow
def test_somebody_who_waits_for_a_stopped_supervisor_is_told(instance: Instance) -> None:
    assert instance.run("restart").returncode == 0
    connection = connect(instance.home)
    assert connection is not None
    with connection:
        pid = peer_process(connection)[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        waiting = instance.start("list")
        assert waiting.stderr is not None
        assert "Still waiting for the supervisor, which does not answer" in waiting.stderr.readline()
    finally:
        os.kill(pid, signal.SIGCONT)
    out, _ = waiting.communicate(timeout=90)
    assert waiting.returncode == 0 and out.startswith("ID")
