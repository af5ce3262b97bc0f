"""Whoever writes into the files of rules is noticed, and allows nothing: a human has to agree to what allows."""

import json
import signal

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only

pytestmark = outside_only

ANYTHING = '[[allow]]\nname = "x"\nanything = true\n'


@pytest.fixture
def rules(instance: Instance):
    assert instance.run("restart").returncode == 0
    return instance.root / "config" / "rules.toml"


def asked(instance: Instance, *words: str) -> bool:
    """Whether a call of these words waits for a human. It is run or denied afterwards."""
    process = instance.start("call", "execute_command", json.dumps({"command": words[0], "args": words[1:]}))

    def where() -> str | None:
        waits = any(row["state"] == "waiting" for row in instance.seen("list"))
        return "waits" if waits else "over" if process.poll() is not None else None

    waits = instance.until(where) == "waits"
    if waits:
        (row,) = (row for row in instance.seen("list") if row["state"] == "waiting")
        assert instance.run("deny", row["id"], "--reason", "no").returncode == 0
    _, err = process.communicate(timeout=90)
    assert waits or process.returncode == 0, err
    return waits


@pytest.mark.slow
def test_foreign_changes_of_rules_allow_nothing_until_they_are_trusted(instance, rules):
    rules.write_text(ANYTHING)
    assert asked(instance, "true")
    listed = instance.run("rules", "list")
    assert "2 of these entries would allow something, and are not in force" in listed.stderr
    shown = instance.run("rules", "trust")
    assert shown.returncode == 1 and "would hold: allow anything" in shown.stdout
    assert asked(instance, "true")
    assert instance.run("rules", "trust", "--yes").returncode == 0
    assert not asked(instance, "true")
    assert instance.run("restart").returncode == 0
    assert not asked(instance, "true")


def test_a_call_names_the_rule_that_would_allow_it_and_a_rule_for_a_place_is_added_in_one_line(instance, rules):
    rules.write_text('[[allow]]\nname = "mine"\nprefix = ["touch"]\nsandbox = "workspace"\n')
    explained = instance.run("explain", "touch x").stdout
    assert "the rule 'mine' would allow it, but is not in force until you trust it" in explained
    refused = instance.run("rules", "add", "allow", "--place", "gpu1", "nvidia-smi")
    assert refused.returncode != 0 and "there is no sandbox at a place" in refused.stderr
    added = instance.run("rules", "add", "allow", "--place", "gpu1", "--sandbox", "off", "nvidia-smi")
    assert added.returncode == 0
    written = next(row for row in instance.rows("rules", "list") if row["name"] == "nvidia-smi")
    assert (written["place"], written["sandbox"]) == ("gpu1", False)


@pytest.mark.slow
def test_a_change_is_reported_without_any_call_and_kept_in_the_history(instance, rules):
    watching = instance.start("watch")
    assert "Connected" in watching.stdout.readline()
    rules.write_text(ANYTHING)
    line = watching.stdout.readline()
    assert "rules.toml was changed; added allow anything" in line and "are not trusted" in line
    told = instance.run("history", "rules")
    assert told.returncode == 0 and "added allow anything" in told.stdout
    assert any(row["added"] for row in instance.rows("history", "rules"))
    assert instance.run("history", "verify").returncode == 0


@pytest.mark.slow
def test_denying_entries_apply_at_once_and_removing_them_needs_trust(instance, rules):
    assert instance.run("rules", "add", "allow", "true").returncode == 0
    assert not asked(instance, "true")
    before = rules.read_text()
    rules.write_text(before + '\n[[ask]]\nname = "never alone"\nprogram = "true"\n')
    assert asked(instance, "true")
    assert instance.run("rules", "trust", "--yes").returncode == 0
    rules.write_text(before)
    assert instance.run("rules", "trust").returncode in {0, 1}


@pytest.mark.slow
def test_a_stricter_rule_that_a_human_trusted_does_not_disappear_silently(instance, rules):
    for words in (["add", "allow", "true"], ["add", "deny", "false"]):
        assert instance.run("rules", *words).returncode == 0
    assert not asked(instance, "true")
    rules.write_text(rules.read_text().partition("[[deny]]")[0])
    assert "deny" not in rules.read_text()
    assert asked(instance, "true")
    assert "is gone:    deny false" in instance.run("rules", "trust").stdout
    assert instance.run("rules", "trust", "--yes").returncode == 0
    assert not asked(instance, "true")


@pytest.mark.slow
def test_rules_that_whisper_tui_writes_hold_at_once_and_bring_in_nothing_else(instance, rules):
    rules.write_text('read_only = false\n[[allow]]\nname = "mine"\nprefix = ["false"]\n')
    assert instance.run("rules", "add", "allow", "true").returncode == 0
    assert not asked(instance, "true")
    assert asked(instance, "false")
    assert instance.run("rules", "remove", "true").returncode == 0
    assert asked(instance, "true")


def test_rules_that_are_there_when_the_first_supervisor_starts_hold(instance):
    (instance.root / "config" / "rules.toml").write_text(ANYTHING)
    assert not asked(instance, "true")


@pytest.mark.slow
def test_after_a_kill_what_rules_allow_has_to_be_trusted_again(instance):
    (instance.root / "config" / "rules.toml").write_text(ANYTHING)
    assert not asked(instance, "touch", "x")
    instance.kill_supervisor(signal.SIGKILL)
    assert asked(instance, "touch", "x")
    assert "supervisor was killed" in instance.run("history", "rules").stdout
    assert instance.run("rules", "trust", "--yes").returncode == 0
    assert not asked(instance, "touch", "x")


@pytest.mark.slow
def test_a_project_that_somebody_wrote_into_the_list_of_trusted_ones_is_not_trusted(instance, rules):
    place = instance.workspace / ".whisper-tui"
    place.mkdir()
    (place / "rules.toml").write_text(ANYTHING)
    assert asked(instance, "true")
    assert instance.run("rules", "trust", str(instance.workspace), "--yes").returncode == 0
    assert not asked(instance, "true")
    kept = (instance.root / "config" / "trusted-rules.json").read_text()
    assert instance.run("rules", "untrust", str(instance.workspace)).returncode == 0
    assert asked(instance, "true")
    (instance.root / "config" / "trusted-rules.json").write_text(kept)
    assert asked(instance, "true")
