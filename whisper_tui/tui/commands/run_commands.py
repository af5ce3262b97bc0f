"""Commands for a run: type into it, signal it, pause it, end it, list what it left behind."""

import re
import signal
from collections.abc import Callable

from whisper_tui.model.ending import signal_name
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Echo, SignalTarget, UsageSample
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text
from whisper_tui.tui.call.usage_line import UsageLine
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command, is_alive
from whisper_tui.tui.dialogs.run_dialogs import (
    BackgroundScreen,
    ConfirmKillScreen,
    HowToKill,
    InputRequest,
    LeftBehindChoice,
    SendInputScreen,
    SignalRequest,
    SignalScreen,
)
from whisper_tui.tui.output.ansi import PLAIN, read_line
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.queue.call_list import CallList

INPUT: tuple[Command, ...] = (
    Command("type", "i", "Type", "Send a line to the input of the command.", "Run", "reads"),
    Command(
        "terminal",
        "T",
        "Terminal",
        "Send every key to the command in its terminal, and the mouse if it asks for it; Ctrl+] ends this.",
        "Run",
        "terminal",
    ),
)

SIGNALS: tuple[Command, ...] = (
    Command(
        "pause",
        "p",
        "Pause",
        "Pause the run with everything it started, or continue it; its timeout is not paused.",
        "Run",
        "alive",
    ),
    Command("signal", "x", "Signal", "Send any signal to the run, or to its background processes.", "Run", "alive"),
    Command("kill", "k", "Kill", "End the run with everything it started: SIGTERM, then SIGKILL.", "Run", "alive"),
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


class InputCommands:
    """Carries out the commands that type into a run."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"type": self.type, "terminal": self.use_terminal}

    def use_terminal(self) -> None:
        """Send every key except Ctrl+] to the terminal of the run."""
        area = self._cockpit.screen.query_one(OutputArea)
        if not area.as_screen:
            area.choose_next()
        area.terminal.begin_typing()

    async def type(self) -> None:
        """Ask for a line, and send it to the standard input of the run."""
        record = self._cockpit.shown
        if record is None:
            return

        def given(line: InputRequest | None) -> None:
            if line is not None:
                self._cockpit.screen.run_worker(self._send(record, line), name="type")

        question = await self._last_line(record)

        async def hidden() -> bool:
            return is_secret(await self._echo(record), question)

        screen = SendInputScreen(record.id, question, hidden, starts_hidden=await hidden())
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

    async def _send(self, record: CallRecord, line: InputRequest) -> None:
        data, eof = keystrokes(line, tty=record.spec.tty)
        try:
            await self._cockpit.supervision.write_stdin(record.id, data, eof=eof)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            self._cockpit.tell(f"Sent {'the end of input' if line.ends else 'a line'} to call {record.id}.")


def is_secret(echo: Echo | None, question: str) -> bool:
    """True if the typed line is masked: the terminal has echo off, or its prompt asks for a secret."""
    # A program in raw mode may echo or not, so only its prompt tells.
    return echo == "hides" or (echo != "shows" and _ASKS_FOR_SECRET.search(question) is not None)


def last_line(output: bytes) -> str:
    """Return the last line that is not blank, as a terminal shows it, without colours."""
    runs, _ = read_line(output.rstrip().rpartition(b"\n")[2], PLAIN)
    return "".join(run.text for run in runs).strip()


def keystrokes(line: InputRequest, *, tty: bool) -> tuple[bytes, bool]:
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
        return {"signal": self.signal, "kill": self.kill, "pause": self.pause, "background": self.background}

    def signal(self) -> None:
        """Ask for a signal, and send it."""
        record = self._cockpit.shown
        if record is None:
            return

        def chosen(wanted: SignalRequest | None) -> None:
            if wanted is not None:
                self._send(record.id, wanted.number, wanted.target)

        screen = SignalScreen(record.id, leader_alive=isinstance(record.state, Running))
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

        def chosen(wanted: LeftBehindChoice | None) -> None:
            if wanted is None:
                return
            self._cockpit.screen.query_one(CallList).select(wanted.call_id, by_hand=True)
            self._cockpit.refresh_call()
            if wanted.kill:
                self.kill()

        self._cockpit.screen.app.push_screen(BackgroundScreen(self._cockpit), chosen)

    def kill(self) -> None:
        """Ask, then end all processes of the run."""
        record = self._cockpit.shown
        if record is None:
            return

        def chosen(how: HowToKill | None) -> None:
            if how == "kill":
                self._send(record.id, signal.SIGKILL, "tree")
            elif how == "term":
                self._send(record.id, signal.SIGTERM, "tree")
                self._cockpit.screen.set_timer(record.spec.grace_s, lambda: self._kill_if_alive(record.id))

        what = ConfirmKillScreen(record.id, _what_dies(record), record.spec.grace_s)
        self._cockpit.screen.app.push_screen(what, chosen)

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
