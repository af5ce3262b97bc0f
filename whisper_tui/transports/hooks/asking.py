"""From a hook's question to its answer: the command is submitted, a human decides, a ticket runs it."""

import asyncio
import re
import secrets
import shlex
from pathlib import PurePosixPath

from pydantic import Field, ValidationError

from whisper_tui.model.call import LONGEST_NAME, CallRequest, ClientInfo, Session, SessionHello
from whisper_tui.model.command import CommandSpec, Shell, digest
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Ended, Held, Unjudged, Waiting
from whisper_tui.model.text import beginning
from whisper_tui.model.value import Value
from whisper_tui.tools.failure import failure_of
from whisper_tui.tools.told import command_line, told
from whisper_tui.transports.hooks.clients import CLIENTS, PASSES, Asked, Client, Content, GeminiCli, HookAnswer, parsed
from whisper_tui.transports.hooks.following import Following
from whisper_tui.transports.versions import check_version

CANARY = re.compile(r"whisper-tui-canary-\w{8,}")
"""In a command it asks for one thing: to be denied at once, which shows that the gate is live."""

TICKET = re.compile(r"\bexec (?P<call>[0-9]{1,18})-(?P<secret>[0-9a-f]+)\b")
"""In a command that an agent was given to run in place of its own."""

VERSION = 1
"""Of the hook's hello."""

LONGEST_LABEL = 200
"""Characters of a command beside its ticket."""

FAR = 7 * 86400.0
"""Seconds that a hook waits at most, whatever it asks for."""


class HookHello(Value):
    """What the hook's program says: who asks, what, and for how long it can wait."""

    door: str = "hook"
    version: int = VERSION
    client: str
    input: str
    """The agent's own words, as they came."""
    nonce: str
    """Made by the program, so that asking again after a lost connection is the same call."""
    pid: int | None = None
    """The agent's process."""
    environment: dict[str, str] = Field(default_factory=dict)
    launcher: tuple[str, ...]
    """The words that start whisper-tui here."""
    places: tuple[str, ...] = ()
    """The options that name its directories."""
    deadline_s: float = Field(default=45.0, gt=0)
    agent_runs: bool = False
    """Whether the agent runs what is approved itself."""


def checked(hello: Content) -> tuple[HookHello, Client]:
    """The hello as a value, and whose it is. Raises `InvalidRequest` and `OtherVersion`."""
    check_version(hello, "hook", VERSION)
    try:
        said = HookHello.model_validate(hello)
    except ValidationError as error:
        raise InvalidRequest(f"the hook's hello is wrong: {_first(error)}") from error
    client = CLIENTS.get(said.client)
    if client is None:
        raise InvalidRequest(f"there is no client {said.client!r}", hint=f"There are {', '.join(CLIENTS)}")
    return said, client


def _label(record: CallRecord) -> str:
    """What a ticket stands for, as one quoted word for people who read the agent's screen. Nothing obeys it."""
    text = beginning(command_line(record.spec), LONGEST_LABEL).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return f"'{' ' if text.startswith('-') else ''}{text}'"


def _for_its_own_shell(asked: Asked, record: CallRecord) -> str:
    """What an agent is given that runs it itself: its shell has to be sent to a directory that a human chose."""
    command, cwd = record.spec.command, record.spec.cwd
    text = command.text if isinstance(command, Shell) else asked.command
    return text if cwd == record.call.spec.cwd else f"cd -- {shlex.quote(cwd)} && {{\n{text}\n}}"


