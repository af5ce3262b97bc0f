"""The agents behind the proxy: those it knows, why one is refused (decision 25), and their sessions."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.doctor import gaps
from whisper_tui.agents.findings import DoctorContext
from whisper_tui.agents.known_clients import profile_of
from whisper_tui.model.call import (
    LONGEST_NAME,
    LONGEST_PATH,
    CallRequest,
    CarriedOut,
    ClientInfo,
    CommandSpec,
    Session,
    SessionHello,
)
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Held, Unjudged, Waiting
from whisper_tui.model.text import one_line_beginning, sendable

Sight = Literal["terminal", "hook", "unseen"]
"""How commands of an agent's shell can be seen: it has the editor run them, its hook asks, or not at all."""

UNSEEN_OPTION = "--allow-unseen-shell"

VERSION = 1
"""The version of the protocol that the proxy reads. Later ones have neither terminals nor files of the editor."""

SHOWN_NAME = 100
"""Characters of an agent's name in a message."""


class KnownAgent(NamedTuple):
    """One row of the table. All of it was measured with the agent's own program."""

    title: str
    shell: Sight
    writes: bool = False
    """True if it has the editor write files, so that each write is seen."""
    client: str = ""
    """The client whose hook works in this agent as well. Empty: there is none."""


AGENTS: Mapping[str, KnownAgent] = {
    "kimi": KnownAgent("Kimi Code", "terminal", writes=True),
    "claude-agent-acp": KnownAgent("Claude Code", "hook", client="claude"),
    "claude-code-acp": KnownAgent("Claude Code", "hook", client="claude"),
    "codex-acp": KnownAgent("Codex", "hook", client="codex"),
    "opencode": KnownAgent("OpenCode", "hook", client="opencode"),
    "gemini": KnownAgent("Gemini CLI", "unseen", writes=True),
    "qwen": KnownAgent("Qwen Code", "unseen", writes=True),
    "copilot": KnownAgent("GitHub Copilot CLI", "hook", client="copilot"),
}
"""By the beginning of the name in the agent's answer to `initialize`, in lower case and without the npm scope."""

UNKNOWN = KnownAgent("", "unseen")
"""An agent that is not in the table: nobody has measured where its commands run."""


def agent_of(info: Mapping[str, Any]) -> KnownAgent:
    """Return the row of an agent by its account of itself."""
    said = str(info.get("name") or "")[:SHOWN_NAME]
    name = said.rpartition("/")[2].lower()
    # Only a whole word counts: "kimi-code" is Kimi, and "kimiko" is another agent.
    known = next(
        (row for word, row in AGENTS.items() if name == word or name.startswith((f"{word}-", f"{word} "))), None
    )
    return known or UNKNOWN._replace(title=one_line_beginning(said, SHOWN_NAME) or "an agent without a name")


def why_refused(agent: KnownAgent) -> str | None:
    """Return why an agent may not be started at all, with what to do. None: it may."""
    if agent.shell != "unseen":
        return None
    problem = (
        f"{agent.title} runs its commands itself, where whisper_tui does not see them"
        if agent in AGENTS.values()
        else f"whisper_tui does not know where {agent.title} runs its commands"
    )
    return (
        f"{problem}, so it was ended. Use an agent that has the editor run its commands, or this one in a terminal "
        f"with the hook or the tools of whisper_tui. With {UNSEEN_OPTION} the proxy starts it all the same: then only "
        "its questions, and what it has the editor do, are held"
    )


def why_unguarded(agent: KnownAgent, project: Path, environ: Mapping[str, str]) -> str | None:
    """Return why the commands of an agent would bypass its hook in a project. None: they do not. Reads files."""
    if not agent.client:
        return None
    profile = profile_of(agent.client)
    if profile.find is None:
        return f"whisper_tui does not know where the hooks of {profile.title} are"
    found = profile.find(DoctorContext(Launch(()), environ, project), None)
    if found.shell_disabled_in:
        return None
    if not found.hooks:
        return (
            f"the hook of whisper_tui is not installed in {profile.title}, which runs its commands itself, so they "
            f"would not be seen in {project}. Run whisper-tui install {agent.client}, or start the proxy with "
            f"{UNSEEN_OPTION}"
        )
    passed = gaps(profile.hook.name, project, environ)
    return f"{passed[0]}. Run whisper-tui doctor {agent.client}" if passed else None


if TYPE_CHECKING:
    from whisper_tui.transports.mcp.gateway_session import Connect, Connection

Message = dict[str, Any]

INVALID_PARAMS, NOT_FOUND, FAILED = -32602, -32002, -32000

MOST_SESSIONS = 1000
"""Sessions of an agent whose directories are remembered; of others the directory of the proxy counts."""

KEY_IN_EDITOR = "acp "
"""The beginning of the keys of calls that come through the proxy."""

