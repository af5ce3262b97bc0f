"""Whose a rule is that has decided, by its name."""

NO_SUBSTITUTION = "no substitution"
STRICT = "strict"
PROJECT = "project: "
"""What the names of a project's own rules begin with."""

CLIENT = "client: "
"""What the names of rules begin with that are an agent client's own."""

_BUILT_IN = frozenset({NO_SUBSTITUTION, STRICT})


def of_client(client: str, entry: str) -> str:
    """The name of a rule that a client has itself, by the client's name and how the rule is written there."""
    return f"{CLIENT}{client}: {entry}"


def whose_rule(name: str) -> str:
    """A rule with the list that it is from, in words. Empty: its name is not known."""
    if name in _BUILT_IN:
        return f"the built-in rule {name}"
    if name.startswith(PROJECT):
        return f"the project's rule {name.removeprefix(PROJECT)}"
    if name.startswith(CLIENT):
        client, _, entry = name.removeprefix(CLIENT).partition(": ")
        return f"the rule {entry} of {client} itself"
    return f"the user's rule {name}".rstrip()
