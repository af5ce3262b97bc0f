"""`whisper-tui review`: what was changed, unasked or at all, by call and by file, marked as seen or undone."""

import json

import pytest

from tests.outside import needs_overlays, outside_only

pytestmark = [outside_only, needs_overlays]


@pytest.fixture
def changed(instance):
    """An instance in which two calls have changed files unasked."""
    (instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    for command in ("echo one > a.txt", "echo two >> a.txt; echo > b.txt"):
        arguments = json.dumps({"command": command, "description": "a step"})
        assert instance.run("call", "run_shell_command", arguments).returncode == 0
    return instance


@pytest.mark.slow
def test_it_lists_them_and_marks_them_as_seen(changed):
    told = changed.run("review").stdout
    assert "2 calls changed files unasked" in told and "echo one > a.txt" in told and "a.txt" in told
    assert [line.split()[1:] for line in changed.run("review", "--files").stdout.splitlines()] == [["1", "2"], ["2"]]
    assert [row["id"] for row in json.loads(changed.run("review", "--json").stdout)] == ["1", "2"]
    assert "Marked as seen" in changed.run("review", "--done").stdout
    assert changed.run("review").stdout == "Nothing was changed unasked since the last review\n"


@pytest.mark.slow
def test_it_takes_all_back_the_newest_first(changed):
    refused = changed.run("review", "--undo")
    assert refused.returncode == 1 and "--yes" in refused.stderr
    told = changed.run("review", "--undo", "--yes")
    assert told.returncode == 0, told.stderr
    assert told.stdout.index("Call 2: undone") < told.stdout.index("Call 1: undone")
    assert list(changed.workspace.iterdir()) == []
    assert changed.run("review").stdout == "Nothing was changed unasked since the last review\n"


@pytest.mark.slow
def test_one_that_cannot_be_taken_back_does_not_keep_the_others(changed):
    (changed.workspace / "b.txt").write_text("mine\n")
    told = changed.run("review", "--undo", "--yes")
    assert told.returncode == 1 and "call 2 was not undone" in told.stderr.lower()
    assert (changed.workspace / "b.txt").read_text() == "mine\n"


@pytest.fixture
def approved(changed):
    """An instance in which a human has approved two calls besides; of one of them nothing is kept."""
    (changed.root / "config" / "rules.toml").write_text('unasked = "nothing"\n')
    for number, (command, how) in enumerate(
        (("echo three >> a.txt", "--undoable"), ("echo x > c", "--not-undoable")), 3
    ):
        call = changed.call("run_shell_command", command=command, description="a step")
        assert changed.run("approve", str(number), how, "--yes").returncode == 0
        assert call.wait(60) == 0
    return changed


@pytest.mark.slow
def test_all_changes_of_a_time_can_be_taken_back_but_for_some(approved):
    before = approved.run("review", "--all")
    assert before.stdout.startswith("4 calls changed files, or may have:")
    assert "cannot be undone: its approval left that out" in before.stdout
    everything = approved.run("review", "--all", "--undo", "--yes")
    assert everything.returncode == 2 and "--session SESSION or --for TIME" in everything.stderr
    told = approved.run("review", "--all", "--for", "1h", "--except", "1", "--undo", "--yes")
    assert told.returncode == 0, told.stderr
    assert [line for line in told.stdout.splitlines() if line.endswith(": undone")] == [
        "Call 3: undone",
        "Call 2: undone",
    ]
    assert {path.name: path.read_text() for path in approved.workspace.iterdir()} == {"a.txt": "one\n", "c": "x\n"}
