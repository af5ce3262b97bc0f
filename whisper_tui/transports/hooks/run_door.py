"""The door of `exec`: a ticket is shown, its command is started, and both ends are joined byte for byte."""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic import Field, ValidationError

from whisper_tui.model.broken_limit import broken_limit
from whisper_tui.model.call import Session
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Ending, Exited, Signalled
from whisper_tui.model.errors import InvalidRequest, NotAllowed, NotRunning, Refused
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Claim, Ended
from whisper_tui.model.value import Count, Value
from whisper_tui.tools.exec_command.task import ending_sentence
from whisper_tui.tools.told import limit_note, sandbox_note
from whisper_tui.transports.hooks.flow import Flow
from whisper_tui.transports.hooks.following import Following
from whisper_tui.transports.hooks.frames import END, EOF, INPUT, NOTE, SIGNAL, STDERR, STDIN, STDOUT, Frames, frame
from whisper_tui.transports.versions import check_version

InputFile = Callable[[str], str | None]
"""The path of the FIFO from which a call's command takes its input. None: it takes none, or not any more."""

Descends = Callable[[Any, int], bool]
"""Whether the process at the other end of a socket descends from the process with this pid."""

VERSION = 1
"""Of the hello of `exec`."""

AGENT = Decider(surface="agent")
READ = 1 << 16

TAKES_INPUT_WITHIN_S, AGAIN_S = 5.0, 0.02
"""Seconds in which a run that has begun takes input, and between two tries."""

QUEUED_S = 2.0
"""Seconds that a command waits for a worker until that is said."""

HANGS_ON_SIGNALS = frozenset({"opencode"})
"""Agents whose shell waits for its own time limit when a command dies of a signal: measured with OpenCode 1.18.33."""

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
    "CLAUDECODE": {"1"},
    "CODEX_CI": {"1"},
    "GEMINI_CLI": {"1"},
    "OPENCODE": {"1"},
}
"""Variables that agents set for their commands alone, with the values that cannot change what a command does."""


class RunHello(Value):
    """What `exec` says: which ticket, from where, and what it brings."""

    door: str = "exec"
    version: int = VERSION
    ticket: str
    by: str = Field(min_length=16)
    """Made by the program, so that coming back after a lost connection is the same claim."""
    cwd: str
    stdin: bool
    names: tuple[str, ...] = ()
    """Names of all its variables."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Those of its variables that agents set for their commands."""
    out: Count = 0
    """Bytes of standard output that it has had already."""
    err: Count = 0


