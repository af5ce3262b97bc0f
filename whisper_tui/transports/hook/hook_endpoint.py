"""The supervisor's end of hooks: each request becomes a call, and an approval becomes a command with a ticket."""

import asyncio
import json
import logging
import os
import re
import secrets
import shlex
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from whisper_tui.agents.agent_tools import Content
from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.hook_formats import NO_DECISION, DoneCall, HookAnswer, HookFormat, HookRequest, parsed
from whisper_tui.agents.known_clients import profile_of
from whisper_tui.agents.model_instructions import WORK_RUNS
from whisper_tui.agents.own_rules import literal_words
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import (
    LONGEST_NAME,
    CallRequest,
    ClientInfo,
    Command,
    CommandSpec,
    FileEdits,
    Function,
    Session,
    SessionHello,
    Shell,
    digest,
)
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, UnknownCall, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.state import WENT_ON, CallRecord, Ended, Held, Unjudged, Waiting
from whisper_tui.model.text import one_line_beginning
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import BUILT_IN_PREFIX, PROJECT_PREFIX
from whisper_tui.tools.agent_text import agent_note, command_line, failure_of
from whisper_tui.transports.hook.edit_answers import arguments_for
from whisper_tui.transports.hook.exec_endpoint import ShellDirectory
from whisper_tui.transports.hook.what_ran import TICKET, WhatRan
from whisper_tui.transports.shell_call import unless_gone

_log = logging.getLogger(__name__)

CANARY = re.compile(r"whisper-tui-canary-\w{8,}")
"""The mark in a command of the doctor, which is denied at once (decision 20)."""

LONGEST_LABEL = 200
"""The longest label beside a ticket in characters."""

_WORDS = {
    "shell": ("command", "ran", "Run the same command"),
    "edits": ("edit", "was changed", "Make the same edit"),
    "function": ("call", "was done", "Make the same call"),
}
"""The noun for a kind of call, and the verbs for what was not done, and for what to do."""

OTHER_SHELLS = frozenset({"zsh"})
"""Shells beside bash in which a command runs that a human has approved."""

LONGEST_WAIT_S = 7 * 86400.0
"""The longest time in seconds that a hook waits."""


MOST_DECISIONS = 1000
"""Calls that are remembered. A client asks at once, if it asks."""


class QuestionHello(Value):
    """The common part of the hellos of programs that ask about a call of an agent client."""

    client: str
    nonce: str
    """Chosen by the program, so that a repeated request after a lost connection is the same call."""
    pid: int | None = None
    """The agent's process id."""
    environment: dict[str, str] = Field(default_factory=dict)
    launcher: tuple[str, ...]
    """The command line that starts whisper-tui here."""
    places: tuple[str, ...] = ()
    """The options that name its directories."""
    deadline_s: float = Field(default=45.0, gt=0)


class HookHello(QuestionHello):
    """The hello of the hook program: the client, its request, and the time to answer."""

    door: str = "hook"
    version: int = HELLO_VERSIONS["hook"]
    input: str
    """The hook's input, unchanged."""
    agent_runs: bool = False
    """True if the agent runs approved commands itself."""


def checked(hello: Content) -> tuple[HookHello, HookFormat]:
    """Validate the hello and find its client. Raises `InvalidRequest`."""
    try:
        said = HookHello.model_validate(hello)
    except ValidationError as error:
        raise InvalidRequest(f"the hook's hello is wrong: {first_problem(error)}") from error
    return said, profile_of(said.client).hook


def _label(record: CallRecord) -> str:
    """Return a ticket's command as one quoted word, for people who read the agent's screen. `exec` ignores it."""
    # A typographic quote replaces an apostrophe, because the label is between apostrophes in a shell.
    text = one_line_beginning(command_line(record.spec), LONGEST_LABEL).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return f"'{' ' if text.startswith('-') else ''}{text}'"


def _command_for_agent(record: CallRecord) -> str:
    """Return the command for an agent that runs it itself."""
    # A human may have chosen another directory. The agent does not know that, so its shell changes to it.
    text, cwd = record.spec.command.text, record.spec.cwd
    return text if cwd == record.call.spec.cwd else f"cd -- {shlex.quote(cwd)} && {{\n{text}\n}}"


