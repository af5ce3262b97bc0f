"""Verdicts on edits, fetches, tools of MCP servers and sub-agents: quiet for the ordinary, asked for the rest."""

from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.effects.edit_results import examine
from whisper_tui.model.call import (
    CarriedOut,
    CommandSpec,
    DeleteFile,
    EditCell,
    FileEdits,
    Function,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.decision import Decider, Grant, ToolScope
from whisper_tui.model.verdict import EDITS_RULE, SUBAGENT_RULE, Resolved, Verdict
from whisper_tui.policy.risks.later_files import flagged_kind
from whisper_tui.policy.rules.grants import saved_tool_rules, scope_problem
from whisper_tui.policy.rules.rule import Rule, Rules, literal_pattern
from whisper_tui.policy.rules.rules_toml import read_rules
from whisper_tui.policy.tool_calls import evaluate_carried_out
from whisper_tui.policy.view import Question

QUIET = Rules(edits="allow")
HOME = "/home/nobody"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("one\ntwo\n")
    return root


def judge(
    root: Path,
    command: CarriedOut,
    rules: Rules = QUIET,
    *,
    memory: tuple[Grant, ...] = (),
    home: str = HOME,
) -> Verdict:
    edits = examine(command.changes, (str(root),), home) if isinstance(command, FileEdits) else ()
    question = Question(
        session_id="s1",
        session_root=str(root),
        spec=CommandSpec(command=command, cwd=str(root)),
        description="",
        resolved=Resolved(cwd=str(root), edits=edits),
        tool=command.tool,
        home=home,
        now=100.0,
    )
    return evaluate_carried_out(question, command, rules, memory)


def write(*paths: Path | str, content: str = "x\n") -> FileEdits:
    return FileEdits(tool="Write", changes=tuple(WriteFile(path=str(path), content=content) for path in paths))


def fetch(*hosts: str) -> Function:
    return Function(tool="WebFetch", arguments={"url": "https://x"}, about="web", targets=hosts)


def remembered(command: CarriedOut, scope: ToolScope, root: Path) -> Grant:
    spec = CommandSpec(command=command, cwd=str(root))
    by = Decider(surface="cockpit")
    return Grant(id="g1", session_id="s1", spec=spec, from_call="7", granted_at=1.0, by=by, scope=scope)


def test_an_edit_of_an_ordinary_file_in_the_workspace_is_allowed(workspace: Path):
    verdict = judge(workspace, write(*(workspace / path for path in ORDINARY)))
    assert (verdict.kind, verdict.rule, verdict.risks) == ("allow", EDITS_RULE, ())


def test_without_the_setting_every_edit_is_asked(workspace: Path):
    assert judge(workspace, write(workspace / "src" / "app.py"), Rules()).kind == "ask"
    assert judge(workspace, write(workspace / "src" / "app.py"), Rules(edits="ask")).kind == "ask"


def test_at_the_level_of_the_workspace_edits_run_but_those_that_matter(workspace: Path):
    level = Rules(edits="ask").at("workspace")
    assert judge(workspace, write(workspace / "src" / "app.py"), level).kind == "allow"
    assert judge(workspace, write(workspace / "Makefile"), level).kind == "ask"
    assert judge(workspace, write("/etc/hosts"), level).kind == "ask"


RUN_LATER = (
    "gradlew", "mvnw", "build.gradle", "app/build.gradle.kts", "pom.xml", "CMakeLists.txt", "cmake/x.cmake", "BUILD",
    ".venv/bin/activate", "node_modules/.bin/x", ".zed/tasks.json", ".gitattributes", ".gitmodules", "pyproject.toml",
    "tox.ini", "tests/conftest.py", "sitecustomize.py", "Dockerfile", "Dockerfile.dev", "compose.yaml", "makefile",
    "jest.config.js", "vite.config.ts", "src/x.pth", "src/.envrc", ".npmrc", ".mocharc.json", ".mocharc.cjs",
    "Taskfile.dist.yml", "taskfile.dist.yaml", "mise.local.toml", ".config/mise/tasks/x", ".tool-versions",
    "pnpm-workspace.yaml", ".pnpmfile.mjs", ".pnp.cjs", ".yarn/releases/yarn-4.cjs", ".yarn/plugins/x.cjs",
    "lefthook-local.yml", ".lefthook.toml", ".huskyrc", "tox.toml", "jest.config.json", "vitest.workspace.ts",
    ".eslintrc", "web/.eslintrc.json", ".eslintrc.mjs", ".prettierrc", ".prettierrc.mjs", ".babelrc.json",
    "karma.conf.cjs", "cypress.config.ts", "gulpfile.babel.js", "Gruntfile.coffee", "lib/tasks/x.rake",
    "x.gradle.kts", "devcontainer.json", ".stylelintrc.json", ".pylintrc", "mypy.ini", ".flake8", ".rspec",
    ".rubocop.yml", ".golangci.yml", "phpunit.xml.dist", "Makefile.toml", "magefiles/x.go", "nodemon.json",
)  # fmt: skip
ORDINARY = (
    "src/app.py", "src/index.ts", "src/a.test.ts", "src/config.ts", "src/task.py", "tests/test_x.py", "README.md",
    "data.json", "lib/mise/x.go", "package-lock.json", "pnpm-lock.yaml", "Cargo.toml", "go.mod", "tsconfig.json",
    ".nvmrc", ".python-version", ".editorconfig", ".gitignore", ".prettierignore", ".eslintignore", "ruff.toml",
    ".yarn/cache/x.zip", "src/.hidden/x.ts", "conf/x.yaml", "src/linters.toml",
)  # fmt: skip
STEER = (
    "CLAUDE.md", "CLAUDE.local.md", "src/AGENTS.md", "AGENTS.override.md", "GEMINI.md", "QWEN.md", "agents.md",
    ".cursorrules", ".cursor/rules/a.mdc", ".windsurfrules", ".clinerules", ".clinerules/a.md", ".rules",
    ".roo/rules/a.md", ".github/copilot-instructions.md", ".github/instructions/a.instructions.md",
    ".github/prompts/a.prompt.md", ".github/agents/a.agent.md", ".agents/skills/x/SKILL.md", ".kiro/steering/a.md",
    ".junie/guidelines.md",
    ".goosehints",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "risk"),
    [
        (".git/hooks/pre-commit", "sensitive-write"),
        (".git/config", "sensitive-write"),
        (".claude/settings.json", "sensitive-write"),
        (".claude/skills/x/SKILL.md", "sensitive-write"),
        (".mcp.json", "sensitive-write"),
        (".vscode/mcp.json", "sensitive-write"),
        (".github/hooks/x.json", "sensitive-write"),
        (".github/mcp.json", "sensitive-write"),
        (".github/copilot/settings.json", "sensitive-write"),
        (".codex/config.toml", "sensitive-write"),
        (".whisper-tui/rules.toml", "sensitive-write"),
        (".env", "writes-secrets"),
        (".envrc", "writes-secrets"),
        ("id_rsa", "writes-secrets"),
        ("Makefile", "runs-later"),
        ("build.mk", "runs-later"),
        (".github/workflows/ci.yml", "runs-later"),
        (".pre-commit-config.yaml", "runs-later"),
        (".vscode/tasks.json", "runs-later"),
        ("setup.py", "runs-later"),
        (".claude/workflows/w.js", "sensitive-write"),
        (".claude/output-styles/x.md", "sensitive-write"),
        (".cursor/commands/x.md", "sensitive-write"),
        *((path, "runs-later") for path in RUN_LATER),
        *((path, "steers-agents") for path in STEER),
    ],
)
def test_files_that_decide_run_later_or_hold_secrets_are_asked(workspace: Path, path: str, risk: str):
    verdict = judge(workspace, write(workspace / path))
    assert verdict.kind == "ask"
    assert risk in {each.id for each in verdict.risks}


