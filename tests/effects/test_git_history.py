"""What changed files of a repository do to its history, against repositories that git has made."""

import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from whisper_tui.effects.git_history import ChangedGitFile, rewritten_history

MAKE = """
git init -q -b main . && git config user.name n && git config user.email n@example.org
git commit -q --allow-empty -m one && git commit -q --allow-empty -m two && git tag v0 && git branch other
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    run(MAKE, tmp_path)
    return tmp_path


def run(text: str, place: Path) -> str:
    return subprocess.run(["bash", "-ec", text], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def contents(place: Path) -> dict[str, bytes]:
    top = place / ".git"
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def always(content: bytes | None) -> Callable[[], bytes | None]:
    return lambda: content


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, ChangedGitFile]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {
        name: ChangedGitFile(
            name,
            is_directory=False,
            old=always(before.get(name)),
            new=always(after.get(name)),
            is_new=name not in before,
            is_gone=name not in after,
        )
        for name in names
    }


def found(place: Path, text: str) -> list[str]:
    """What a line does to the history of a repository. Git itself says what is an ancestor there."""
    before = contents(place)
    run(text, place)
    files = changed(before, contents(place))

    def is_ancestor(old: str, new: str) -> bool:
        return subprocess.run(["git", "merge-base", "--is-ancestor", old, new], cwd=place, check=False).returncode == 0

    return list(rewritten_history(files, before.get("packed-refs", b""), is_ancestor))


@pytest.mark.parametrize(
    "text",
    [
        "git commit -q --allow-empty -m three",
        "git checkout -q -b new HEAD~1 && git commit -q --allow-empty -m side && git merge -q -m merged main",
        "git checkout -q other && git merge -q --ff-only main",
        "git tag v1",
        "echo x > f && git add f && git stash -q",
        "git checkout -q --detach HEAD~1",
        "git checkout -q -b old HEAD~1 && git cherry-pick --allow-empty main > /dev/null",
        "git pack-refs --all && git commit -q --allow-empty -m three",
    ],
)
def test_adding_to_a_history_is_ordinary(place: Path, text: str) -> None:
    assert not [why for why in found(place, text) if "packed" not in why]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("git reset -q --hard HEAD~1", "main would lose commits"),
        ("git commit -q --amend --allow-empty -m other", "main would lose commits"),
        ("git update-ref -d refs/heads/other", "deletes other"),
        ("git tag -f v0 HEAD~1", "moves tags/v0"),
        ("git tag -d v0", "deletes tags/v0"),
        ("git update-ref refs/remotes/origin/main HEAD", "remotes/origin/main"),
        ("git update-ref refs/notes/commits HEAD", "notes/commits"),
        ("git pack-refs --all && git update-ref -d refs/heads/other", "deletes other"),
        ("git reflog expire --expire=now --all", "rewrites the log"),
        ("git gc -q --prune=now", "packs or removes objects"),
        ("echo x > .git/info/exclude", "info/exclude"),
        ("echo hello > .git/refs/heads/main", "main would name no commit"),
        ("git checkout -q main && git checkout -q -B other HEAD~1", "other would lose commits"),
        ("echo 0 > .git/shallow", "shallow"),
        ("echo 'ref: refs/x/main' > .git/HEAD", "HEAD would name no branch"),
        ("rm .git/HEAD", "HEAD would name no branch"),
        ("mkdir .git/rebase-merge; echo exec true > .git/rebase-merge/git-rebase-todo", "git-rebase-todo"),
        ("git pack-refs --all; sed -i 's,^.* refs/heads/main$,&\\n&,' .git/packed-refs", "another list of branches"),
        ("git pack-refs --all; echo x >> .git/packed-refs", "another list of branches"),
        ("git pack-refs --all; sort -r -o .git/packed-refs .git/packed-refs", "another list of branches"),
    ],
)
def test_rewriting_a_history_is_named(place: Path, text: str, why: str) -> None:
    assert any(why in each for each in found(place, text))


def test_a_commit_that_has_not_its_own_name_leads_nowhere(place: Path) -> None:
    """Else a file in the place of an object could say that a branch has only grown."""
    old = run("git rev-parse main", place)
    body = f"tree {'0' * 40}\nparent {old}\n\nforged".encode()
    forged = zlib.compress(b"commit %d\0" % len(body) + body)
    name = "1" * 40
    text = f"mkdir -p .git/objects/11; cp $OLDPWD/forged .git/objects/11/{name[2:]}; echo {name} > .git/refs/heads/main"
    (place / "forged").write_bytes(forged)
    assert "main would lose commits that it has" in found(place, text.replace("$OLDPWD/", ""))
