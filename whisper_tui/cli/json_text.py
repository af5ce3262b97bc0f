"""Values as JSON on standard output: whoever reads it on a terminal sees all of it, and the terminal obeys none."""

import json
import sys
from typing import Any

from whisper_tui.model.text import replace_hidden


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value, readable as far as standard output can hold its letters."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(escaped(json.dumps(value, indent=indent, ensure_ascii=not readable)) + "\n")


def escaped(text: str) -> str:
    """JSON text with every character that cannot be seen written as JSON writes it."""
    return replace_hidden(text, _escape, keep=frozenset("\n"))


def _escape(characters: str) -> str:
    return json.dumps(characters)[1:-1].replace("\x7f", "\\u007f")
