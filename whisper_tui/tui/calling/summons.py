"""Whom to call for, and when: each call that waits is called for once, and none is forgotten meanwhile."""

from collections.abc import Callable

from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.tui.calling.quiet import quiet_until
from whisper_tui.tui.calling.settings import CallingSettings


class Summons:
    """Told of changes, call by call; costs the same however many wait."""

    def __init__(self, settings: CallingSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.do_not_disturb = False
        """Whether the person wants no calls for now."""
        self._clock = clock
        self._begun_at = clock()
        self._pending: dict[str, float] = {}
        self._called: dict[str, float] = {}
        self._called_at = float("-inf")

    def changed(self, call_id: str, record: CallRecord | None) -> None:
        """A call is another one now. None: the board has forgotten it."""
        state = record.state if record is not None else None
        if not isinstance(state, Waiting):
            self._pending.pop(call_id, None)
            self._called.pop(call_id, None)
        elif state.since >= self._begun_at and self._called.get(call_id) != state.since:
            self._pending[call_id] = state.since

    @property
    def hush(self) -> str | None:
        """Why nobody is called now, in words. None: somebody may be."""
        if self.do_not_disturb:
            return "do not disturb"
        until = quiet_until(self.settings.quiet, self._clock())
        return f"quiet until {until}" if until is not None else None

    @property
    def kept(self) -> int:
        """How many calls wait for which nobody has been called yet."""
        return len(self._pending)

    def may_call(self, *, away: bool) -> bool:
        """Whether the person wants to be called at all now."""
        when = self.settings.when
        return (when == "always" or (when == "away" and away)) and self.hush is None

    def due(self, *, away: bool) -> tuple[str, ...]:
        """The calls to call for now, the oldest first; they count as called for. `away`: whether nobody looks."""
        now = self._clock()
        if not self._pending or not self.may_call(away=away):
            return ()
        if now - self._called_at < self.settings.at_most_every_s:
            return ()
        found = tuple(self._pending)
        self._called |= self._pending
        self._pending.clear()
        self._called_at = now
        return found
