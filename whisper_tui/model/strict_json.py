"""JSON that no two programs can read differently: each name of an object stands once, and every value is of JSON."""

import json
from typing import Any


def read_strict_json(text: str) -> Any:
    """Return the value of a JSON text. Raises `ValueError` if others could read something else in it."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("two members of an object have the same name")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
