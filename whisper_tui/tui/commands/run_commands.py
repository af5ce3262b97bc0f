"""Commands for a run: type into it, signal it, pause it, end it, list what it left behind, and submit it again."""

import asyncio
import re
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.call import CallRequest, Session
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import signal_name
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Echo, SignalTarget, UsageSample
from whisper_tui.model.state import CallRecord, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.model.verdict import is_grave
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, available, is_alive
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.output.ansi import PLAIN, read_line
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_bars import UsageLine
from whisper_tui.tui.pane_zoom import PaneZoom

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.run_dialogs import InputRequest, LeftBehindChoice, Readiness, SignalRequest

TERMINAL = Command(
    "terminal",
    "T",
    "Terminal",
    "Send every key to the command, whose terminal gets the whole screen, and the mouse; Ctrl+] ends this.",
    "Run",
    "terminal",
)
INPUT: tuple[Command, ...] = (
    Command("type", "i", "Type", "Send a line to the input of the command.", "Run", "reads"),
    TERMINAL,
)

SIGNALS: tuple[Command, ...] = (
    Command(
        "start-anyway",
        "Q",
        "Start anyway",
        "Start a queued call at once, whatever runs and however little memory is left.",
        "Run",
        "queued",
    ),
    Command(
        "pause",
        "p",
        "Pause",
        "Pause the run with everything it started, or continue it; its timeout is not paused.",
        "Run",
        "alive",
    ),
    Command(
        "signal",
        "x",
        "End…",
        "End the run with everything it started, by SIGTERM and then SIGKILL; or send it any other signal.",
        "Run",
        "alive",
        also="kill stop terminate signal",
    ),
)

LEFT_BEHIND: tuple[Command, ...] = (
    Command("background", "b", "Background", "List the background processes of all sessions.", "Run"),
)

ENTER = b"\r"
"""The byte that the Enter key of a terminal sends; the line discipline turns it into a line feed."""
END_OF_INPUT = b"\x04"
"""The byte that Ctrl+D sends: a terminal reports the end of its input to the reader."""
_ASKS_FOR_SECRET = re.compile(r"pass(?:word|phrase|code)|\b(?:pin|otp|token|secret|api.?key)\b", re.IGNORECASE)
LAST_LINE_BYTES = 4096
"""Bytes at the end of the output that are searched for the last line."""


NOTHING_UNSENT = ("", "")


