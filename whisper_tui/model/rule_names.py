"""Whose a rule is that has decided, by its name."""

NO_SUBSTITUTION = "no substitution"
STRICT = "strict"
PROJECT = "project: "
"""What the names of a project's own rules begin with."""

_BUILT_IN = frozenset({NO_SUBSTITUTION, STRICT})


def whose_rule(name: str) -> str:
    """A rule with the list that it is from, in words. Empty: its name is not known."""
    if name in _BUILT_IN:
        return f"the built-in rule {name}"
    if name.startswith(PROJECT):
        return f"the project's rule {name.removeprefix(PROJECT)}"
    return f"the user's rule {name}".rstrip()
