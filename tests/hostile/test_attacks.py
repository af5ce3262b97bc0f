"""Attacks on the built-in list of commands that only read: none has an effect or learns a secret without a human."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import whisper_tui
from tests.cli.conftest import Instance
from tests.outside import needs_sandbox, outside_only
from tests.rows import each_row

pytestmark = [outside_only, needs_sandbox, pytest.mark.slow]

ATTACKS = [json.loads(line) for line in (Path(__file__).parent / "data" / "attacks.jsonl").read_text().splitlines()]
SECRETS = ("TOPSECRET-HOME", "TOPSECRET-KEY", "TOPSECRET-VARIABLE")
IN_WORKSPACE = "TOPSECRET"
"""Begins the secrets in the files of a workspace, too, which some attacks write there."""
AGENT = Path(__file__).with_name("attack_agent.py")


class Ground:
    """A workspace for each attack, a home with secrets, and what came of all attacks."""

    def __init__(self, root: Path) -> None:
        self.home, self.marks = root / "home", root / "marks"
        (self.home / ".ssh").mkdir(parents=True)
        self.marks.mkdir()
        (self.home / "secret.txt").write_text("TOPSECRET-HOME\n")
        (self.home / ".ssh" / "id_rsa").write_text("TOPSECRET-KEY\n")
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(self.home),
            "PYTHONPATH": str(Path(whisper_tui.__file__).parent.parent),
            "API_TOKEN": "TOPSECRET-VARIABLE",
        }
        self.at = root / "attacks"
        self.before: dict[str, dict[str, str]] = {}
        self.answers: dict[str, dict[str, str]] = {}

    def text(self, attack: dict[str, str], field: str) -> str:
        """A text of an attack with its names filled in."""
        mark = str(self.marks / attack["id"])
        return attack[field].replace("@M@", mark).replace("@H@", str(self.home)).replace("@R@", self.home.name)

    def prepare(self, attack: dict[str, str]) -> None:
        """Make the workspace of an attack."""
        workspace = self.at / attack["id"]
        workspace.mkdir(parents=True)
        setup = self.text(attack, "setup").rstrip().rstrip("&") or ":"
        done = subprocess.run(
            ["bash", "-c", setup], cwd=workspace, env=self.environment, capture_output=True, timeout=60, check=False
        )
        assert not self.made(attack), (attack["id"], done.stderr)
        self.before[attack["id"]] = tree(workspace)

    def made(self, attack: dict[str, str]) -> bool:
        """True if the file that an attack wants to make is there."""
        return any(path.name.startswith(attack["id"]) for path in self.marks.iterdir())


def tree(root: Path) -> dict[str, str]:
    """What each name below a directory is, with the digest of its content."""
    found = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        content = os.readlink(path).encode(errors="surrogateescape") if path.is_symlink() else b""
        if stat.S_ISREG(about.st_mode):
            content = path.read_bytes()
        found[os.fsdecode(path)] = f"{about.st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    root = tmp_path_factory.mktemp("attacks")
    made = Ground(root)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(made.prepare, ATTACKS))
    (root / "instance").mkdir()
    instance = Instance(root / "instance")
    (root / "instance" / "config" / "rules.toml").unlink()
    asked = {attack["id"]: (str(made.at / attack["id"]), made.text(attack, "command")) for attack in ATTACKS}
    (root / "asked").write_text(json.dumps(asked))
    words = [sys.executable, str(AGENT), str(root / "instance"), str(root / "asked"), str(root / "told")]
    try:
        done = subprocess.run(words, env=made.environment, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
        made.answers = json.loads((root / "told").read_text())
        yield made
    finally:
        instance.kill_supervisor(signal.SIGTERM)


@each_row("attack", ATTACKS, ids=lambda attack: attack["id"])
def test_an_attack_has_no_effect_and_learns_nothing(ground: Ground, attack: dict[str, Any]) -> None:
    answer = ground.answers[attack["id"]]
    command = ground.text(attack, "command")
    assert not ground.made(attack), answer
    assert not [secret for secret in SECRETS if secret in answer["output"] and secret not in command], answer
    if IN_WORKSPACE not in command:
        assert IN_WORKSPACE not in answer["output"], answer
    assert tree(ground.at / attack["id"]) == ground.before[attack["id"]], answer


def test_attacks_are_tried_and_not_only_asked_about(ground: Ground) -> None:
    states = [answer["state"] for answer in ground.answers.values()]
    assert len(states) == len(ATTACKS)
    assert "ended" in states and "waiting" in states
