"""The structure of a client's profile: everything that whisper_tui knows about one agent client."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

# The profile's class imports none of its parts, because transports use it and must not load the policy.
if TYPE_CHECKING:
    from whisper_tui.agents.client_files import InstallPlan, InstallRequest, Opener
    from whisper_tui.agents.findings import DoctorContext, Findings
    from whisper_tui.agents.hook_formats import HookFormat
    from whisper_tui.agents.own_rules import ImportedRules, RuleDirectories, RuleSource

UNKNOWN_WAIT_S = 45.0
"""Seconds that any client waits for an answer: the shortest default among common clients is a minute."""

LONG_WAIT_S = 24 * 3600.0
"""Seconds that stand for no limit, for clients that wait as long as progress is reported."""


class WaitLimit(NamedTuple):
    """How long a client waits for the answer to a call of an MCP tool, with a margin."""

    wait_s: float = UNKNOWN_WAIT_S
    with_progress_s: float | None = None
    """The same over stdio, where progress reaches the client. None: progress makes no difference."""
    since: tuple[int, ...] = ()
    """The first version that is known to wait for `with_progress_s`."""


class AnswerBudget(NamedTuple):
    """How much of an answer a client shows its model without truncation, with a margin."""

    size: int = 11_000
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: the client does not count lines."""


class ServerTable(NamedTuple):
    """A table of MCP servers in a file of a client."""

    file: Path
    opener: "Opener"
    place: tuple[str, ...]


class RuleFormat(NamedTuple):
    """A file format for rules that `rules import` reads."""

    name: str
    """Its name on the command line."""
    title: str
    ending: str
    read: "Callable[[str], ImportedRules]"
    """Raises `ValueError` for a text in another format."""
    recognizes: Callable[[str], bool] | None = None
    """True for a text of this format, where others have the same extension. None: it is the extension's default."""


class Evidence(StrEnum):
    """The reason for a statement about a client."""

    MEASURED = "measured"
    """The tests drive the client's own program."""
    DOCUMENTED = "documented"
    """Its documentation or its source says so, and no test has run it."""
    NOT_POSSIBLE = "not possible"


class Abilities(NamedTuple):
    """The abilities of a client with its hook, in the order of the columns of docs/clients.md."""

    change_of_command: Evidence = Evidence.DOCUMENTED
    change_of_edit: Evidence = Evidence.NOT_POSSIBLE
    one_question: Evidence = Evidence.DOCUMENTED
    """It does not ask again about a call that was approved."""
    late_decision: Evidence = Evidence.DOCUMENTED
    """A call that nobody decides in time is denied, and the same call gets the decision when it is made again."""
    edits: Evidence = Evidence.DOCUMENTED
    web: Evidence = Evidence.DOCUMENTED
    servers: Evidence = Evidence.DOCUMENTED
    """Calls of tools of other MCP servers come to the queue."""


ALL_MEASURED = Abilities(*[Evidence.MEASURED] * len(Abilities._fields))

NO_WEB = ALL_MEASURED._replace(web=Evidence.NOT_POSSIBLE)
NOT_RUN = Abilities()
DEFAULT_WAIT = WaitLimit()
SMALLEST_BUDGET = AnswerBudget()


@dataclass(frozen=True)
class ClientProfile:
    """One agent client. A field with its default means that the client has no such feature."""

    name: str
    """Its name on the command line, and its program on PATH."""
    title: str
    """Its display name."""
    hook: "HookFormat"
    hook_timeout_s: float | None
    """Seconds after which the client by default runs a command without its hook's answer. None: never."""
    abilities: Abilities = NOT_RUN
    wait: WaitLimit = DEFAULT_WAIT
    answer_budget: AnswerBudget = SMALLEST_BUDGET
    added_keys: frozenset[str] = frozenset()
    """Argument keys that the client itself adds to the calls of every MCP tool."""
    hangs_on_signals: bool = False
    """True if the client's shell keeps waiting for a command that a signal has killed."""
    asks_no_hook_about_input: bool = False
    """True if its model can type into a running command without a hook, so that we ask."""
    plan_install: "Callable[[InstallRequest], InstallPlan] | None" = None
    """Plans an installation. Raises `WhisperError`. None: whisper_tui cannot be installed into this client."""
    find: "Callable[[DoctorContext, str | None], Findings] | None" = None
    """The doctor's findings. With a version, the client's program may be run; without one, only files are read."""
    server_tables: "Callable[[InstallRequest], Iterable[ServerTable]] | None" = None
    """The tables of MCP servers in the files that the client reads. None: they are not known."""
    own_rules: "Callable[[RuleDirectories], Iterable[RuleSource]] | None" = None
    """The files with the client's own rules."""
    shell: "Callable[[Mapping[str, str]], str] | None" = None
    """Returns the absolute path of the shell in which the client runs commands, from its environment. None: bash."""
    shell_profile: "Callable[[Sequence[str], Mapping[str, str]], str] | None" = None
    """Returns the file of functions and aliases that its shell has read, from the shell's command line and variables.
    Empty: none. None: it has none."""
    without_hook: "Callable[[Sequence[str], Mapping[str, str]], str] | None" = None
    """Returns the option or variable with which a command line of the client leaves hooks out. Empty: it has none.
    None: no such option is known."""
    directory_variables: tuple[str, ...] = ()
    """Variables that change the directory of the client's files."""
    rule_formats: tuple[RuleFormat, ...] = ()

    def calls_itself(self, client_name: str) -> bool:
        """True if a session's client with this name uses this profile."""
        return client_name.startswith(self.hook.name)
