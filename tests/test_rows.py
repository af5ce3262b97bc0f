"""A test that walks rows fails with every row for which it fails."""

import pytest

from tests.rows import each_row


def test_every_row_that_fails_is_named_and_all_are_tried() -> None:
    tried: list[tuple[int, str]] = []

    @each_row("letter", ["a", pytest.param("b")])
    @each_row(("number", "_half"), [(2, 1), (3, 1.5), (4, 2)], ids=["two", "three", "four"])
    def walked(number: int, letter: str, _half: float) -> None:
        tried.append((number, letter))
        assert number != 3
        if number == 4:
            pytest.fail("four")

    with pytest.raises(ExceptionGroup, match="2 of 2 rows fail") as failed:
        walked()
    assert tried == [(number, letter) for letter in "ab" for number in (2, 3, 4)]
    inner = failed.value.exceptions[0]
    assert isinstance(inner, ExceptionGroup)
    assert [each.__notes__ for each in inner.exceptions] == [["in the row 'three'"], ["in the row 'four'"]]


def test_it_is_skipped_where_every_row_is() -> None:
    @each_row("number", [1, 2])
    def walked(number: int) -> None:
        pytest.skip(f"not {number}")

    with pytest.raises(pytest.skip.Exception, match="not 1"):
        walked()
