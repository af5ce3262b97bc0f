"""The rules of an instance come from two files of the user's, and what neither says is as everybody expects it."""

from pathlib import Path

import pytest

from whisper_tui.config import load
from whisper_tui.config.rule_files import RuleFiles, rules_in
from whisper_tui.policy.rules.rule import Rule
from whisper_tui.system.state_directory import Directories


@pytest.fixture
def home(tmp_path: Path) -> Directories:
    (tmp_path / "config").mkdir(mode=0o700)
    return Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")


def files(home: Directories) -> RuleFiles:
    return RuleFiles(home, load(home).rules)


def test_commands_that_only_look_run_unless_a_file_says_otherwise(home: Directories) -> None:
    assert files(home).current().read_only is True
    (home.config / "rules.toml").write_text("read_only = false\n")
    assert files(home).current().read_only is False
    (home.config / "config.toml").write_text("[rules]\nread_only = true\n")
    assert files(home).current().read_only is False
    (home.config / "rules.toml").unlink()
    assert files(home).current().read_only is True
    (home.config / "config.toml").write_text("[rules]\nread_only = false\n")
    assert files(home).current().read_only is False


def test_a_saved_rule_keeps_the_setting_for_read_only_commands(home: Directories) -> None:
    (home.config / "rules.toml").write_text("read_only = false\n")
    files(home).keep(Rule(name="x", prefix=("npm", "test")))
    assert files(home).current().read_only is False
    (home.config / "rules.toml").unlink()
    files(home).keep(Rule(name="x", prefix=("npm", "test")))
    assert "read_only" not in (home.config / "rules.toml").read_text()


@pytest.mark.parametrize(("text", "expected"), [("", True), ("read_only = false\n", False)])
def test_a_file_by_itself_is_judged_as_if_it_were_the_only_one(tmp_path: Path, text: str, expected: bool) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    assert rules_in(path).read_only is expected
