"""Text that can be sent and stored as UTF-8: without the half characters that stand for bytes of no character."""

from collections.abc import Mapping


def is_sendable(text: str) -> bool:
    """Whether it is whole: it holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sendable(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that can be sent; those of which the name or the value is no text are left out."""
    return {name: value for name, value in environment.items() if is_sendable(name + value)}
