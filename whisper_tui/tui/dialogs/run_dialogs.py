"""Dialogs about runs: signals, input, and background processes."""

import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static
from textual.widgets.option_list import Option

from whisper_tui.model.api import MOST_MEASURED
from whisper_tui.model.board import Board
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import BackgroundProcess, BackgroundUsage, ProcessIdentity, SignalTarget
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord
from whisper_tui.present.quantities import age, count, limit, size
from whisper_tui.present.session_text import session_words
from whisper_tui.present.words import toast_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles, choice_label
from whisper_tui.tui.row_list import RowList

NOTE = "Sent to the command only, never written to the journal."
HIDDEN = "The command asks for a secret: what you type is hidden. Ctrl+T shows it."
LOOK_S = 0.25
"""Seconds between two checks for a prompt that asks for a secret."""


Readiness = Literal["runs", "later", "gone"]
"""Of a call that was approved: its terminal can be used, can be as soon as it runs, or cannot be."""
READY_S = 0.05
"""Seconds between two looks if a call runs."""


class TerminalAwaitedScreen(Dialog[bool]):
    """Waits for a call that was approved, and takes all keys meanwhile: they would decide about the next call."""

    LEAVE = "Do not wait"

    def __init__(self, call_id: str, readiness: Callable[[], Readiness]) -> None:
        super().__init__()
        self._call_id = call_id
        self._readiness = readiness

    def compose(self) -> ComposeResult:
        """Build one sentence."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Terminal of call {self._call_id}")
            text = "It opens as soon as the command runs. Keys that you press before are not used."
            yield Static(Content(text), classes="dialog-text")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Look until it runs, or never will."""
        self.set_interval(READY_S, self._look)

    def _look(self) -> None:
        now = self._readiness()
        if now != "later" and self.is_current:
            self.dismiss(now == "runs")


@dataclass(frozen=True)
class InputRequest:
    """A line of input; `ends` also closes the input."""

    text: str
    ends: bool = False


class SendInputScreen(Dialog[InputRequest]):
    """Asks for one line of input, which may be empty and is written nowhere."""

    # An Input takes Ctrl+D for itself (delete right), hence the priority.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d", "end", "End of input", priority=True),
        Binding("ctrl+t", "hide", "Hide it", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Send", "send"),
        ("Ctrl+D", "End of input", "end"),
        ("Ctrl+T", "Hide", "hide"),
    )

    def __init__(
        self,
        call_id: str,
        last_line: str,
        hidden: Callable[[], Awaitable[bool]],
        *,
        starts_hidden: bool = False,
        text: str = "",
    ) -> None:
        """`hidden` returns True while the command has switched off echo; `starts_hidden`: its first answer. `text`: a
        line that could not be sent before.
        """
        super().__init__()
        self._text = text
        self._hidden = hidden
        self._starts_hidden = starts_hidden
        self._loading = False
        self._chosen = False
        """True once the person has chosen to show or hide the input."""
        self._call_id = call_id
        self._last_line = last_line

    def compose(self) -> ComposeResult:
        """Build the last line of the command's output, and a field."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Type into call {self._call_id}")
            if self._last_line:
                yield Static(Content(self._last_line), classes="dialog-text")
            yield Static(Content(NOTE), classes="dialog-note", id="line-note")
            yield Input(self._text, id="line")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the field, and hide its text if the command asks for a secret."""
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()
        if self._starts_hidden:
            self._hide()
        self.set_interval(LOOK_S, self._look)

    def _look(self) -> None:
        if not (self._loading or self._chosen or self.query_one(Input).password):
            self._loading = True
            self.run_worker(self._look_now(), name="echo")

    async def _look_now(self) -> None:
        """Hide the typed text once the command asks for a secret."""
        try:
            hidden = await self._hidden()
        finally:
            self._loading = False
        # Only ever towards hidden: a command that switches echo on again must not reveal a half-typed secret.
        if hidden and not self._chosen and self.is_mounted:
            self._hide()

    def _hide(self) -> None:
        self._draw_hidden(hidden=True)
        self.query_one("#line-note", Static).update(Content(HIDDEN))

    def _draw_hidden(self, *, hidden: bool) -> None:
        self.query_one(Input).password = hidden
        self.query_one("#choose-hide", Button).label = choice_label("Ctrl+T", "Show" if hidden else "Hide")

    def action_send(self) -> None:
        """Send the typed text as one line."""
        self.dismiss(InputRequest(self.query_one(Input).value))

    def action_end(self) -> None:
        """Send the typed text, followed by the end of input."""
        self.dismiss(InputRequest(self.query_one(Input).value, ends=True))

    def action_hide(self) -> None:
        """Show dots instead of the typed text, or the text again."""
        self._chosen = True
        self._draw_hidden(hidden=not self.query_one(Input).password)
        self.query_one("#line-note", Static).update(Content(NOTE))


