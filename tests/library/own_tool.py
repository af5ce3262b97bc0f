"""The tool of a program of its own, which each framework puts behind the queue."""

SENT: list[tuple[str, int]] = []
"""The calls that reached it."""


def send(to: str, copies: int = 1) -> str:
    """Send a letter."""
    SENT.append((to, copies))
    return f"sent to {to}"
