"""The rules that a project's own files propose: its tests, builds and checks, and nothing that does more."""

import json
from pathlib import Path

import pytest

from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.config.starter_rules import MOST_RULES, starter_rules
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.rules.rules_toml import shape_problem
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.system.state_directory import Directories


def names(root: Path) -> list[str]:
    return [rule.name for rule in starter_rules(str(root))]


def with_scripts(root: Path, scripts: object) -> None:
    (root / "package.json").write_text(json.dumps({"scripts": scripts}))


def test_scripts_are_run_with_the_manager_of_the_lock_file(tmp_path: Path) -> None:
    with_scripts(tmp_path, {"test": "jest", "build": "tsc", "lint:fix": "eslint --fix .", "start": "node ."})
    assert names(tmp_path) == ["npm run test", "npm test", "npm run build", "npm run lint:fix"]
    (tmp_path / "pnpm-lock.yaml").touch()
    assert names(tmp_path) == ["pnpm run test", "pnpm run build", "pnpm run lint:fix"]


@pytest.mark.parametrize(
    "scripts",
    [
        {"deploy": "x"},
        {"build:release": "x"},
        {"test": "jest && npm publish"},
        {"build": "tsc", "postbuild": "git push"},
        {"check": "docker login"},
        {"lint": "curl example.org"},
        {"testimony": "x"},
        {"test;rm -rf .": "x"},
        {"test\x1b[31m": "x"},
        {"test" * 20: "x"},
        ["test"],
    ],
)
def test_nothing_else_is_proposed(scripts: object, tmp_path: Path) -> None:
    with_scripts(tmp_path, scripts)
    assert names(tmp_path) == []


def test_targets_are_proposed_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "VERSION := 1\ntest: lint\n\tpytest\nlint:\n\truff check\ncheck: deploy\nbuild coverage:\n\tcc\n"
        "fmt:\n\tscp a b:\n.PHONY: test\n"
    )
    assert names(tmp_path) == ["make test", "make lint", "make build", "make coverage"]
    rules = Rules(allow=starter_rules(str(tmp_path)))

    def kind(text: str) -> str:
        spec = CommandSpec(command=Shell(text=text), cwd=str(tmp_path))
        return judge_alone(spec, rules, {"PATH": "/usr/bin:/bin"}, root=str(tmp_path), now=0.0)[0].kind

    # `make test deploy` would begin like `make test`, and the tests are not all that it does.
    assert (kind("make test"), kind("make test deploy"), kind("make deploy")) == ("allow", "ask", "ask")


def test_tools_of_python_and_rust(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ruff]\n[tool.pytest.ini_options]\n[tool.poe.tasks]\ntypes = "mypy"\nrelease = "x"\n'
    )
    (tmp_path / "tox.ini").touch()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "x"\n')
    cargo = ["cargo test", "cargo build", "cargo check", "cargo clippy"]
    assert names(tmp_path) == ["pytest", "ruff check", "tox", "poe types", *cargo]
    (tmp_path / "uv.lock").touch()
    assert names(tmp_path)[:4] == ["pytest", "uv run pytest", "ruff check", "uv run ruff check"]


def test_every_proposal_is_a_rule_for_this_workspace_in_its_sandbox(tmp_path: Path) -> None:
    with_scripts(tmp_path, {f"test{number}": "x" for number in range(100)})
    found = starter_rules(str(tmp_path))
    assert len(found) == MOST_RULES
    for rule in found:
        assert shape_problem(rule, "allow") is None
        assert (rule.directory, rule.sandbox, rule.network) == (str(tmp_path), "workspace", False)


@pytest.mark.parametrize(
    "content", ["{", "[" * 100_000, '"scripts"', "\udcff", " " * 300_000 + '{"scripts": {"test": "x"}}']
)
def test_a_file_that_cannot_be_read_proposes_nothing(content: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    (tmp_path / "pyproject.toml").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert names(tmp_path) == []


def test_no_link_of_the_project_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with_scripts(elsewhere, {"test": "jest"})
    (root := tmp_path / "root").mkdir()
    (root / "package.json").symlink_to(elsewhere / "package.json")
    assert names(root) == []


def test_a_saved_rule_is_not_offered_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with_scripts(root, {"test": "jest", "build": "tsc"})
    home = Directories(config=str(tmp_path / "c"), state=str(tmp_path / "s"), runtime=str(tmp_path / "r"))
    files = RuleFiles(home, Rules())
    (offered,) = files.listed([str(root)]).starters
    assert [rule.subject for rule in offered.rules] == ["npm run test …", "npm test …", "npm run build …"]
    for rule in offered.rules[:2]:
        assert rule.sandbox == "writes only in the workspace, no network"
        files.add("allow", Rule.model_validate(rule.definition))
    (offered,) = files.listed([str(root)]).starters
    assert [rule.subject for rule in offered.rules] == ["npm run build …"]
    files.add("allow", Rule.model_validate(offered.rules[0].definition))
    assert files.listed([str(root)]).starters == ()