EXPLAINED: dict[str, str] = {
    "SIGINT": "Interrupt, as Ctrl+C does",
    "SIGTERM": "Terminate; programs can clean up first",
    "SIGKILL": "Kill at once; nothing is cleaned up",
    "SIGHUP": "Terminal closed; servers often reload their settings",
    "SIGQUIT": "Quit and leave a core dump for debugging",
    "SIGSTOP": "Pause; it cannot be caught, and SIGCONT continues",
    "SIGCONT": "Continue after a pause",
    "SIGTSTP": "Pause, as Ctrl+Z does; programs may refuse",
    "SIGUSR1": "The program's own meaning, often a progress report",
    "SIGUSR2": "The program's own meaning",
    "SIGWINCH": "The window size changed",
    "SIGPIPE": "Broken pipe: nothing reads its output",
    "SIGALRM": "A timer of the program expired",
    "SIGVTALRM": "A timer of CPU time expired",
    "SIGPROF": "A profiling timer expired",
    "SIGCHLD": "A child process ended; most programs ignore it",
    "SIGTTIN": "Read from the terminal in the background",
    "SIGTTOU": "Wrote to the terminal in the background",
    "SIGABRT": "Abort and leave a core dump",
    "SIGSEGV": "Segmentation fault: invalid memory access",
    "SIGBUS": "Bus error: memory cannot be accessed",
    "SIGFPE": "Arithmetic error, such as a division by zero",
    "SIGILL": "Illegal instruction",
    "SIGTRAP": "Trace or breakpoint trap",
    "SIGSYS": "Bad system call",
    "SIGXCPU": "CPU time limit exceeded",
    "SIGXFSZ": "File size limit exceeded",
    "SIGURG": "Urgent data on a connection; most programs ignore it",
    "SIGIO": "A file or connection is ready",
    "SIGPWR": "Power failure",
    "SIGSTKFLT": "Coprocessor fault",
    "SIGEMT": "Emulator trap",
    "SIGINFO": "Status request, as Ctrl+T sends",
    "SIGRTMIN": "The first real-time signal, the program's own",
    "SIGRTMAX": "The last real-time signal, the program's own",
}


@dataclass(frozen=True)
class SignalChoice:
    """A signal with its explanation."""

    number: int
    name: str
    words: str


def signal_choices() -> tuple[SignalChoice, ...]:
    """Return every signal of this system, the usual ones first."""
    known = {member.name: int(member) for member in signal.Signals}
    usual = [name for name in EXPLAINED if name in known]
    others = [name for name in known if name not in EXPLAINED]
    return tuple(
        SignalChoice(known[name], name, EXPLAINED.get(name, "The system's own meaning")) for name in (*usual, *others)
    )


TARGETS: dict[SignalTarget, str] = {
    "leader": "the command itself",
    "group": "the command and its process group",
    "tree": "all processes that it started, background processes included",
}


DEADLY = frozenset({signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGABRT})
"""Signals that end most programs."""


@dataclass(frozen=True)
class SignalRequest:
    """A signal and its receivers."""

    number: int
    target: SignalTarget
    then_kill: bool = False
    """True if what is alive after the grace period gets SIGKILL."""


