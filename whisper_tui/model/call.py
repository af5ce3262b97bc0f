"""What an agent asks for, and who the agent is."""

from typing import Any, Literal

from pydantic import Field

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.value import Value

LONGEST_NAME = 1000
"""Characters of what an agent calls itself, its program or its session."""

LONGEST_PATH = 4096
"""Characters of a directory; no system takes longer ones."""

LARGEST_PID = 2**31 - 1

Trust = Literal["trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"]


class ClientInfo(Value):
    """The agent's program, by its own account."""

    name: str
    version: str = ""
    model: str = ""
    """The language model behind it, where it says so."""


class SessionHello(Value):
    """What a transport tells the supervisor when an agent connects."""

    name: str = Field(max_length=LONGEST_NAME)
    """Shown in the queue."""
    root: str = Field(max_length=LONGEST_PATH)
    """Absolute path of the workspace."""
    client: ClientInfo | None = None
    pid: int | None = Field(default=None, ge=0, le=LARGEST_PID)
    """Process id of the agent's side of the connection, where known."""
    trust: Trust = "untrusted_external"
    environment: dict[str, str] = Field(default_factory=dict)
    """What the agent's commands inherit. Kept in a private file, never in the journal."""
    resume: str | None = None
    """The id of a session that this connection continues, after a supervisor went away."""
    key: str | None = Field(default=None, max_length=LONGEST_NAME)
    """The agent's own name of its session, where it connects anew for every call: the same key is the same session."""
    hears: bool = False
    """Whether the agent reads what is said to it in its session."""


class Session(Value):
    """One agent connection. Approval memory lives and dies with it."""

    id: str
    name: str
    root: str
    client: ClientInfo | None = None
    pid: int | None = None
    trust: Trust = "untrusted_external"
    key: str | None = None
    hears: bool = False
    opened_at: float
    """Seconds since the epoch."""
    closed_at: float | None = None
    closed_because: str | None = None


class CallRequest(Value):
    """A tool call on its way in: validated arguments and the command that they mean."""

    session_id: str
    tool: str
    arguments: dict[str, Any]
    """The arguments as the agent sent them."""
    spec: CommandSpec
    description: str = ""
    """The agent's own words about the command."""
    key: str | None = None
    """Makes submitting idempotent: the same key in the same session is the same call."""
    twin: str | None = None
    """What two calls of a session have in common that are the same to the agent. None: it has no twins."""
    join_twin: bool = False
    """Whether an open call with the same twin takes the place of this one, so that nobody is asked again."""
    rejoin: bool = False
    """Whether a call with the same twin takes the place of this one if its agent stopped waiting for the answer."""
    question: str | None = None
    """The client's own id of the call, with what it asks. A call with the same one that has not started yet takes the
    place of this one, so that two hooks of one call ask once. None: only `key` and `twin` count."""
    asker: str = ""
    """Which helper of the agent asks. Empty: the agent itself."""
    ticket: str | None = None
    """A secret that has to be shown before it starts, once it is approved. None: it starts by itself."""
    background: bool = False
    """Whether its agent goes on at once and does not wait for its end."""
    follows: bool = False
    """Whether the agent's own shell goes on where the command has ended."""
    by_agent: bool = False
    """Whether the agent runs it itself once it is approved, out of the supervisor's sight."""


class ToolCall(Value):
    """A tool call that the journal knows."""

    id: str
    """Short decimal number, unique in one state directory."""
    session_id: str
    tool: str
    arguments: dict[str, Any]
    spec: CommandSpec
    description: str = ""
    key: str | None = None
    twin: str | None = None
    join_twin: bool = False
    rejoin: bool = False
    question: str | None = None
    asker: str = ""
    ticket: str | None = None
    background: bool = False
    follows: bool = False
    by_agent: bool = False
    submitted_at: float
    """Seconds since the epoch."""