def _named(command: Command) -> str:
    """Return the words of a call in which a canary may stand: not the content of a file."""
    return " ".join((command.tool, *command.targets)) if isinstance(command, Function) else command.text


def _is_users_decision(record: CallRecord) -> bool:
    """True if a human has allowed a call, or a rule of theirs. What is allowed by default, the client may ask about."""
    by = record.decided_by
    own = by is not None and not by.who.startswith((BUILT_IN_PREFIX, PROJECT_PREFIX))
    return by is not None and (by.surface != "rule" or (own and bool(by.who)))


def first_problem(error: ValidationError) -> str:
    """Return the first problem without the value, because that is an agent's text."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


class DecidedCalls:
    """Calls that the user has decided, and about which their clients may still ask themselves (decision 28)."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def keep(self, key: str) -> None:
        """Remember a call; the oldest one is forgotten."""
        self._keys.pop(key, None)
        self._keys[key] = None
        if len(self._keys) > MOST_DECISIONS:
            del self._keys[next(iter(self._keys))]

    def take(self, key: str) -> bool:
        """Return True if a call was decided. One decision answers one question."""
        return self._keys.pop(key, self) is None


class HookQuestion:
    """One request of a hook. After `give_up`, the call waits for the agent to ask again."""

    past_hook: ClassVar[bool] = False
    """True if the command came to the agent's shell without this question (decision 35)."""

    def __init__(
        self,
        supervision: Supervision,
        hello: Content,
        shell_directory: ShellDirectory,
        decisions: "DecidedCalls",
        what_ran: WhatRan,
    ) -> None:
        self._supervision = supervision
        self._following = shell_directory
        self._decisions = decisions
        self._what_ran = what_ran
        self._hello, self._client = checked(hello)
        self._call_id: str | None = None

    async def answer(self) -> HookAnswer:
        """Wait for the decision until the deadline. Raises `WhisperError` for an invalid request."""
        content = parsed(self._hello.input)
        if self._client.is_session_start(content):
            if self._was_told(content):
                return NO_DECISION
            return self._client.session_start(content, await self._besides())
        if (done := self._client.done(content)) is not None:
            return await self._after(replace(done, session=self._session_name(done.session)))
        if self._client.question_event and content.get("hook_event_name") == self._client.question_event:
            return self._question(content)
        asked = self._client.read(await self._with_servers(content))
        if asked is None:
            return NO_DECISION
        return await self.answer_to(asked)

    async def _besides(self) -> str:
        level = (await self._supervision.status()).level_in()
        return WORK_RUNS if level is not None and level.runs_work else ""

    async def answer_to(self, asked: HookRequest) -> HookAnswer:
        """Submit what was asked, and wait for the decision."""
        asked = replace(asked, session=self._session_name(asked.session))
        canary = CANARY.search(_named(asked.command))
        if canary is not None:
            return self.deny_answer(f"whisper_tui: the gate is live (canary {canary[0]})")
        if await self._is_asked_by_server(asked):
            # Not without a decision: then the client would ask, and the server as well.
            return self._allow(replace(asked, decided=True), None, "", None)
        self._call_id = await self._supervision.submit(await self._request(asked))
        try:
            async with asyncio.timeout(min(self._hello.deadline_s, LONGEST_WAIT_S)):
                record = await self._decision(self._call_id)
        except TimeoutError:
            return await self._deny_at_deadline(asked)
        if record.aside is not None:
            return await self._deny_aside(asked)
        return await self._decided(asked, record)

    def allow_answer(self, asked: HookRequest, arguments: Content | None, note: str) -> HookAnswer:
        """Return the answer that lets the agent's program go on with these arguments."""
        return self._client.allow(asked, arguments, note)

    def deny_answer(self, reason: str) -> HookAnswer:
        """Return the answer that denies."""
        return self._client.deny(reason)

    def _session_name(self, named: str) -> str:
        """Return the client's name of its session, or that of its process."""
        return named or str(self._hello.pid)

    def _question(self, content: Content) -> HookAnswer:
        """Answer the client's own question about a call, if the user has decided that."""
        tool_input = content.get("tool_input")
        if self._decisions.take(self._key(content, tool_input)):
            return self._client.agree()
        session = self._session_name(str(content.get("session_id") or ""))
        self._what_ran.asked_itself(self._client, session, str(content.get("tool_name")), tool_input)
        return NO_DECISION

    def _was_told(self, content: Content) -> bool:
        """Return True if the model of this session has been told about whisper_tui before, and remember it."""
        if not self._client.repeats_session_event:
            return False
        key = digest(json.dumps(["told", self._client.name, content.get("session_id")]))
        known = self._decisions.take(key)
        self._decisions.keep(key)
        return known

    async def _with_servers(self, content: Content) -> Content:
        """Add the names of the client's MCP servers, if it does not tell of which one a tool is."""
        if self._client.names_servers:
            return content
        from whisper_tui.agents.doctor import servers_of

        root = Path(str(content.get("cwd") or "/"))
        named = await asyncio.to_thread(servers_of, self._client.name, root, self._hello.environment)
        return {**content, "servers": named}

    async def _is_asked_by_server(self, asked: HookRequest) -> bool:
        """True for a tool of our MCP server, or of one behind our gateway, so that nobody is asked twice."""
        command = asked.command
        if not isinstance(command, Function) or command.about != "server" or not asked.configured:
            return False
        # Files are read for it, and only few calls need it.
        from whisper_tui.agents.doctor import asks_itself

        said = self._hello
        root = Path(self._client.workspace(asked, said.environment))
        launch = Launch(said.launcher, said.places)
        server = command.targets[0]
        return await asyncio.to_thread(asks_itself, self._client.name, server, root, said.environment, launch)

    async def _decision(self, call_id: str) -> CallRecord:
        """Return the call once it is set aside, or decided, and handed over if its agent carries it out."""
        record = await self._supervision.record(call_id)
        # A call that this request has joined was set aside before its agent asked again.
        known = record.aside.since if record.aside is not None and record.call.key != self._key_of_request else 0.0
        while True:
            record = await self._supervision.decided(call_id, aside_after=known)
            if record.aside is not None:
                return record
            if isinstance(record.state, Held) and record.call.by_agent:
                record = await self._supervision.hand_over(record.id, record.call.ticket or "")
            # At the hand-over it may mean something else than what was approved, and is asked again.
            if not isinstance(record.state, Unjudged | Waiting):
                return record

    async def give_up(self, why: str) -> None:
        """Mark the call: its agent no longer waits for the answer."""
        if self._call_id is not None:
            await self._supervision.leave(self._call_id, why)

    async def _request(self, asked: HookRequest) -> CallRequest:
        try:
            return await self._checked_request(asked)
        except ValidationError as error:
            raise InvalidRequest(f"the hook's input is wrong: {first_problem(error)}") from error

    async def _checked_request(self, asked: HookRequest) -> CallRequest:
        session = await self._session(asked)
        command = asked.command
        spec = CommandSpec(command=command, cwd=asked.cwd)
        is_shell = isinstance(command, Shell)
        text = command.text if is_shell else json.dumps(asked.tool_input, sort_keys=True)
        same = digest("\n".join((asked.tool, asked.cwd, asked.asker, text)))
        return CallRequest(
            session_id=session.id,
            tool=asked.tool,
            # Edits have everything in the command, and may be megabytes long.
            arguments={} if isinstance(command, FileEdits) else asked.tool_input,
            spec=spec,
            description=asked.description,
            # The same nonce after a lost connection is the same call. The same command in a new hook joins it.
            key=self._key_of_request,
            dedup_key=same,
            rejoin=True,
            # Local model servers number the calls of each answer from 0, so an id alone does not identify a call.
            question=f"{asked.call_id} {same}" if asked.call_id else None,
            asker=asked.asker,
            ticket=secrets.token_hex(8),
            background=asked.background,
            follows=asked.tool in self._client.keeps_directory,
            by_agent=self._hello.agent_runs or not is_shell or not self._client.takes_result,
            takes_change=self._client.takes_result,
            past_hook=self.past_hook,
        )

    @property
    def _key_of_request(self) -> str:
        return f"hook {self._hello.nonce}"

    async def _session(self, asked: HookRequest) -> Session:
        root = self._client.workspace(asked, self._hello.environment)
        client = ClientInfo(name=self._client.name, model=asked.model)
        name = f"{PurePosixPath(root).name or root} ({self._client.name})"
        hello = SessionHello(
            name=name[-LONGEST_NAME:],
            root=root,
            client=client,
            pid=self._hello.pid,
            environment=self._hello.environment,
            shell=self._shell(),
            key=f"{self._client.name} {asked.session}",
        )
        session = await self._supervision.open_session(hello)
        await self._supervision.describe_session(session.id, client)
        return session

    def _shell(self) -> str:
        """Return the client's own shell if it is another one than that which reads commands."""
        of = profile_of(self._hello.client).shell
        path = "" if of is None else of(self._hello.environment)
        name = PurePosixPath(path).name
        return path if name in OTHER_SHELLS and os.access(path, os.X_OK) else ""

    async def _decided(self, asked: HookRequest, record: CallRecord) -> HookAnswer:
        note = agent_note(record) or ""
        asked = replace(asked, decided=_is_users_decision(record))
        match record.state:
            case Held():
                return self._allow(asked, self._running(asked, self._launch(record)), note, record)
            case Ended(ending=HandedOver()) if isinstance(asked.command, Shell):
                arguments = self._running(asked, _command_for_agent(record)) if self._client.takes_result else None
                self._expect(asked, arguments, record)
                return self.allow_answer(asked, arguments, note)
            case Ended(ending=HandedOver()):
                return await self._carried_out(asked, record, note)
            case Ended(ending=Denied() | Withdrawn() | Lost() as ending):
                return self.deny_answer(failure_of(ending, asked.command.kind).message)
            case _:
                return self.deny_answer(
                    f"call {record.id} has already been started; ask for it again if you want to repeat it"
                )

    def _running(self, asked: HookRequest, command: str) -> Content:
        """Return the arguments of the shell tool with another command."""
        return {**asked.tool_input, "command": command}

    async def _carried_out(self, asked: HookRequest, record: CallRecord, note: str) -> HookAnswer:
        """Let the agent's own tool do what was approved."""
        command = record.spec.command
        if isinstance(command, Function):
            if record.edited and not self._client.takes_result:
                return self.deny_answer("the agent's program takes no other arguments than its own")
            return self._allow(asked, command.arguments if record.edited else None, note, record)
        try:
            arguments, change = await asyncio.to_thread(arguments_for, self._client, asked, record)
        except WhisperError as error:
            return self.deny_answer(f"Approved, but not done: {error.sentence()}")
        return self._allow(asked, arguments, change or note, record)

    def _allow(self, asked: HookRequest, arguments: Content | None, note: str, record: CallRecord | None) -> HookAnswer:
        """Let the agent's program go on. Its own question about the same call is answered like this one."""
        if record is not None:
            self._expect(asked, arguments, record)
        if asked.decided and self._client.question_event:
            given = asked.tool_input if arguments is None else arguments
            self._decisions.keep(self._key(parsed(self._hello.input), given))
        return self.allow_answer(asked, arguments, note)

    def _expect(self, asked: HookRequest, arguments: Content | None, record: CallRecord) -> None:
        # The events of the client name the text that came to its shell, not the ticket that the gate was given for it.
        if not self.past_hook:
            self._what_ran.allowed(self._client, asked, arguments, record)

    def _key(self, content: Content, tool_input: object) -> str:
        """Return the text by which a client's own question is known to be about the same call."""
        tool = str(content.get("tool_name"))
        subject = self._client.subject(tool, tool_input) if isinstance(tool_input, dict) else tool_input
        turn = [self._client.name, content.get("session_id"), content.get("turn_id") or content.get("prompt_id")]
        return digest(json.dumps([*turn, tool, subject], sort_keys=True))

    async def _deny_at_deadline(self, asked: HookRequest) -> HookAnswer:
        """Deny at the agent's deadline, and tell it to ask again. The call waits for that (decision 17)."""
        await self.give_up("the hook's deadline has passed")
        noun, done, again = _WORDS[asked.command.kind]
        return self.deny_answer(
            f"Not approved yet, and nothing {done}: no human has decided about this {noun} in whisper_tui so far "
            f"(ticket {self._call_id}). {again} again to keep waiting; do not try another way."
        )

    async def _deny_aside(self, asked: HookRequest) -> HookAnswer:
        """Deny a call that a human has set aside, so that the agent can go on. The call waits (decision 39)."""
        await self.give_up(WENT_ON)
        noun, done, again = _WORDS[asked.command.kind]
        return self.deny_answer(
            f"Set aside by the human in whisper_tui, and nothing {done}: this {noun} is still to be decided "
            f"(ticket {self._call_id}). Go on with what does not need it. {again} again later to wait for the "
            "decision; do not try another way."
        )

    def _launch(self, record: CallRecord) -> str:
        """Return the command that replaces the agent's own."""
        # Plain words without shell syntax: some agents only let such commands out of their sandbox.
        ticket = f"{record.id}-{record.call.ticket}"
        words = shlex.join((*self._hello.launcher, "exec", ticket, *self._hello.places))
        if self._client.shows_what_runs:
            words += f" {_label(record)}"
        return f"{words} && {self._following.after(ticket)}" if self._following.applies(record) else words

    async def _after(self, done: DoneCall) -> HookAnswer:
        """Compare a call that is over with what was approved, and explain to the model that its command was changed."""
        try:
            record = await self._record_of_ticket(done)
            is_ticket = record is not None and self._only_shows_ticket(done)
            note = self._what_ran.compare(self._client, done, is_ticket=is_ticket)
            if not note and record is not None and self._client.explains_after:
                note = agent_note(record) or ""
        except WhisperError as error:
            # Nothing can be held any more, and an error would only be shown to the model.
            _log.warning("what ran was not compared with what was approved: %s", error.message)
            return NO_DECISION
        return self._client.after(done.event, note) if note else NO_DECISION

    async def _record_of_ticket(self, done: DoneCall) -> CallRecord | None:
        """Return the call whose ticket is in a command. None: there is none."""
        named = TICKET.search(str(done.tool_input.get("command") or ""))
        if named is None or not self._client.runs_commands(done.tool):
            return None
        try:
            record = await self._supervision.record(named["call"])
        except UnknownCall:
            return None
        # The model may have typed the number of another agent's call.
        return record if record.call.ticket == named["secret"] else None

    def _only_shows_ticket(self, done: DoneCall) -> bool:
        """True if a command is one with which this installation replaces an agent's own."""
        words = literal_words(str(done.tool_input.get("command"))) or ()
        start = (*self._hello.launcher, "exec")
        after = words[len(start) + 1 :]
        # What follows the ticket are the directories, and a label that `exec` ignores.
        return words[: len(start)] == start and after[: len(self._hello.places)] == self._hello.places


