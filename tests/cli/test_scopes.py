"""`approve` says how far it reaches, what that would have let through before, and what does not go together."""

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only

pytestmark = outside_only


def waiting(instance: Instance, *args: str) -> None:
    instance.call("execute_command", command="git", args=list(args))


@pytest.mark.slow
def test_a_prefix_is_tried_on_earlier_calls_before_it_is_given(instance: Instance) -> None:
    for place in ("here", "here", "there"):
        waiting(instance, "push", place)
    assert "remember as   git push …" in instance.run("show", "3").stdout
    tried = instance.run("approve", "3", "--prefix", "git", "push", "--dry-run")
    assert tried.returncode == 0
    assert "The approval would have covered 3 of the last 3 calls:" in tried.stdout
    assert "2 x  git push here" in tried.stdout and "1 x  git push there" in tried.stdout
    assert [row["state"] for row in instance.rows("list")] == ["waiting"] * 3
    given = instance.run("approve", "3", "--prefix", "git push", "--times", "2", "--for", "30")
    assert given.returncode == 0, given.stderr
    assert given.stdout.startswith("The approval would have covered 3 of the last 3 calls:")
    assert "Commands starting with git push run without approval 2 more times, for 30 min." in given.stdout


@pytest.mark.slow
def test_a_rule_is_saved_for_the_workspace_with_the_words_that_were_named(instance: Instance) -> None:
    waiting(instance, "push", "here")
    given = instance.run("approve", "1", "--prefix", "git", "push", "--save", "project")
    assert given.returncode == 0, given.stderr
    assert "A rule is saved: commands starting with git push run without approval in this workspace." in given.stdout
    (rule,) = instance.rows("rules", "list")
    assert (rule["prefix"], rule["directory"]) == (["git", "push"], str(instance.workspace))


REFUSED = [
    (["--prefix", "git"], "'git' is too short"),
    (["--prefix", "npm", "test"], "no command of this call begins with 'npm test'"),
    (["--save", "user"], "A rule needs the first words of its commands"),
    (["--prefix", "git", "push", "--save", "user", "--times", "3"], "limited to a number of calls"),
    (["--within", "/x"], "--within is about a prefix"),
    (["--session", "--prefix", "git", "push", "--save", "user"], "--session and --save exclude each other"),
    (["--times", "0"], "at least 1"),
    (["--for", "0"], "more than 0 minutes"),
    (["--dry-run"], "tests a standing approval"),
    (["--prefix", "git 'push"], "cannot be split into words"),
]


@pytest.mark.slow
def test_contradictory_options_are_one_sentence_and_approve_nothing(instance: Instance) -> None:
    waiting(instance, "push", "here")
    for words, sentence in REFUSED:
        answer = instance.run("approve", "1", *words)
        assert answer.returncode != 0 and answer.stdout == "", words
        assert sentence in answer.stderr and answer.stderr.count("\n") == 1, words
    assert [row["state"] for row in instance.rows("list")] == ["waiting"]


def test_limits_alone_are_about_the_same_command(instance: Instance) -> None:
    waiting(instance, "push", "here")
    given = instance.run("approve", "1", "--times", "1")
    assert "The same command in the same directory runs without approval 1 more time." in given.stdout
