"""The shape of events: `python -m tests.journals.shape` notes that of a format that has none yet."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whisper_tui.model.event import EVENT
from whisper_tui.supervisor.journal.sqlite_file import FORMAT

NOTED = Path(__file__).parent / "formats.json"
"""The fingerprint of the shape by format. Entries are added and never edited."""


def shape() -> dict[str, dict[str, list[str]]]:
    """Return what each field of every value in events may be: the names of types, and the words of a choice."""
    schema = EVENT.json_schema()
    values = {**schema.pop("$defs"), "Event": {"properties": {"kind": schema}}}
    return {
        name: {field: sorted(set(_said(about))) for field, about in value["properties"].items()}
        for name, value in values.items()
        if "properties" in value
    }


def _said(about: Any) -> Iterator[str]:
    if isinstance(about, dict):
        for key, value in about.items():
            if key in {"const", "$ref", "type"} or key.startswith(("max", "min")):
                yield str(value)
            elif key == "enum":
                yield from map(str, value)
            elif key not in {"default", "description", "title", "discriminator"}:
                yield from _said(value)
    elif isinstance(about, list):
        for value in about:
            yield from _said(value)


def fingerprint() -> str:
    """Return the digest of the shape."""
    return hashlib.sha256(json.dumps(shape(), sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    noted = json.loads(NOTED.read_text()) if NOTED.exists() else {}
    noted.setdefault(str(FORMAT), fingerprint())
    NOTED.write_text(json.dumps(noted, indent=1) + "\n")
