"""The setting about edits is as hard to remove as a rule that denies."""

from tests.rows import each_row
from whisper_tui.model.call import Unasked
from whisper_tui.model.event import RulesChanged
from whisper_tui.policy.rules.rule import UNASKED, Rules
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


def test_edits_are_not_allowed_by_a_setting_that_no_human_has_trusted() -> None:
    before, now = marks_of(Rules()), marks_of(Rules(edits="allow"))
    assert as_trusted(Rules(edits="allow"), changed(now, before)).edits == "ask"


@each_row("now", [None, "nothing", "reading", "workspace"])
@each_row("before", ["nothing", "reading", "workspace"])
def test_no_more_runs_unasked_than_a_human_has_agreed_to(before: Unasked, now: Unasked | None) -> None:
    agreed, found = marks_of(Rules(unasked=before)), marks_of(Rules(unasked=now))
    level = as_trusted(Rules(unasked=now), changed(found, agreed)).unasked
    assert UNASKED.index(level or "reading") <= UNASKED.index(before)
    assert as_trusted(Rules(unasked=now), changed(found, found)).unasked == now
