"""The thread that answers what a sandbox asks: an emulated call waits for as long as its disk does not respond."""

import _thread
import select

from whisper_tui.supervisor.keeper.run_poll import RunPoll
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications

QUIET_S = 1.0
"""Seconds without a question after which the thread ends."""


class AnsweringThread:
    """Answers the filter of one sandbox, in a thread while it asks something."""

    def __init__(self, notifications: SeccompNotifications, poll: RunPoll) -> None:
        self._notifications = notifications
        self._poll = poll
        self._lock = _thread.allocate_lock()
        self._runs = False
        self._closes = False
        poll.register(notifications.listener, select.POLLIN)

    def handle_event(self, event: int) -> None:
        """Handle an event of the listener."""
        if not event & select.POLLIN:
            self.close()
            return
        self._poll.unregister(self._notifications.listener)
        self._runs = True
        try:
            _thread.start_new_thread(self._answer, (QUIET_S,))
        except RuntimeError:  # The system allows no further thread.
            self._answer(0.0)

    def close(self) -> None:
        """Stop answering. The kernel then refuses the calls of remaining processes."""
        with self._lock:
            self._closes = True
            if not self._runs:
                self._end()

    def _answer(self, quiet_s: float) -> None:
        more = False
        try:
            more = self._answer_until_quiet(quiet_s)
        finally:
            with self._lock:
                self._runs = False
                if more and not self._closes:
                    self._poll.register(self._notifications.listener, select.POLLIN)
                else:
                    self._end()

    def _answer_until_quiet(self, seconds: float) -> bool:
        """Answer what is asked. Return whether there may be more later."""
        asked = select.poll()
        asked.register(self._notifications.listener, select.POLLIN)
        while not self._closes and (ready := asked.poll(1000 * seconds)):
            if not (ready[0][1] & select.POLLIN and self._notifications.answer()):
                return False
        return True

    def _end(self) -> None:
        self._poll.unregister(self._notifications.listener)
        self._notifications.close()
