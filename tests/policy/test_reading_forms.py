"""What agents read with, and what acts: how many forms ask, and none that acts runs unasked with an effect."""

import os
import subprocess
from pathlib import Path

import pytest

from whisper_tui.model.call import CommandSpec, Shell, Unasked
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals import judge
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.system import host_files

_LINES = (Path(__file__).parent / "data" / "reading_forms.txt").read_text("utf-8").splitlines()
_FORMS = [line for line in _LINES if line and not line.startswith("#")]
READS = _FORMS[_FORMS.index("reads") + 1 : _FORMS.index("acts")]
ACTS = _FORMS[_FORMS.index("acts") + 1 :]
MOST_ASKED = 0.10
MOST_ASKED_AT_ONCE = 0.03
"""Shares of the forms that read and that ask about themselves: by words alone, and where effects decide."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a home directory, on a machine with a sandbox."""
    home = tmp_path / "home"
    found = home / "project"
    for name in ("README.md", "names.txt", "src/app.py", "src/more.py", "tests/test_app.py"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text("one\n")
    subprocess.run(["git", "init", "-q", str(found)], check=True)
    monkeypatch.setattr(host_files, "home_of_user", lambda: str(home))
    monkeypatch.setattr(judge, "sandbox_problem", lambda: "")
    return found


def judged(workspace: Path, text: str, level: Unasked) -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=str(workspace))
    environment = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent)}
    return judge_alone(spec, Rules().at(level), environment, root=str(workspace), now=0.0)[0]


def test_few_forms_of_reading_ask(workspace: Path) -> None:
    asked = [text for text in READS if judged(workspace, text, "reading").kind != "allow"]
    assert len(asked) <= MOST_ASKED * len(READS), asked
    at_once = [text for text in READS if not _runs(judged(workspace, text, "workspace"))]
    assert len(at_once) <= MOST_ASKED_AT_ONCE * len(READS), at_once
    assert not [text for text in READS if judged(workspace, text, "nothing").kind == "allow"]


def _runs(verdict: Verdict) -> bool:
    return verdict.kind == "allow" or verdict.held_back


@pytest.mark.parametrize("text", ACTS)
def test_what_acts_runs_only_held_back(workspace: Path, text: str) -> None:
    """In a view of the files nothing is real, until its effects are known and are those of ordinary work."""
    assert judged(workspace, text, "reading").kind != "allow"
    assert judged(workspace, text, "workspace").kind != "allow"


def test_the_forms_are_told_apart() -> None:
    assert len(READS) > 100
    assert len(ACTS) > 70
    assert not set(READS) & set(ACTS)