REFUSED = 2
"""The exit code of a denial with the reason on standard error, for every client."""


class HookEndpoint:
    """Answers hooks over one supervision."""

    def __init__(self, supervision: Supervision, shell_directory: ShellDirectory, what_ran: WhatRan) -> None:
        self._supervision = supervision
        self._following = shell_directory
        self._what_ran = what_ran
        self._decisions = DecidedCalls()

    def question(self, hello: dict[str, Any]) -> HookQuestion:
        """Return the request of a hello. Raises `InvalidRequest`."""
        return HookQuestion(self._supervision, hello, self._following, self._decisions, self._what_ran)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. If it ends before the answer, the agent has stopped waiting."""
        asking: HookQuestion | None = None
        try:
            asking = self.question(hello)
            said = await unless_gone(asking.answer(), reader)
        except WhisperError as error:
            said = HookAnswer(stderr=f"whisper_tui: {error.sentence()}\n", code=REFUSED)
        except ConnectionError:
            said = None
        if said is None:
            if asking is not None:
                await asking.give_up("the agent's hook was ended before the answer")
            return
        writer.write(framed(said))
        await writer.drain()


def framed(answer: HookAnswer) -> bytes:
    """Return a line with the exit code and two lengths, followed by the two texts."""
    # Not JSON, because clients may still start programs of earlier versions, which have no parser for it.
    stdout, stderr = answer.stdout.encode("utf-8", "replace"), answer.stderr.encode("utf-8", "replace")
    return b"%d %d %d\n%b%b" % (answer.code, len(stdout), len(stderr), stdout, stderr)
