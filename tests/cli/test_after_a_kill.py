"""After the supervisor was killed, what was approved and has not started waits again: anybody could have written it."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, Instance
from tests.outside import outside_only
from whisper_tui.supervisor.journal.sqlite_file import check_file, written

pytestmark = outside_only

KILLED = "the supervisor was killed meanwhile"


def journal_of(instance: Instance) -> Path:
    return Path(instance.home.state) / "journal.sqlite"


def forge(instance: Instance, *facts: dict[str, object]) -> None:
    """Add facts to the journal of a supervisor that does not run, as it would have written them."""
    with closing(sqlite3.connect(journal_of(instance))) as db, db:
        seq, end = db.execute("SELECT seq, link FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        for fact in facts:
            seq += 1
            body = json.dumps({**fact, "seq": seq, "at": 1.0})
            text = written(seq, body, str(fact["call_id"]))
            end = text.link(end)
            row = (seq, int(str(fact["call_id"])), body, end, text.salt, text.about)
            db.execute("INSERT INTO events (seq, call_id, body, link, salt, about) VALUES (?, ?, ?, ?, ?, ?)", row)


def approval(call_id: str) -> dict[str, object]:
    by = {"surface": "cockpit", "who": "tester"}
    return {"kind": "decided", "call_id": call_id, "decision": {"kind": "approve"}, "by": by}


def approved_and_held(instance: Instance) -> str:
    """A call that is approved, and does not start because everything is paused."""
    instance.call("execute_command", command="touch", args=["ran"])
    assert instance.run("pause").returncode == 0
    assert instance.run("approve", "1").returncode == 0
    assert instance.rows("show", "1")["state"] == "queued"
    return "1"


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_forged_approval_starts_nothing(instance, end):
    assert instance.run("restart").returncode == 0
    instance.call("execute_command", command="touch", args=["ran"])
    spec = {"command": {"kind": "argv", "program": "touch", "args": ["ran"]}, "cwd": str(instance.workspace)}
    started = {"kind": "started", "call_id": "1", "attempt": 1, "spec": spec}
    instance.kill_supervisor(end)
    forge(instance, approval("1"), *([started] if end == signal.SIGKILL else []))
    assert check_file(journal_of(instance)).problem is None
    instance.until(lambda: instance.rows("show", "1")["state"] == "waiting")
    assert KILLED in instance.rows("show", "1")["returned_because"]
    assert KILLED in instance.run("show", "1").stdout
    assert not (instance.workspace / "ran").exists()
    assert instance.run("approve", "1").returncode == 0
    instance.until(lambda: instance.rows("show", "1")["exit_code"] == 0)
    assert (instance.workspace / "ran").exists()


@pytest.mark.slow
def test_an_approval_outlives_a_stop_and_a_restart_and_not_a_kill(instance):
    assert instance.run("restart").returncode == 0
    call_id = approved_and_held(instance)
    assert instance.run("restart").returncode == 0
    assert instance.rows("show", call_id)["state"] == "queued"
    assert instance.run("stop").returncode == 0
    assert instance.run("list").returncode == 0
    assert instance.rows("show", call_id)["state"] == "queued"
    instance.kill_supervisor(signal.SIGKILL)
    assert instance.rows("show", call_id)["state"] == "waiting"
    assert instance.run("resume").returncode == 0
    assert instance.rows("show", call_id)["state"] == "waiting"


def echoed(instance: Instance, word: str, call_id: str) -> None:
    """A human approves a call, and the agent gets its output."""
    process = instance.call("execute_command", command="echo", args=[word])
    assert instance.run("approve", call_id).returncode == 0
    assert word in process.communicate(timeout=ANSWER_S)[0]


@pytest.mark.slow
@pytest.mark.parametrize("left", ["no journal", "an empty one"])
@pytest.mark.few(1)
def test_after_the_journal_was_lost_no_number_of_a_call_comes_again(instance, left):
    assert instance.run("restart").returncode == 0
    echoed(instance, "first", "1")
    assert instance.run("stop").returncode == 0
    for path in journal_of(instance).parent.glob("journal.sqlite*"):
        path.rename(path.with_name(f"old-{path.name}"))
    if left == "an empty one":
        journal_of(instance).touch(mode=0o600)
    assert instance.run("restart").returncode == 0
    pid = instance.rows("status")["pid"]
    echoed(instance, "second", "2")
    (row,) = instance.rows("history")
    assert (row["id"], row["exit_code"]) == ("2", 0)
    assert instance.rows("status")["pid"] == pid, "the supervisor goes on"
    assert "files of calls up to 1" in (Path(instance.home.state) / "supervisor.log").read_text()
