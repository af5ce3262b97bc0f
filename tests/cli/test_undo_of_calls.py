"""`whisper-tui undo` of several calls: one plan that is shown before, and what others have changed is left out."""

import pytest

from tests.outside import needs_overlays, outside_only

pytestmark = [outside_only, needs_overlays]


@pytest.mark.slow
def test_the_plan_is_shown_and_carried_out_and_made_again(changed):
    refused = changed.run("undo", "--unasked")
    assert refused.returncode == 1 and "--yes" in refused.stderr
    plan = changed.run("undo", "--since", "1h", "--dry-run", "--diff")
    assert plan.returncode == 0, plan.stderr
    assert "2 calls will be undone, in this order: 2, 1" in plan.stdout
    assert f"D {changed.workspace}/a.txt  +0 −2" in plan.stdout and "-two" in plan.stdout
    assert sorted(path.name for path in changed.workspace.iterdir()) == ["a.txt", "b.txt"]
    told = changed.run("undo", "--unasked", "--yes")
    assert told.returncode == 0, told.stderr
    assert "2 calls undone: 2, 1" in told.stdout and list(changed.workspace.iterdir()) == []
    assert changed.run("review").stdout == "Nothing was changed unasked since the last review\n"
    again = changed.run("undo", "--since", "1h", "--redo", "--yes")
    assert "2 calls redone: 1, 2" in again.stdout, again.stderr
    assert (changed.workspace / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.slow
def test_what_somebody_has_changed_since_is_left_out_and_named(changed):
    (changed.workspace / "b.txt").write_text("mine\n")
    told = changed.run("undo", "2,1", "--yes")
    assert told.returncode == 1, told.stderr
    assert f"! left out of call 2: {changed.workspace}/b.txt: changed since" in told.stdout
    assert [path.name for path in changed.workspace.iterdir()] == ["b.txt"]
    assert (changed.workspace / "b.txt").read_text() == "mine\n"


@pytest.mark.slow
def test_only_some_paths_are_undone(changed):
    told = changed.run("undo", "--since", "1h", str(changed.workspace / "a.txt"), "--yes")
    assert told.returncode == 0, told.stderr
    assert [path.name for path in changed.workspace.iterdir()] == ["b.txt"]


@pytest.mark.slow
def test_calls_are_left_out_and_those_of_which_nothing_is_kept_are_named(changed):
    (changed.root / "config" / "rules.toml").write_text('unasked = "nothing"\n')
    for number, (command, how) in enumerate(
        (("echo three >> a.txt", "--undoable"), ("echo x > c", "--not-undoable")), 3
    ):
        call = changed.call("run_shell_command", command=command, description="a step")
        assert changed.run("approve", str(number), how, "--yes").returncode == 0
        assert call.wait(60) == 0
    told = changed.run("undo", "--since", "1h", "--except", "1", "--yes")
    assert told.returncode == 0, told.stderr
    assert "call 4 cannot be undone: its approval left that out" in told.stderr.lower()
    assert "2 calls undone: 3, 2" in told.stdout
    assert {path.name: path.read_text() for path in changed.workspace.iterdir()} == {"a.txt": "one\n", "c": "x\n"}


def test_what_makes_no_sense_is_refused(instance):
    assert "--session, --since or --unasked" in instance.run("undo").stderr
    assert "--except ID leaves out calls" in instance.run("undo", "1,2", "a", "--but").stderr
    assert "there is nothing to redo" in instance.run("undo", "--since", "2h", "--redo").stderr.lower()
