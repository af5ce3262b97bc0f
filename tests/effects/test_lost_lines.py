"""The lines that a git command would lose are among its effects, as git itself would write what takes their place."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell
from whisper_tui.model.effects import Effects
from whisper_tui.present.effects_text import effect_lines
from whisper_tui.tui.cockpit.effect_rows import effect_rows

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

BUILD = """
git init -q -b main; git config user.name n; git config user.email e
printf 'one\\ntwo\\nthree\\n' > app.py; printf 'x\\r\\n' > dos.txt; echo '*.txt text eol=crlf' > .gitattributes
git add .; git commit -qm first
printf 'one\\nTWO\\nthree\\n' > app.py; git add app.py; printf 'one\\nTWO!\\nthree\\nfour\\n' > app.py
"""


def sh(script: str, directory: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    subprocess.run(["sh", "-euc", script], cwd=directory, check=True, env=environment)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    sh(BUILD, tmp_path)
    return tmp_path


def effects(command: str, workspace: Path) -> Effects:
    return effects_of(Shell(text=command), str(workspace), [str(workspace)], {}, budget_s=60)


def card(found: Effects) -> str:
    rows = effect_rows(found, Shell(text=""))
    return "\n".join("".join(span.text for span in (*p.margin, *p.spans)) for p in (*rows.paragraphs, *rows.texts))


@pytest.mark.parametrize(
    ("command", "lost", "instead"),
    [
        ("git reset --hard", ["-TWO!", "-four"], "+two"),
        ("git checkout -f", ["-TWO!", "-four"], "+two"),
        ("git checkout HEAD -- app.py", ["-TWO!", "-four"], "+two"),
        ("git checkout -- app.py", ["-TWO!", "-four"], "+TWO"),
        ("git restore app.py", ["-TWO!", "-four"], "+TWO"),
        ("git restore --source HEAD app.py", ["-TWO!", "-four"], "+two"),
        ("cd .git/.. && git restore .", ["-TWO!", "-four"], "+TWO"),
    ],
)
def test_lines_of_the_work_tree_that_git_overwrites(
    command: str, lost: list[str], instead: str, workspace: Path
) -> None:
    found = effects(command, workspace)
    (file,) = found.files
    assert file.diff is not None, file.no_diff
    lines = file.diff.text.splitlines()
    assert [line for line in lines if line.startswith("-")] == lost
    assert [line for line in lines if line.startswith("+")] == [instead]
    assert "− TWO!" in card(found)
    before = (workspace / "app.py").read_text()
    sh(command, workspace)
    assert (workspace / "app.py").read_text().split()[1] == instead[1:] and before != (workspace / "app.py").read_text()


def test_git_writes_the_line_ends_that_it_is_told_to(workspace: Path) -> None:
    (workspace / "dos.txt").write_bytes(b"y\r\n")
    (file,) = effects("git checkout -- dos.txt", workspace).files
    assert file.diff is not None
    assert file.diff.text == "@@ -1 +1 @@\n-y\r\n+x\r\n"


def test_lines_that_only_a_dropped_stash_has(workspace: Path) -> None:
    (workspace / "new.py").write_text("only here\n")
    sh("git stash -q -u", workspace)
    found = effects("git stash drop", workspace)
    assert [(lost.path, lost.diff.removed) for lost in found.git[0].loses] == [("app.py", 2), ("new.py", 1)]
    assert "− four" in card(found) and "− only here" in card(found)
    assert any("loses 3 lines of app.py, new.py" in line.text for line in effect_lines(found.model_dump(mode="json")))
    sh("git stash pop -q; git stash -q; git stash -q -u -m second || true", workspace)
    cleared = effects("git stash clear", workspace)
    assert [lost.path for lost in cleared.git[0].loses] == ["new.py", "app.py"]


def test_lines_of_files_that_git_cleans_away(workspace: Path) -> None:
    (workspace / "notes").write_text("my only copy\nof it\n")
    (workspace / "picture").write_bytes(b"\0\1\2")
    found = effects("git clean -f", workspace)
    assert [(lost.path, lost.diff.removed) for lost in found.git[0].loses] == [(str(workspace / "notes"), 2)]
    assert "− my only copy" in card(found)
    assert not effects("git clean -n", workspace).git


def test_many_files_are_bounded(workspace: Path) -> None:
    names = [f"f{number}" for number in range(60)]
    for content in ("a\n", "b\n"):
        sh("git add .; git commit -qm more --allow-empty", workspace)
        for name in names:
            (workspace / name).write_text(content)
    found = effects("git reset --hard", workspace)
    assert sum(file.diff is not None for file in found.files) == 20
    assert all(file.diff is not None or file.no_diff == "the content is in git" for file in found.files)
