"""`check` and `rules`: what would be said, and the rules that say it, without a supervisor."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only


@pytest.mark.slow
def test_check_says_the_verdict_and_every_reason_and_runs_nothing(instance: Instance) -> None:
    answer = instance.run("check", "touch made; sudo rm -rf /x")
    assert answer.returncode == 0
    assert answer.stdout.startswith("ask: ")
    assert "▲▲ privilege: " in answer.stdout and "▲▲ destructive: " in answer.stdout and "through sudo" in answer.stdout
    assert not (instance.workspace / "made").exists()


@pytest.mark.slow
def test_explain_says_nothing_twice(instance: Instance) -> None:
    lines = instance.run("explain", "rm -rf build").stdout.splitlines()
    assert lines[:2] == [
        "ask: no rule matches this command",
        "  risk    ▲▲ destructive: Deletes recursively without confirmation (`rm -rf`)",
    ]
    assert lines[2] == "in plain words"
    told = instance.run("explain", "if true; then rm x; fi").stdout
    assert told.count("the shell keyword") == 1 and "runs    rm x" in told


@pytest.mark.slow
def test_explain_describes_each_part_in_plain_words_and_leaves_out_what_is_not_known(instance: Instance) -> None:
    lines = instance.run("explain", "sudo -u root tar -xzf a.tgz --frob | frobnicate").stdout.splitlines()
    assert lines[lines.index("in plain words") + 1 :] == [
        "  sudo: run a command as another user, usually root",
        "    -u root: as this user",
        "  tar: create, list or extract archives",
        "    -x: extract files",
        "    -z: through gzip",
        "    -f a.tgz: the archive; - is the standard input or output",
        "    --frob: not described",
        "  frobnicate: not described",
    ]
    row = instance.rows("explain", "ls -\x1b")
    assert row["explained"][0] == {"words": "ls", "meaning": "list files", "is_program": True}
    assert "\x1b" not in instance.run("explain", "ls -\x1b").stdout


@pytest.mark.slow
def test_check_speaks_json(instance: Instance) -> None:
    row = instance.rows("check", "npm test")
    assert (row["verdict"], row["plain"], row["prefixes"]) == ("ask", True, [["npm", "test"]])
    risks = {risk["id"]: risk["grave"] for risk in instance.rows("explain", "rm -rf x; curl http://h")["risks"]}
    assert risks["destructive"] is True and risks["network"] is False


@pytest.mark.slow
def test_a_corpus_is_judged_line_by_line_in_one_process(instance: Instance) -> None:
    lines = [
        {"id": "a", "kind": "decision", "command": "sudo git push", "rules": {"deny": ["git push"]}},
        {"id": "b", "kind": "split", "command": "a; b c"},
        {"id": "c", "kind": "nonsense", "command": "a"},
    ]
    asked = "\n".join([*(json.dumps(line) for line in lines), "no json", ""])
    done = subprocess.run(
        [sys.executable, "-m", "whisper_tui", "check", "--jsonl", "--home", str(instance.root)],
        input=asked, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["id"], answer.get("result")) for answer in answers] == [
        ("a", "deny"),
        ("b", [["a"], ["b", "c"]]),
        ("c", None),
        (None, None),
    ]


@pytest.mark.slow
def test_a_rule_is_added_shown_obeyed_and_removed(instance: Instance) -> None:
    assert instance.run("rules", "add", "deny", "--because", "not here", "git", "push").returncode == 0
    assert [row["prefix"] for row in instance.rows("rules", "list")] == [["git", "push"]]
    assert instance.rows("check", "git -C x push")["reason"] == "not here"
    assert "not here" in instance.run("rules", "export").stdout
    assert instance.run("rules", "remove", "git push").returncode == 0
    assert instance.rows("rules", "list") == []
    assert instance.run("rules", "remove", "git push").returncode == 1


@pytest.mark.slow
def test_the_starter_set_of_a_project_is_listed_and_what_is_picked_is_added(instance: Instance) -> None:
    (instance.workspace / "package.json").write_text('{"scripts": {"build": "tsc", "lint": "eslint", "deploy": "x"}}')
    project = str(instance.workspace)
    listed = instance.run("rules", "starter", project)
    assert "1       npm run build …  writes only in the workspace, no network  named by package.json" in listed.stdout
    assert "deploy" not in listed.stdout and "None added" in listed.stdout
    wrong = instance.run("rules", "starter", project, "--add", "3")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "whisper-tui: There is no rule 3 in this list. Name numbers from 1 to 2.\n",
    )
    assert "Added 1 to" in instance.run("rules", "starter", project, "--add", "2").stdout
    (row,) = instance.rows("rules", "list")
    assert (row["prefix"], row["directory"], row["sandbox"]) == (["npm", "run", "lint"], project, "workspace")
    assert "Added 1 to" in instance.run("rules", "starter", project, "--all").stdout
    assert "No rules to offer" in instance.run("rules", "starter", project).stdout


@pytest.mark.slow
def test_a_disabled_rule_is_listed_as_such_and_decides_nothing(instance: Instance) -> None:
    instance.run("rules", "add", "deny", "git", "push")
    instance.run("rules", "add", "ask", "git", "pull")
    file = instance.root / "config" / "rules.toml"
    file.write_text(file.read_text().replace('prefix = ["git", "push"]', 'prefix = ["git", "push"]\ndisabled = true'))
    assert {row["name"]: row["disabled"] for row in instance.rows("rules", "list")} == {
        "git push": True,
        "git pull": False,
    }
    rows = instance.run("rules", "list").stdout.splitlines()
    assert [row.startswith("deny (disabled) ") for row in rows if "git push" in row] == [True]
    assert [row.startswith("ask ") for row in rows if "git pull" in row] == [True]
    assert instance.rows("check", "git push")["verdict"] == "ask"


@pytest.mark.slow
def test_failing_examples_are_reported(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[[allow]]\nname = "x"\nprefix = ["ls"]\nmatch = ["ls -l", "cat x"]\n')
    file.chmod(0o600)
    answer = instance.run("rules", "test", str(file))
    assert answer.returncode == 1
    assert "does not match 'cat x'" in answer.stdout and "1 of 2 examples hold" in answer.stdout


@pytest.mark.slow
def test_imported_rules_are_shown_or_written_and_the_rest_is_reported(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"permissions": {"allow": ["Bash(git commit:*)", "Bash(python:*)"]}}')
    shown = instance.run("rules", "import", str(file))
    assert 'prefix = ["git", "commit"]' in shown.stdout and "nearly anything" in shown.stderr
    assert instance.rows("rules", "list") == []
    assert instance.run("rules", "import", "--write", str(file)).returncode == 0
    assert len(instance.rows("rules", "list")) == 1


@pytest.mark.slow
def test_the_rules_of_a_project_are_shown_before_they_are_trusted(instance: Instance) -> None:
    place = instance.workspace / ".whisper-tui"
    place.mkdir()
    (place / "rules.toml").write_text(
        '[[allow]]\nname = "tests"\nprefix = ["npm", "test"]\n[[deny]]\nname = "d"\nprefix = ["git", "push"]\n'
    )
    assert instance.rows("check", "git push")["rule"] == "project: d"
    assert instance.rows("check", "npm test")["verdict"] == "ask"
    listed = instance.run("rules", "list")
    assert "1 of the project's rules allow, and are not in force" in listed.stderr and "project: d" in listed.stdout
    shown = instance.run("rules", "trust", ".")
    assert shown.returncode == 1 and 'prefix = ["npm", "test"]' in shown.stdout
    assert "1 deny, 0 ask, 1 allow" in shown.stdout
    assert instance.rows("check", "npm test")["verdict"] == "ask"
    assert instance.run("rules", "trust", ".", "--yes").returncode == 0
    assert instance.rows("check", "npm test")["rule"] == "project: tests"
    (place / "rules.toml").write_text('[[allow]]\nname = "t"\nprefix = ["npm", "run"]\n')
    assert instance.rows("check", "npm run x")["verdict"] == "ask"
    assert instance.run("rules", "untrust", ".").returncode == 0
    assert instance.run("rules", "untrust", ".").returncode == 1
    assert instance.run("rules", "trust", "/").returncode == 5


@pytest.mark.slow
@outside_only
def test_a_rule_tells_how_often_it_has_decided(instance: Instance) -> None:
    instance.run("rules", "add", "deny", "git", "push")
    instance.run("rules", "add", "deny", "git", "pull")
    for _ in range(2):
        assert instance.run("call", "execute_command", '{"command": "git", "args": ["push"]}').returncode == 1
    assert {row["name"]: row["hits"] for row in instance.rows("rules", "list")} == {"git push": 2, "git pull": 0}


@pytest.mark.slow
@outside_only
def test_a_rule_shows_the_sandbox_of_its_commands(instance: Instance) -> None:
    confined = ("--sandbox", "workspace", "--network", "--execute", "/opt/tools/bin")
    assert instance.run("rules", "add", "allow", *confined, "npm", "test").returncode == 0
    assert instance.run("rules", "add", "allow", "--sandbox", "off", "npm", "publish").returncode == 0
    rules = {row["name"]: row for row in instance.rows("rules", "list")}
    kept = rules["npm test"]
    assert (kept["sandbox"], kept["network"], kept["execute"]) == ("workspace", True, ["/opt/tools/bin"])
    assert rules["npm publish"]["sandbox"] is False


def test_only_a_supervisor_that_runs_explains_a_command_at_a_place(instance: Instance) -> None:
    done = instance.run("explain", "--place", "gpu1", "--", "ls")
    assert done.returncode and "ls" not in done.stdout
    done = instance.run("explain", "--place", "gpu1", "--rules", "rules.toml", "--", "ls")
    assert "Only the supervisor can ask a place" in done.stderr


@pytest.mark.slow
def test_without_a_supervisor_what_a_rule_moves_to_a_place_is_unknown(instance: Instance) -> None:
    rules = instance.root / "moved.toml"
    rules.write_text('[[allow]]\nname = "there"\nprefix = ["ls"]\nrun_at = "gpu1"\nsandbox = false\n')
    row = instance.rows("explain", "--rules", str(rules), "ls")
    assert (row["verdict"], row["place"]) == ("ask", "gpu1")
    assert "only the supervisor can ask gpu1" in row["reason"]
    lines = instance.run("explain", "--rules", str(rules), "ls").stdout.splitlines()
    assert "  at      gpu1" in lines
