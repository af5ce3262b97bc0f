"""The supervisor's end of `exec`: a ticket starts its command, and input and output are forwarded byte for byte.

After an approved `cd build`, the agent's next command runs in build. The approved command runs in another shell. So the
agent's command ends in `cd -P LINK`. The link is created once the command has succeeded, and leads to the directory
in which that ended (decision 17).
"""

import asyncio
import hmac
import json
import os
import re
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from whisper_tui.agents.known_clients import SHELL_VARIABLES, profile_behind
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import Command, Session
from whisper_tui.model.call_rows import broken_limit
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Ending, Exited, Signalled
from whisper_tui.model.errors import InvalidRequest, NotAllowed, NotRunning, Refused, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.run import Stream, output_turns
from whisper_tui.model.state import CallRecord, Claim, Ended, ShellReport
from whisper_tui.model.value import Count, Value
from whisper_tui.present.ending_text import ending_for_agent
from whisper_tui.tools.agent_text import limit_note, sandbox_note
from whisper_tui.transports.hook.exec_program import END, EOF, INPUT, NOTE, SIGNAL, STDERR, STDIN, STDOUT, Frames, frame
from whisper_tui.transports.hook.what_ran import WhatRan
from whisper_tui.transports.typed_input import type_once_approved

REMOVED_AFTER_S = 60.0
"""Seconds after the command's end until its link is removed."""

NAMES_CD = re.compile(r"(?<![\w-])(cd|pushd|popd)(?![\w-])")

LastDirectory = Callable[[str], str | None]
"""Returns the directory in which a call's shell has ended. None: it is unknown."""

MayLeave = Callable[[Command], bool]
"""Returns True if a command's shell may end in another directory than it began in."""


class ShellDirectory:
    """Creates the links, in a separate directory."""

    def __init__(self, directory: Path, last_directory: LastDirectory, may_leave: MayLeave) -> None:
        """Remove the links of an earlier supervisor."""
        self._directory = directory
        self._last_directory = last_directory
        self._may_leave = may_leave
        for link in directory.glob("*-*"):
            link.unlink(missing_ok=True)

    def applies(self, record: CallRecord) -> bool:
        """Return True if the agent's shell may be in another directory after this command."""
        return record.call.follows and self._may_leave(record.spec.command)

    def after(self, ticket: str) -> str:
        """Return the command for the agent's shell after the command of a ticket has succeeded."""
        # The directory is not known yet, and its name may contain anything. A link with a plain name stands for it.
        return f"cd -P {shlex.quote(str(self._directory / ticket))}"

    def point(self, ticket: str, record: CallRecord) -> str:
        """Create the link of a call that has ended. Return a note for its agent, which is usually empty."""
        if not isinstance(record.state, Ended) or record.state.ending != Exited(code=0) or not self.applies(record):
            return ""
        home = record.call.spec.cwd
        last = None if record.spec.place else self._last_directory(record.id)
        began = os.path.realpath(record.spec.cwd)
        # A human may have chosen another directory. The agent's shell only follows if the command has changed it again.
        there = last if last is not None and last != began and Path(last).is_dir() else home
        try:
            self._create_link(self._directory / ticket, there)
        except OSError as error:
            return f"the next command starts in {home}: its last directory cannot be passed on ({error.strerror})"
        said = record.spec.command.words()[-1]
        if (last is None or (there == home and last != began)) and NAMES_CD.search(said):
            return f"the next command starts in {home}: the last directory of this one is unknown or gone"
        return ""

    def _create_link(self, link: Path, there: str) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(there)
        # The agent's shell follows the link a moment later, and nothing reports when it has.
        asyncio.get_running_loop().call_later(REMOVED_AFTER_S, lambda: link.unlink(missing_ok=True))


PIECE = 1 << 20
"""Bytes in one piece."""

SPANS = 4096
"""How many rows of the time index are read at once."""

SHORTEST_S, LONGEST_S = 0.005, 0.1
"""The shortest and longest pause between two polls. The pause doubles while there is no output."""

STREAMS: tuple[Stream, Stream] = ("out", "err")


