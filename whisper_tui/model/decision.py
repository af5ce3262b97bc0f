"""What was decided about a call that had to be asked, and by whom."""

from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.value import Value


class ExactScope(Value):
    """The same command in the same directory, for this session, as often or as long as said.

    Where it runs scripts of the workspace, it holds while these are the same.
    """

    kind: Literal["exact"] = "exact"
    uses: int | None = Field(default=None, ge=1)
    """How many later calls it allows. None: any number."""
    minutes: float | None = Field(default=None, gt=0)
    """How long it holds. None: as long as the session."""


class PrefixScope(Value):
    """Every command that begins with these words, with no options but those of the approved one, for this session."""

    kind: Literal["prefix"] = "prefix"
    words: tuple[str, ...] = Field(min_length=1)
    directory: str | None = None
    """Only in this directory and below, with every path inside it. None: wherever the session works."""
    uses: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0)


class RuleScope(Value):
    """Every command that begins with these words, by a rule that is written to the user's rules."""

    kind: Literal["rule"] = "rule"
    words: tuple[str, ...] = Field(min_length=1)
    where: Literal["project", "user"] = "project"
    """Whether it holds in this workspace alone, or everywhere."""
    minutes: float | None = Field(default=None, gt=0)


Scope = Literal["exact_for_session"] | Annotated[ExactScope | PrefixScope | RuleScope, Field(discriminator="kind")]
"""How far an approval reaches beyond this one call. The word alone is an exact scope without limits."""


class Coverage(Value):
    """Which of the calls so far an approval would have let through."""

    looked_at: int
    """How many of the newest calls were looked at."""
    calls: tuple[str, ...] = ()
    """Ids of those that it covers, newest first."""


class Decider(Value):
    """Who decided, and through what."""

    surface: Literal["cockpit", "command line", "library", "rule", "memory", "agent", "demo"]
    who: str = ""
    """User name, rule or grant."""


class Approve(Value):
    """Let it run, as it is or edited."""

    kind: Literal["approve"] = "approve"
    edited: CommandSpec | None = None
    """What runs instead of what was asked. None: as asked."""
    remember: Scope | None = None
    sandbox: Sandbox | None = None
    """How it is confined. None: it may do whatever the user may do."""


class Deny(Value):
    """Do not let it run; the agent is given the reason word for word."""

    kind: Literal["deny"] = "deny"
    reason: str = ""
    stop_session: bool = False
    """Whether every other waiting call of the session is denied with it."""


Decision = Annotated[Approve | Deny, Field(discriminator="kind")]


class Grant(Value):
    """A remembered approval, for one session: of a command in a directory, or of all that begin as it does."""

    id: str
    session_id: str
    spec: CommandSpec
    from_call: str
    """The call whose approval was remembered."""
    granted_at: float
    """Seconds since the epoch."""
    by: Decider
    scope: Scope = "exact_for_session"
    """What it covers. A saved rule is no remembered approval."""
    until: float | None = None
    """Seconds since the epoch when it ends. None: with the session."""
    sandbox: Sandbox | None = None
    """How what it allows is confined, as the approved call was."""
    files: dict[str, str] = Field(default_factory=dict)
    """Scripts of the workspace that the command runs, as digests: it holds only while they are the same."""
    uses: int = 0
    """How many later calls it has allowed."""
    revoked_at: float | None = None
