"""The state directories of earlier versions, as their programs left them, are used by this one, and not the reverse.

Each of `tests/journals/state-*.tar.gz` holds what one version wrote: call 1 was approved and printed a line, call 2 was
denied, and call 3 waits. They are never edited.
"""

import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_restart import pid_of
from tests.outside import outside_only
from whisper_tui.supervisor.journal.sqlite_file import FORMAT, check_file

pytestmark = outside_only

STATES = sorted((Path(__file__).parent.parent / "journals").glob("state-*.tar.gz"))

NEWER = """
import sys
from whisper_tui.wire import light_client, protocol
protocol.VERSION = light_client.VERSION = protocol.VERSION + 1
from whisper_tui.cli import main
sys.exit(main(["supervise", "--home", sys.argv[1]]))
"""
"""A supervisor that speaks a newer protocol, and the present one too."""


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES, ids=lambda path: path.name.removesuffix(".tar.gz"))
@pytest.mark.few(1)
def test_the_state_of_an_earlier_version_is_taken_over_whole(instance, state):
    with tarfile.open(state) as files:
        # The first releases of Python 3.11 know no filters, and others ask for one.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(instance.root / "state")
    for directory in (instance.root / "state").rglob("*"):
        directory.chmod(0o700 if directory.is_dir() else 0o600)
    (instance.root / "state").chmod(0o700)
    assert instance.run("restart").stderr == ""
    rows = {row["id"]: row for row in instance.rows("history")}
    assert [rows[each]["state"] for each in ("1", "2", "3")] == ["ended", "ended", "waiting"]
    assert rows["1"]["exit_code"] == 0 and "denied" in str(rows["2"]["ending"])
    assert instance.run("logs", "1").stdout == "printed\n"
    assert "not now" in instance.run("show", "2").stdout
    assert instance.run("deny", "3", "not now").returncode == 0
    journal = instance.root / "state" / "journal.sqlite"
    assert check_file(journal).problem is None
    with closing(sqlite3.connect(journal)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    assert "is unchanged" in instance.run("history", "verify").stdout
    instance.call("execute_command", command="touch", args=["new"])
    assert instance.run("approve", "4").returncode == 0


@pytest.mark.slow
def test_an_older_program_stops_no_supervisor_that_speaks_a_newer_protocol(instance):
    newer = subprocess.Popen([sys.executable, "-c", NEWER, str(instance.root)], stderr=subprocess.DEVNULL)
    instance.until(lambda: instance.run("status").returncode == 0)
    refused = instance.run("restart")
    assert refused.returncode == 3 and "is newer than this program" in refused.stderr
    assert "It was not stopped" in refused.stderr
    assert pid_of(instance) == newer.pid and newer.poll() is None
    assert instance.run("stop").returncode == 0
    assert newer.wait(60) == 0
    assert instance.run("restart").returncode == 0
