"""Keeps a key from deciding about a call that came under the finger: nobody had time to see it."""

from collections.abc import Callable

from whisper_tui.model.state import CallRecord, Waiting

GUARD_S = 0.3
"""How long after a call came there by itself a key does not decide about it: the finger was meant for another."""

Sight = tuple[str, str | None]
"""What a person looks at: a call, and the fingerprint of what would be decided about. None: nothing can be."""


class Guard:
    """Told what is on the screen, it says whether a key may decide about that."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._record: CallRecord | None = None
        self._sight: Sight | None = None
        self._covered: Sight | None = None
        self._since = float("-inf")

    @property
    def holds(self) -> bool:
        """Whether what is on the screen came there by itself, just now."""
        return self._clock() - self._since < GUARD_S

    def shows(self, record: CallRecord | None, *, by_hand: bool) -> None:
        """This is on the screen from now on; `by_hand` if a person chose that call."""
        if record is self._record:
            return
        before, self._sight = self._sight, _sight(record)
        self._record = record
        if self._sight == before:
            return
        chosen = by_hand and (before is None or self._sight is None or self._sight[0] != before[0])
        self._since = float("-inf") if chosen else self._clock()

    def chosen(self) -> None:
        """A person has chosen what is on the screen."""
        self._since = float("-inf")

    def covered(self) -> None:
        """Something lies over the call."""
        self._covered = self._sight

    def uncovered(self) -> None:
        """The call is in view again, perhaps another one than before."""
        if self._sight != self._covered:
            self._since = self._clock()


def _sight(record: CallRecord | None) -> Sight | None:
    if record is None:
        return None
    return record.id, record.seen_digest() if isinstance(record.state, Waiting) else None
