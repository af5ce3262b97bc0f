"""The commands of an ordinary task: about which of them a human is asked, by how much may run unasked."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_held_back import made_by
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import Unasked
from whisper_tui.model.decision import Deny
from whisper_tui.policy.rules.rule import Rules

pytestmark = [needs_overlays, pytest.mark.slow]

CALLS = [line.split("\t") for line in (Path(__file__).parent / "data" / "calls_of_a_task.tsv").read_text().splitlines()]
WORKSPACE = """
mkdir src tests && printf 'def slug(text):\n    # TODO: unicode\n    return text.lower()\n' > src/app.py
printf 'import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n' > tests/test_slug.py
echo '{"name": "x", "version": "1.0.0", "scripts": {"test": "true", "lint": "true"}}' > package.json
printf 'all:\n\t@echo made\n' > Makefile && echo '.env' > .gitignore && echo 'PASSWORD=hunter2hunter2' > .env
touch requirements.txt README.md && git init -q -b main .
git config user.name n && git config user.email n@example.org
git add -A && git commit -qm one && git commit -q --allow-empty -m two
"""
ASKS = {"harmless": "needless", "ordinary work": "needless", "should ask": "needed"}


@pytest.fixture
async def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    # No program has been in this home before: npm would look for a newer version of itself at its first command.
    (tmp_path / "home").mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    await made_by(WORKSPACE, made.workspace)
    yield made
    await made.supervisor.close()


def documented() -> dict[str, tuple[int, int]]:
    """Return how many commands ask needlessly, and how many because they matter, by level, as the page says it."""
    page = (Path(__file__).parent.parent.parent / "docs" / "policy.md").read_text(encoding="utf-8")
    rows = [
        re.findall(r"\d+", line.split("|", 2)[2]) for line in page.splitlines() if re.match(r"\| commands that", line)
    ]
    needless, needed = (list(map(int, row)) for row in rows)
    return dict(zip(get_args(Unasked), zip(needless, needed, strict=True), strict=True))


@pytest.mark.parametrize("level", get_args(Unasked))
async def test_a_human_is_asked_about_what_matters(live: LiveBench, level: Unasked) -> None:
    """Every call that should ask does at every level, and nobody answers any of them."""
    await live.open(Rules().at(level))
    asked: dict[str, list[str]] = {"needless": [], "needed": []}
    for truth, text in CALLS:
        call_id = await live.asked(text)
        record = await live.until(
            call_id, lambda record: not record.is_open or record.id in live.supervisor.board.waiting
        )
        if record.is_open:
            asked[ASKS[truth]].append(text)
            await live.supervisor.decide(call_id, Deny(), HUMAN, record.seen_digest())
    needless, needed = documented()[level]
    assert len(asked["needed"]) == sum(truth == "should ask" for truth, _ in CALLS) == needed
    assert len(asked["needless"]) <= needless, asked["needless"]