class InputCommands:
    """Carries out the commands that type into a run."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands, zoom: PaneZoom) -> None:
        """`zoom` gives the terminal the whole screen while keys go to it."""
        self._cockpit = cockpit
        self._decisions = decisions
        self._zoom = zoom
        self._filled = False
        """True while the terminal has the whole screen because keys go to it."""
        self._unsent = NOTHING_UNSENT
        """The call and the line that could not be sent to it last: the next dialog about that call begins with it."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"type": self.type, "terminal": self.use_terminal}

    def use_terminal(self) -> None:
        """Send every key except Ctrl+] to the terminal of the run, which gets the whole screen for that."""
        area = self._cockpit.screen.query_one(OutputArea)
        if not area.as_screen:
            area.choose_next()
        if self._zoom.level == 0:
            self._filled = True
            self._zoom.fill("output")
        area.terminal.begin_typing()

    def typing_ended(self) -> None:
        """Return to the arrangement from before."""
        if self._filled:
            self._filled = False
            self._zoom.back()

    def use_terminal_of_approved(self) -> bool:
        """Open the terminal of the call that was approved here last, once it runs. False: there is no such terminal.

        After an approval the next waiting call is selected, and the key still means the one before.
        """
        from whisper_tui.tui.dialogs.run_dialogs import TerminalAwaitedScreen

        call_id = self._decisions.last_approved
        if call_id is None or self._readiness(call_id) == "gone":
            return False

        def opened(runs: bool | None) -> None:
            if runs:
                self._cockpit.screen.query_one(CallList).select(call_id, by_hand=True)
                self._cockpit.refresh_call()
                self.use_terminal()

        if self._readiness(call_id) == "runs":
            opened(True)
        else:
            screen = TerminalAwaitedScreen(call_id, lambda: self._readiness(call_id))
            self._cockpit.screen.app.push_screen(screen, opened)
        return True

    def _readiness(self, call_id: str) -> "Readiness":
        """Return if the terminal of a call can be used, can be later, or not at all."""
        record = self._cockpit.board.calls.get(call_id)
        if record is None or not record.spec.tty:
            return "gone"
        if available(TERMINAL, record):
            return "runs"
        approved = isinstance(record.decision, Approve) and isinstance(record.state, Held | Queued | Starting)
        return "later" if approved or self._decisions.is_on_its_way(record) else "gone"

    async def type(self) -> None:
        """Ask for a line, and send it to the standard input of the run."""
        from whisper_tui.tui.dialogs.run_dialogs import SendInputScreen

        record = self._cockpit.shown
        if record is None:
            return

        def given(line: "InputRequest | None") -> None:
            if line is not None:
                self._cockpit.screen.run_worker(self._send(record, line), name="type")

        question = await self._last_line(record)

        async def hidden() -> bool:
            return is_secret(await self._echo(record), question)

        call_id, text = self._unsent
        text = text if call_id == record.id else ""
        screen = SendInputScreen(record.id, question, hidden, starts_hidden=await hidden(), text=text)
        self._cockpit.screen.app.push_screen(screen, given)

    async def _last_line(self, record: CallRecord) -> str:
        """Return the last line of output, which is the prompt if the command asks for something."""
        try:
            chunk = await self._cockpit.supervision.read_output(record.id, "out", -LAST_LINE_BYTES, LAST_LINE_BYTES)
        except WhisperError:
            return ""
        return last_line(chunk.data)

    async def _echo(self, record: CallRecord) -> Echo | None:
        try:
            return await self._cockpit.supervision.echo(record.id)
        except WhisperError:
            return None

    async def _send(self, record: CallRecord, line: "InputRequest") -> None:
        data, eof = keystrokes(line, tty=record.spec.tty)
        try:
            await self._cockpit.supervision.write_stdin(record.id, data, eof=eof)
        except WhisperError as error:
            self._unsent = (record.id, line.text)
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._unsent = NOTHING_UNSENT
            self._cockpit.tell(f"Sent {'the end of input' if line.ends else 'a line'} to call {record.id}.")


def is_secret(echo: Echo | None, question: str) -> bool:
    """True if the typed line is masked: the terminal has echo off, or its prompt asks for a secret."""
    # A program in raw mode may echo or not, so only its prompt tells.
    return echo == "hides" or (echo != "shows" and _ASKS_FOR_SECRET.search(question) is not None)


def last_line(output: bytes) -> str:
    """Return the last line that is not blank, as a terminal shows it, without colours."""
    runs, _ = read_line(output.rstrip().rpartition(b"\n")[2], PLAIN)
    return "".join(run.text for run in runs).strip()


def keystrokes(line: "InputRequest", *, tty: bool) -> tuple[bytes, bool]:
    """Return the bytes to write, and True if the input is closed afterwards."""
    text = line.text.encode("utf-8", "replace")
    if tty:
        # Closing would hang up the terminal; its reader is told of the end by a byte instead.
        return text + (END_OF_INPUT if line.ends else ENTER), False
    return text + (b"" if line.ends else b"\n"), line.ends