def test_a_preview_flags_the_same_files():
    assert all(flagged_kind(f"/w/{path}", "/home/me", ()) for path in (*RUN_LATER, *STEER, ".git/config"))
    assert not [path for path in ORDINARY if flagged_kind(f"/w/{path}", "/home/me", ())]


@pytest.mark.parametrize(
    "path", ["src/build", "src/config.ts", "docs/rules", "src/agents.py", ".claude/worktrees/w/a.py"]
)
def test_ordinary_files_with_similar_names_are_not_asked(workspace: Path, path: str):
    assert judge(workspace, write(workspace / path)).kind == "allow"


def test_a_link_named_like_instructions_steers_agents_too(workspace: Path):
    (workspace / "docs.md").write_text("ordinary\n")
    (workspace / "CLAUDE.md").symlink_to(workspace / "docs.md")
    assert {risk.id for risk in judge(workspace, write(workspace / "CLAUDE.md")).risks} == {"steers-agents"}


def test_files_that_decide_are_asked_whatever_the_rules_allow(workspace: Path):
    everything = Rules(
        edits="allow",
        allow=(
            Rule(name="a", path="**"),
            Rule(name="b", path="/.git/hooks/x"),
            Rule(name="c", tool="edit", anything=True),
        ),
    )
    assert judge(workspace, write(workspace / ".git" / "hooks" / "x"), everything).kind == "ask"