class LiveOutput:
    """Reads the output of one call from given offsets."""

    def __init__(self, supervision: Supervision, call_id: str, out: int, err: int) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._at: dict[Stream, int] = {"out": out, "err": err}
        self._row = 0

    async def pieces(self) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yield the output, up to the end of the run's first process."""
        await self._supervision.started(self._call_id)
        outcome = asyncio.create_task(self._supervision.outcome(self._call_id))
        pause = SHORTEST_S
        try:
            # Polled with a growing pause, because a keeper's files send no notifications.
            while not outcome.done():
                came = False
                async for piece in self._in_order():
                    came = True
                    yield piece
                pause = SHORTEST_S if came else min(pause * 2, LONGEST_S)
                await asyncio.wait({outcome}, timeout=pause)
            async for piece in self._in_order():
                yield piece
            async for piece in self._rest(await outcome):
                yield piece
        finally:
            outcome.cancel()

    async def _in_order(self) -> AsyncIterator[tuple[Stream, bytes]]:
        while spans := await self._supervision.read_timeline(self._call_id, self._row, SPANS):
            self._row += len(spans)
            for stream, end in output_turns(spans):
                async for piece in self._until(stream, end):
                    yield piece

    async def _rest(self, record: CallRecord) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yield the output that is missing in the time index, up to the end of the run's first process."""
        sizes = record.state.output if isinstance(record.state, Ended) else None
        for stream in STREAMS:
            end = getattr(sizes, stream) if sizes is not None else 0
            async for piece in self._until(stream, end):
                yield piece

    async def _until(self, stream: Stream, end: int) -> AsyncIterator[tuple[Stream, bytes]]:
        while self._at[stream] < end:
            limit = min(PIECE, end - self._at[stream])
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], limit)
            missing = chunk.start - self._at[stream]
            if missing > 0:
                yield "err", b"\nwhisper_tui: %d bytes of the output were not kept\n" % missing
            if not chunk.data:
                self._at[stream] = max(self._at[stream], chunk.start)
                return
            self._at[stream] = chunk.start + len(chunk.data)
            yield stream, chunk.data


InputFile = Callable[[str], str | None]
"""Returns the path of the FIFO of a command's standard input. None: it accepts no input, or no longer."""

Descends = Callable[[Any, int], bool]
"""Returns True if the process at the other end of a socket descends from the process with this id."""

ShellWords = Callable[[Any], tuple[str, ...]]
"""Returns the command line of the shell that started the process at the other end of a socket."""

AGENT = Decider(surface="agent")
READ = 1 << 16

INPUT_OPENS_WITHIN_S, RETRY_S = 5.0, 0.02
"""Seconds after its start within which a run accepts input, and between two attempts."""

QUEUED_S = 2.0
"""Seconds that a command waits for a worker before its agent gets a note."""

HARMLESS = {
    "GIT_EDITOR": {"true", ":"},
    "PAGER": {"cat"},
    "GIT_PAGER": {"cat"},
    "GH_PAGER": {"cat"},
    "NO_COLOR": {"1"},
    "TERM": {"dumb", "xterm-256color"},
    "COLORTERM": {""},
    "LC_ALL": {"C.UTF-8", "C.utf8"},
    "LC_CTYPE": {"C.UTF-8", "C.utf8"},
    "CI": {"1", "true"},
    **{name: {"1"} for name in SHELL_VARIABLES},
}
"""Variables that agents set for their commands, with the values that cannot change a command's effect."""


class RunHello(Value):
    """The hello of `exec`: its ticket, its directory and its environment."""

    door: str = "exec"
    version: int = HELLO_VERSIONS["exec"]
    ticket: str
    by: str = Field(min_length=16)
    """Chosen by the program, so that a new connection after a lost one makes the same claim."""
    cwd: str
    stdin: bool
    names: tuple[str, ...] = ()
    """Names of all its variables."""
    environment: dict[str, str] = Field(default_factory=dict)
    """The values of its variables; programs of earlier versions only send those that agents set for their commands."""
    out: Count = 0
    """Bytes of standard output that it has already received."""
    err: Count = 0


