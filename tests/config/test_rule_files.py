"""The rules of an instance come from two files of the user's, and what neither says is as everybody expects it."""

from pathlib import Path

import pytest

from whisper_tui.config import load
from whisper_tui.config.project_rules import PROJECT_RULES_FILE, digest_of
from whisper_tui.config.rule_files import RuleFiles, rules_in
from whisper_tui.model.errors import Refused
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


@pytest.mark.parametrize(
    ("configuration", "rules", "project", "runs"),
    [
        ('unasked = "workspace"', "", "", (True, "allow", True)),
        ('unasked = "reading"', "", "", (True, "ask", False)),
        ('unasked = "nothing"', "", "", (False, "ask", False)),
        ("", 'unasked = "workspace"', "", (True, "allow", True)),
        ('unasked = "workspace"', 'unasked = "reading"', "", (True, "ask", False)),
        ('unasked = "workspace"', "read_only = false", "", (False, "allow", False)),
        ('unasked = "workspace"', 'edits = "ask"', "", (True, "ask", False)),
        ("", "", 'unasked = "workspace"', (True, "ask", False)),
        ('unasked = "reading"', "", 'unasked = "workspace"', (True, "ask", False)),
        ('unasked = "workspace"', "", 'unasked = "reading"', (True, "ask", False)),
        ('unasked = "workspace"', "", 'unasked = "nothing"', (False, "ask", False)),
        ('unasked = "workspace"', "", "read_only = false", (False, "allow", False)),
        ('unasked = "workspace"', "", 'edits = "ask"', (True, "ask", False)),
        ("", "", "", (True, "ask", False)),
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_what_runs_unasked_is_the_least_that_any_file_says_and_a_project_only_lowers_it(
    home: Directories, tmp_path: Path, configuration: str, rules: str, project: str, runs: object, *, trusted: bool
) -> None:
    root = tmp_path / "project"
    (root / PROJECT_RULES_FILE).parent.mkdir(parents=True)
    (home.config / "config.toml").write_text(f"[rules]\n{configuration}\n")
    (home.config / "rules.toml").write_text(f"{rules}\n")
    (root / PROJECT_RULES_FILE).write_text(f"{project}\ndeletes = 100000\n")
    known = files(home)
    if trusted:
        known.trust_project(str(root), digest_of((root / PROJECT_RULES_FILE).read_bytes()))
    found = known.current(str(root))
    assert (found.read_only, found.edits, found.effects, found.deletes) == (*runs, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('unasked = "all"', "unasked must be"),
        ('unasked = "reading"\nread_only = true', "remove read_only"),
        ("deletes = -1", "deletes must be a number"),
        ("deletes = true", "deletes must be a number"),
    ],
)
def test_a_file_that_says_unclearly_what_runs_unasked_allows_nothing(home: Directories, text: str, why: str) -> None:
    (home.config / "rules.toml").write_text(f"{text}\n")
    assert why in (files(home).current().broken or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'unasked = "workspace"\n'),
        ('# mine\nread_only = false\nedits = "ask"\n', '# mine\nunasked = "workspace"\n'),
        ('unasked = "nothing"  # for now\n', 'unasked = "workspace"  # for now\n'),
        ('[[deny]]\nname = "x"\nprogram = "rm"\n', 'unasked = "workspace"\n\n[[deny]]\nname = "x"\nprogram = "rm"\n'),
    ],
)
def test_how_much_runs_unasked_is_written_into_the_rules_file(home: Directories, before: str, after: str) -> None:
    (home.config / "rules.toml").write_text(before)
    files(home).set_unasked("workspace")
    assert (home.config / "rules.toml").read_text() == after
    assert files(home).current().level == "workspace"


def test_a_level_that_the_configuration_forbids_is_refused_with_the_place_to_change_it(home: Directories) -> None:
    (home.config / "config.toml").write_text('[rules]\nunasked = "reading"\n')
    with pytest.raises(Refused, match=r"config.toml says unasked = \"reading\""):
        files(home).set_unasked("workspace")
    assert not (home.config / "rules.toml").exists()
