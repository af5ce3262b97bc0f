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
        self._choice = 0
        self._since = float("-inf")

    @property
    def holds(self) -> bool:
        """Whether what is on the screen came there by itself, just now."""
        return self._clock() - self._since < GUARD_S

    def shows(self, record: CallRecord | None, *, choice: int | None) -> None:
        """This is on the screen from now on.

        `choice` counts what a person has chosen; None: what is selected now was not chosen by anybody.
        """
        chosen = choice is not None and choice != self._choice
        self._choice = self._choice if choice is None else choice
        before = self._sight
        if record is not self._record:
            self._record, self._sight = record, _sight(record)
        another = before is None or self._sight is None or self._sight[0] != before[0]
        if chosen and (another or self._sight == before):
            self._since = float("-inf")
        elif self._sight != before:
            self._since = self._clock()

    def lost_sight(self) -> None:
        """Nobody could be sure of what was on the screen for a while."""
        self._since = self._clock()

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
