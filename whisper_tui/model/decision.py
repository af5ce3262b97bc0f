"""Decisions about calls, standing approvals, and the denials of a session ("never", decision 11)."""

import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.call import Argv, CarriedOut, Command, CommandSpec, FileEdits
from whisper_tui.model.run import Sandbox
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import Resolved, Verdict

MOST_OPTIONS = 16
"""Options of other commands that one approval can have its rule list."""


class ExactScope(Value):
    """The same command in the same directory, for this session, with a limit of uses or of time.

    Where it runs scripts of the workspace, it holds while these are the same.
    """

    kind: Literal["exact"] = "exact"
    uses: int | None = Field(default=None, ge=1)
    """Number of later calls that it allows. None: any number."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes until it expires. None: with the session."""


class PrefixScope(Value):
    """Every command that begins with these words, with no options but those of the approved one, for this session."""

    kind: Literal["prefix"] = "prefix"
    words: tuple[str, ...] = Field(min_length=1)
    directory: str | None = None
    """Only in this directory and below, with every path inside it. None: in any directory."""
    uses: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0)


class RuleScope(Value):
    """Every command that begins with these words, by a rule that is written to the user's rules."""

    kind: Literal["rule"] = "rule"
    words: tuple[str, ...] = Field(min_length=1)
    options: tuple[str, ...] = Field(default=(), max_length=MOST_OPTIONS)
    """Options that the rule lists beside those of the approved command: those of others that a human has approved."""
    where: Literal["project", "user"] = "project"
    """Scope of the saved rule: this workspace, or everywhere."""
    minutes: float | None = Field(default=None, gt=0)


class ToolScope(Value):
    """Every call of a tool, every fetch from some hosts, or every edit of some files: exactly one of the three."""

    kind: Literal["tool"] = "tool"
    tool: str = ""
    """As rules name it: `mcp__SERVER__TOOL`."""
    hosts: tuple[str, ...] = ()
    path: str = ""
    """In the syntax of rules."""
    where: Literal["session", "project", "user"] = "session"
    """For this session; or a rule is saved for this workspace, or for everywhere."""
    uses: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0)

    @property
    def is_rule(self) -> bool:
        """True if it is saved as a rule."""
        return self.where != "session"


def scope_about(
    command: CarriedOut,
    target: str,
    where: Literal["session", "project", "user"] = "session",
    *,
    uses: int | None = None,
    minutes: float | None = None,
) -> ToolScope:
    """Return the scope for a target as it is written: a pattern of files, hosts with blanks between them, or a tool."""
    limits = ToolScope(where=where, uses=uses, minutes=minutes)
    if isinstance(command, FileEdits):
        return limits.model_copy(update={"path": target})
    if command.about == "web":
        return limits.model_copy(update={"hosts": tuple(target.split())})
    return limits.model_copy(update={"tool": target})


Scope = (
    Literal["exact_for_session"]
    | Annotated[ExactScope | PrefixScope | RuleScope | ToolScope, Field(discriminator="kind")]
)
"""The later calls that an approval covers. The word alone is an exact scope without limits."""


LOOKED_AT = 500
"""Past calls on which an approval or a rule is tried before it is given."""


class Coverage(Value):
    """Past calls that an approval would have allowed."""

    looked_at: int
    """Number of past calls that were tried, newest first."""
    calls: tuple[str, ...] = ()
    """Ids of those that it covers, newest first."""
    approved: int = 0
    """Number of those that begin as a rule says, and that a human has approved: it would cover them with `options`."""
    options: tuple[str, ...] = ()
    """Options of those that the approved command does not have."""


class Decider(Value):
    """Author of a decision, and the surface on which it was made."""

    surface: Literal["cockpit", "command line", "library", "notification", "phone", "rule", "memory", "agent", "demo"]
    who: str = ""
    """User name, rule, grant, or name of a phone."""


class Approve(Value):
    """Let it run, as it is or edited."""

    kind: Literal["approve"] = "approve"
    edited: CommandSpec | None = None
    """The command that runs instead of the requested one. None: as requested."""
    remember: Scope | None = None
    sandbox: Sandbox | None = None
    """Sandbox of the run. None: unconfined, with all rights of the user."""
    preview: str | None = None
    """The digest of the preview whose changes are made real; nothing runs again. None: the command runs."""
    undoable: bool | None = None
    """True if it runs in a view of the files, and its changes become real when it ends: they can be undone.

    False: nothing is kept. None: as the verdict says.
    """


class Deny(Value):
    """Do not let it run; the agent is given the reason word for word."""

    kind: Literal["deny"] = "deny"
    reason: str = ""
    stop_session: bool = False
    """True if every other waiting call of the session is denied with it."""


Decision = Annotated[Approve | Deny, Field(discriminator="kind")]


class Grant(Value):
    """A standing approval, for one session: of a command in a directory, or of all commands with a prefix."""

    id: str
    session_id: str
    spec: CommandSpec
    from_call: str
    """The call whose approval was remembered."""
    granted_at: float
    """Seconds since the epoch."""
    by: Decider
    scope: Scope = "exact_for_session"
    """The calls that it covers. A saved rule is no standing approval."""
    until: float | None = None
    """Seconds since the epoch when it ends. None: with the session."""
    sandbox: Sandbox | None = None
    """Sandbox of the runs that it allows: that of the approved call."""
    files: dict[str, str] = Field(default_factory=dict)
    """Scripts of the workspace that the command runs, as digests: it holds only while they are the same."""
    uses: int = 0
    """Number of later calls that it has allowed."""
    revoked_at: float | None = None


DENIAL_ID = "d"
"""Begins the id of each denial, as `g` begins that of a standing approval."""
LONGEST_SCANNED = 4000
"""Characters of a shell command that are split into words."""

Words = tuple[str, ...]
DeniedWords = Annotated[Words, Field(min_length=1, max_length=256)]


class SessionDenial(Value):
    """Denies the calls of one session that begin with these words, or hold a command that does."""

    id: str
    session_id: str
    words: DeniedWords
    reason: str = ""
    """Given to the agent with every call that is denied by it."""
    denied_at: float
    """Seconds since the epoch."""
    by: Decider

    def matches(self, beginnings: Iterable[Words]) -> bool:
        """True if one of the beginnings of a call begins with the denied words."""
        return any(words[: len(self.words)] == self.words for words in beginnings)


def masked_denial(denial: SessionDenial) -> SessionDenial:
    """A denial with every secret in its words replaced."""
    return denial.model_copy(update={"words": masked_words(denial.words)})


def beginnings(command: Command, verdict: Verdict | None, resolved: Resolved | None) -> Iterator[Words]:
    """Yield the words of a call, and of each command in it as far as the policy could read them."""
    if isinstance(command, Argv):
        yield command.words()
    elif isinstance(command, CarriedOut):
        yield (command.tool,)
    else:
        yield _words(command.text)
    if verdict is not None:
        yield from verdict.prefixes
    for meaning in resolved.commands if resolved is not None else ():
        yield tuple(word for word in takewhile(lambda word: word is not None, meaning.words) if word is not None)


def _words(text: str) -> Words:
    """Split the beginning of a text into words. Quotes are honoured if they are closed."""
    beginning = text[:LONGEST_SCANNED]
    try:
        return tuple(shlex.split(beginning))
    except ValueError:
        return tuple(beginning.split())
