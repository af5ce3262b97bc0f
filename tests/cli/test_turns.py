"""The turns of agents whose commands run without asking."""

import json
import os

import pytest

from tests.cli.conftest import PROGRAM
from tests.cli.terminal import Terminal
from tests.outside import outside_only

RULES = '[[allow]]\nname = "harmless"\nprefix = ["{}"]\nsandbox = false\n'
SLEEPS = 6


@pytest.mark.slow
@outside_only
def test_an_agent_that_opens_many_sessions_has_no_more_turns_than_another_one(instance):
    (instance.root / "config" / "config.toml").write_text("[supervisor]\nworkers = 1\n")
    rules = instance.root / "config" / "rules.toml"
    rules.write_text("read_only = false\n" + "".join(map(RULES.format, ("sleep", "true"))))
    assert instance.run("list").returncode == 0
    many = [instance.start("call", "run_shell_command", json.dumps({"command": "sleep 300"})) for _ in range(SLEEPS)]
    instance.until(lambda: len(instance.seen("list")) == SLEEPS)
    words = [*PROGRAM, "call", "run_shell_command", json.dumps({"command": "true"}), "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as other:
        assert other.ends() == 0, other.text
    assert [row["state"] for row in instance.seen("list")].count("running") <= 2
    for each in many:
        each.terminate()
        each.communicate(timeout=90)
