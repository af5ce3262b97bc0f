"""The text mode: it prints lines, reads a person's answers, and reconnects to a supervisor that comes back."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.supervisor_control import number_of
from whisper_tui.cli.decision_signer import DecisionSigner, signer_of
from whisper_tui.cli.watch_text import (
    HELP,
    MOST_EFFECTS,
    asks,
    edited_spec,
    effects_said,
    first_words,
    happened,
    in_full,
    last_lines,
    queue_sentences,
    stall_sentences,
)
from whisper_tui.config import load
from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import DENY_INSTEAD, NO_CHANGE, CommandSpec
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, Scope
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, InvalidRequest, WhisperError
from whisper_tui.model.event import Decided, Event, SetAside
from whisper_tui.model.run import NOT_QUEUED, Sandbox, Stall
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import clock_time, count
from whisper_tui.present.security_text import why_not_confined
from whisper_tui.present.session_text import session_label_of
from whisper_tui.present.words import error_text
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient, ensure_supervisor
from whisper_tui.wire.rendezvous import stopped_on_purpose

GUARD_S = 0.5
"""Seconds after a call was read out in which answers are ignored: they were meant for the call before."""
DECIDING = frozenset({"approve", "a", "session", "s", "yes", "y", "deny", "d", "edit", "e", "no", "skip", "k"})
SANDBOXES = {
    "read-only": Sandbox(),
    "confined": Sandbox(kind="workspace"),
    "confined network": Sandbox(kind="workspace", network=True),
}
"""The words that may follow `approve` and `session`."""
LAST_BYTES = 8192
"""Bytes of each stream of which `output` prints the last lines."""


class WatchAnswers:
    """The answers of a person about one call at a time.

    Another call takes its place only after an answer, or when none was shown.
    """

    def __init__(self, say: Callable[[str], None], me: Decider, clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._me = me
        self._clock = clock
        self._read_at = float("-inf")
        self._edited: CommandSpec | None = None
        self._deny_asked = False
        self._skipped: set[str] = set()
        self._sending = False
        """True while a decision is being sent: its event may overtake the answer to it."""
        self._decided: set[str] = set()
        """Calls that were decided or set aside here, whose event has not come yet."""
        self.shown: CallRecord | None = None
        """The call as it was read out. None: no call is shown."""
        self.board = Board()
        self.supervision: Supervision | None = None
        self.signer: DecisionSigner | None = None
        """Signs decisions. None: they are not signed."""
        self.between = False
        """True if the shown call was decided elsewhere, and the person has not answered since."""
        self.laid = asyncio.Event()
        """Set once a call was read out, until its effects are."""
        self.left = False
        """True if the person wants to leave."""

    @property
    def prompt(self) -> str:
        """The prompt before an answer."""
        return f"Call {self.shown.id}> " if self.shown is not None else "> "

    def news(self) -> None:
        """Show the next waiting call if none is shown."""
        # Not if the shown call was just decided elsewhere: an answer to it may be on its way.
        if self.shown is None and not self.between:
            self._next()

    def gone(self) -> bool:
        """True if the shown call was decided elsewhere, or is another one by now."""
        shown = self.shown
        if shown is None or self._sending:
            return False
        now = self.board.calls.get(shown.id)
        if now is None or not isinstance(now.state, Waiting) or now.seen_digest() != shown.seen_digest():
            return True
        return now.aside is not None and shown.aside is None

    def was_said(self, event: Event) -> bool:
        """True, once, if the event is what was done and reported here."""
        if not isinstance(event, Decided | SetAside) or event.call_id not in self._decided:
            return False
        self._decided.discard(event.call_id)
        return True

    def forget(self) -> None:
        """Take away a call that can no longer be answered; the next answer is ignored."""
        self.shown = None
        self.between = True

    def lay(self, record: CallRecord) -> None:
        """Read a call out and wait for the answer."""
        self.shown = record
        self._edited, self._deny_asked = None, False
        self._read_at = self._clock()
        self._say_all(asks(record, self.board, len(self.board.waiting)))
        self.laid.set()

    async def read_effects(self) -> None:
        """Read out the effects of the call that was laid before the person, once it was."""
        await self.laid.wait()
        self.laid.clear()
        record = self.shown
        if record is not None and self.supervision is not None:
            with suppress(WhisperError):  # It was decided meanwhile, or the connection is lost: others say that.
                effects = await self.supervision.effects(record.id)
                if self.shown is record:
                    self._say_all(effects_said(effects, MOST_EFFECTS))

    def _next(self) -> None:
        self.shown = None
        waiting = [call_id for call_id in self.board.waiting if call_id not in self._skipped]
        if waiting:
            self.lay(self.board.calls[waiting[0]])

    async def answer(self, line: str) -> None:
        """Carry out one line of the person and report errors."""
        word, _, rest = line.strip().partition(" ")
        if self.between and word.lower() in {"", *DECIDING}:
            self.between = False
            if word:
                self._say("Nothing was done: that call is decided already.")
            self._next()
            return
        try:
            await self._do(word.lower(), rest.strip())
        except (AlreadyDecided, ChangedSinceSeen) as error:
            self._say(error_text(error))
            self._next()
        except WhisperError as error:
            self._say(error_text(error))

    async def _do(self, word: str, rest: str) -> None:
        match word:
            case "":
                self.news()
            case _ if word in DECIDING:
                await self._decide(word, rest)
            case "aside" | "z":
                await self._set_aside()
            case "call" | "c":
                self._go_to(rest)
            case "list" | "l":
                self._list()
            case "show" | "v":
                await self._show(rest)
            case "output" | "o":
                await self._output(rest)
            case "signal":
                await self._signal(rest)
            case "help" | "h" | "?":
                self._say(HELP)
            case "quit" | "q":
                self.left = True
            case _:
                self._say(f"There is no answer {visible(word)!r}. Type help for the list of answers.")

    async def _decide(self, word: str, rest: str) -> None:
        record = self.shown
        if record is None:
            self._say("Nothing waits for you.")
            return
        if self.gone():
            self._say(f"Nothing was done: call {record.id} was decided elsewhere or has changed.")
            self._next()
            return
        if self._clock() - self._read_at < GUARD_S:
            self._say(f"Nothing was done: call {record.id} has just been read out. Answer again.")
            return
        match word:
            case "deny" | "d":
                await self._deny(record, rest)
            case "edit" | "e":
                self._edit(record, rest)
            case "skip" | "k":
                self._skip(record)
            case "no":
                self._edited = None
                self._say("The edited command is discarded.")
            case _:
                scope: Scope | None = "exact_for_session" if word in {"session", "s"} else None
                sandbox = await self._sandbox(record, rest)
                await self._send(record, Approve(edited=self._edited, remember=scope, sandbox=sandbox))

    async def _sandbox(self, record: CallRecord, text: str) -> Sandbox | None:
        """Return the sandbox that the words after `approve` name.

        Raises `InvalidRequest` for other words, and where no sandbox is available.
        """
        if not text:
            return None
        sandbox = SANDBOXES.get(" ".join(text.lower().split()))
        if sandbox is None:
            problem = f"nothing is approved: {visible(text)!r} is no sandbox"
            raise InvalidRequest(problem, hint=f"There are {', '.join(SANDBOXES)}")
        if self.supervision is not None and (problem := await why_not_confined(self.supervision, record)):
            raise InvalidRequest(problem)
        return sandbox

    async def _deny(self, record: CallRecord, reason: str) -> None:
        if not reason and not self._deny_asked:
            self._deny_asked = True
            self._say("Type deny and a reason, which helps the agent most; or deny once more, without one.")
            return
        await self._send(record, Deny(reason=reason))

    def _edit(self, record: CallRecord, text: str) -> None:
        spec = record.call.spec
        if not text or not record.call.takes_change:
            how = "Type edit and the whole command as it should run."
            self._say(how if record.call.takes_change else f"It cannot be edited: {NO_CHANGE}. {DENY_INSTEAD}.")
            return
        self._edited = edited_spec(spec, text)
        words = self._edited.command
        shown = words.text
        self._say(f"It would run: {visible(shown)}")
        self._say("Type yes to approve that, or no to discard it.")

    async def _send(self, record: CallRecord, decision: Decision) -> None:
        if self.supervision is None:
            raise InvalidRequest("the supervisor cannot be reached now", hint="Nothing is lost; answer again later")
        self._sending = True
        self._decided.add(record.id)
        try:
            proof = () if self.signer is None else (await self.signer.sign(record, decision, self._me, self._say),)
            await self.supervision.decide(record.id, decision, self._me, record.seen_digest(), *proof)
        except WhisperError:
            self._decided.discard(record.id)
            raise
        finally:
            self._sending = False
        self._skipped.discard(record.id)
        approved = isinstance(decision, Approve)
        sandbox = decision.sandbox if isinstance(decision, Approve) else None
        confined = f" into a sandbox ({sandbox.words()})" if sandbox is not None else ""
        self._say(f"Call {record.id} is {'approved' if approved else 'denied'}{confined}.")
        # The event of this decision may come later, and until then the call must not be shown again.
        self.board.waiting.pop(record.id, None)
        self._next()

    async def _set_aside(self) -> None:
        """Set the call that was read out aside, or bring it back, and go on with the next one."""
        record = self.shown
        if record is None or self.gone():
            self._say("Nothing was done: no call that waits is read out.")
            return
        back = record.aside is not None
        self._sending = True
        self._decided.add(record.id)
        try:
            await self._port.set_aside(record.id, self._me, back=back)
        except WhisperError:
            self._decided.discard(record.id)
            raise
        finally:
            self._sending = False
        self._say(f"Call {record.id} {'waits again' if back else 'is set aside'}.")
        # As after a decision, the event may come later.
        (self.board.aside if back else self.board.waiting).pop(record.id, None)
        self._next()

    def _skip(self, record: CallRecord) -> None:
        self._skipped.add(record.id)
        if self._skipped >= set(self.board.waiting):
            self._skipped.clear()
            self._say("That was the last one; skipped calls still wait. Press Enter to start again.")
            self.shown, self.between = None, True
            return
        self._next()

    def _go_to(self, call_id: str) -> None:
        if call_id not in self.board.waiting and call_id not in self.board.aside:
            raise InvalidRequest(f"call {visible(call_id)} does not wait", hint="Type list for those that do")
        self.lay(self.board.calls[call_id])

    def _list(self) -> None:
        board = self.board
        aside = (("are set aside", board.aside),) if board.aside else ()
        for title, ids in (("wait", board.waiting), *aside, ("are approved", board.queued), ("run", board.running)):
            self._say(f"{count(len(ids), 'call')} {title}{':' if ids else '.'}")
            for record in (board.calls[call_id] for call_id in ids):
                self._say(f"Call {record.id} of {session_label_of(record, board)}: {first_words(record)}")

    async def _show(self, call_id: str) -> None:
        record = self.shown
        if call_id or record is None:
            record = await self._port.record(call_id)
        self._say_all(in_full(record, self.board, time.time()))
        if isinstance(record.state, Waiting):
            self._say_all(effects_said(await self._port.effects(record.id)))

    async def _output(self, call_id: str) -> None:
        for stream, name in (("out", "output"), ("err", "errors")):
            chunk = await self._port.read_output(call_id, stream, -LAST_BYTES, LAST_BYTES)  # type: ignore[arg-type]
            shown = last_lines(chunk.data)
            self._say(f"The end of its {name}, {count(chunk.size, 'byte')}:" if shown else f"It has no {name}.")
            self._say_all(shown)

    async def _signal(self, rest: str) -> None:
        call_id, _, name = rest.partition(" ")
        await self._port.signal(call_id, number_of(name.strip()), "tree", self._me)

    @property
    def _port(self) -> Supervision:
        if self.supervision is None:
            raise InvalidRequest("the supervisor cannot be reached now", hint="Answer again later")
        return self.supervision

    def _say_all(self, said: Iterable[str]) -> None:
        for line in said:
            self._say(line)


STALLS_EVERY_S = 1.0
"""Seconds between two questions which runs get no further."""

RETRY_S = 2.0
"""Seconds between attempts to reach a supervisor that is gone."""

PROMPT_S, LATEST_PROMPT_S = 0.3, 2.0
"""Seconds without another line before the prompt is printed, and at most so many while lines go on."""


class WatchSession:
    """One watch: lines out, and answers in where somebody can give them."""

    def __init__(self, home: Directories, *, asks: bool) -> None:
        self._home = home
        self._asks = asks
        self._answers = WatchAnswers(self._say, Decider.model_validate(decider()))
        self._answers.signer = signer_of(load(home).evidence.sign)
        self._prompted = False
        self._prompt_timer: asyncio.TimerHandle | None = None
        self._prompt_by = 0.0
        """Loop time at which a wanted prompt is printed at the latest."""

    async def run(self) -> None:
        """Go on until the person leaves."""
        supervision = await SupervisorClient.connect(self._home)
        following = asyncio.create_task(self._follow(supervision), name="follow")
        answering = asyncio.create_task(self._answer(), name="answer") if self._asks else None
        looking = asyncio.create_task(self._look_at_runs(), name="stalls")
        reading = asyncio.create_task(self._read_effects(), name="effects")
        tasks = [task for task in (following, answering, looking, reading) if task is not None]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.wait(tasks)
        for task in done:
            task.result()

    async def _follow(self, supervision: SupervisorClient) -> None:
        while True:
            try:
                self._answers.supervision = supervision
                await self._tell(supervision)
                problem = "The supervisor has stopped. Running commands continue under their keepers."
            except WhisperError as error:
                problem = error_text(error)
            finally:
                await supervision.close()
            self._answers.supervision = None
            self._say(f"{problem} Watching for it to come back.")
            while self._answers.supervision is None:
                await asyncio.sleep(RETRY_S)
                try:
                    if not stopped_on_purpose(self._home):
                        await ensure_supervisor(self._home)
                    supervision = await SupervisorClient.connect(self._home, start=False)
                    self._answers.supervision = supervision
                except WhisperError:
                    continue

    async def _tell(self, supervision: Supervision) -> None:
        """Print what happens from now on, after one line about the present state."""
        # A supervisor of the version before does not say when all of the present was sent.
        marks_present = (await supervision.status()).now is not None
        board = self._answers.board = Board()
        newest: int | None = None
        async for events in supervision.watch(None):
            for event in events:
                # Before a session that comes back, all that made it is told again.
                new = newest is not None and event.seq > newest
                board.apply(event)
                if new and not self._answers.was_said(event) and (line := happened(event, board)) is not None:
                    self._say(line)
            if newest is None and not (events and marks_present):
                self._say(_present(board))
                newest = board.seq
            if newest is not None:
                newest = board.seq
                self._look()

    def _look(self) -> None:
        """After an event: report that the shown call is gone, or show the next one."""
        answers = self._answers
        if not self._asks:
            return
        if answers.shown is not None and answers.gone():
            self._say(f"Call {answers.shown.id} was decided elsewhere or has changed. Press Enter for the next.")
            answers.forget()
        else:
            answers.news()
        self._prompt()

    async def _read_effects(self) -> None:
        while True:
            await self._answers.read_effects()
            self._prompt()

    async def _look_at_runs(self) -> None:
        """Say which runs are stopped or need input, and what queued calls wait for: no event tells that."""
        known: dict[str, Stall] = {}
        said: set[str] = set()
        while True:
            await asyncio.sleep(STALLS_EVERY_S)
            board, supervision = self._answers.board, self._answers.supervision
            if supervision is None:
                continue
            with suppress(WhisperError):  # The one who follows the events says that the connection is lost.
                stalls = await supervision.stalls()
                queue = (await supervision.status()).queue if board.queued else NOT_QUEUED
                for sentence in (*stall_sentences(board, known, stalls), *queue_sentences(board, queue, said)):
                    self._say(f"{clock_time(time.time())} {sentence}")
                    self._prompt()
                known = {call_id: stall for call_id, stall in stalls.items() if call_id in board.calls}

    async def _answer(self) -> None:
        """Take answers, one line after the other, until the end of input."""
        lines = _Lines(sys.stdin.fileno())
        self._say("Type help for the list of answers.")
        self._prompt()
        try:
            while not self._answers.left and (line := await lines.next()) is not None:
                self._prompted = False
                await self._answers.answer(line)
                self._prompt()
        finally:
            lines.close()
            self._drop_prompt()
            self._prompted = False

    def _say(self, text: str) -> None:
        """Print a line, on a new line if the prompt is on the current one."""
        sys.stdout.write(("\n" if self._prompted else "") + text + "\n")
        sys.stdout.flush()
        self._prompted = False

    def _prompt(self) -> None:
        """Print the prompt once no more lines come."""
        if not self._asks or self._prompted or self._answers.left:
            return
        # A screen reader reads every prompt aloud, and a call that was approved brings several events at once.
        loop = asyncio.get_running_loop()
        if self._prompt_timer is None:
            self._prompt_by = loop.time() + LATEST_PROMPT_S
        self._drop_prompt()
        self._prompt_timer = loop.call_at(min(loop.time() + PROMPT_S, self._prompt_by), self._print_prompt)

    def _print_prompt(self) -> None:
        self._prompt_timer = None
        if not self._prompted and not self._answers.left:
            sys.stdout.write(self._answers.prompt)
            sys.stdout.flush()
            self._prompted = True

    def _drop_prompt(self) -> None:
        if self._prompt_timer is not None:
            self._prompt_timer.cancel()
            self._prompt_timer = None


def _present(board: Board) -> str:
    if not board.calls:
        return "Connected. No call yet."
    aside = f"{len(board.aside):,} set aside, " if board.aside else ""
    return f"Connected. {count(len(board.waiting), 'call')} waiting, {aside}{len(board.running)} running."


class _Lines:
    """Lines of a terminal, read by the event loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        # Not in a thread: one that blocks in read() cannot be ended, and would keep the program alive.
        asyncio.get_running_loop().add_reader(fd, self._read)

    async def next(self) -> str | None:
        """The next line. None: the input has ended."""
        return await self._lines.get()

    def close(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65_536)
        except OSError:
            data = b""
        *lines, self._data = (self._data + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self.close()
            self._lines.put_nowait(None)
