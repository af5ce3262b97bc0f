"""Effects in words: one short line each, what is lost first and what is not stated last."""

import subprocess
from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell
from whisper_tui.present.effects_text import effect_lines, no_effects_text

SETUP = r"""
git init -q -b main; git config user.name Ann; git config user.email a@example.org
git remote add origin ssh://git@git.example.org/x.git
printf 'one\n' > app.py; mkdir src; touch src/a src/b; echo '*.log' > .gitignore
printf '#!/bin/sh\nrm -rf ~/x\n' > deploy.sh; chmod +x deploy.sh
echo '{"scripts": {"build": "tsc", "prebuild": "rm -rf dist"}}' > package.json
printf 'deploy: dist\n\t./deploy.sh\ndist:\n\tmkdir dist\n' > Makefile
echo 'print()' > tool.py; printf '#!/usr/bin/env python3\n' > ok.py; chmod +x ok.py
git add .; git commit -qm First; git update-ref refs/remotes/origin/main HEAD
echo two >> app.py; git commit -qam Second
touch src/new src/x.log; echo changed > src/a
mkdir home home/.kube home/.ssh home/.docker
printf 'Host box\n  HostName box.example.org\n' > home/.ssh/config
printf 'apiVersion: v1\nclusters:\n- cluster:\n    server: https://k8s.example.org:6443\n  name: c1\ncontexts:\n- context:\n    cluster: c1\n    user: u\n  name: prod\ncurrent-context: prod\n' > home/.kube/config
"""  # noqa: E501 a file of kubectl

LINES = {
    "echo hi > app.py": ["writes app.py (exists, 8 B, +1 -2 lines)"],
    "echo hi > new": ["writes new (new, +1 -0 lines)"],
    "echo hi >> src/a": ["appends to src/a (exists, 8 B, +1 -0 lines)"],
    "rm -r src": [
        "deletes src (4 files, 8 B): 1 restorable from git, 1 modified since git last saw it, 1 untracked, 1 ignored"
    ],
    "sed -i s/one/two/ app.py": ["edits app.py (exists, 8 B, +1 -1 lines)"],
    "sed -i 'N;s/o/0/' app.py": ["edits app.py (exists, 8 B, not computed)"],
    "rm -f nothing": ["deletes nothing: nothing does not exist"],
    "mv app.py lib.py": ["moves app.py to lib.py", "writes lib.py (new, +2 -0 lines)"],
    "chmod 600 app.py": ["changes mode of app.py to 600"],
    "ln -sf x app.py": ["links app.py to x (replaces a file)"],
    "git push --force origin HEAD~1:main": ["force-pushes 0 commits of main to origin (git.example.org) [on main, 3 uncommitted changes]", "talks to git.example.org (git, remote origin)"],  # noqa: E501
    "git checkout -b fix": ["creates branch fix, and switches to it [on main, 3 uncommitted changes]"],
    "git switch -c fix": ["creates branch fix, and switches to it [on main, 3 uncommitted changes]"],
    "git push origin main": ["pushes 1 commit of main to origin (git.example.org) [on main, 3 uncommitted changes]", "talks to git.example.org (git, remote origin)"],  # noqa: E501
    "./deploy.sh": [
        "./deploy.sh: deletes nothing: home/x does not exist",
        "runs ./deploy.sh: 1 risk: line 2: Deletes recursively without confirmation (`rm -rf`)",
    ],
    "python3 tool.py": ["runs python3 tool.py: not read, code of python is not analysed"],
    "npm run build": [
        "npm run prebuild: deletes nothing: dist does not exist",
        "runs npm run prebuild (package.json): 1 risk: line 1: Deletes recursively without confirmation (`rm -rf`)",
        "runs npm run build (package.json): inspected, no risk known",
    ],
    "make deploy": [
        "runs make deploy (Makefile): inspected, no risk known",
        "runs ./deploy.sh: not read, run by make deploy",
        "gets 1 secret variable: OTHER_TOKEN",
        "make deploy: unknown: 2 commands run only if something is out of date",
    ],
    "ssh box uptime": ["talks to box.example.org (ssh, box in ~/.ssh/config)"],
    "kubectl delete pod x": ["talks to k8s.example.org (kubectl, context prod)"],
    "psql -h localhost -c x": ["talks to localhost (psql, this machine)"],
    # -A of psql takes no value
    "psql -A -h db.example.org -c x": ["talks to db.example.org (psql)"],
    "cargo build": ["runs cargo build: not read, it runs code of the project"],
    "unknown-tool build": [
        "gets 1 secret variable: OTHER_TOKEN",
        "unknown: what unknown-tool changes is not known before it runs (unknown-tool build)",
    ],
    "cat .env": [
        "names files with secrets: .env",
        "its output goes to the model and may show secrets: .env",
    ],
    "cat .env > copy.txt": ["writes copy.txt (new)", "names files with secrets: .env"],
    "cp .env copy.env": ["names files with secrets: .env, copy.env"],
    "cat < .env | head": [
        "names files with secrets: .env",
        "its output goes to the model and may show secrets: .env",
    ],
    'echo "$API_KEY"': [
        "uses 1 secret variable: API_KEY",
        "its output goes to the model and may show secrets: API_KEY",
    ],
    "printenv": [
        "its output goes to the model and may show secrets: variables of the environment",
        "gets 1 secret variable: OTHER_TOKEN",
    ],
    "ls": [],
    "./ok.py": ["runs ./ok.py: not read, code of python is not analysed", "gets 1 secret variable: OTHER_TOKEN"],
}  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("words")
    subprocess.run(["bash", "-c", SETUP], cwd=root, check=True)
    (root / ".gitignore").write_text("*.log\nhome/\n")
    return root


