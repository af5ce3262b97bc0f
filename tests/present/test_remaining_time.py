"""The remaining time of an approval, in units that a person reads at once."""

from tests.rows import each_row
from whisper_tui.present.words import until_text


@each_row(
    ("left", "words"),
    [(7200, "2 h"), (7199.2, "2 h"), (7141, "2 h"), (7140, "1 h 59 min"), (61, "2 min"), (59, "59 s"), (-3, "0 s")],
)
def test_whole_minutes_are_told_until_the_last_one(left: float, words: str) -> None:
    assert until_text(1000.0 + left, 1000.0, "").startswith(f"for {words} more, until ")


def test_an_approval_without_an_end_says_so() -> None:
    assert until_text(None, 1000.0, "for this session") == "for this session"
