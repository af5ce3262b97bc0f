"""`whisper-tui history verify` as people run it."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.outside import outside_only
from whisper_tui.model.event import RulesChanged
from whisper_tui.supervisor.journal.journal import Journal


@pytest.mark.slow
@outside_only
def test_a_journal_is_verified_during_operation_and_a_change_is_reported(instance):
    call = instance.call("execute_command", command="true")
    assert instance.run("approve", "1").returncode == 0
    call.communicate(timeout=90)
    whole = instance.run("history", "verify")
    assert whole.returncode == 0 and "is unchanged" in whole.stdout
    end = json.loads(instance.run("history", "verify", "--json").stdout)["end"]
    assert instance.run("history", "verify", "--head", end).returncode == 0
    instance.run("stop")
    with sqlite3.connect(instance.root / "state" / "journal.sqlite") as journal:
        journal.execute("""UPDATE events SET body = replace(body, '"approve"', '"deny"')""")
    journal.close()
    broken = instance.run("history", "verify")
    assert broken.returncode == 1 and "was changed" in broken.stderr


@pytest.mark.slow
@outside_only
def test_forged_output_is_reported_and_removed_output_is_not(instance):
    for number, word in enumerate(("first", "second"), start=1):
        call = instance.call("execute_command", command="printf", args=[word])
        assert instance.run("approve", str(number)).returncode == 0
        call.communicate(timeout=90)
    runs = instance.root / "state" / "runs"
    instance.until(lambda: json.loads(instance.run("history", "verify", "--json").stdout)["outputs"]["checked"] == 2)
    whole = instance.run("history", "verify")
    assert "recorded output of 2 of 2 runs is unchanged" in whole.stdout and "The chain does not cover" in whole.stdout
    (runs / "1.1" / "out").write_text("forge")
    forged = instance.run("history", "verify")
    assert forged.returncode == 1 and "output of call 1 was changed" in forged.stderr
    assert "of 1 of 2 runs is unchanged" in forged.stdout
    shutil.rmtree(runs / "1.1")
    pruned = instance.run("history", "verify")
    assert pruned.returncode == 0 and "that of 1 other is no longer kept" in pruned.stdout


def test_an_invalid_end_and_a_missing_journal_are_reported(instance):
    assert instance.run("history", "verify", "--head", "nonsense").returncode in {2, 3}
    assert "There is no journal" in instance.run("history", "verify").stderr
    assert instance.run("history", "--head", "1:00").returncode == 2


def test_a_lost_note_of_what_was_trusted_is_reported(instance):
    path = instance.root / "state" / "journal.sqlite"
    path.parent.mkdir(mode=0o700, parents=True)
    journal = Journal(path)
    journal.append([RulesChanged(at=1.0, path="/rules.toml", entries=("allow make",), trusted=())])
    journal.close()
    assert instance.run("history", "verify").returncode == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE counters SET name = 'rumes /rules.toml' WHERE name LIKE 'rules %'")
    broken = instance.run("history", "verify")
    assert broken.returncode == 1 and "'rules /rules.toml'" in broken.stderr and "unchanged" not in broken.stdout


PLACES = ("events", "page of an index", "header")
NOT_FOR_PEOPLE = re.compile(r"pydantic|ValidationError|defect|type=|Extra inputs|sqlite3\.")


def damage(journal: Path, place: str) -> None:
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_by_call'").fetchone()
        (body,) = db.execute("SELECT body FROM events WHERE body LIKE '%\"decided\"%' AND call_id = 1").fetchone()
    data = bytearray(journal.read_bytes())
    at = {"events": data.index(body.encode()) + 40, "page of an index": (page - 1) * size, "header": 2}[place]
    data[at] ^= 1
    journal.write_bytes(data)


@pytest.mark.slow
@outside_only
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.few(1)
def test_of_a_damaged_journal_the_rest_is_used_or_the_message_says_what_to_do(instance, place):
    assert instance.run("restart").returncode == 0
    first, _ = (instance.call("execute_command", command="printf", args=[word]) for word in ("one", "two"))
    assert instance.run("approve", "1").returncode == 0
    first.communicate(timeout=90)
    assert instance.run("stop").returncode == 0
    journal = instance.root / "state" / "journal.sqlite"
    damage(journal, place)
    words = [("restart",), ("list",), ("history",), ("show", "2"), ("show", "1"), ("export", "--format", "jsonl")]
    said = {each: instance.run(*each) for each in (*words, ("status",), ("approve", "2"), ("history", "verify"))}
    assert not NOT_FOR_PEOPLE.search("".join(done.stdout + done.stderr for done in said.values()))
    checked = said["history", "verify"]
    assert checked.returncode == 1 and "unchanged" not in checked.stdout and str(journal) in checked.stderr
    if place == "events":
        assert all(said[each].returncode == 0 for each in words)
        assert "printf two" in said["list",].stdout and "printf one" in said["history",].stdout
        assert "cannot be read: the file is damaged" in said["status",].stdout
        assert said["approve", "2"].returncode == 0
        instance.until(lambda: instance.rows("show", "2")["exit_code"] == 0)
    else:
        refused = said["restart",]
        assert refused.returncode != 0
        assert f"journal {journal} is damaged" in refused.stderr and "Put a backup in its place" in refused.stderr
        shutil.move(journal, instance.root / "damaged.sqlite")
        assert instance.run("restart").returncode == 0
