"""`preview`, `approve --as-previewed`, `approve --undoable` and `undo` on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Instance
from tests.outside import needs_overlays, outside_only

pytestmark = [outside_only, needs_overlays]
TIDY = "sed -i s/two/zwei/ a.txt; mkdir new; cp a.txt new/b.txt; echo tidied"


@pytest.fixture
def files(instance: Instance) -> Path:
    """The workspace, with one call that waits."""
    place = Path(instance.workspace)
    (place / "a.txt").write_text("one\ntwo\n")
    instance.run("restart")
    instance.call("run_shell_command", command=TIDY)
    return place


def previewed(instance: Instance) -> str:
    """The preview of call 1, as it is printed."""
    shown = instance.run("preview", "1", "--diff")
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


@pytest.mark.slow
def test_a_preview_prints_what_would_change_and_changes_nothing(instance: Instance, files: Path) -> None:
    shown = previewed(instance)
    assert "2 files created, 1 file changed. Exit code 0." in shown
    assert f"M {files}/a.txt" in shown and f"A {files}/new with 1 entry" in shown
    assert "-two\n+zwei\n" in shown
    assert (files / "a.txt").read_text() == "one\ntwo\n"
    assert not (files / "new").exists()
    assert instance.rows("show", "1")["state"] == "waiting"
    assert instance.run("logs", "1").stdout == "tidied\n"


@pytest.mark.slow
def test_a_rename_is_printed_as_git_prints_it(instance: Instance) -> None:
    place = Path(instance.workspace)
    (place / "a.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    (place / "b.txt").write_text("b\n")
    instance.run("restart")
    instance.call("run_shell_command", command="mv a.txt c.txt; sed -i 's/line 50/fifty/' c.txt; mv b.txt d.txt")
    shown = previewed(instance)
    assert "2 files renamed. Exit code 0." in shown
    assert f"R renamed {place}/a.txt → {place}/c.txt" in shown and f"R renamed {place}/b.txt → {place}/d.txt" in shown
    assert f"similarity index 100%\nrename from {place}/b.txt\nrename to {place}/d.txt\n" in shown
    assert f"--- {place}/a.txt\n+++ {place}/c.txt\n@@ -48,7 +48,7 @@\n" in shown
    assert "-line 50\n+fifty\n" in shown and "line 40" not in shown and "-b\n" not in shown


def test_what_was_applied_is_shown_once(instance: Instance, files: Path) -> None:
    previewed(instance)
    assert instance.run("approve", "1", "--as-previewed").returncode == 0
    instance.until(lambda: instance.rows("show", "1")["state"] == "ended")
    shown = instance.run("show", "1").stdout
    assert len([line for line in shown.splitlines() if line.startswith("changes ")]) == 1, shown
    assert shown.count(" created") == 1, shown
    assert "applied from the preview; it did not run again" in shown


@pytest.mark.slow
def test_what_was_previewed_is_applied_and_taken_back(instance: Instance, files: Path) -> None:
    previewed(instance)
    approved = instance.run("approve", "1", "--as-previewed")
    assert approved.returncode == 0 and "it does not run again" in approved.stdout and "It runs" not in approved.stdout
    instance.until(lambda: instance.rows("show", "1")["exit_code"] == 0)
    assert (files / "new" / "b.txt").read_text() == "one\nzwei\n"
    assert "Use --yes" in instance.run("undo", "1").stderr
    dry = instance.run("undo", "1", "--dry-run")
    assert dry.returncode == 0 and f"{files}/a.txt" in dry.stdout
    assert (files / "a.txt").read_text() == "one\nzwei\n"
    assert instance.run("undo", "1", "--yes").stdout.endswith("Call 1: undone\n")
    assert (files / "a.txt").read_text() == "one\ntwo\n"
    assert not (files / "new").exists()
    assert "undone" in instance.run("history").stdout
    assert instance.run("undo", "1", "--redo", "--yes").stdout.endswith("Call 1: redone\n")
    row = instance.rows("show", "1")
    assert row["preview"]["exit_code"] == 0 and row["preview"]["report"]["counts"]["created"] == 2
    assert row["applied"] and row["undoable"] and not row["taken_back"]
    assert [(each["direction"], each["done"]) for each in row["undos"]] == [("undo", True), ("redo", True)]
    shown = instance.run("show", "1").stdout
    for words in ("2 created, 1 changed", ": exit 0.", "redone 20", "in the command line"):
        assert words in shown
    told = instance.run("story", row["session_id"]).stdout
    assert "applied from its preview, undone at" in told and ", redone at" in told
    report = instance.run("export", "1", "--format", "markdown").stdout
    assert "Previewed 20" in report and report.count("Its changes: `") == 2
    line = json.loads(instance.run("export", "1", "--format", "jsonl").stdout)
    assert line["preview"]["report"]["counts"]["changed"] == 1 and len(line["undos"]) == 2
    assert (files / "new" / "b.txt").exists()


@pytest.mark.slow
def test_an_undo_names_the_file_that_changed_since_and_does_nothing(instance: Instance, files: Path) -> None:
    previewed(instance)
    instance.run("approve", "1", "--as-previewed")
    instance.until(lambda: instance.rows("show", "1")["exit_code"] == 0)
    (files / "a.txt").write_text("mine\n")
    refused = instance.run("undo", "1", "--yes")
    assert refused.returncode == 1
    assert str(files / "a.txt") in refused.stderr
    assert (files / "a.txt").read_text() == "mine\n" and (files / "new").exists()


@pytest.mark.slow
def test_an_undoable_run_is_real_and_can_be_taken_back(instance: Instance, files: Path) -> None:
    previewed(instance)
    assert instance.run("approve", "1", "--undoable").returncode == 0
    instance.until(lambda: instance.rows("show", "1")["exit_code"] == 0)
    assert (files / "a.txt").read_text() == "one\nzwei\n"
    assert instance.run("undo", "1", str(files / "a.txt"), "--yes").returncode == 0
    assert (files / "a.txt").read_text() == "one\ntwo\n"
    assert (files / "new" / "b.txt").exists()


@pytest.mark.slow
def test_a_severe_command_can_be_taken_back_by_default_and_that_can_be_left_out(
    instance: Instance, files: Path
) -> None:
    (files / "build").mkdir()
    for call_id, more in (("2", ()), ("3", ("--not-undoable",))):
        (files / "build" / "x").write_text("x\n") if (files / "build").exists() else None
        instance.call("run_shell_command", command="rm -rf build")
        assert instance.run("approve", call_id, "--yes", *more).returncode == 0
        instance.until(lambda call_id=call_id: instance.rows("show", call_id)["settled"])
        undone = instance.run("undo", call_id, "--yes")
        assert undone.returncode == (1 if more else 0), undone.stderr
    assert "its approval left that out" in undone.stderr
    kept, left_out = (instance.run("show", call_id).stdout for call_id in ("2", "3"))
    assert "2 deleted, +0 −1: build/x" in kept
    assert "not kept: its approval left that out" in left_out
    assert instance.rows("show", "2")["changed"]["counts"]["deleted"] == 2
    story = instance.run("story", instance.rows("show", "2")["session"]).stdout
    assert "2 deleted, +0 −1: build/x, 1 more (kept)" in story and "changes not kept: its approval" in story
    assert not (files / "build").exists()
    assert "1 calls" in instance.run("prune", "--dry-run").stdout


@pytest.mark.slow
def test_an_edited_command_is_previewed_and_approved_as_previewed(instance: Instance, files: Path) -> None:
    shown = instance.run("preview", "1", "--command", "rm a.txt; echo shorter")
    if "cannot be previewed here" in shown.stdout:
        pytest.skip(shown.stdout)
    assert "1 file deleted" in shown.stdout and f"D {files}/a.txt" in shown.stdout
    approved = instance.run("approve", "1", "--as-previewed", "--yes")
    assert "Approved 1, changed: rm a.txt; echo shorter" in approved.stdout
    instance.until(lambda: instance.rows("show", "1")["settled"])
    assert not (files / "a.txt").exists() and not (files / "new").exists()
    told = instance.run("show", "1", "--told").stdout
    assert "The human changed the command before it ran" in told and "exactly the file changes" in told


def test_a_call_without_a_preview_cannot_be_applied(instance: Instance, files: Path) -> None:
    refused = instance.run("approve", "1", "--as-previewed")
    assert refused.returncode == 1
    assert "whisper-tui preview 1" in refused.stderr
    assert (files / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.slow
def test_a_preview_can_be_dropped(instance: Instance, files: Path) -> None:
    previewed(instance)
    assert instance.run("preview", "1", "--drop").stdout == "The preview of call 1 was dropped\n"
    assert instance.run("approve", "1", "--as-previewed").returncode == 1
    assert (files / "a.txt").exists()


@pytest.mark.slow
def test_the_doctor_says_how_commands_are_previewed_or_why_not(instance: Instance) -> None:
    examined = instance.run("doctor", "gemini")
    told = json.loads(instance.run("doctor", "gemini", "--json").stdout)
    assert (told["previews"] is None) != (told["previews_problem"] is None)
    assert f"previews: {told['previews']}" in examined.stdout
    instance.run("restart")
    assert f"Previews: {told['previews']}\n" in instance.run("status").stdout


@pytest.mark.slow
def test_status_and_doctor_say_why_commands_are_not_previewed(instance: Instance) -> None:
    Path(instance.home.config).mkdir(parents=True, exist_ok=True)
    Path(instance.home.config, "config.toml").write_text('[supervisor]\npreviews = "none"\n')
    Path(instance.home.config, "config.toml").chmod(0o600)
    assert "cannot be previewed here" in instance.run("doctor", "gemini").stdout
    instance.run("restart")
    assert "Previews: not possible (the configuration says so: [supervisor] previews)" in instance.run("status").stdout
    instance.call("run_shell_command", command=TIDY)
    shown = instance.run("preview", "1")
    assert shown.returncode == 1
    assert shown.stdout.startswith("It was not previewed. Commands cannot be previewed here: the configuration says so")
    assert instance.rows("show", "1")["state"] == "waiting"


@pytest.mark.slow
def test_the_doctor_asks_the_supervisor_how_it_previews_commands(instance: Instance) -> None:
    (instance.root / "config" / "config.toml").write_text('[supervisor]\npreviews = "none"\n')
    assert instance.run("restart").returncode == 0
    (instance.root / "config" / "config.toml").unlink()
    told = json.loads(instance.run("doctor", "gemini", "--json").stdout)
    assert told["previews"] is None and "the configuration says so" in told["previews_problem"]