def _first(error: ValidationError) -> str:
    """What is wrong, without repeating what was said."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


class Asking:
    """One question of a hook. It can be given up at any time: the call then waits for the agent to come back."""

    def __init__(self, supervision: Supervision, hello: Content, following: Following) -> None:
        self._supervision = supervision
        self._following = following
        self._hello, self._client = checked(hello)
        self._call_id: str | None = None

    async def answer(self) -> HookAnswer:
        """Wait for the decision, until the deadline. Raises `WhisperError` for a question that makes no sense."""
        content = parsed(self._hello.input)
        if isinstance(self._client, GeminiCli) and (ran := self._client.ran(content)) is not None:
            return await self._after(self._client, ran)
        asked = self._client.read(content)
        if asked is None:
            return PASSES
        canary = CANARY.search(asked.command)
        if canary is not None:
            return self._client.deny(f"whisper_tui: the gate is live (canary {canary[0]})")
        self._call_id = await self._supervision.submit(await self._request(asked))
        try:
            async with asyncio.timeout(min(self._hello.deadline_s, FAR)):
                record = await self._supervision.decided(self._call_id)
        except TimeoutError:
            return await self._not_yet()
        return await self._decided(asked, record)

    async def give_up(self, why: str) -> None:
        """The agent no longer listens: what it asked for waits on, marked."""
        if self._call_id is not None:
            await self._supervision.leave(self._call_id, why)

    async def _request(self, asked: Asked) -> CallRequest:
        try:
            return await self._checked_request(asked)
        except ValidationError as error:
            raise InvalidRequest(f"the hook's input is wrong: {_first(error)}") from error

    async def _checked_request(self, asked: Asked) -> CallRequest:
        session = await self._session(asked)
        spec = CommandSpec(command=Shell(text=asked.command), cwd=asked.cwd)
        same = digest("\n".join((asked.tool, asked.cwd, asked.asker, asked.command)))
        return CallRequest(
            session_id=session.id,
            tool=asked.tool,
            arguments=asked.tool_input,
            spec=spec,
            description=asked.description,
            key=f"hook {self._hello.nonce}",
            twin=same,
            rejoin=True,
            # Local model servers number the calls of each answer from 0: an id alone does not name a call.
            question=f"{asked.call_id} {same}" if asked.call_id else None,
            asker=asked.asker,
            ticket=secrets.token_hex(8),
            # As Claude Code and Gemini CLI call it.
            background=any(asked.tool_input.get(name) is True for name in ("run_in_background", "is_background")),
            follows=asked.tool in self._client.keeps_directory,
            by_agent=self._hello.agent_runs,
        )

    async def _session(self, asked: Asked) -> Session:
        root = self._client.workspace(asked, self._hello.environment)
        client = ClientInfo(name=self._client.name, model=asked.model)
        name = f"{PurePosixPath(root).name or root} ({self._client.name})"
        hello = SessionHello(
            name=name[-LONGEST_NAME:],
            root=root,
            client=client,
            pid=self._hello.pid,
            environment=self._hello.environment,
            key=f"{self._client.name} {asked.session or self._hello.pid}",
        )
        session = await self._supervision.open_session(hello)
        await self._supervision.describe_session(session.id, client)
        return session

    async def _decided(self, asked: Asked, record: CallRecord) -> HookAnswer:
        ticket = record.call.ticket or ""
        if isinstance(record.state, Held) and record.call.by_agent:
            record = await self._supervision.hand_over(record.id, ticket)
        note = told(record) or ""
        match record.state:
            case Held():
                return self._client.allow(asked, self._launch(record), note)
            case Ended(ending=HandedOver()):
                return self._client.allow(asked, _for_its_own_shell(asked, record), note)
            case Ended(ending=Denied() | Withdrawn() | Lost() as ending):
                return self._client.deny(failure_of(ending).message)
            case Unjudged() | Waiting():
                return await self._not_yet()
            case _:
                return self._client.deny(f"call {record.id} was started before; run the command again if it is wanted")

    async def _not_yet(self) -> HookAnswer:
        """The agent's own deadline comes: it is told to ask again, and the call waits for that."""
        await self.give_up("the hook's time was over")
        return self._client.deny(
            "Not approved yet, and nothing ran: no human has decided about this command in whisper_tui so far "
            f"(ticket {self._call_id}). Run the same command again to go on waiting; do not try another way."
        )

    def _launch(self, record: CallRecord) -> str:
        """Plain words, for some agents let a command out of their sandbox only if it is nothing but these."""
        ticket = f"{record.id}-{record.call.ticket}"
        words = shlex.join((*self._hello.launcher, "exec", ticket, *self._hello.places))
        if self._client.shows_what_runs:
            words += f" {_label(record)}"
        return f"{words} && {self._following.after(ticket)}" if self._following.applies(record) else words

    async def _after(self, client: GeminiCli, ran: str) -> HookAnswer:
        """The agent has told its model that the command was changed; only here can be said what that means."""
        named = TICKET.search(ran)
        if named is None:
            return PASSES
        try:
            record = await self._supervision.record(named["call"])
        except WhisperError:
            return PASSES
        if record.call.ticket != named["secret"]:
            return PASSES
        as_sent = "The command ran exactly as it was sent; whisper_tui only ran it in the agent's stead."
        return client.after(told(record) or as_sent)
