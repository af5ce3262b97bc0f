"""The setting about edits is as hard to remove as a rule that denies."""

from whisper_tui.model.event import RulesChanged
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.rule_book import EDITS_ASKED, as_trusted, marks_of


def changed(entries: tuple[str, ...], trusted: tuple[str, ...]) -> RulesChanged:
    return RulesChanged(at=1.0, path="rules.toml", entries=entries, trusted=trusted)


def test_a_file_that_asks_about_edits_says_so_among_its_entries() -> None:
    assert EDITS_ASKED in marks_of(Rules(edits="ask"))
    assert EDITS_ASKED not in marks_of(Rules(edits="allow"))
    assert EDITS_ASKED not in marks_of(Rules())


def test_edits_stay_asked_until_a_human_trusts_the_file_without_the_setting() -> None:
    before, now = marks_of(Rules(edits="ask")), marks_of(Rules(edits="allow"))
    assert as_trusted(Rules(edits="allow"), changed(now, before)).edits == "ask"
    assert as_trusted(Rules(edits="allow"), changed(now, now)).edits == "allow"
