"""Errors: one tree, and the same error on both sides of a wire."""

from tests.rows import each_row
from whisper_tui.model import errors
from whisper_tui.model.errors import WhisperError, error_from

ALL = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WhisperError)),
    key=lambda kind: kind.__name__,
)


@each_row("kind", ALL, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_a_wire(kind: type[WhisperError]) -> None:
    back = error_from(kind.kind, "call 7 is not there", "look at the list")
    assert type(back) is kind
    assert back.sentence() == "call 7 is not there. look at the list"


def test_an_error_of_another_layer_does_not_stand_in_for_its_parent() -> None:
    class Special(errors.InvalidRequest):
        """Has no kind of its own."""

    assert Special.kind == "invalid_request"
    assert type(error_from("invalid_request", "no")) is errors.InvalidRequest


def test_no_two_errors_share_a_kind() -> None:
    assert len({kind.kind for kind in ALL}) == len(ALL)


def test_an_unknown_kind_is_a_plain_error() -> None:
    assert type(error_from("from_the_future", "something")) is WhisperError


def test_an_error_without_a_hint_is_its_message() -> None:
    assert WhisperError("no call 7").sentence() == "no call 7"


def test_every_error_is_in_the_drawing_at_the_top() -> None:
    assert errors.__doc__ is not None
    assert [kind.__name__ for kind in ALL if kind.__name__ not in errors.__doc__] == []
