"""The rules of an instance through the API of its supervisor: listed, tried, changed and trusted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from whisper_tui.config import load
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.api import Supervision
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import ChangedSinceSeen, InvalidRequest, Refused
from whisper_tui.model.event import RulesChanged
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.server import serve

ME = Decider(surface="cockpit", who="me")
CONFIG = """
[[rules.deny]]
name = "no force push"
text = "git push --force"
justification = "ask for a review instead"
"""


@pytest.fixture
def home(tmp_path: Path) -> Directories:
    home = Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    Path(home.config).mkdir(mode=0o700)
    (Path(home.config) / "config.toml").write_text(CONFIG)
    RuleFiles(home, Rules()).add("allow", Rule(name="status", prefix=("git", "status"), directory=str(tmp_path)))
    return home


@pytest.fixture
async def api(home: Directories) -> AsyncIterator[Supervision]:
    """The API of a supervisor with these files, over its socket."""
    files = RuleFiles(home, load(home).rules)
    supervisor = Supervisor(home, LocalExecutor(Path(home.state) / "runs"), rule_book=files)
    files.follow(supervisor.rule_trust)
    await supervisor.open()
    listening = await serve(supervisor, home, {})
    client = await SupervisorClient.connect(home, start=False)
    yield client
    await client.close()
    await listening.close()
    await supervisor.close()


async def test_rules_of_both_files_are_shown_and_those_of_the_rules_file_are_removed(
    api: Supervision, home: Directories
) -> None:
    listed = await api.rule_list()
    force, status = listed.rules
    assert (force.effect, force.name, force.because, force.removable) == (
        "deny",
        "no force push",
        "ask for a review instead",
        False,
    )
    assert (status.effect, status.subject, status.removable) == ("allow", "git status …", True)
    assert str(home.config.parent) in status.where and force.where == "everywhere"
    assert (Path(force.file).name, status.file, listed.path) == ("config.toml", listed.path, listed.path)
    assert await api.remove_rule("status", ME) == 1
    assert (await api.rule_list()).rules == (force,)
    with pytest.raises(Refused, match="no rule 'status'"):
        await api.remove_rule("status", ME)


async def test_an_added_rule_holds_at_once_and_its_author_is_journaled(api: Supervision, tmp_path: Path) -> None:
    await api.add_rule("allow", {"name": "make", "prefix": ["make"], "sandbox": False}, ME)
    (made,) = [rule for rule in (await api.rule_list()).rules if rule.name == "make"]
    assert (made.holds, made.sandbox) == (True, "none: it runs with all your rights")
    assert (await api.judge_command("make", str(tmp_path))).verdict.rule == "make"
    (changed,) = [file for file in await api.rule_files() if file.path == made.file]
    assert isinstance(changed, RulesChanged)
    with pytest.raises(InvalidRequest, match="this is not a rule: colour"):
        await api.add_rule("allow", {"name": "x", "colour": "red"}, ME)
    with pytest.raises(Refused, match="the rule 'x'"):
        await api.add_rule("allow", {"name": "x"}, ME)


async def test_an_entry_that_nobody_trusts_is_shown_and_does_not_hold(api: Supervision) -> None:
    listed = await api.rule_list()
    file = Path(listed.path)
    file.write_text(f'sandbox = "workspace"\n{file.read_text()}\n[[allow]]\nname = "x"\nanything = true\n')
    rules = {rule.name: rule.holds for rule in (await api.rule_list()).rules}
    assert rules == {"no force push": True, "status": True, "x": False}


async def test_rules_of_projects_are_shown_with_their_trust(api: Supervision, tmp_path: Path) -> None:
    root = tmp_path / "garden"
    (root / ".whisper-tui").mkdir(parents=True)
    file = root / ".whisper-tui" / "rules.toml"
    file.write_text('[[allow]]\nname = "tests"\ntext = "touch x"\n[[deny]]\nname = "no rm"\nargv = ["rm", "-r"]\n')
    (project,) = (await api.rule_list((str(root), str(tmp_path)))).projects
    assert (project.root, project.path, project.trusted, project.broken) == (str(root), str(file), False, None)
    assert [(rule.effect, rule.name, rule.holds, rule.where) for rule in project.rules] == [
        ("deny", "project: no rm", True, str(root)),
        ("allow", "project: tests", False, str(root)),
    ]
    assert (await api.judge_command("touch x", str(root))).verdict.kind == "ask"
    await api.trust_project(str(root), ME, project.digest, trusted=True)
    (project,) = (await api.rule_list((str(root),))).projects
    assert project.trusted and all(rule.holds for rule in project.rules)
    assert (await api.judge_command("touch x", str(root))).verdict.rule == "project: tests"
    await api.trust_project(str(root), ME, trusted=False)
    assert (await api.judge_command("touch x", str(root))).verdict.kind == "ask"


async def test_only_what_was_shown_of_a_project_is_trusted(api: Supervision, tmp_path: Path) -> None:
    (tmp_path / ".whisper-tui").mkdir()
    file = tmp_path / ".whisper-tui" / "rules.toml"
    file.write_text('[[allow]]\nname = "tests"\ntext = "touch x"\n')
    (shown,) = (await api.rule_list((str(tmp_path),))).projects
    file.write_text('[[allow]]\nname = "all"\nargv = ["make", "all"]\n')
    with pytest.raises(ChangedSinceSeen, match=r"rules\.toml has changed since it was shown"):
        await api.trust_project(str(tmp_path), ME, shown.digest, trusted=True)
    (project,) = (await api.rule_list((str(tmp_path),))).projects
    assert not project.trusted
    file.write_text("nonsense")
    (project,) = (await api.rule_list((str(tmp_path),))).projects
    assert project.broken is not None and project.rules == ()


async def test_a_command_is_judged_by_the_rules_that_hold_now(api: Supervision, tmp_path: Path) -> None:
    assert (await api.judge_command("git push --force", str(tmp_path))).verdict.kind == "refuse"
    assert (await api.judge_command("make", str(tmp_path))).verdict.kind == "ask"
    Path((await api.rule_list()).path).write_text("nonsense")
    assert (await api.rule_list()).broken is not None
    assert (await api.judge_command("make", str(tmp_path))).verdict.kind == "ask"


@pytest.mark.parametrize("path", ["", "project", "/pro\0ject"])
async def test_a_path_that_can_be_no_workspace_is_refused(api: Supervision, path: str) -> None:
    with pytest.raises(InvalidRequest, match="is not the absolute path of a directory"):
        await api.judge_command("make", path)
    for trusted in (True, False):
        with pytest.raises(InvalidRequest, match="is not the absolute path of a directory"):
            await api.trust_project(path, ME, trusted=trusted)


async def test_a_supervisor_without_rule_files_says_so(tmp_path: Path) -> None:
    home = Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    supervisor = Supervisor(home, LocalExecutor(Path(home.state) / "runs"))
    await supervisor.open()
    with pytest.raises(Refused, match="this supervisor has no rule files"):
        await supervisor.rule_list()
    await supervisor.close()
