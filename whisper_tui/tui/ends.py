"""The beginning and the end of a command that is longer than anybody reads, so that both are seen."""

from typing import NamedTuple

from whisper_tui.tui.spans import Line, Role, Span, said

MOST_CHARACTERS = 40_000
MOST_LINES = 1_000


class Part(NamedTuple):
    """Some of a text, and where it begins."""

    text: str
    start: int


def is_endless(text: str) -> bool:
    """Whether only its ends are shown."""
    return len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES


def ends(text: str) -> tuple[Part, Part]:
    """As much of the beginning and of the end of a text as is shown, in whole lines where there are lines."""
    lines = MOST_LINES // 2
    head = "\n".join(text[: MOST_CHARACTERS // 2].split("\n", lines)[:lines])
    tail = text[max(len(head), len(text) - MOST_CHARACTERS // 2) :]
    tail = "\n".join(tail.rsplit("\n", lines)[-lines:])
    return Part(head, 0), Part(tail, len(text) - len(tail))


def said_with_ends(text: str, role: Role) -> Line:
    """A value that decides, on one line: all of it, or both ends and how much lies between."""
    if not is_endless(text):
        return said(text, role, whole=True)
    head, tail = ends(text)
    gap = f" … {tail.start - len(head.text):,} characters are not shown here … "
    return (*said(head.text, role, whole=True), Span(gap, "risk"), *said(tail.text, role, whole=True))