def test_pyproject_is_asked_only_where_what_tools_run_changes(workspace: Path):
    project = workspace / "pyproject.toml"
    project.write_text(
        '[project]\nname = "a"\ndependencies = ["b"]\n[project.scripts]\na = "a:main"\n[tool.x]\ny = 1\n'
    )

    def kind(old: str, new: str) -> str:
        change = ReplaceText(path=str(project), old=old, new=new)
        return judge(workspace, FileEdits(tool="Edit", changes=(change,))).kind

    assert kind('["b"]', '["b", "c"]') == "allow"
    assert kind('name = "a"', 'name = "b"\nversion = "2"') == "allow"
    assert kind('"a:main"', '"evil:main"') == "ask"
    assert kind("y = 1", "y = 2") == "ask"
    assert kind("[project]", '[build-system]\nbuild-backend = "evil"\n[project]') == "ask"
    assert kind("[project]", "[project") == "ask"


def test_package_json_is_asked_only_where_its_scripts_change(workspace: Path):
    package = workspace / "package.json"
    package.write_text('{"scripts": {"test": "vitest"}, "dependencies": {"a": "1"}}')

    def kind(old: str, new: str) -> str:
        change = ReplaceText(path=str(package), old=old, new=new)
        return judge(workspace, FileEdits(tool="Edit", changes=(change,))).kind

    assert kind('"a": "1"', '"a": "2"') == "allow"
    assert kind("vitest", "vitest && curl x | sh") == "ask"
    assert kind('"scripts": {', '"scripts": {"postinstall": "x", ') == "ask"
    assert kind('{"scripts"', '{{"scripts"') == "ask"


def test_edits_outside_the_workspace_are_asked(workspace: Path, tmp_path: Path):
    verdict = judge(workspace, write(tmp_path / "other" / "x"))
    assert verdict.kind == "ask"
    assert verdict.reason == f"Changes a file outside the workspace: {tmp_path}/other/x"
    assert judge(workspace, write(f"{workspace}/src/../../other/x")).kind == "ask"
    assert judge(workspace, write(f"{workspace}-2/x")).kind == "ask"


def test_a_link_that_leads_out_is_asked_and_named(workspace: Path, tmp_path: Path):
    (tmp_path / "out").mkdir()
    (workspace / "link").symlink_to(tmp_path / "out")
    verdict = judge(workspace, write(workspace / "link" / "x"))
    assert verdict.kind == "ask"
    assert verdict.reason == f"Changes a file outside the workspace, through a symbolic link: {tmp_path}/out/x"


def test_one_file_of_many_is_enough_to_ask(workspace: Path):
    assert judge(workspace, write(*(workspace / f"{n}.py" for n in range(20)), "/srv/elsewhere/x")).kind == "ask"


def test_a_workspace_that_is_a_home_is_asked(tmp_path: Path):
    assert judge(Path("/"), write("/tmp/x")).kind == "ask"
    assert judge(Path("/home/somebody"), write("/home/somebody/x.txt")).kind == "ask"


def test_text_that_hides_what_it_says_is_asked(workspace: Path):
    verdict = judge(workspace, write(workspace / "src" / "app.py", content="if admin: \u202e # safe\n"))
    assert verdict.kind == "ask"
    assert "deceptive-characters" in {risk.id for risk in verdict.risks}


def test_hiding_text_is_found_even_if_the_result_of_the_edit_is_unknown(workspace: Path):
    app = str(workspace / "src" / "app.py")
    hunk = Hunk(lines=(" not there", "+if admin: \u202e # safe"))
    for change in (
        ReplaceText(path=app, old="not there", new="if admin: \u202e # safe"),
        EditCell(path=app, cell="1", source="if admin: \u202e # safe", mode="replace"),
        PatchFile(path=app, hunks=(hunk,)),
        PatchFile(path=app, hunks=(hunk,), move_to=str(workspace / "src" / "moved.py")),
    ):
        verdict = judge(workspace, FileEdits(tool="Edit", changes=(change,)))
        assert (verdict.kind, "deceptive-characters" in {risk.id for risk in verdict.risks}) == ("ask", True)
    old = ReplaceText(path=app, old="not there \u202e", new="harmless")
    assert judge(workspace, FileEdits(tool="Edit", changes=(old,))).kind == "allow"


