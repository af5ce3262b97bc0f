"""The corpus: several hundred texts with the answers of other programs, their tests and bash itself."""

from typing import Any

import pytest

from tests.policy.corpus_runner import cases, outcome
from tests.rows import each_row
from whisper_tui.policy.corpus import judge_case

_SHOWS_SECRETS = "the environment holds the secrets of whoever started the agent"
_NO_SUBSTITUTION = "a substitution is asked, whatever the rules allow"

MISSES = {
    "danger-0689-2b54af": "disputed: `git push -f --force-with-lease` overwrites although the lease is stale",
    "decision-0016-06e6f4": _NO_SUBSTITUTION,
    "decision-0032-0117b3": _NO_SUBSTITUTION,
    "safe-0041-0fa83c": "program names end in .EXE on another system",
    "safe-0060-c24c97": "what is started in the background stays after its answer",
    "safe-0061-78eb61": "lines joined by a backslash are not plain",
    "safe-0353-666105": _SHOWS_SECRETS,
    "safe-0356-d5e4f0": _SHOWS_SECRETS,
    "safe-0429-27068e": "text for zsh is not judged by the grammar of bash",
    "safe-0527-044494": "`fd --list-details` runs ls",
    "safe-0556-ef00d0": "gh asks another machine, which no sandbox permits",
    "safe-0619-d1a13a": "uv reads the settings of the project",
    "safe-0630-a906e4": "aws asks another machine, which no sandbox permits",
    "safe-0631-5f6899": "what aws gets is often a secret, or is written to a file",
}
"""Cases that are answered differently, each stricter than expected, and why."""


_VARIABLE = "the variable means nothing to the program, nor to any other"
LOOSER = {
    "safe-0088-d80c22": "without a terminal, a pager prints",
    "safe-0262-2b380b": "every part of a sed script is read",
    "safe-0267-63e3a0": "sort takes no more memory than its input needs",
    "safe-0269-d63ccc": _VARIABLE,
    "safe-0302-26b167": "it prints the commands that follow, and PS4 is withheld",
    "safe-0354-098d17": _VARIABLE,
    "safe-0361-f4b828": _VARIABLE,
    "safe-0362-70fbf8": "`env` with a command runs that command",
}
"""Cases that are answered less strictly than another program does, and why that is right."""


def judged(case: dict[str, Any]) -> Any:
    return judge_case(case["kind"], case["command"], case["rules"], {"tags": case.get("tags", [])})


@each_row("kind", ["substitution", "split", "decision", "danger", "safe", "redirect", "wrapper"])
def test_every_case_is_answered_as_expected_or_more_strictly_for_a_known_reason(kind: str) -> None:
    missed = {case["id"]: outcome(case, judged(case)) for case in cases() if case["kind"] == kind}
    missed = {name: result for name, result in missed.items() if result != "pass"}
    assert set(missed) == {name for name in (*MISSES, *LOOSER) if name.startswith(kind)}
    assert {name for name, result in missed.items() if result == "unsafe"} <= set(LOOSER)


def test_an_unknown_kind_of_case_is_an_error() -> None:
    with pytest.raises(ValueError, match="flavour"):
        judge_case("flavour", "ls")
