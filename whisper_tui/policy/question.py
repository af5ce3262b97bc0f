"""What the policy is asked about: a command, who wants it, and what its words mean."""

from dataclasses import dataclass

from whisper_tui.model.call import Trust
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.verdict import Resolved


@dataclass(frozen=True)
class Question:
    """What is judged: the command, who asks, and what its words mean on this machine."""

    session_id: str
    session_root: str
    spec: CommandSpec
    description: str
    resolved: Resolved
    tool: str = ""
    own_shell: bool = False
    """Whether it is a tool of the agent's own: one of ours that is called like it has a contract of its own."""
    trust: Trust = "untrusted_external"
    sandbox_problem: str = ""
    """Why commands cannot be sandboxed here, as a clause. Empty: they can."""
    was_blocked: bool = False
    """Whether this very command has run in a sandbox in this session, and was kept from something."""
    now: float = 0.0
    """Seconds since the epoch: whether a remembered approval still holds."""