@pytest.mark.parametrize("rules", [QUIET, Rules(allow=(Rule(name="src", path="src/"),))])
def test_a_file_that_has_other_names_is_asked_whatever_allows_its_path(workspace: Path, tmp_path: Path, rules: Rules):
    (tmp_path / "start-up").write_text("export A=1\n")
    inside = workspace / "src" / "same"
    inside.hardlink_to(tmp_path / "start-up")
    verdict = judge(workspace, write(inside), rules)
    assert verdict.kind == "ask"
    assert "hard-links" in {risk.id for risk in verdict.risks}
    (tmp_path / "start-up").unlink()
    assert judge(workspace, write(inside), rules).kind == "allow"


def test_the_deletion_of_one_of_several_names_is_not_asked(workspace: Path):
    (workspace / "src" / "other.py").hardlink_to(workspace / "src" / "app.py")
    delete = DeleteFile(path=str(workspace / "src" / "other.py"))
    assert judge(workspace, FileEdits(tool="apply_patch", changes=(delete,))).kind == "allow"


def test_hiding_text_that_the_file_already_had_is_not_asked_about(workspace: Path):
    file = workspace / "src" / "app.py"
    file.write_text("arabic \u200f text\none\n")
    change = ReplaceText(path=str(file), old="one", new="two")
    assert judge(workspace, FileEdits(tool="Edit", changes=(change,))).kind == "allow"


def test_a_file_that_was_not_read_is_asked(workspace: Path):
    with (workspace / "huge").open("wb") as file:
        file.truncate(5 << 20)
    assert judge(workspace, write(workspace / "huge")).kind == "ask"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("docs/**", "docs/a/b.md", True),
        ("*.md", "docs/a/b.md", True),
        ("/top.md", "docs/top.md", False),
        ("/top.md", "top.md", True),
        ("docs/", "docs/x", True),
        ("docs", "docs/x", True),
        ("**/generated/*", "a/b/generated/c", True),
        ("src/*.py", "src/a/b.py", False),
    ],
)
def test_rules_name_files_as_gitignore_does(workspace: Path, pattern: str, path: str, matches: bool):
    edit = write(workspace / path)
    denied = judge(workspace, edit, Rules(edits="allow", deny=(Rule(name="d", path=pattern),)))
    assert denied.kind == ("refuse" if matches else "allow")
    allowed = judge(workspace, edit, Rules(allow=(Rule(name="a", path=pattern),)))
    assert allowed.kind == ("allow" if matches else "ask")


def test_a_rule_can_allow_files_outside_at_home_or_anywhere(workspace: Path, tmp_path: Path):
    note = tmp_path / "home" / "notes" / "x.md"
    allows = Rules(allow=(Rule(name="n", path="~/notes/**"),))
    assert judge(workspace, write(note), allows, home=str(tmp_path / "home")).kind == "allow"
    assert judge(workspace, write(tmp_path / "notes" / "x.md"), allows, home=str(tmp_path / "home")).kind == "ask"
    assert judge(workspace, write(note), Rules(allow=(Rule(name="r", path=f"/{note}"),))).kind == "allow"


def test_a_pattern_of_the_workspace_allows_nothing_outside(workspace: Path, tmp_path: Path):
    assert judge(workspace, write(tmp_path / "x.md"), Rules(allow=(Rule(name="a", path="**"),))).kind == "ask"


def test_a_denied_file_is_denied_through_a_link_too(workspace: Path):
    (workspace / "secret").mkdir()
    (workspace / "way").symlink_to(workspace / "secret")
    rules = Rules(edits="allow", deny=(Rule(name="d", path="secret/"),))
    assert judge(workspace, write(workspace / "way" / "x"), rules).kind == "refuse"
    assert (
        judge(
            workspace, write(workspace / "secret" / "x"), Rules(edits="allow", deny=(Rule(name="d", path="way/"),))
        ).kind
        == "allow"
    )


