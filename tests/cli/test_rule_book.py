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


def test_rules_of_projects_are_shown_with_their_trust(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "garden"
    (root / ".whisper-tui").mkdir(parents=True)
    file = root / ".whisper-tui" / "rules.toml"
    file.write_text('[[allow]]\nname = "tests"\ntext = "touch x"\n[[deny]]\nname = "no rm"\nargv = ["rm", "-r"]\n')
    book = InstanceRules(home)
    (project,) = book.rules((str(root), str(tmp_path))).projects
    assert (project.root, project.path, project.trusted, project.broken) == (str(root), str(file), False, None)
    assert [(rule.effect, rule.name, rule.holds) for rule in project.rules] == [
        ("deny", "project: no rm", True),
        ("allow", "project: tests", False),
    ]
    assert book.judge("touch x", str(root)).verdict.kind == "ask"
    book.trust(project, trusted=True)
    (project,) = book.rules((str(root),)).projects
    assert project.trusted and all(rule.holds for rule in project.rules)
    assert book.judge("touch x", str(root)).verdict.rule == "project: tests"
    book.trust(project, trusted=False)
    assert book.judge("touch x", str(root)).verdict.kind == "ask"


def test_only_what_was_shown_of_a_project_is_trusted(home: Home, tmp_path: Path) -> None:
    (tmp_path / ".whisper-tui").mkdir()
    file = tmp_path / ".whisper-tui" / "rules.toml"
    file.write_text('[[allow]]\nname = "tests"\ntext = "touch x"\n')
    book = InstanceRules(home)
    (shown,) = book.rules((str(tmp_path),)).projects
    file.write_text('[[allow]]\nname = "all"\nargv = ["make", "all"]\n')
    book.trust(shown, trusted=True)
    (project,) = book.rules((str(tmp_path),)).projects
    assert not project.trusted
    file.write_text("nonsense")
    (project,) = book.rules((str(tmp_path),)).projects
    assert project.broken is not None and project.rules == ()


def test_a_command_is_judged_by_the_rules_that_hold_now(home: Home, tmp_path: Path) -> None:
    book = InstanceRules(home)
    assert book.judge("git push --force", str(tmp_path)).verdict.kind == "refuse"
    assert book.judge("make", str(tmp_path)).verdict.kind == "ask"
    book.path.write_text("nonsense")
    assert book.rules().broken is not None
    assert book.judge("make", str(tmp_path)).verdict.kind == "ask"