class SignalCommands:
    """Carries out the commands that signal, pause and end runs."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "start-anyway": self.start_anyway,
            "signal": self.signal,
            "pause": self.pause,
            "background": self.background,
        }

    async def start_anyway(self) -> None:
        """Start the queued call that is shown."""
        record = self._cockpit.shown
        if record is None:
            return
        try:
            await self._cockpit.supervision.start_anyway(record.id, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")

    def signal(self) -> None:
        """Ask how to end the run, or for a signal, and send it."""
        from whisper_tui.tui.dialogs.run_dialogs import SignalScreen

        record = self._cockpit.shown
        if record is None:
            return

        def chosen(wanted: "SignalRequest | None") -> None:
            if wanted is None:
                return
            self._send(record.id, wanted.number, wanted.target)
            if wanted.then_kill:
                self._cockpit.screen.set_timer(record.spec.grace_s, lambda: self._kill_if_alive(record.id))

        screen = SignalScreen(
            record.id,
            leader_alive=isinstance(record.state, Running),
            what=_what_dies(record),
            grace_s=record.spec.grace_s,
            severe=_why_asked_again(record),
        )
        self._cockpit.screen.app.push_screen(screen, chosen)

    def pause(self) -> None:
        """Stop all processes of the run, or continue them if they are stopped."""
        record = self._cockpit.shown
        if record is not None:
            paused = is_paused(record, self._cockpit.screen.query_one(UsageLine).sample)
            # The tree, not the group: children in groups of their own would run on.
            self._send(record.id, signal.SIGCONT if paused else signal.SIGSTOP, "tree")

    def background(self) -> None:
        """Open the list of background processes, and go to a call or end its processes."""
        from whisper_tui.tui.dialogs.run_dialogs import BackgroundScreen

        def chosen(wanted: "LeftBehindChoice | None") -> None:
            if wanted is None:
                return
            self._cockpit.screen.query_one(CallList).select(wanted.call_id, by_hand=True)
            self._cockpit.refresh_call()
            if wanted.ends:
                self.signal()

        self._cockpit.screen.app.push_screen(BackgroundScreen(self._cockpit), chosen)

    def _kill_if_alive(self, call_id: str) -> None:
        # The record from before may be old: what ended within the grace period must not be signalled again.
        record = self._cockpit.board.calls.get(call_id)
        if record is not None and is_alive(record):
            self._send(call_id, signal.SIGKILL, "tree")

    def _send(self, call_id: str, number: int, target: SignalTarget) -> None:
        self._cockpit.screen.run_worker(self._send_now(call_id, number, target), name="signal")

    async def _send_now(self, call_id: str, number: int, target: SignalTarget) -> None:
        cockpit = self._cockpit
        try:
            await cockpit.supervision.signal(call_id, number, target, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
        else:
            done = _PAUSES.get(number) if target == "tree" else None
            cockpit.tell(f"{done} call {call_id}." if done else f"Sent {signal_name(number)} to call {call_id}.")


_PAUSES: dict[int, str] = {signal.SIGSTOP: "Paused", signal.SIGCONT: "Continued"}


def is_paused(record: CallRecord, sample: UsageSample | None) -> bool:
    """True if a run is paused: by the last signal sent through the supervisor, else by the state of its processes."""
    # The journal knows a signal at once; a sample is up to a second old, and a second press would pause again.
    if signal.SIGSTOP in record.signals or signal.SIGCONT in record.signals:
        return record.paused
    return sample is not None and sample.paused


def _what_dies(record: CallRecord) -> str:
    behind = len(record.living_background)
    if not isinstance(record.state, Running):
        return f"Ends {count(behind, 'background process', 'background processes')} of this call."
    more = f", with {count(behind, 'background process', 'background processes')}" if behind else ""
    return f"Ends the command and everything that it started{more}."


def _why_asked_again(record: CallRecord) -> str:
    """Return what is severe about ending a run halfway, as a sentence. Empty: nothing is known to be."""
    severe = [risk for risk in (record.verdict.risks if record.verdict else ()) if is_grave(risk)]
    if not severe or not isinstance(record.state, Running):
        return ""
    return "Its command has a severe risk: ended halfway, it leaves half of what it does."


AGAIN: tuple[Command, ...] = (
    Command("retry", "ctrl+r", "Retry", "Submit the ended call again, in its session.", "Run", "repeatable"),
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
            # A loop, because the cockpit may be closing, and then it has no list any more.
            for calls in cockpit.screen.query(CallList):
                if calls.roster.place_of(call_id) is not None:
                    # Not by hand: a key that was meant for the old call must not decide the new one (decision 23).
                    calls.select(call_id, by_hand=False)
                    return
            await asyncio.sleep(POLL_S)


def why_not_again(record: CallRecord, session: Session | None) -> str | None:
    """Return why a call cannot be submitted again, as a sentence. None: it can."""
    if record.function is not None:
        return "The agent ran that tool itself, so only the agent can repeat it."
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