def test_an_allowed_link_does_not_allow_where_it_leads(workspace: Path, tmp_path: Path):
    (workspace / "ok").symlink_to(tmp_path)
    assert judge(workspace, write(workspace / "ok" / "x"), Rules(allow=(Rule(name="a", path="ok/**"),))).kind == "ask"


def test_a_rule_of_a_directory_allows_nothing_outside_of_it(workspace: Path, tmp_path: Path):
    rule = Rule(name="p", path="//**", directory=str(workspace))
    assert judge(workspace, write(tmp_path / "x"), Rules(allow=(rule,))).kind == "ask"
    assert judge(workspace, write(workspace / "x"), Rules(allow=(rule,))).kind == "allow"


def test_ask_rules_beat_the_quiet_default(workspace: Path):
    rules = Rules(edits="allow", ask=(Rule(name="migrations", path="migrations/"),))
    verdict = judge(workspace, write(workspace / "migrations" / "1.sql"), rules)
    assert (verdict.kind, verdict.rule) == ("ask", "migrations")


def test_a_rule_that_asks_about_anything_asks_about_edits(workspace: Path):
    rules = Rules(edits="allow", ask=(Rule(name="all", anything=True),))
    assert judge(workspace, write(workspace / "x"), rules).kind == "ask"


def test_a_rule_of_a_client_about_all_its_commands_is_not_about_edits(workspace: Path):
    rules = Rules(edits="allow", ask=(Rule(name="client: Claude Code: Bash", anything=True),))
    assert judge(workspace, write(workspace / "x"), rules).kind == "allow"


def test_a_rule_that_allows_any_command_allows_no_tool(workspace: Path):
    rules = Rules(allow=(Rule(name="all", anything=True),))
    assert judge(workspace, write(workspace / "x"), rules).kind == "ask"
    assert judge(workspace, fetch("example.org"), rules).kind == "ask"


def test_one_word_names_the_edits_of_every_client(workspace: Path):
    rules = Rules(edits="allow", ask=(Rule(name="e", tool="edit", anything=True),))
    assert judge(workspace, write(workspace / "x"), rules).kind == "ask"
    assert (
        judge(workspace, fetch("example.org"), Rules(deny=(Rule(name="w", tool="web", anything=True),))).kind
        == "refuse"
    )


def test_an_unreadable_rule_asks_about_every_edit(workspace: Path):
    assert judge(workspace, write(workspace / "x"), Rules(edits="allow", broken="line 3")).kind == "ask"


@pytest.mark.parametrize(
    ("host", "target", "allowed", "denied"),
    [
        ("example.org", "example.org", True, True),
        ("example.org", "EXAMPLE.org.", True, True),
        ("example.org", "evil-example.org", False, False),
        ("example.org", "www.example.org", False, False),
        ("*.example.org", "www.example.org", True, True),
        ("*.example.org", "example.org", False, False),
        ("*.example.org", "example.org.evil.com", False, False),
        ("example.org", "example.org:8080", False, True),
        ("localhost:3000", "localhost:3000", True, True),
    ],
)
def test_rules_name_hosts(workspace: Path, host: str, target: str, allowed: bool, denied: bool):
    rule = Rule(name="h", host=host)
    assert judge(workspace, fetch(target), Rules(allow=(rule,))).kind == ("allow" if allowed else "ask")
    assert judge(workspace, fetch(target), Rules(deny=(rule,))).kind == ("refuse" if denied else "ask")


def test_each_host_of_a_fetch_has_to_be_allowed(workspace: Path):
    rules = Rules(allow=(Rule(name="a", host="a.org"),))
    assert judge(workspace, fetch("a.org", "b.org"), rules).kind == "ask"
    assert judge(workspace, fetch(), rules).kind == "ask"


def test_a_host_is_remembered_for_the_session(workspace: Path):
    grant = remembered(fetch("a.org"), ToolScope(hosts=("a.org",)), workspace)
    other = Function(tool="WebFetch", arguments={"url": "https://a.org/2"}, about="web", targets=("a.org",))
    verdict = judge(workspace, other, memory=(grant,))
    assert (verdict.kind, verdict.grant_id) == ("allow", "g1")
    assert judge(workspace, fetch("b.org"), memory=(grant,)).kind == "ask"


