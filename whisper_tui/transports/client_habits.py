"""What known agent clients add to calls by themselves, so that a strict schema does not refuse their users."""

from collections.abc import Mapping
from typing import Any

ADDED_KEYS: Mapping[str, frozenset[str]] = {
    # Gemini CLI adds this to every tool's schema that it shows its model, and forwards it.
    "gemini-cli": frozenset({"wait_for_previous"}),
}
"""By how the client's name begins: the argument keys that are the client's and not the agent's."""


def without_added_keys(client: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the agent meant them."""
    added = frozenset[str]().union(*(keys for name, keys in ADDED_KEYS.items() if client.startswith(name)))
    return {name: value for name, value in arguments.items() if name not in added}