class RunDoor:
    """Joins agents' shells with the runs that stand for their commands."""

    def __init__(
        self, supervision: Supervision, descends: Descends, input_file: InputFile, following: Following
    ) -> None:
        self._supervision = supervision
        self._following = following
        self._descends = descends
        self._input_file = input_file

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. If it breaks, the agent has ended its command, and so is the run."""
        said = _checked(hello)
        call_id, _, secret = said.ticket.partition("-")
        record = await self._supervision.record(call_id)
        session = await self._supervision.session(record.call.session_id)
        await self._check(record, session, said, writer)
        follows = self._following.applies(record)
        claim = Claim(by=said.by, stdin=said.stdin, environment=_harmless(said.environment), follows=follows)
        record = await self._supervision.claim(call_id, secret, claim, said.names)
        dies = session.client is None or session.client.name not in HANGS_ON_SIGNALS
        way_in = self._input_file if said.stdin else None
        joined = _Joined(
            self._supervision, record, reader, writer, said, following=self._following, dies=dies, way_in=way_in
        )
        await joined.serve()

    async def _check(self, record: CallRecord, session: Session, said: RunHello, writer: asyncio.StreamWriter) -> None:
        """Raises `Refused` for a ticket shown in another session, or from another directory than it was given in."""
        if session.pid is not None:
            socket = writer.get_extra_info("socket")
            if not await asyncio.to_thread(self._descends, socket, session.pid):
                raise NotAllowed(
                    f"the ticket of call {record.id} was given to another session", hint="Run the command again"
                )
        # The agent's shell is where the agent asked from; a human may have sent the command itself elsewhere.
        asked, here = os.path.realpath(record.call.spec.cwd), os.path.realpath(said.cwd)
        if asked != here:
            raise Refused(
                f"the command was approved for {asked} and was started in {here}, so it did not run",
                hint="Run it again with the directory as part of the command: cd DIRECTORY && COMMAND",
            )


class _Joined:
    """One run and one connection."""

    def __init__(
        self,
        supervision: Supervision,
        record: CallRecord,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        said: RunHello,
        *,
        following: Following,
        dies: bool,
        way_in: InputFile | None,
    ) -> None:
        self._dies = dies
        """Whether the program ends by the signal that ended the command, instead of with the code for it."""
        self._way_in = way_in
        """None: the program has no input."""
        self._supervision = supervision
        self._record = record
        self._reader = reader
        self._writer = writer
        self._following = following
        self._ticket = said.ticket
        self._takes_input = False
        """Whether the run has taken input: if it then takes no more, it never will again."""
        self._flow = Flow(supervision, record.id, said.out, said.err)

    async def serve(self) -> None:
        """Pass everything on until the run has ended, the agent is gone, or what comes from it makes no sense."""
        sending = asyncio.create_task(self._send())
        taking = asyncio.create_task(self._take())
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
            for task in (sending, taking):
                task.cancel()
            await asyncio.gather(sending, taking, return_exceptions=True)

    async def _end_run(self) -> None:
        await self._supervision.withdraw(self._record.id, "its agent ended it", stop_running=True)

    async def _say_what_it_waits_for(self) -> None:
        """Nothing runs yet, and some agents tell their models that it does: whoever reads the output is told."""
        started = asyncio.create_task(self._supervision.started(self._record.id))
        try:
            done, _ = await asyncio.wait({started}, timeout=QUEUED_S)
            if not done:
                busy = (await self._supervision.status()).busy
                note = f"queued, and not running yet: {busy}" if busy else "queued, and not running yet"
                self._writer.write(frame(NOTE, note.encode()))
                await started
                self._writer.write(frame(NOTE, b"it runs now"))
        finally:
            started.cancel()

    async def _send(self) -> None:
        await self._say_what_it_waits_for()
        if self._way_in is not None:
            await self._supervision.started(self._record.id)
            self._writer.write(frame(INPUT, os.fsencode(self._way_in(self._record.id) or "")))
        async for stream, data in self._flow.pieces():
            self._writer.write(frame(STDOUT if stream == "out" else STDERR, data))
            await self._writer.drain()
        record = await self._supervision.outcome(self._record.id)
        if isinstance(record.state, Ended):
            ended = _ended(record, record.state.ending, dies=self._dies)
            if note := self._following.point(self._ticket, record):
                ended["said"] = note
            self._writer.write(frame(END, json.dumps(ended).encode()))
            await self._writer.drain()

    async def _take(self) -> None:
        frames = Frames()
        while data := await self._reader.read(READ):
            try:
                pieces = frames.feed(data)
            except ValueError as error:
                raise InvalidRequest(str(error)) from error
            for kind, piece in pieces:
                await self._obey(kind, piece)

    async def _obey(self, kind: bytes, data: bytes) -> None:
        record = await self._supervision.started(self._record.id)
        if kind == SIGNAL and data:
            with suppress(NotRunning):
                await self._supervision.signal(record.id, data[0], "group", AGENT)
        elif kind in {STDIN, EOF}:
            await self._write(data, eof=kind == EOF)

    async def _write(self, data: bytes, *, eof: bool) -> None:
        """Pass on input. A run that has just begun may need a moment before it takes any."""
        deadline = asyncio.get_running_loop().time() + TAKES_INPUT_WITHIN_S
        while True:
            try:
                await self._supervision.write_stdin(self._record.id, data, eof=eof)
            except NotRunning:
                if self._takes_input or asyncio.get_running_loop().time() > deadline:
                    return
                await asyncio.sleep(AGAIN_S)
            else:
                self._takes_input = True
                return


def _ended(record: CallRecord, ending: Ending, *, dies: bool) -> dict[str, Any]:
    """How the program is to end: as the command did, and with a sentence where that alone says too little."""
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
                "said": " ".join(filter(None, (limit_note(record) or ending_sentence(ending), sandbox_note(record)))),
            }


def _checked(hello: dict[str, Any]) -> RunHello:
    check_version(hello, "exec", VERSION)
    try:
        said = RunHello.model_validate(hello)
    except ValidationError as error:
        raise InvalidRequest(f"the hello of exec is wrong: {error.errors()[0]['msg']}") from error
    if "\0" in said.cwd:
        raise InvalidRequest("the hello of exec is wrong: no directory has a null byte in its name")
    return said


def _harmless(given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value in HARMLESS.get(name, ())}