def test_a_tool_of_another_server_is_remembered_by_its_name(workspace: Path):
    def call(tool: str, **arguments: object) -> Function:
        return Function(tool=f"mcp_gh_{tool}", arguments=arguments, about="server", targets=("gh", tool))

    scope = ToolScope(tool="mcp__gh__list")
    grant = remembered(call("list"), scope, workspace)
    assert judge(workspace, call("list", page=2)).kind == "ask"
    assert judge(workspace, call("list", page=2), memory=(grant,)).kind == "allow"
    assert judge(workspace, call("delete"), memory=(grant,)).kind == "ask"
    rule = Rule(name="gh", tool="mcp__gh__*", anything=True)
    assert judge(workspace, call("delete"), Rules(allow=(rule,))).kind == "allow"


def test_files_are_remembered_by_a_pattern(workspace: Path):
    grant = remembered(write(workspace / "Makefile"), ToolScope(path="/Makefile"), workspace)
    assert judge(workspace, write(workspace / "Makefile", content="new"), memory=(grant,)).kind == "allow"
    assert judge(workspace, write(workspace / "sub" / "Makefile"), memory=(grant,)).kind == "ask"


@pytest.mark.parametrize("name", ["a*.py", "[x].py", "!x", "#x", "a?b", "a\\b", "abc.py ", "abc.py  "])
def test_the_pattern_of_one_file_matches_that_file_alone(workspace: Path, name: str):
    rules = Rules(deny=(Rule(name="d", path=literal_pattern(name)),), edits="allow")
    assert judge(workspace, write(workspace / name), rules).kind == "refuse"
    assert judge(workspace, write(workspace / "abc.py"), rules).kind == "allow"


@pytest.mark.parametrize(
    "scope",
    [
        ToolScope(),
        ToolScope(tool="mcp__g__*"),
        ToolScope(tool="mcp__*"),
        ToolScope(tool="mcp__other__x"),
        ToolScope(hosts=("a.org",)),
        ToolScope(path="**"),
        ToolScope(tool="mcp__gh__x", path="**"),
    ],
)
def test_a_scope_that_is_not_about_the_call_is_refused(workspace: Path, scope: ToolScope):
    call = Function(tool="mcp__gh__x", arguments={}, about="server", targets=("gh", "x"))
    assert scope_problem(scope, CommandSpec(command=call, cwd=str(workspace)))


def test_a_server_cannot_name_a_tool_so_that_its_approval_covers_others(workspace: Path):
    call = Function(tool="mcp__gh__*", arguments={}, about="server", targets=("gh", "*"))
    assert scope_problem(ToolScope(tool="mcp__gh__*"), CommandSpec(command=call, cwd=str(workspace)))


def test_a_host_with_a_star_cannot_be_remembered(workspace: Path):
    spec = CommandSpec(command=fetch("*.example.org"), cwd=str(workspace))
    assert scope_problem(ToolScope(hosts=("*.example.org",)), spec)


def mcp(server: str, tool: str) -> Function:
    return Function(tool=f"mcp__{server}__{tool}", arguments={}, about="server", targets=(server, tool))


def test_every_tool_of_a_server_is_remembered_by_the_name_of_the_server_alone(workspace: Path):
    grant = remembered(mcp("gh", "list"), ToolScope(tool="mcp__gh__*"), workspace)
    assert scope_problem(grant.scope, grant.spec) is None
    assert judge(workspace, mcp("gh", "delete"), memory=(grant,)).grant_id == "g1"
    assert judge(workspace, mcp("gh__evil", "delete"), memory=(grant,)).kind == "ask"
    assert judge(workspace, mcp("git", "list"), memory=(grant,)).kind == "ask"


def test_every_host_of_a_domain_is_remembered_but_not_the_domain_itself(workspace: Path):
    grant = remembered(fetch("docs.a.org"), ToolScope(hosts=("*.a.org",)), workspace)
    assert scope_problem(grant.scope, grant.spec) is None
    assert judge(workspace, fetch("x.y.a.org"), memory=(grant,)).kind == "allow"
    for host in ("a.org", "evil-a.org", "a.org.evil.net", "docs.a.org:8080"):
        assert judge(workspace, fetch(host), memory=(grant,)).kind == "ask", host


@pytest.mark.parametrize("host", ["*.org", "*.co.uk", "*.com.au", "*.github.io", "*.s3.amazonaws.com", "*.0.0.1"])
def test_hosts_of_many_people_are_not_remembered_together(workspace: Path, host: str):
    spec = CommandSpec(command=fetch(host.replace("*", "mine")), cwd=str(workspace))
    assert "may belong to many people" in str(scope_problem(ToolScope(hosts=(host,)), spec))


