"""`whisper-tui history verify` as people run it."""

import json
import sqlite3

from tests.outside import outside_only


@outside_only
def test_a_journal_is_verified_beside_the_supervisor_and_a_change_is_told(instance):
    call = instance.call("execute_command", command="true")
    assert instance.run("approve", "1").returncode == 0
    call.communicate(timeout=90)
    whole = instance.run("history", "verify")
    assert whole.returncode == 0 and "is as it was written" in whole.stdout
    end = json.loads(instance.run("history", "verify", "--json").stdout)["end"]
    assert instance.run("history", "verify", "--head", end).returncode == 0
    instance.run("stop")
    with sqlite3.connect(instance.root / "state" / "journal.sqlite") as journal:
        journal.execute("""UPDATE events SET body = replace(body, '"approve"', '"deny"')""")
    journal.close()
    broken = instance.run("history", "verify")
    assert broken.returncode == 1 and "was changed" in broken.stderr


def test_an_end_that_is_none_and_a_journal_that_is_not_there_are_told(instance):
    assert instance.run("history", "verify", "--head", "nonsense").returncode in {2, 3}
    assert "There is no journal" in instance.run("history", "verify").stderr
    assert instance.run("history", "--head", "1:00").returncode == 2
