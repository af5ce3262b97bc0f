"""`whisper-tui history verify` as people run it."""

import json
import shutil
import sqlite3

import pytest

from tests.outside import outside_only


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