@pytest.mark.parametrize(
    ("hosts", "targets"),
    [
        (("docs.python.org",), ("docs.python.org", "*.python.org")),
        (("python.org",), ("python.org", "python.org *.python.org")),
        (("a.b.c.org",), ("a.b.c.org", "*.b.c.org")),
        (("a.b.org", "c.b.org"), ("a.b.org c.b.org", "*.b.org")),
        (("a.org", "b.org"), ("a.org b.org",)),
        (("mine.github.io",), ("mine.github.io",)),
        (("shop.co.uk",), ("shop.co.uk",)),
        (("example.org:8080",), ("example.org:8080",)),
        (("127.0.0.1",), ("127.0.0.1",)),
        (("localhost",), ("localhost",)),
        (("*.org",), ()),
        ((), ()),
    ],
)
def test_a_fetch_offers_its_hosts_and_their_domain(workspace: Path, hosts: tuple[str, ...], targets: tuple[str, ...]):
    assert judge(workspace, fetch(*hosts)).targets == targets


def test_a_tool_of_a_server_offers_itself_and_all_of_its_server(workspace: Path):
    assert judge(workspace, mcp("gh", "list")).targets == ("mcp__gh__list", "mcp__gh__*")
    assert judge(workspace, mcp("gh", "*")).targets == ()
    assert judge(workspace, Function(tool="Camera", arguments={})).targets == ("Camera",)


ASKED = Rules(edits="ask")


def test_an_edit_offers_its_file_the_files_below_its_directory_and_those_of_its_kind(workspace: Path):
    def offered(*paths: str) -> tuple[str, ...]:
        return judge(workspace, write(*(workspace / path for path in paths)), ASKED).targets

    assert offered("src/app.py") == ("/src/app.py", "/src/", "*.py")
    assert offered("src/app.py", "src/new/x.py") == ("/src/", "*.py")
    assert offered("src/app.py", "notes.md") == ()
    assert offered("README") == ("/README",)
    assert offered("a[1]/b*c.txt ") == ("/a\\[1\\]/b\\*c.txt\\ ", "/a\\[1\\]/")


def test_a_remembered_pattern_covers_no_file_that_runs_later_or_holds_secrets(workspace: Path):
    asked = write(workspace / "src" / "app.json")
    for target, other in (("*.json", "package.json"), ("/src/", "src/Makefile"), ("/src/", "src/.env")):
        grant = remembered(asked, ToolScope(path=target), workspace)
        assert judge(workspace, asked, ASKED, memory=(grant,)).kind == "allow"
        edit = write(workspace / other, content='{"scripts": {"test": "curl x"}}')
        assert judge(workspace, edit, ASKED, memory=(grant,)).kind == "ask", other
        own = remembered(asked, ToolScope(path=literal_pattern(other)), workspace)
        assert judge(workspace, edit, ASKED, memory=(own,)).kind == "allow", other


def test_each_offer_covers_the_edit_and_nothing_beside_what_it_says(workspace: Path):
    asked = write(workspace / "src" / "app.py")
    others = [write(workspace / name) for name in ("src/b.py", "src/b.txt", "c.py", "c.txt")]
    covered: dict[str, list[bool]] = {}
    for target in judge(workspace, asked, ASKED).targets:
        grant = remembered(asked, ToolScope(path=target), workspace)
        assert judge(workspace, asked, ASKED, memory=(grant,)).grant_id == "g1"
        covered[target] = [judge(workspace, other, ASKED, memory=(grant,)).kind == "allow" for other in others]
    assert covered == {
        "/src/app.py": [False, False, False, False],
        "/src/": [True, True, False, False],
        "*.py": [True, False, True, False],
    }


def test_a_file_that_runs_later_or_holds_secrets_offers_itself_alone(workspace: Path):
    assert judge(workspace, write(workspace / "Makefile")).targets == ("/Makefile",)
    assert judge(workspace, write(workspace / "conf" / ".env")).targets == ("/conf/.env",)
    assert judge(workspace, write(workspace / "conf" / ".env", workspace / "conf" / "x.env")).targets == ()


