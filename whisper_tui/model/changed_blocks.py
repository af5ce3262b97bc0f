"""The parts of two lists of lines that differ, found in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

Block = tuple[int, int, int, int]
"""Lines from the first number to the second are replaced by those from the third to the fourth."""
CONTEXT = 3
"""Unchanged lines around a change."""


def lines_of(text: str) -> list[str]:
    """Return a text as lines with their ends. Only line feeds end a line, as in diff."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


class _Work:
    """Counts the comparisons that are left: texts of agents may be made to take for ever."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, amount: int) -> bool:
        """Return True if there is so much left."""
        self.left -= amount
        return self.left >= 0


def changed_blocks(
    old: Sequence[str], new: Sequence[str], *, most: int = 400_000, is_late: Callable[[], bool] = lambda: False
) -> tuple[Block, ...]:
    """Return the parts of two lists of lines that differ, in their order.

    `most`: the comparisons of a part in which no line occurs once. `is_late`: True once there is no time for any.

    Lines that occur once on both sides are matched first, as in the patience algorithm, and what lies between them by
    difflib if it is short. Beyond a bound of work a part counts as replaced.
    """
    work = _Work(most * 10 + 40 * (len(old) + len(new)))
    found: list[Block] = []
    stack: list[Block] = [(0, len(old), 0, len(new))]
    while stack:
        block = trimmed(old, new, stack.pop())
        low, high, new_low, new_high = block
        if low == high or new_low == new_high or not work.spend(high - low + new_high - new_low):
            if low != high or new_low != new_high:
                found.append(block)
            continue
        anchors = _anchors(old, new, block)
        if anchors:
            stack += _between(block, anchors)
        elif (size := (high - low) * (new_high - new_low)) <= most and work.spend(size) and not is_late():
            found += _compared(old, new, block)
        else:
            found.append(block)
    return tuple(_joined(sorted(found)))


def trimmed(old: Sequence[str], new: Sequence[str], block: Block) -> Block:
    """Return a block without what is equal at its beginning and at its end."""
    low, high, new_low, new_high = block
    while low < high and new_low < new_high and old[low] == new[new_low]:
        low, new_low = low + 1, new_low + 1
    while low < high and new_low < new_high and old[high - 1] == new[new_high - 1]:
        high, new_high = high - 1, new_high - 1
    return low, high, new_low, new_high


def _anchors(old: Sequence[str], new: Sequence[str], block: Block) -> list[tuple[int, int]]:
    """Return pairs of equal lines that occur once on each side, as many as are in the same order on both."""
    low, high, new_low, new_high = block
    once = {line for line, times in Counter(old[low:high]).items() if times == 1}
    other = {line for line, times in Counter(new[new_low:new_high]).items() if times == 1}
    places = {new[at]: at for at in range(new_low, new_high) if new[at] in once and new[at] in other}
    pairs = [(at, places[old[at]]) for at in range(low, high) if old[at] in places]
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest run of pairs whose second numbers rise."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(tops, place)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1] = [place]
        ends[at : at + 1] = [number]
    found = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _between(block: Block, anchors: list[tuple[int, int]]) -> Iterator[Block]:
    low, high, new_low, new_high = block
    for at, place in anchors:
        yield low, at, new_low, place
        low, new_low = at + 1, place + 1
    yield low, high, new_low, new_high


def _compared(old: Sequence[str], new: Sequence[str], block: Block) -> Iterator[Block]:
    low, high, new_low, new_high = block
    matcher = SequenceMatcher(None, old[low:high], new[new_low:new_high], autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            yield low + start, low + end, new_low + new_start, new_low + new_end


def _joined(blocks: list[Block]) -> Iterator[Block]:
    last: Block | None = None
    for block in blocks:
        if last is not None and block[0] == last[1] and block[2] == last[3]:
            last = (last[0], block[1], last[2], block[3])
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last
