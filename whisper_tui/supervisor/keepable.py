"""What may go into the journal: nothing that is too large, and nothing that could not be read out again as it is."""

from pydantic import ValidationError
from pydantic_core import from_json

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.value import Value
from whisper_tui.supervisor.journal import as_stored

LARGEST = 2 * 1024 * 1024
"""Characters of one call, decision or session as JSON: no human reads more, and no system starts a longer command."""

DEEPER = 20
"""Levels around a value in an event, or in an answer on the wire; a reader of JSON goes down 200 in all."""


def check_keepable(value: Value) -> str:
    """The value as the journal will hold it. Raises `InvalidRequest`."""
    text = as_stored(value)
    if len(text) > LARGEST:
        raise InvalidRequest(
            f"the request is {len(text):,} characters long, and one call or decision may have {LARGEST:,}",
            hint="Write what is long to a file, and name that",
        )
    try:
        from_json("[" * DEEPER + text + "]" * DEEPER)
        same = type(value).model_validate_json(text) == value
    except (ValueError, ValidationError):
        same = False
    if not same:
        raise InvalidRequest(
            "the request holds something that JSON cannot give back as it is",
            hint="Send no numbers that are not finite, and fewer levels of lists and objects",
        )
    return text
