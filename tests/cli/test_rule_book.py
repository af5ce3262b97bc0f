"""The rules of an instance as its cockpit sees them."""

from pathlib import Path

import pytest

from whisper_tui.cli.rule_book import InstanceRules
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home
from whisper_tui.policy.rules import Rule, Rules

CONFIG = """
[[rules.deny]]
name = "no force push"
text = "git push --force"
justification = "ask for a review instead"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    Path(home.config).mkdir(mode=0o700)
    (Path(home.config) / "config.toml").write_text(CONFIG)
    RuleFiles(home, Rules()).add("allow", Rule(name="status", prefix=("git", "status"), directory=str(tmp_path)))
    return home


def test_rules_of_both_files_are_shown_and_those_of_the_rules_file_are_removed(home: Home) -> None:
    book = InstanceRules(home)
    force, status = book.rules().rules
    assert (force.effect, force.name, force.because, force.removable) == (
        "deny",
        "no force push",
        "ask for a review instead",
        False,
    )
    assert (status.effect, status.subject, status.removable) == ("allow", "git status …", True)
    assert str(home.config.parent) in status.where and force.where == "everywhere"
    book.remove("status")
    assert book.rules().rules == (force,)
    with pytest.raises(WhisperError, match="no rule 'status'"):
        book.remove("status")


def test_a_command_is_judged_by_the_rules_that_hold_now(home: Home, tmp_path: Path) -> None:
    book = InstanceRules(home)
    assert book.judge("git push --force", str(tmp_path)).verdict.kind == "refuse"
    assert book.judge("make", str(tmp_path)).verdict.kind == "ask"
    book.path.write_text("nonsense")
    assert book.rules().broken is not None
    assert book.judge("make", str(tmp_path)).verdict.kind == "ask"