class ExecEndpoint:
    """Connects agents' shells with the runs of their commands."""

    def __init__(
        self,
        supervision: Supervision,
        descends: Descends,
        shell_words: ShellWords,
        input_file: InputFile,
        shell_directory: ShellDirectory,
        *,
        what_ran: WhatRan,
    ) -> None:
        self._supervision = supervision
        self._what_ran = what_ran
        self._shell_words = shell_words
        self._following = shell_directory
        self._descends = descends
        self._input_file = input_file

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. If it breaks, the agent has ended its command, so the run is ended too."""
        said = _checked(hello)
        call_id, _, secret = said.ticket.partition("-")
        record = await self._supervision.record(call_id)
        session = await self._supervision.session(record.call.session_id)
        if record.call.ticket is not None and hmac.compare_digest(record.call.ticket.encode(), secret.encode()):
            # Also if it is refused: then its agent has done what it was told, and is told why.
            self._what_ran.shown(call_id)
        await self._check(record, session, said, writer)
        follows = self._following.applies(record)
        claim = Claim(by=said.by, stdin=said.stdin, environment=_harmless(said.environment), follows=follows)
        profile = None if session.client is None else profile_behind(session.client.name)
        read = profile.shell_profile if profile is not None else None
        words = await asyncio.to_thread(self._shell_words, writer.get_extra_info("socket")) if read is not None else ()
        report = ShellReport(
            names=said.names,
            environment=said.environment,
            profile=read(words, said.environment) if read is not None else "",
        )
        record = await self._supervision.claim(call_id, secret, claim, report)
        dies = profile is None or not profile.hangs_on_signals
        asks = profile is not None and profile.asks_no_hook_about_input
        input_file = (_no_file if asks else self._input_file) if said.stdin else None
        joined = _RunConnection(
            self._supervision,
            record,
            reader,
            writer,
            said,
            shell_directory=self._following,
            dies=dies,
            input_file=input_file,
            asks_about_input=asks,
        )
        await joined.serve()

    async def _check(self, record: CallRecord, session: Session, said: RunHello, writer: asyncio.StreamWriter) -> None:
        """Raise `Refused` for a ticket of another session, or of another directory (decision 17)."""
        if session.pid is not None:
            socket = writer.get_extra_info("socket")
            if not await asyncio.to_thread(self._descends, socket, session.pid):
                raise NotAllowed(
                    f"the ticket of call {record.id} was given to another session", hint="Run the command again"
                )
        # The agent's shell is in the directory of the request. A human may have chosen another one for the command.
        asked, here = os.path.realpath(record.call.spec.cwd), os.path.realpath(said.cwd)
        if asked != here:
            raise Refused(
                f"the command was approved for {asked} and was started in {here}, so it did not run",
                hint="Run it again with the directory as part of the command: cd DIRECTORY && COMMAND",
            )


class _RunConnection:
    """The connection of one program with one run."""

    def __init__(
        self,
        supervision: Supervision,
        record: CallRecord,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        said: RunHello,
        *,
        shell_directory: ShellDirectory,
        dies: bool,
        input_file: InputFile | None,
        asks_about_input: bool,
    ) -> None:
        self._dies = dies
        """True if the program dies of the command's signal, False if it ends with the shell's exit code for it."""
        self._way_in = input_file
        """None: the program has no input."""
        self._supervision = supervision
        self._record = record
        self._reader = reader
        self._writer = writer
        self._following = shell_directory
        self._ticket = said.ticket
        self._asked_input: asyncio.Queue[tuple[bytes, bool]] | None = asyncio.Queue() if asks_about_input else None
        """Input that is still to be asked about, and True for its end. None: nothing is asked."""
        self._takes_input = False
        """True once the run has accepted input. If it refuses input afterwards, that is final."""
        self._flow = LiveOutput(supervision, record.id, said.out, said.err)

    async def serve(self) -> None:
        """Forward everything until the run ends, the agent disconnects, or sends something invalid."""
        sending = asyncio.create_task(self._send())
        taking = asyncio.create_task(self._receive())
        typing = asyncio.create_task(self._type_what_is_approved())
        try:
            done, _ = await asyncio.wait({sending, taking}, return_when=asyncio.FIRST_COMPLETED)
            if sending in done:
                await sending
                return
            await taking
            await self._end_run()
        except ConnectionError:
            await self._end_run()
        except InvalidRequest:
            await self._end_run()
            raise
        finally:
            for task in (sending, taking, typing):
                task.cancel()
            await asyncio.gather(sending, taking, typing, return_exceptions=True)

    async def _end_run(self) -> None:
        await self._supervision.withdraw(self._record.id, "its agent ended it", stop_running=True)

    async def _announce_queueing(self) -> None:
        """Write a note while the command waits for a worker."""
        # Some agents tell their models that the command is running. So the note is in the output that the model reads.
        started = asyncio.create_task(self._supervision.started(self._record.id))
        try:
            done, _ = await asyncio.wait({started}, timeout=QUEUED_S)
            if not done:
                record = self._record
                queue, place = (await self._supervision.status()).queue, record.spec.place
                reason = queue.of(record.call.session_id, by_human=record.decided_by_human, place=place)
                why = f": {reason.words_for_agents()}" if reason is not None else ""
                note = f"queued, and not running yet{why}"
                self._writer.write(frame(NOTE, note.encode()))
                await started
                self._writer.write(frame(NOTE, b"it runs now"))
        finally:
            started.cancel()

    async def _send(self) -> None:
        await self._announce_queueing()
        if self._way_in is not None:
            await self._supervision.started(self._record.id)
            self._writer.write(frame(INPUT, os.fsencode(self._way_in(self._record.id) or "")))
        async for stream, data in self._flow.pieces():
            self._writer.write(frame(STDOUT if stream == "out" else STDERR, data))
            await self._writer.drain()
        record = await self._supervision.outcome(self._record.id)
        if isinstance(record.state, Ended):
            ended = program_end(record, record.state.ending, dies=self._dies)
            if note := self._following.point(self._ticket, record):
                ended["said"] = note
            self._writer.write(frame(END, json.dumps(ended).encode()))
            await self._writer.drain()

    async def _receive(self) -> None:
        frames = Frames()
        while data := await self._reader.read(READ):
            try:
                pieces = frames.feed(data)
            except ValueError as error:
                raise InvalidRequest(str(error)) from error
            for kind, piece in pieces:
                await self._handle(kind, piece)

    async def _handle(self, kind: bytes, data: bytes) -> None:
        record = await self._supervision.started(self._record.id)
        if kind == SIGNAL and data:
            # To the process group, as a terminal does with Ctrl-C.
            with suppress(NotRunning):
                await self._supervision.signal(record.id, data[0], "group", AGENT)
        elif kind in {STDIN, EOF}:
            if self._asked_input is None:
                await self._write(data, eof=kind == EOF)
            else:
                # Not here: a signal must reach the command while a human decides.
                self._asked_input.put_nowait((data, kind == EOF))

    async def _type_what_is_approved(self) -> None:
        """Ask about each piece of input, and forward it once it is approved."""
        while self._asked_input is not None:
            data, eof = await self._asked_input.get()
            if eof:
                await self._write(b"", eof=True)
                continue
            try:
                await type_once_approved(
                    self._supervision,
                    self._record.id,
                    data,
                    self._type,
                    gone="the command has ended",
                    asked=self._tell_wait,
                )
            except WhisperError as error:
                self._writer.write(frame(NOTE, f"nothing was typed: {error.sentence()}".encode()))

    async def _type(self, data: bytes) -> None:
        if not await self._write(data, eof=False):
            raise NotRunning(f"call {self._record.id} takes no more input")

    def _tell_wait(self, call_id: str) -> None:
        note = f"what you typed waits for a human's decision (call {call_id}); it is not typed before"
        self._writer.write(frame(NOTE, note.encode()))

    async def _write(self, data: bytes, *, eof: bool) -> bool:
        """Forward input. False: the run takes none, or no more."""
        # A run that has just started may not accept input immediately.
        deadline = asyncio.get_running_loop().time() + INPUT_OPENS_WITHIN_S
        while True:
            try:
                await self._supervision.write_stdin(self._record.id, data, eof=eof)
            except NotRunning:
                if self._takes_input or asyncio.get_running_loop().time() > deadline:
                    return False
                await asyncio.sleep(RETRY_S)
            else:
                self._takes_input = True
                return True


def program_end(record: CallRecord, ending: Ending, *, dies: bool) -> dict[str, Any]:
    """Return the program's ending: the command's own, with an explanation if it needs one."""
    match ending:
        case Exited(code=code):
            note = sandbox_note(record)
            return {"code": code, "said": note} if note else {"code": code}
        case Signalled(number=number):
            why = broken_limit(record)
            said = {"said": f"the command was ended, because {why}"} if why else {}
            return said | ({"signal": number} if dies else {"code": 128 + number})
        case _:
            return {
                "code": 126,
                "said": " ".join(filter(None, (limit_note(record) or ending_for_agent(ending), sandbox_note(record)))),
            }


def _no_file(_call_id: str) -> str:
    """Return no FIFO: the input goes through the supervisor, which asks about it."""
    return ""


def _checked(hello: dict[str, Any]) -> RunHello:
    try:
        said = RunHello.model_validate(hello)
    except ValidationError as error:
        raise InvalidRequest(f"the hello of exec is wrong: {error.errors()[0]['msg']}") from error
    if "\0" in said.cwd:
        raise InvalidRequest("the hello of exec is wrong: its directory contains a null byte")
    return said


def _harmless(given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value in HARMLESS.get(name, ())}