class SignalScreen(Dialog[SignalRequest]):
    """Asks how to end a run, or for any other signal and its receivers."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/signals.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "target", "Receivers", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Send", "send"), ("Tab", "Receivers", "target"))

    def __init__(self, call_id: str, *, leader_alive: bool, what: str, grace_s: float, severe: str = "") -> None:
        """`what` is ended, as a sentence; `severe`: why the choice to end it is asked for twice, empty if it is not."""
        super().__init__()
        self._call_id = call_id
        self._what = what
        self._severe = severe
        # Without the leader, its pid and its group may belong to other processes; the tree is known by identity.
        self._targets: list[SignalTarget] = ["leader", "group", "tree"] if leader_alive else ["tree"]
        self._ends = (
            (SignalRequest(signal.SIGTERM, "tree", then_kill=True), f"SIGTERM, then SIGKILL after {limit(grace_s)}"),
            (SignalRequest(signal.SIGKILL, "tree"), "SIGKILL at once"),
        )
        self._choices = signal_choices()

    def compose(self) -> ComposeResult:
        """Build the list of signals and the receivers."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"End call {self._call_id}")
            yield Static(id="target", classes="dialog-text")
            yield RowList(
                *(Option(Content.assemble(("End it       ", "bold"), f"   {words}")) for _, words in self._ends),
                *(
                    Option(Content.assemble((f"{choice.name:<11}", "bold"), f"{choice.number:>3}  ", choice.words))
                    for choice in self._choices
                ),
            )
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the list."""
        self.query_one(RowList).highlighted = 0
        self.query_one(RowList).focus()

    @property
    def _request(self) -> SignalRequest | None:
        """The signal of the highlighted row."""
        at = self.query_one(RowList).highlighted
        if at is None:
            return None
        if at < len(self._ends):
            return self._ends[at][0]
        return SignalRequest(self._choices[at - len(self._ends)].number, self._targets[0])

    @on(RowList.OptionHighlighted)
    def _show_target(self) -> None:
        at = self.query_one(RowList).highlighted or 0
        to = Content.assemble("Sent to ", (TARGETS[self._targets[0]], "bold"), ".")
        self.query_one("#target", Static).update(Content(self._what) if at < len(self._ends) else to)

    def action_target(self) -> None:
        """Choose the next receivers."""
        self._targets.append(self._targets.pop(0))
        self._show_target()

    def action_send(self) -> None:
        """Send the highlighted signal; what ends a run with a severe risk, at the second key."""
        request = self._request
        if request is None:
            return
        if self._severe and request.number in DEADLY:
            why, self._severe = self._severe, ""
            self.query_one("#target", Static).update(Content(f"{why} Press Enter again to end it."))
        else:
            self.dismiss(request)

    @on(RowList.OptionSelected)
    def _selected(self) -> None:
        self.action_send()


EVERY_S = 2.0


class LeftBehindChoice(NamedTuple):
    """The call whose background processes were chosen; `ends`: to end them."""

    call_id: str
    ends: bool = False


class LeftBehindRow(NamedTuple):
    """One background process."""

    record: CallRecord
    process: BackgroundProcess
    started_at: float
    """Seconds since the epoch."""
    known: BackgroundUsage | None
    """Its last sample. None: not sampled yet, or not known."""


class BackgroundScreen(Dialog[LeftBehindChoice]):
    """Lists the background processes of all calls; those of earlier days in a section of their own."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/background.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "end", "End it")]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Show its call", "go"), ("x", "End it…", "end"))
    LEAVE = "Close"

    def __init__(self, cockpit: CockpitContext) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._known: dict[ProcessIdentity, BackgroundUsage] = {}
        self._rows: list[LeftBehindRow] = []
        self._busy = False

    def compose(self) -> ComposeResult:
        """Build the list and its notes."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Background processes")
            yield Static(id="behind-head", classes="dialog-note")
            yield RowList(id="behind")
            yield Static(Content("x ends all background processes of the call."), classes="dialog-note")
            yield from self.buttons()

    def on_mount(self) -> None:
        """List the processes, and sample them every two seconds."""
        self._list()
        self.query_one(RowList).focus()
        self.set_interval(EVERY_S, self._look)
        # Drawn before the first answer, which can take long with very many processes.
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Take a sample, unless one is still being taken."""
        if not self._busy:
            self._busy = True
            self.run_worker(self._look_now(), name="look")

    async def _look_now(self) -> None:
        calls = list(dict.fromkeys(row.record.id for row in behind_rows(self._cockpit.board, {})))
        known: dict[ProcessIdentity, BackgroundUsage] = {}
        try:
            for start in range(0, len(calls), MOST_MEASURED):
                some = tuple(calls[start : start + MOST_MEASURED])
                samples = await self._cockpit.supervision.usage(some)
                known |= {one.identity: one for sample in samples.values() for one in sample.left_behind}
        except WhisperError:
            # The list itself comes from the board; only memory, ports and ages are missing.
            known = self._known
        finally:
            self._busy = False
        self._known = known
        # The person may have left the dialog while the supervisor was sampling.
        if self.is_mounted:
            self._list()

    def _list(self) -> None:
        options = self.query_one(RowList)
        marked = self._marked()
        self._rows = behind_rows(self._cockpit.board, self._known)
        now = self._cockpit.clock()
        today = _midnight(now)
        options.clear_options()
        old = [row for row in self._rows if row.started_at < today]
        new = [row for row in self._rows if row.started_at >= today]
        self._rows = [*old, *new]
        for title, rows in (("Left over from earlier days", old), ("Since today", new)):
            if rows and old:
                options.add_option(Option(Content.assemble((title, "bold")), disabled=True))
            for row in rows:
                options.add_option(Option(self._words(row, now), id=_name(row)))
        names = [option.id for option in options.options]
        # The highlight follows the process: a row that goes away above must not put another one under `k`.
        if self._rows:
            options.highlighted = names.index(marked if marked and marked in names else _name(self._rows[0]))
        calls = {row.record.id for row in self._rows}
        words = f"{count(len(self._rows), 'process', 'processes')} of {count(len(calls), 'call')}"
        self.query_one("#behind-head", Static).update(Content(words if self._rows else "No background processes."))

    def _words(self, row: LeftBehindRow, now: float) -> Content:
        session = self._cockpit.board.sessions.get(row.record.call.session_id)
        name = session_words(session, row.record.call.session_id)
        known = row.known
        used = f"  {size(known.memory)}" if known is not None else ""
        ports = f"  listens on {', '.join(known.ports)}" if known is not None and known.ports else ""
        return Content.assemble(
            (f"{age(now - row.started_at):>4}  ", ""),
            (masked(toast_text(row.process.command)), "bold"),
            f"\n      pid {row.process.identity.pid}{used}{ports}  call {row.record.id} of {name}",
        )

    def _marked(self) -> str | None:
        options = self.query_one(RowList)
        return options.highlighted_option.id if options.highlighted_option is not None else None

    def _chosen(self) -> LeftBehindRow | None:
        marked = self._marked()
        return next((row for row in self._rows if _name(row) == marked), None)

    def action_go(self) -> None:
        """Show the call of the highlighted process."""
        if (row := self._chosen()) is not None:
            self.dismiss(LeftBehindChoice(row.record.id))

    def action_end(self) -> None:
        """Ask whether to end the background processes of that call."""
        if (row := self._chosen()) is not None:
            self.dismiss(LeftBehindChoice(row.record.id, ends=True))

    @on(RowList.OptionSelected)
    def _selected(self) -> None:
        self.action_go()


def behind_rows(board: Board, known: dict[ProcessIdentity, BackgroundUsage]) -> list[LeftBehindRow]:
    """Return every background process that is alive, as far as reported, the oldest first."""
    rows = []
    # A command can put a process into the background while it still runs itself.
    for call_id in (*board.unsettled, *board.running):
        record = board.calls[call_id]
        for process in record.living_background:
            now = known.get(process.identity)
            run = record.process
            began = now.started_at if now is not None else run.started_at if run is not None else 0.0
            rows.append(LeftBehindRow(record, process, began, now))
    return sorted(rows, key=lambda row: row.started_at)


def _name(row: LeftBehindRow) -> str:
    return f"{row.record.id}-{row.process.identity.pid}"


def _midnight(now: float) -> float:
    """Return the start of the day in local time."""
    day = time.localtime(now)
    # -1: daylight saving time at midnight can differ from that of `now`; the C library finds out.
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
