"""One row of the table of defences."""

from typing import NamedTuple


class Defence(NamedTuple):
    """One thing that keeps somebody out. `text` stands exactly once in `file`; `instead` is what removes it."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]
    """Tests as pytest names them, with or without their parameters; each of them fails once the defence is gone."""
