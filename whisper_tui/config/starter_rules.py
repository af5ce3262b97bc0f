"""Rules for a project's own commands to test, build and lint it, as its files name them.

An agent can write these files, so they only propose: names in a narrow alphabet, of bounded number, for a sandbox that
writes the workspace and reaches no other machine. A human picks, and the picked ones are rules of the user.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from whisper_tui.config.project_rules import LONGEST
from whisper_tui.policy.rules.rule import Rule
from whisper_tui.system.host_files import read_regular

MOST_RULES = 30
"""Limit of rules that are proposed for one project."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]{0,39}\Z")
_WANTED = re.compile(r"(?:tests?|build|lint|check|type-?check|types|fmt|format|compile|coverage|unit|verify)(?![a-z])")
_ACTS_ELSEWHERE = re.compile(
    r"(?i)(deploy|publish|release|push|login|logout|upload|ship|install|sudo|ssh|scp|rsync|curl|wget|docker|terraform|kubectl)"
)
"""Parts of a name, or of the text behind it, of what does more than to test, build or lint."""
_TARGET = re.compile(r"([A-Za-z0-9][A-Za-z0-9:_. -]*):(?!=)(.*)\Z")
_MANAGERS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun"))
_RUNNERS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"))
_TOOLS = (
    ("pytest", ("pytest",), ("pytest.ini",)),
    ("ruff", ("ruff", "check"), ("ruff.toml", ".ruff.toml")),
    ("mypy", ("mypy",), ("mypy.ini",)),
    ("pyright", ("pyright",), ("pyrightconfig.json",)),
)
"""Tools of Python: the table below `tool` in pyproject.toml, the words, and files that say the same as the table."""
_SESSIONS = (("tox", "tox.ini"), ("nox", "noxfile.py"))
"""Programs that need no further word, and could do anything with one."""
_CARGO = ("test", "build", "check", "clippy")


def starter_rules(root: str, saved: Iterable[Rule] = ()) -> tuple[Rule, ...]:
    """Return the rules that a project's files propose, without those that are `saved`."""
    known = {rule.name for rule in saved if rule.directory == root}
    found: dict[str, Rule] = {}
    for read in (_scripts, _targets, _python, _cargo):
        for source, words, exact in read(Path(root)):
            name = " ".join(words)
            subject: dict[str, Any] = {"pattern": name} if exact else {"prefix": words}
            rule = Rule(name=name, directory=root, sandbox="workspace", justification=f"named by {source}", **subject)
            if name not in known and len(found) < MOST_RULES:
                found.setdefault(name, rule)
    return tuple(found.values())


Proposed = Iterator[tuple[str, tuple[str, ...], bool]]
"""The file, the words of a command, and whether no further word may follow: it could name something else to do."""


def _scripts(root: Path) -> Proposed:
    scripts = _table(_parsed(root / "package.json", json.loads), "scripts")
    manager = next((name for lock, name in _MANAGERS if (root / lock).is_file()), "npm")
    for name, text in scripts.items():
        around = " ".join(str(scripts.get(f"{when}{name}", "")) for when in ("pre", "post"))
        if _is_wanted(name, f"{text} {around}"):
            yield "package.json", (manager, "run", name), False
            if name == "test" and manager == "npm":
                yield "package.json", ("npm", "test"), False


def _targets(root: Path) -> Proposed:
    source = next((name for name in ("GNUmakefile", "makefile", "Makefile") if (root / name).is_file()), "")
    recipes: dict[str, str] = {}
    names: list[str] = []
    for line in (_text(root / source) or "").splitlines() if source else ():
        if (found := _TARGET.match(line)) is not None:
            names = found[1].split()
        for name in names if found is not None or line[:1].isspace() else ():
            recipes[name] = f"{recipes.get(name, '')} {found[2] if found is not None else line}"
    for name, recipe in recipes.items():
        if _is_wanted(name, recipe):
            yield source, ("make", name), True


def _python(root: Path) -> Proposed:
    tools = _table(_parsed(root / "pyproject.toml", tomllib.loads), "tool")
    runner = next((name for lock, name in _RUNNERS if (root / lock).is_file()), None)
    for name, words, files in _TOOLS:
        source = "pyproject.toml" if name in tools else next((file for file in files if (root / file).is_file()), None)
        if source is not None:
            yield source, words, False
            if runner is not None:
                yield source, (runner, "run", *words), False
    for name, file in _SESSIONS:
        if name in tools or (root / file).is_file():
            yield "pyproject.toml" if name in tools else file, (name,), True
    for name, task in _table(_table(tools, "poe"), "tasks").items():
        if _is_wanted(name, str(task)):
            yield "pyproject.toml", ("poe", name), False


def _cargo(root: Path) -> Proposed:
    if _parsed(root / "Cargo.toml", tomllib.loads):
        yield from (("Cargo.toml", ("cargo", word), False) for word in _CARGO)


def _is_wanted(name: object, text: str) -> bool:
    """True if a script tests, builds or lints, and neither its name nor its text says that it does more."""
    if not isinstance(name, str) or _NAME.match(name) is None or _WANTED.match(name) is None:
        return False
    return _ACTS_ELSEWHERE.search(f"{name} {text}") is None


def _table(document: Any, key: str) -> dict[str, Any]:
    found = document.get(key) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(_text(path) or "")
    except (ValueError, RecursionError):
        # A file of the project that cannot be read proposes nothing.
        return None


def _text(path: Path) -> str | None:
    content, _ = read_regular(os.fspath(path), LONGEST)
    return None if content is None else content.decode("utf-8", "replace")
