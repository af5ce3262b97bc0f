"""The corpus: what other programs, their tests and bash itself say about several hundred texts."""

from typing import Any

import pytest

from tests.policy.corpus_runner import cases, outcome
from whisper_tui.policy.corpus import judge_case

_NO_REPOSITORY = "git only counts as looking where the configuration of its repository is known"
_NO_SUBSTITUTION = "a substitution is asked, whatever the rules allow"

MISSES = {
    "danger-0689-2b54af": "disputed: `git push -f --force-with-lease` overwrites although the lease is stale",
    "decision-0016-06e6f4": _NO_SUBSTITUTION,
    "decision-0032-0117b3": _NO_SUBSTITUTION,
    "safe-0041-0fa83c": "program names end in .EXE on another system",
    "safe-0045-042d1c": _NO_REPOSITORY,
    "safe-0046-3f6f68": _NO_REPOSITORY,
    "safe-0060-c24c97": "what is started in the background stays after its answer",
    "safe-0061-78eb61": "lines joined by a backslash are not plain",
    "safe-0231-2a41e9": _NO_REPOSITORY,
    "safe-0429-27068e": "text for zsh is not judged by the grammar of bash",
    "safe-0491-b10952": _NO_REPOSITORY,
    "safe-0493-3e280b": _NO_REPOSITORY,
    "safe-0497-ddd8f0": _NO_REPOSITORY,
}
"""Cases that are answered differently, each stricter than expected, and why."""


def judged(case: dict[str, Any]) -> Any:
    return judge_case(case["kind"], case["command"], case["rules"], {"tags": case.get("tags", [])})


@pytest.mark.parametrize("kind", ["substitution", "split", "decision", "danger", "safe", "redirect", "wrapper"])
def test_every_case_is_answered_as_expected_or_more_strictly_for_a_known_reason(kind: str) -> None:
    missed = {case["id"]: outcome(case, judged(case)) for case in cases() if case["kind"] == kind}
    missed = {name: result for name, result in missed.items() if result != "pass"}
    assert set(missed) == {name for name in MISSES if name.startswith(kind)}
    assert "unsafe" not in missed.values()


def test_an_unknown_kind_of_case_is_an_error() -> None:
    with pytest.raises(ValueError, match="flavour"):
        judge_case("flavour", "ls")