def test_an_always_asked_call_offers_no_rule(workspace: Path):
    assert judge(workspace, write(workspace / ".git" / "hooks" / "pre-commit")).targets == ()
    assert judge(workspace, write(workspace / "a.py", content="x = 1 # \u202e\n")).targets == ()
    ask = Rules(ask=(Rule(name="a", path="src/"),))
    assert judge(workspace, write(workspace / "src" / "a.py"), ask).targets == ()


def test_a_file_outside_is_offered_by_its_full_path_and_never_its_home(workspace: Path, tmp_path: Path):
    outside = tmp_path / "other" / "notes.txt"
    outside.parent.mkdir()
    assert judge(workspace, write(outside)).targets == (f"/{outside}", f"/{outside.parent}/")
    assert judge(workspace, write(outside), home=str(outside.parent)).targets == (f"/{outside}",)
    (workspace / "link.txt").symlink_to(outside)
    assert judge(workspace, write(workspace / "link.txt")).targets == ()


def test_a_rule_for_the_workspace_cannot_be_about_files_outside_of_it(workspace: Path, tmp_path: Path):
    spec = CommandSpec(command=write(tmp_path / "notes.txt"), cwd=str(workspace))
    scope = ToolScope(path=f"/{tmp_path}/notes.txt", where="project")
    assert "covers no files outside" in str(scope_problem(scope, spec))
    assert scope_problem(scope.model_copy(update={"where": "user"}), spec) is None


def test_a_saved_rule_is_one_that_the_file_takes(workspace: Path):
    for scope in (ToolScope(hosts=("a.org", "b.org")), ToolScope(path="docs/**"), ToolScope(tool="mcp__gh__x")):
        for rule in saved_tool_rules(scope, call_id="3", root=str(workspace), now=0.0):
            said = {"allow": [rule.model_dump(exclude_defaults=True, mode="json")]}
            assert read_rules(said, "rules.toml", table="").broken is None


def test_sub_agents_start_and_are_recorded(workspace: Path):
    start = Function(tool="Task", arguments={"prompt": "look"}, about="subagent", targets=("reviewer",))
    verdict = judge(workspace, start)
    assert (verdict.kind, verdict.rule) == ("allow", SUBAGENT_RULE)
    asking = Rules(ask=(Rule(name="s", tool="subagent", anything=True),))
    assert judge(workspace, start, asking).kind == "ask"


def test_a_shell_command_in_a_foreign_tool_is_denied_as_a_command(workspace: Path):
    call = Function(tool="mcp__x__run", arguments={"command": "rm -rf /"}, about="server", targets=("x", "run"))
    assert judge(workspace, call, Rules(deny=(Rule(name="rm", program="rm"),))).kind == "refuse"


@each_row(
    ("rule", "problem"),
    [
        ({"path": ""}, "pattern"),
        ({"path": "!x"}, "begins with '!'"),
        ({"host": "https://x"}, "host"),
        ({"host": "*"}, "host"),
        ({"path": "x", "host": "y"}, "one of"),
    ],
)
def test_a_rule_that_would_not_mean_what_it_says_is_refused(rule: dict[str, str], problem: str):
    broken = read_rules({"deny": [{"name": "r", **rule}]}, "rules.toml", table="").broken
    assert broken is not None
    assert problem in broken


def test_the_setting_of_edits_is_one_of_two_words():
    assert read_rules({"edits": "ask"}, "rules.toml", table="").edits == "ask"
    assert read_rules({"edits": True}, "rules.toml", table="").broken is not None


def test_parts_of_a_planted_repository_and_hooks_elsewhere_are_always_asked(workspace: Path):
    held = workspace / "held"
    for directory in ("objects", "refs", "hooks"):
        (held / directory).mkdir(parents=True)
    assert judge(workspace, write(held / "HEAD")).kind == "ask"
    assert judge(workspace, write(held / "config")).kind == "allow"
    (held / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("config", "commondir", "hooks/pre-push"):
        verdict = judge(workspace, write(held / name), Rules(allow=(Rule(name="all", path="**"),)))
        assert verdict.kind == "ask" and "a part of a repository of git" in str(verdict.risks), name
    (workspace / ".git").mkdir(exist_ok=True)
    (workspace / ".git" / "config").write_text("[core]\n\thooksPath = shared\n")
    assert judge(workspace, write(workspace / "shared" / "pre-commit")).kind == "ask"
    assert judge(workspace, write(workspace / "shared.py")).kind == "allow"
