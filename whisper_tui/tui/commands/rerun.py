"""Commands that submit an ended call again: through the policy, or approved without its sandbox."""

import asyncio
from collections.abc import Callable

from whisper_tui.model.call import CallRequest, Session
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Unjudged, Waiting
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.queue.call_list import CallList

COMMANDS: tuple[Command, ...] = (
    Command("retry", "ctrl+r", "Retry", "Submit the ended call again, in its session.", "Run", "ended"),
    Command(
        "rerun-unconfined",
        "U",
        "Run unconfined",
        "Submit a command again that its sandbox blocked, and approve it without a sandbox.",
        "Run",
        "blocked",
    ),
)

POLLS = 100
POLL_S = 0.05
"""The new call is awaited for five seconds: its event may arrive after the answer to `submit`."""


class RetryCommands:
    """Carries out the command `retry`."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"retry": self.retry}

    def retry(self) -> None:
        """Submit the same request as a new call; the policy judges it like any other."""
        record = self._cockpit.shown
        if record is None:
            return
        problem = why_not_again(record, self._cockpit.board.sessions.get(record.call.session_id))
        if problem is not None:
            self._cockpit.tell(problem, severity="warning")
            return
        self._cockpit.screen.run_worker(self._submit(record), name="retry")

    async def _submit(self, record: CallRecord) -> None:
        cockpit = self._cockpit
        try:
            call_id = await cockpit.supervision.submit(request_of(record))
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
            return
        cockpit.tell(f"Call {call_id} repeats call {record.id}; the agent is not told.")
        for _ in range(POLLS):
            if cockpit.screen.query_one(CallList).roster.place_of(call_id) is not None:
                # Not by hand: a key that was meant for the old call must not decide the new one (decision 23).
                cockpit.screen.query_one(CallList).select(call_id, by_hand=False)
                return
            await asyncio.sleep(POLL_S)


def why_not_again(record: CallRecord, session: Session | None) -> str | None:
    """Return why a call cannot be submitted again, as a sentence. None: it can."""
    if record.function is not None:
        return "The agent carried that tool out itself, so only the agent can repeat it."
    if session is None or session.closed_at is not None:
        return "Its session is closed, with its approvals and its environment: only the agent can ask again."
    return None


def request_of(record: CallRecord) -> CallRequest:
    """Return the same request; the edits of a human are kept."""
    call = record.call
    # `record.spec`, not `call.spec`: what is repeated is what ran.
    return CallRequest(
        session_id=call.session_id,
        tool=call.tool,
        arguments=call.arguments,
        spec=record.spec,
        description=call.description,
    )


class RerunCommands:
    """Carries out the command `rerun-unconfined`. It approves only what was on the screen and still means the same."""

    def __init__(
        self, cockpit: CockpitContext, decisions: DecisionCommands, hides: Callable[[CallRecord], bool]
    ) -> None:
        """`hides` returns True for a call with secrets that the screen masks."""
        self._cockpit = cockpit
        self._decisions = decisions
        self._hides = hides
        # A second key, while the policy judges the new call, would submit one more.
        self._running: set[str] = set()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"rerun-unconfined": self.rerun}

    def rerun(self) -> None:
        """Submit the call again and approve it, as if the person had approved it here."""
        record = self._cockpit.shown
        if record is None or self._decisions.is_guarded() or record.id in self._running:
            return
        problem = why_not_again(record, self._cockpit.board.sessions.get(record.call.session_id))
        if problem is not None:
            self._cockpit.tell(problem, severity="warning")
        elif self._hides(record) or not self._decisions.unread(record):
            self._running.add(record.id)
            self._cockpit.screen.run_worker(self._rerun(record, whole=not self._hides(record)), name="rerun")

    async def _rerun(self, record: CallRecord, *, whole: bool) -> None:
        try:
            call_id = await self._cockpit.supervision.submit(request_of(record))
            new = await self._judged(call_id)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
            return
        finally:
            self._running.discard(record.id)
        if new is None:
            self._cockpit.tell(f"Call {call_id} repeats call {record.id}; the policy has not judged it yet.")
            return
        self._cockpit.screen.query_one(CallList).select(call_id, by_hand=False)
        problem = _why_not_approved(record, new, whole=whole)
        if problem is not None:
            self._cockpit.tell(f"Call {call_id} repeats call {record.id}, and {problem}.", severity="warning")
            return
        self._cockpit.tell(f"Call {call_id} runs call {record.id} again without a sandbox; the agent is not told.")
        self._decisions.approve_shown(new)

    async def _judged(self, call_id: str) -> CallRecord | None:
        """Return the call once the policy has judged it. None: that takes too long."""
        for _ in range(POLLS):
            record = self._cockpit.board.calls.get(call_id)
            if record is not None and not isinstance(record.state, Unjudged):
                return record
            await asyncio.sleep(POLL_S)
        return None


def _why_not_approved(before: CallRecord, new: CallRecord, *, whole: bool) -> str | None:
    """Return why the key pressed on the old call does not approve the new one, as a clause. None: it does."""
    if not isinstance(new.state, Waiting):
        return "it was decided without you" if new.decided_by is not None else "it does not wait for you"
    if not whole:
        return "waits for you: its secrets were not on the screen, so read it and approve it here"
    if new.spec != before.spec or new.resolved != before.resolved:
        return "waits for you: it resolves to something else now, so read it and approve it here"
    risks = before.verdict.risks if before.verdict else ()
    if new.verdict is not None and set(new.verdict.risks) - set(risks):
        return "waits for you: it has risks that were not on the screen, so read it and approve it here"
    return None
