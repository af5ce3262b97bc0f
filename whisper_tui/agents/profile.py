"""The shape of a client's profile: everything that whisper_tui knows about one agent client, in one place."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

# The shape alone loads none of its parts: transports use it, and they must not load the policy.
if TYPE_CHECKING:
    from whisper_tui.agents.findings import DoctorContext, Findings
    from whisper_tui.agents.hook_formats import HookFormat
    from whisper_tui.agents.install_request import InstallPlan, InstallRequest
    from whisper_tui.agents.own_rules import ImportedRules, RulePlaces, RuleSource

UNKNOWN_WAIT_S = 45.0
"""Seconds that any client waits for an answer: the shortest default among common clients is a minute."""

LONG_WAIT_S = 24 * 3600.0
"""Seconds that count as no limit, for clients that wait as long as progress is reported."""


class WaitLimit(NamedTuple):
    """How long a client waits for the answer to a call of an MCP tool, with a margin."""

    wait_s: float = UNKNOWN_WAIT_S
    with_progress_s: float | None = None
    """The same on standard input and output, where progress reaches the client. None: that makes no difference."""
    since: tuple[int, ...] = ()
    """The first version that is known to wait for `with_progress_s`."""


class AnswerBudget(NamedTuple):
    """How much of an answer a client shows its model uncut, with a margin."""

    size: int = 11_000
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: the client does not count lines."""


class RuleFormat(NamedTuple):
    """A file format for rules that `rules import` reads."""

    name: str
    """As it is chosen on the command line."""
    title: str
    ending: str
    read: "Callable[[str], ImportedRules]"
    """Raises `ValueError` for a text in another format."""
    recognizes: Callable[[str], bool] | None = None
    """Tells a text of this format from others with the same ending. None: it is the usual format of its ending."""


DEFAULT_WAIT = WaitLimit()
SMALLEST_BUDGET = AnswerBudget()


@dataclass(frozen=True)
class ClientProfile:
    """One agent client. A field that is left out means that the client has nothing of the kind."""

    name: str
    """Its name on the command line, and its program on PATH."""
    title: str
    """Its name for people."""
    hook: "HookFormat"
    hook_timeout_s: float | None
    """Seconds after which the client, told nothing else, runs a command without its hook's answer. None: never."""
    wait: WaitLimit = DEFAULT_WAIT
    answer_budget: AnswerBudget = SMALLEST_BUDGET
    added_keys: frozenset[str] = frozenset()
    """Argument keys that the client itself adds to the calls of every MCP tool."""
    hangs_on_signals: bool = False
    """True if the client's shell goes on waiting for a command that died of a signal."""
    plan_install: "Callable[[InstallRequest], InstallPlan] | None" = None
    """The files as they are wanted. Raises `WhisperError`. None: whisper_tui cannot be installed into this client."""
    find: "Callable[[DoctorContext, str | None], Findings] | None" = None
    """The doctor's findings. With a version, the client itself may be asked; without one, only files are read."""
    own_rules: "Callable[[RulePlaces], Iterable[RuleSource]] | None" = None
    """The files in which the client has rules of its own."""
    moving_variables: tuple[str, ...] = ()
    """Variables that move the client's files."""
    rule_formats: tuple[RuleFormat, ...] = ()

    def calls_itself(self, client_name: str) -> bool:
        """True if a client of this name in a session has the files of this profile."""
        return client_name.startswith(self.hook.name)
