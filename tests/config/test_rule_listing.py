"""The rules of an instance through the API of its supervisor: listed, tried, changed and trusted."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from whisper_tui.config import load
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import CallRequest, ClientInfo, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import ChangedSinceSeen, InvalidRequest, Refused
from whisper_tui.model.event import RulesChanged, entries_digest, untrusted_entries
from whisper_tui.model.shown_rules import RuleDraft, RuleEffect, RuleList
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


STATUS = {"name": "status", "prefix": ["git", "status"]}


def draft(effect: RuleEffect = "allow", **definition: Any) -> RuleDraft:
    return RuleDraft(effect=effect, definition=definition)


def draft_of(rules: RuleList, name: str) -> RuleDraft:
    """The rule of a name as a list shows it."""
    (rule,) = [rule for rule in rules.rules if rule.name == name]
    return RuleDraft(effect=rule.effect, definition=rule.definition)


async def test_a_changed_rule_holds_at_once_and_the_rest_of_the_file_stays(api: Supervision, tmp_path: Path) -> None:
    path = Path((await api.rule_list()).path)
    path.write_text(f"# mine\n{path.read_text()}\n# about pushing\n[[deny]]\nname = 'p'\nprefix = ['git', 'push']\n")
    old = draft_of(await api.rule_list(), "status")
    changed = draft(**STATUS, disabled=True)
    await api.replace_rule(old, changed, ME)
    judged = await api.judge_command("git status", str(tmp_path))
    assert judged.verdict.rule != "status"
    (shown,) = [rule for rule in (await api.rule_list()).rules if rule.name == "status"]
    assert (shown.disabled, shown.where) == (True, "everywhere")
    await api.replace_rule(changed, draft("deny", **STATUS), ME)
    assert (await api.judge_command("git status", str(tmp_path))).verdict.rule == "status"
    await api.replace_rule(draft("deny", **STATUS), draft(**STATUS, sandbox=False), ME)
    assert (await api.rule_list()).rules[-1].holds
    text = path.read_text()
    assert text.startswith("# mine\n") and "# about pushing\n[[deny]]\nname = 'p'\nprefix = ['git', 'push']\n" in text
    await api.replace_rule(draft(**STATUS, sandbox=False), None, ME)
    assert "status" not in path.read_text()


async def test_a_rule_that_was_changed_meanwhile_is_not_replaced(api: Supervision) -> None:
    path = Path((await api.rule_list()).path)
    old = draft_of(await api.rule_list(), "status")
    path.write_text(path.read_text().replace("status", "stash"))
    before = path.read_text()
    with pytest.raises(ChangedSinceSeen, match="changed meanwhile"):
        await api.replace_rule(old, draft(**STATUS), ME)
    with pytest.raises(InvalidRequest, match="this is not a rule: colour"):
        await api.replace_rule(old, draft(name="x", colour="red"), ME)
    assert path.read_text() == before


async def test_a_rule_that_could_not_be_written_is_not_trusted_later(api: Supervision, tmp_path: Path) -> None:
    path = Path((await api.rule_list()).path)
    entry = '[[allow]]\nname = "all"\nanything = true\n'
    path.with_name(f"{path.name}.{os.getpid()}").mkdir()
    with pytest.raises(Refused, match=r"rules\.toml cannot be written"):
        await api.add_rule("allow", {"name": "all", "anything": True}, ME)
    path.write_text(entry + path.read_text())
    assert not next(rule for rule in (await api.rule_list()).rules if rule.name == "all").holds


async def test_a_disabled_rule_of_somebody_else_is_no_rule_that_waits_for_trust(api: Supervision) -> None:
    path = Path((await api.rule_list()).path)
    path.write_text(path.read_text() + '\n[[allow]]\nname = "x"\nanything = true\ndisabled = true\n')
    listed = {rule.name: (rule.holds, rule.disabled) for rule in (await api.rule_list()).rules}
    assert listed["x"] == (True, True)
    (changed,) = [file for file in await api.rule_files() if file.path == str(path)]
    assert not untrusted_entries(changed)
    path.write_text(path.read_text().replace("disabled = true\n", ""))
    listed = {rule.name: (rule.holds, rule.disabled) for rule in (await api.rule_list()).rules}
    assert listed["x"] == (False, False)


async def test_a_draft_is_tried_on_past_calls_and_on_a_command(api: Supervision, tmp_path: Path) -> None:
    # Not where the supervisor keeps its own files: "run" would be the name of one of its directories.
    root = str(tmp_path / "project")
    Path(root).mkdir()
    hello = SessionHello(name="builder", root=root, client=ClientInfo(name="test"))
    session = await api.open_session(hello)
    for text in ("npm run build --flag", "npm run lint", "npm run build"):
        spec = CommandSpec(command=Shell(text=text), cwd=root)
        await api.submit(CallRequest(session_id=session.id, tool="run_shell_command", spec=spec, arguments={}))
    build = draft(name="b", prefix=["npm", "run", "build"], options=[])
    found = await api.try_rule(build, None, "npm run build", root)
    assert (found.coverage.looked_at, found.coverage.calls, found.problems) == (3, ("3",), ())
    assert found.judgement is not None and (found.judgement.verdict.kind, found.judgement.verdict.rule) == (
        "allow",
        "b",
    )
    assert (await api.judge_command("npm run build", root)).verdict.kind == "ask"
    denied = await api.try_rule(draft("deny", name="n", program="npm"))
    assert (denied.coverage.calls, denied.judgement) == (("3", "2", "1"), None)
    broad = await api.try_rule(draft(name="b", prefix=["npm"]))
    assert broad.warning and (await api.rule_list()).rules[-1].name == "status"


async def test_a_draft_in_the_place_of_a_rule_is_judged_without_that_rule(api: Supervision, tmp_path: Path) -> None:
    push = {"name": "p", "prefix": ["git", "push"]}
    await api.add_rule("deny", push, ME)
    now = await api.try_rule(draft("deny", **push, disabled=True), draft("deny", **push), "git push", str(tmp_path))
    assert now.judgement is not None and now.judgement.verdict.kind == "ask"
    beside = await api.try_rule(draft("ask", **push), None, "git push", str(tmp_path))
    assert beside.judgement is not None and beside.judgement.verdict.kind == "refuse"


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        ({"name": "x"}, "subject"),
        ({"name": "x", "prefix": []}, "prefix"),
        ({"name": "x", "program": "make", "directory": "here"}, "directory"),
        ({"name": "x", "program": "make", "network": "maybe"}, "network"),
        ({"name": "x", "prefix": ["npm", "test"], "match": ["npm publish"]}, "match"),
    ],
)
async def test_a_draft_that_is_no_rule_says_which_field_is_wrong(
    api: Supervision, definition: dict[str, Any], field: str
) -> None:
    assert [each.field for each in (await api.try_rule(draft(**definition))).problems] == [field]


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


async def test_what_was_written_into_a_file_a_moment_ago_is_shown_for_trust(api: Supervision) -> None:
    path = (await api.rule_list()).path
    before = next(file for file in await api.rule_files() if file.path == path)
    with Path(path).open("a") as file:
        file.write('[[allow]]\nname = "tests"\nprefix = ["make", "test"]\n')
    changed = next(file for file in await api.rule_files() if file.path == path)
    (added,) = untrusted_entries(changed)
    assert added.startswith("allow make test")
    with pytest.raises(ChangedSinceSeen):
        await api.trust_rules(path, ME, entries_digest(before.entries))
    await api.trust_rules(path, ME, entries_digest(changed.entries))
    assert all(rule.holds for rule in (await api.rule_list()).rules)


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
