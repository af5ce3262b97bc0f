"""Comparison of the answer to a case with the expected one."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("data") / "cases.jsonl"
NOT_HERE = {"windows", "platform-cmd"}
"""Tags of cases that are about other systems."""

_LOOSER = {"allow": 0, "ask": 1, "deny": 2}


def cases() -> list[dict[str, Any]]:
    """All cases that are about this system."""
    found = [json.loads(line) for line in CASES.read_text("utf-8").splitlines() if line.strip()]
    return [case for case in found if not NOT_HERE & set(case.get("tags", ()))]


def outcome(case: dict[str, Any], answer: Any) -> str:
    """`pass`, `refused`, `fail`, or `unsafe` where the answer is looser than what is expected."""
    kind, expected = case["kind"], case["expect"]
    if kind in {"split", "wrapper"}:
        if answer == "error":
            return "refused"
        return "pass" if _pairs(expected, answer) else "fail"
    if answer == expected:
        return "pass"
    unsafe = {
        "decision": lambda: _LOOSER[answer] < _LOOSER[expected],
        "danger": lambda: expected is True,
        "substitution": lambda: expected is True,
        "safe": lambda: expected is False,
        "redirect": lambda: expected in {"write", "net"},
    }
    return "unsafe" if unsafe[kind]() else "fail"


def _pairs(expected: list[list[str]], answer: list[list[str | None]]) -> bool:
    """True if every expected prefix belongs to one of the commands found, and none is left over."""
    wanted = sorted((tuple(words) for words in expected if words and words[0] != "["), key=len, reverse=True)
    left = [argv for argv in answer if argv and argv[0] not in {"[", "[["}]
    if len(wanted) != len(left):
        return False
    for words in wanted:
        match = next((argv for argv in left if _begins(argv, words)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _begins(argv: list[str | None], words: tuple[str, ...]) -> bool:
    return argv[0] is None if words == ("<dynamic>",) else tuple(argv[: len(words)]) == words
