"""Typing into a running command."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.output.sgr import PLAIN, read_line
from whisper_tui.tui.processes.identity import find
from whisper_tui.tui.processes.waiting import Echo, echo_of
from whisper_tui.tui.screens.send_input import LineWanted, SendInputScreen
from whisper_tui.tui.widgets.output_area import OutputArea
from whisper_tui.tui.words import told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

ENTER = b"\r"
"""What the Enter key of a terminal sends; its line discipline makes a line feed of it."""
END_OF_INPUT = b"\x04"
"""What Ctrl+D sends: a terminal tells its reader that nothing follows."""
_ASKS_FOR_SECRET = re.compile(r"pass(?:word|phrase|code)|\b(?:pin|otp|token|secret|api.?key)\b", re.IGNORECASE)
LOOK_BACK = 4096
"""Bytes of output in which the last line is looked for."""


class TypingIn:
    """The commands that let a person answer what runs."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"type": self.type, "terminal": self.use_terminal}

    def use_terminal(self) -> None:
        """Let every key but one go to the command in its terminal."""
        area = self._screen.query_one(OutputArea)
        if not area.as_screen:
            area.choose_next()
        area.terminal.begin_typing()

    async def type(self) -> None:
        """Ask for a line, and send it."""
        record = self._screen.shown
        if record is None:
            return

        def given(line: LineWanted | None) -> None:
            if line is not None:
                self._screen.run_worker(self._send(record, line), name="type")

        question = await self._last_line(record)

        def hidden() -> bool:
            return is_secret(_echo(record), question)

        self._screen.app.push_screen(SendInputScreen(record.id, question, hidden), given)

    async def _last_line(self, record: CallRecord) -> str:
        """What the command wrote last: its question, if it asks one."""
        try:
            chunk = await self._screen.supervision.read_output(record.id, "out", -LOOK_BACK, LOOK_BACK)
        except WhisperError:
            return ""
        return last_line(chunk.data)

    async def _send(self, record: CallRecord, line: LineWanted) -> None:
        data, eof = keystrokes(line, tty=record.spec.tty)
        try:
            await self._screen.supervision.write_stdin(record.id, data, eof=eof)
        except WhisperError as error:
            self._screen.tell(told(error), severity="warning")
        else:
            self._screen.tell(f"Call {record.id} was given {'the end of its input' if line.ends else 'a line'}.")


def _echo(record: CallRecord) -> Echo | None:
    leader = record.process.leader if record.process is not None else None
    return echo_of(leader.pid) if leader is not None and find(leader) is not None else None


def is_secret(echo: Echo | None, question: str) -> bool:
    """Whether what is typed should not be on the screen: the terminal hides it, or leaves open what is asked for."""
    return echo == "hides" or (echo != "shows" and _ASKS_FOR_SECRET.search(question) is not None)


def last_line(output: bytes) -> str:
    """The last line that holds anything, as it would be shown, without colours."""
    runs, _ = read_line(output.rstrip().rpartition(b"\n")[2], PLAIN)
    return "".join(run.text for run in runs).strip()


def keystrokes(line: LineWanted, *, tty: bool) -> tuple[bytes, bool]:
    """The bytes to write, and whether the input is closed after them: a terminal is never closed, it is told."""
    text = line.text.encode("utf-8", "replace")
    if tty:
        return text + (END_OF_INPUT if line.ends else ENTER), False
    return text + (b"" if line.ends else b"\n"), line.ends
