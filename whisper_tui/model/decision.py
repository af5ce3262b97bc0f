"""What was decided about a call that had to be asked, and by whom."""

from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.value import Value

Scope = Literal["exact_for_session"]
"""How far an approval reaches beyond this one call: the same command in the same directory, this session."""


class Decider(Value):
    """Who decided, and through what."""

    surface: Literal["cockpit", "command line", "library", "rule", "memory", "demo"]
    who: str = ""
    """User name, rule or grant."""


class Approve(Value):
    """Let it run, as it is or edited."""

    kind: Literal["approve"] = "approve"
    edited: CommandSpec | None = None
    """What runs instead of what was asked. None: as asked."""
    remember: Scope | None = None


class Deny(Value):
    """Do not let it run; the agent is given the reason word for word."""

    kind: Literal["deny"] = "deny"
    reason: str = ""
    stop_session: bool = False
    """Whether every other waiting call of the session is denied with it."""


Decision = Annotated[Approve | Deny, Field(discriminator="kind")]


class Grant(Value):
    """A remembered approval: this command in this directory, for this session."""

    id: str
    session_id: str
    spec: CommandSpec
    from_call: str
    """The call whose approval was remembered."""
    granted_at: float
    """Seconds since the epoch."""
    by: Decider
    uses: int = 0
    """How many later calls it has allowed."""
    revoked_at: float | None = None
