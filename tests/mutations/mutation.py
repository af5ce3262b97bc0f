"""One row of the table of mutations."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One defence, and the change that takes it away: `text`, which occurs once in `place`, becomes `instead`."""

    name: str
    place: str
    """The dotted name of a function, a class, an assignment or a module."""
    text: str
    """An expression, a keyword argument (`mode=0o600`) or statements. Only its syntax tree counts, not its layout."""
    instead: str
    tests: tuple[str, ...]
    """Tests as pytest names them, with or without their parameters; each of them fails once the defence is gone."""
