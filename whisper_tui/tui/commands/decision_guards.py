"""Guards that keep a key from deciding about a call that its human has not seen (decision 23)."""

from collections.abc import Callable
from time import monotonic

from whisper_tui.model.state import CallRecord, Waiting

GUARD_S = 0.3
"""Seconds for which a call must have been on the screen before a key, after the selection has moved by itself."""
SEEN_S = 0.1
"""The same for a call that the person has selected."""

Sight = tuple[str, str | None]
"""The id of the call on the screen, and the fingerprint of the version shown. None: the call cannot be decided."""
WhenDrawn = Callable[[Callable[[], object]], object]
"""Calls a function once the terminal has been given the next frame."""


class SelectionGuard:
    """Blocks decision keys that came before their call had been on the screen for a moment.

    The time that counts is when a key came, not when it is handled: where a terminal or the machine is slow, a key
    waits while the selection moves on, and it was meant for the call that was on the screen then. A call is on the
    screen from the moment when the frame with its card was written to the terminal. How long it must have been there
    depends on who selected it: a person who did expects it, and is only protected from keys that came in one piece; a
    person before whom the selection moves by itself may still be looking at the call before.

    To ask the terminal whether it has drawn a frame was not chosen: some never answer, and an answer comes as input,
    among the keys that it is about. Nor are early keys kept until the card is drawn: they would decide about a call
    that was not visible when they were typed.
    """

    def __init__(self, clock: Callable[[], float], when_drawn: WhenDrawn) -> None:
        self._clock = clock
        self._when_drawn = when_drawn
        self._record: CallRecord | None = None
        self._sight: Sight | None = None
        self._covered: Sight | None = None
        self._choice = 0
        self._moved_at = float("-inf")
        """The time on `clock` at which the selection moved by itself to what is shown, as far as that was drawn."""
        self.open_from = float("-inf")
        """The time on the monotonic clock from which keys count for what is shown."""
        self._sights = 0
        """The number of sights so far."""
        self.came_at = monotonic()
        """The time on the monotonic clock at which the key or click came that is carried out now."""

    @property
    def holds(self) -> bool:
        """True if the key came before the call on the screen had been there for long enough."""
        return self.holds_at(self.came_at)

    def holds_at(self, came_at: float) -> bool:
        """True if a key that came at this time decides nothing."""
        waited = max(0.0, monotonic() - came_at)
        return came_at < self.open_from or self._clock() - waited - self._moved_at < GUARD_S

    def shows(self, record: CallRecord | None, *, choice: int | None) -> None:
        """Register the call that is on the screen from the next frame on.

        `choice` counts the selections that a person has made; None: the selection moved by itself.
        """
        chosen = choice is not None and choice != self._choice
        self._choice = self._choice if choice is None else choice
        before = self._sight
        if record is not self._record:
            self._record, self._sight = record, _sight(record)
        another = before is None or self._sight is None or self._sight[0] != before[0]
        if chosen and (another or self._sight == before):
            # If the same call changed in the moment of the choice, the person has not seen the change: then it is as
            # if it had changed by itself.
            self._moved_at = float("-inf")
            if another:
                self._close(moved=False)
        elif self._sight != before:
            self.lost_sight()

    def lost_sight(self) -> None:
        """Block decision keys: the screen was out of date for a while, or shows something else by itself."""
        self._close(moved=True)

    def covered(self) -> None:
        """Register that another screen lies over the call."""
        self._covered = self._sight

    def uncovered(self) -> None:
        """Register that the call is in view again; block decision keys if it changed meanwhile."""
        if self._sight != self._covered:
            self.lost_sight()

    def _close(self, *, moved: bool) -> None:
        """Let no key count until what is shown from now on was on the screen for a moment."""
        self._sights += 1
        sight, self.open_from = self._sights, float("inf")
        if moved:
            self._moved_at = self._clock()

        # The frame is written in a thread of its own, and something else may be shown until then.
        def drawn() -> None:
            if sight == self._sights:
                self.open_from = monotonic() + SEEN_S
                if moved:
                    self._moved_at = self._clock()

        self._when_drawn(drawn)


TYPING_S = 0.08
"""Letters that follow each other faster are typed text, meant for another window or field, and decide nothing."""

TYPED_TEXT_S = 0.5
"""Seconds after typed text for which no key decides."""


class TypingGuard:
    """Blocks decision keys within typed text: `ls` must not allow a command for the session."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._fast = False

    @property
    def holds(self) -> bool:
        """True if the latest letter followed the one before too fast for a decision."""
        # A click is no letter, so it must not be held up by what was typed long before.
        return self._fast and monotonic() - self._last < TYPED_TEXT_S

    def typed(self, at: float) -> bool:
        """Register a letter, and return whether it continues typed text. `at`: its time on the monotonic clock."""
        self._fast = at - self._last < TYPING_S
        self._last = at
        return self._fast

    def forget(self) -> None:
        """Let the next letter be the first one."""
        self._last, self._fast = float("-inf"), False


def _sight(record: CallRecord | None) -> Sight | None:
    if record is None:
        return None
    if not isinstance(record.state, Waiting):
        return record.id, None
    # Once its preview has ended, a key means another approval: of the changes that it has shown.
    report = record.preview.report if record.preview is not None else None
    return record.id, f"{record.seen_digest()}{report.digest if report is not None else ''}"
