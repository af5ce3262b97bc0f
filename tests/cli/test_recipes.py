"""The recipes of docs/recipes.md do what they say, line by line as the page prints them."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, Instance
from tests.outside import needs_overlays, outside_only

PAGE = (Path(__file__).parent.parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")
pytestmark = [pytest.mark.slow, outside_only]


def recipe(title: str, language: str = "sh") -> str:
    """The block of a recipe."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(autouse=True)
def without_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """A make that was started by another one prints where it works."""
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shop(instance: Instance) -> Iterator[Instance]:
    """The instance of somebody who has set nothing, and a project with tests."""
    (instance.root / "config" / "rules.toml").unlink()
    (instance.workspace / "Makefile").write_text("test:\n\t@echo all good\n")
    (instance.workspace / "shop.py").write_text("price = 100\n")
    (instance.workspace / "notes.txt").write_text("note\n")
    yield instance


def agent_runs(shop: Instance, command: str) -> str:
    """What an agent gets for a command about which nobody is asked."""
    done = shop.run("call", "run_shell_command", json.dumps({"command": command}), "--session", "shop")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["exitCode"] == 0, result
    return str(result["stdout"])


def follow(shop: Instance, line: str) -> str:
    """Carry out a line of a recipe, and return what it prints."""
    program, *words = shlex.split(line, comments=True)
    assert program == "whisper-tui"
    # A question that a person would answer with yes.
    answer = shop.run(*words, *(["--yes"] if words[0] == "undo" and "--yes" not in words else []))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_tests_of_a_project_are_not_asked_about_any_more(shop: Instance) -> None:
    listed, added, explained = (follow(shop, line) for line in recipe("Stop being asked about tests").splitlines())
    assert "1       make test" in listed and "Added 1" in added
    assert explained.startswith("allow: named by Makefile\n")
    assert agent_runs(shop, "make test") == "all good\n"
    assert shop.run("rules", "remove", "make test").returncode == 0
    assert follow(shop, "whisper-tui explain 'make test'").startswith("ask: ")


@needs_overlays
def test_an_agent_works_unasked_and_what_it_changed_is_taken_back(shop: Instance) -> None:
    allow, review, undo, done = recipe("Let an agent work while you are away, then review").splitlines()
    assert "workspace for 3 h more" in follow(shop, allow)
    agent_runs(shop, "sed -i s/100/120/ shop.py")
    agent_runs(shop, "rm notes.txt")
    told = follow(shop, review)
    assert "1 changed, +1 −1: shop.py" in told and "1 deleted" in told
    follow(shop, undo)
    assert (shop.workspace / "shop.py").read_text() == "price = 100\n"
    assert (shop.workspace / "notes.txt").read_text() == "note\n"
    follow(shop, done)
    assert follow(shop, review) == "Nothing was changed unasked since the last review\n"


@needs_overlays
def test_what_a_session_did_for_hours_is_taken_back_but_for_a_call(shop: Instance) -> None:
    # The clock may strike two meanwhile.
    page = recipe("Take back what it did since lunch").replace("14:00", "1h")
    listing, undo, one_file = page.splitlines()
    follow(shop, "whisper-tui unasked workspace --for 3h")
    agent_runs(shop, "ls")
    agent_runs(shop, "sed -i s/100/120/ shop.py; echo more >> notes.txt")
    agent_runs(shop, "mkdir out")
    agent_runs(shop, "echo kept > kept.txt")
    assert follow(shop, listing).startswith("3 calls changed files")
    assert "shop.py" in follow(shop, f"{one_file.split('#')[0]} --yes")
    assert (shop.workspace / "shop.py").read_text() == "price = 100\n"
    assert (shop.workspace / "notes.txt").read_text() == "note\nmore\n"
    follow(shop, undo)
    assert (shop.workspace / "kept.txt").exists() and not (shop.workspace / "out").exists()
    assert (shop.workspace / "notes.txt").read_text() == "note\n"


def test_the_agent_in_python_waits_for_a_human_and_gets_the_output(shop: Instance) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", recipe("Your own agent in Python", "python")],
        cwd=shop.workspace,
        env={**os.environ, "WHISPER_TUI_HOME": str(shop.root), "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )
    shop.until(lambda: [row for row in shop.seen("list") if row["state"] == "waiting"])
    assert shop.run("approve", "1").returncode == 0
    printed, _ = program.communicate(timeout=ANSWER_S)
    assert "'run_shell_command'" in printed and "all good" in printed
