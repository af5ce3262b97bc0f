"""Values as JSON on standard output: whoever reads it on a terminal sees all of it, and the terminal obeys none."""

import json
import sys

from whisper_tui.model.text import replace_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def print_json(
    value: "Any", *, indent: int | None = 2, long: "Mapping[str, Callable[[], Iterable[str]]] | None" = None
) -> None:
    """Print a value, readable as far as standard output can hold its letters.

    `long`: texts that are too long to be in the value, a piece at a time, by the mark that stands there for each.
    """
    text = _json(value, indent)
    while long:
        at, mark = min((text.find(mark), mark) for mark in long)
        pieces, long = long[mark], {other: long[other] for other in long if other != mark}
        if at < 0:
            continue
        sys.stdout.write(text[:at])
        for piece in pieces():
            sys.stdout.write(_json(piece, None)[1:-1])
        text = text[at + len(mark) :]
    sys.stdout.write(text + "\n")


def _json(value: "Any", indent: int | None) -> str:
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return escaped(json.dumps(value, indent=indent, ensure_ascii=not readable))


def escaped(text: str) -> str:
    """JSON text with every character that cannot be seen written as JSON writes it."""
    return replace_hidden(text, _escape, keep=frozenset("\n"))


def _escape(characters: str) -> str:
    return json.dumps(characters)[1:-1].replace("\x7f", "\\u007f")