PLAIN_OUTPUT = {"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Variables of every command: there is no terminal. Agents add the same ones, and added ones have to be asked about."""


class RequestFailed(Exception):
    """A request of the agent is answered with this error. The message is for its model."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Params(BaseModel):
    """Parameters of a request. Unknown ones are ignored, because later versions may have more."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)

    session_id: str


P = TypeVar("P", bound=Params)


def checked(kind: type[P], params: object) -> P:
    """Validate the parameters of a request. Raises `RequestFailed`."""
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise RequestFailed(f"the parameters are wrong: {where}: {problem['msg']}", INVALID_PARAMS) from error


class AgentSessions:
    """The sessions of one agent: one for each of its own. A lost connection is opened anew for the next call."""

    def __init__(self, connect: "Connect", root: str, name: str | None, pid: int) -> None:
        """`root`: the workspace of sessions without one. `name`: of all sessions in the queue. `pid`: of the agent."""
        self._connect = connect
        self._root = root
        self._name = name
        self._pid = pid
        self.editor: Mapping[str, Any] = {}
        """The editor's account of itself."""
        self.agent: Mapping[str, Any] = {}
        """The agent's account of itself."""
        self.environment = sendable({**os.environ, **PLAIN_OUTPUT})
        self._opening = asyncio.Lock()
        self._roots: dict[str, str] = {}
        self._sessions: dict[str, Session] = {}
        self._connection: Connection | None = None
        self._reader: Connection | None = None

    def learn(self, session_id: str, root: str) -> None:
        """Take the directory of a session."""
        if len(self._roots) < MOST_SESSIONS and 0 < len(root) <= LONGEST_PATH and Path(root).is_absolute():
            self._roots[session_id] = root

    def root(self, session_id: str) -> str:
        """Return the directory of a session."""
        return self._roots.get(session_id, self._root)

    async def opened(self, session_id: str) -> "tuple[Connection, Session]":
        """Return the connection and a session of the agent. Raises `WhisperError`."""
        # An agent could name any number of sessions; those that nobody has opened share one.
        key = session_id if session_id in self._roots else ""
        async with self._opening:
            if self._connection is None or not self._connection.connected:
                if self._connection is not None:
                    await self._connection.close()
                self._sessions.clear()
                self._connection = await self._connect()
            if key not in self._sessions:
                hello = await asyncio.to_thread(self._hello, self.root(key))
                self._sessions[key] = await self._connection.open_session(hello)
            return self._connection, self._sessions[key]

    async def reader(self) -> "Connection":
        """Return a connection that only reads, and that survives a restart of the supervisor. Raises `WhisperError`."""
        # Sessions end with their connection, so a request that waits must not open that one anew.
        if self._reader is None:
            self._reader = await self._connect()
        return self._reader

    def _hello(self, root: str) -> SessionHello:
        named = [str(info.get("title") or info.get("name") or "") for info in (self.editor, self.agent)]
        name, version = (str(self.agent.get(key) or "")[:LONGEST_NAME] for key in ("name", "version"))
        label = self._name or f"{Path(root).name or root} ({' → '.join(filter(None, named))})"
        return SessionHello(
            name=label[:LONGEST_NAME],
            root=root,
            client=ClientInfo(name=name, version=version) if name else None,
            # Not the editor's: in a terminal of the editor the human may decide.
            pid=self._pid,
            environment=self.environment,
            ends_with_connection=True,
        )

    async def close(self, why: str) -> None:
        """End the sessions."""
        for connection, sessions in ((self._connection, self._sessions), (self._reader, {})):
            if connection is None:
                continue
            for session in sessions.values():
                with suppress(WhisperError):
                    if connection.connected:
                        await connection.close_session(session.id, why)
            await connection.close()


async def decided_call(
    sessions: AgentSessions, session_id: str, spec: CommandSpec, *, description: str = "", takes_change: bool = False
) -> CallRecord:
    """Ask about something that the agent, or the proxy for it, does itself. Return the call, handed over or ended.

    `takes_change`: a human's change can be carried out. If cancelled, the call is withdrawn. Raises `WhisperError`, and
    `RequestFailed` for a change that cannot be passed on.
    """
    connection, session = await sessions.opened(session_id)
    tool = spec.command.tool if isinstance(spec.command, CarriedOut) else "request_permission"
    request = CallRequest(
        session_id=session.id,
        tool=tool,
        arguments={},
        spec=spec,
        description=description,
        key=f"{KEY_IN_EDITOR}{token_hex(16)}",
        ticket=token_hex(8),
        by_agent=True,
    )
    # A cancelled submission would leave a call in the queue whose number nobody knows, so it runs to its end.
    submitted = asyncio.ensure_future(connection.submit(request))
    try:
        call_id = await asyncio.shield(submitted)
        return await _handed_over(connection, call_id, request.ticket or "", takes_change=takes_change)
    except asyncio.CancelledError:
        with suppress(WhisperError):
            await connection.withdraw(await submitted, "the agent no longer waits for the answer")
        raise


async def _handed_over(connection: "Connection", call_id: str, ticket: str, *, takes_change: bool) -> CallRecord:
    while True:
        record = await connection.decided(call_id)
        if isinstance(record.state, Held):
            if record.edited and not takes_change:
                await connection.withdraw(call_id, "its agent does it itself, and takes no change")
                raise RequestFailed("A human changed it, and the change cannot be passed on. Nothing was done.")
            record = await connection.hand_over(call_id, ticket)
        # At the hand-over it may mean something else than what was approved, and is asked again.
        if not isinstance(record.state, Unjudged | Waiting):
            return record