def lines(text: str, workspace: Path) -> list[str]:
    environment = {"HOME": str(workspace / "home"), "PATH": "/usr/bin:/bin", "OTHER_TOKEN": "hunter2"}
    effects = effects_of(Shell(text=text), str(workspace), [str(workspace)], environment, budget_s=20)
    return [line.text for line in effect_lines(effects.model_dump(mode="json"))]


@each_row("text", LINES)
def test_an_effect_is_a_short_line(text: str, workspace: Path) -> None:
    found = lines(text, workspace)
    assert found[: len(LINES[text]) or None] == LINES[text]


def test_commits_that_are_lost_are_named(workspace: Path) -> None:
    (line,) = [line for line in lines("git reset --hard HEAD~1", workspace) if line.startswith("git reset")]
    assert ", drops 1 commit: " in line and '"Second"' in line
    (line,) = lines("git commit --amend --no-edit", workspace)
    assert ", rewrites 1 commit: " in line


def test_a_command_that_changes_nothing_says_so(workspace: Path) -> None:
    effects = effects_of(Shell(text="ls"), str(workspace), [str(workspace)], {}).model_dump(mode="json")
    assert effect_lines(effects) == () and no_effects_text(effects) == "no known changes"


def test_secrets_in_the_environment_are_named_and_not_shown(workspace: Path) -> None:
    environment = {"API_TOKEN": "hunter2hunter2", "EMPTY_TOKEN": "", "LANG": "C"}
    effects = effects_of(Shell(text="curl https://x.example/$API_TOKEN"), str(workspace), ["/"], environment)
    assert effects.secret_variables == ("API_TOKEN",)
    assert "hunter2" not in effects.model_dump_json()


def test_code_with_a_risk_stands_out_and_code_without_one_does_not(workspace: Path) -> None:
    effects = effects_of(Shell(text="npm run build"), str(workspace), [str(workspace)], {}, budget_s=20)
    lines = effect_lines(effects.model_dump(mode="json"))
    assert [line.grave for line in lines if line.kind == "code"] == [True, False]
