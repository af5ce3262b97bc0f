"""The picture of the timeline that `whisper-tui story --html` draws, of an afternoon in a shop."""

from pathlib import Path
from typing import Any

from whisper_tui.export.story_page import STYLE, picture

NAME = "story"
BEGIN = 1764423600.0
"""29 November 2025, 13:40."""
MINUTE = 60.0


def row(number: int, at: float, **changes: Any) -> dict[str, Any]:
    """A call as the story tells it: a command that has run for two seconds, and that a rule has allowed."""
    usual: dict[str, Any] = {
        "id": str(number),
        "at": at,
        "tool": "Bash",
        "asker": "",
        "command": "npm test",
        "title": "npm test",
        "outcome": "ran",
        "failed": False,
        "by_human": False,
        "decided_in_words": "by the user's rule tests",
        "decided_at": at,
        "started_at": at,
        "ended_at": at + 2,
        "hosts": [],
        "server_tool": None,
        "network": False,
        "reverted_by": None,
        "undos": [],
        "changed": None,
        "shown_changes": "",
        "discarded": None,
        "edited_by_human": False,
        "alarm": None,
        "files": [],
    }
    return usual | changes


def edited(path: str, added: int, removed: int) -> dict[str, Any]:
    """A file of an edit that its agent has made."""
    return {
        "action": "changes",
        "shown": path,
        "shown_before": "",
        "added": added,
        "removed": removed,
        "made": True,
        "moved_from": "",
        "changed_since": None,
        "diff": ["-old", "+new"],
    }


EDIT = {"started_at": None, "command": "edit", "outcome": "done by the agent"}
"""An edit is made by its agent."""

_COMMANDS = (
    *((at, "git status", 0.2) for at in (0.5, 12, 26, 33, 61)),
    *((at, "rg tax src", 1.0) for at in (2, 4, 18, 47)),
    *((at, "npm test", 95.0) for at in (9, 22, 41, 58, 66)),
)
"""At which minute, what, and for how many seconds."""
_EDITS = ((6, "src/tax.py", 64, 30), (8, "tests/test_cart.py", 48, 2), (15, "src/cart.py", 31, 12),
          (20, "src/tax.py", 3, 9), (39, "tests/test_cart.py", 5, 1), (45, "src/settings.py", 4, 12),
          (56, "src/cart.py", 12, 1))  # fmt: skip
_ASKED = (
    (1, "npm ci", 0.4, 130.0),
    (29, "rm -rf build", 0.8, -1.0),
    (50, "npm ci", 6.0, 150.0),
    (70, "git push", 0.3, 4.0),
)
"""At which minute, what, after how many minutes it was decided, and for how many seconds it ran; -1: denied."""


def afternoon() -> list[dict[str, Any]]:
    """The calls of an hour and a quarter, oldest first."""
    found = [(at, {"command": text, "title": text, "seconds": seconds}) for at, text, seconds in _COMMANDS]
    for at, path, added, removed in _EDITS:
        found.append(
            (at, EDIT | {"title": f"edit {path} +{added} −{removed}", "files": [edited(path, added, removed)]})
        )
    for at, text, waited, seconds in _ASKED:
        decided = BEGIN + (at + waited) * MINUTE
        asked: dict[str, Any] = {"command": text, "title": text, "by_human": True, "decided_at": decided}
        asked |= {"started_at": decided, "ended_at": decided + seconds, "network": text != "rm -rf build"}
        if seconds < 0:
            asked |= {"started_at": None, "ended_at": decided, "outcome": "denied"}
        found.append((at, asked))
    found.append((36, {"title": "fetch docs.python.org", "hosts": ["docs.python.org"], "started_at": None}))
    rows = []
    for number, (at, facts) in enumerate(sorted(found, key=lambda each: each[0]), 1):
        begin = BEGIN + at * MINUTE
        seconds = facts.pop("seconds", None)
        ends = {"ended_at": begin + seconds} if seconds is not None else {}
        failed = {"failed": True, "outcome": "failed with exit code 1"} if at == 41 else {}
        rows.append(row(number, begin, **facts | ends | failed))
    return rows


def drawn() -> str:
    """The picture as SVG, which is dark or light as the page is on which it stands."""
    text = "".join(picture(afternoon(), "s3 "))
    head, _, rest = text.partition(">")
    ground = '<rect class="ground" width="100%" height="100%"/>'
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<style>{STYLE}</style>\n{ground}{rest}'


def draw(folder: Path) -> None:
    """Write story.svg."""
    (folder / f"{NAME}.svg").write_text(drawn(), encoding="utf-8")
