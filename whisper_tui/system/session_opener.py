"""The agent that opens a session, where agents take turns: known by its processes, not by what it says of itself."""

from contextvars import ContextVar
from pathlib import Path

from whisper_tui.system.ancestry import ProcessSeen, ancestry, read_process

OPENER: ContextVar[int | None] = ContextVar("OPENER", default=None)
"""The pid of the process at the other end of the connection that is served. None: this process itself acts."""

COMMANDS = "supervised commands"
"""The owner of all sessions that supervised commands open."""


async def opener() -> str:
    """Return the agent that the process at the other end belongs to. Empty: this process itself acts."""
    import asyncio  # light programs import this package, and none of them opens sessions for others

    pid = OPENER.get()
    return "" if pid is None else await asyncio.to_thread(agent_of_process, pid)


def agent_of_process(pid: int) -> str:
    """Return the agent that a process belongs to. All that have left their terminal count as one agent."""
    return agent_of(ancestry(pid, read_process)) or f"control group {_control_group(pid)}"


def agent_of(line: tuple[ProcessSeen, ...] | None) -> str:
    """Return the agent with these processes, the youngest first. Empty: no terminal holds them together.

    It is named by the oldest of them that has a terminal: whatever else an agent starts there is below that one.
    """
    line = line or ()
    if any(seen.marked or seen.keeper or seen.descends_from == "command" for seen in line):
        return COMMANDS
    at = max((index for index, seen in enumerate(line) if seen.has_terminal), default=None)
    if at is None or _is_left_behind(line[at], line[at + 1 :]):
        return ""
    return f"process {line[at].pid} {line[at].start}"


def _is_left_behind(oldest: ProcessSeen, above: tuple[ProcessSeen, ...]) -> bool:
    """True if a process may have got its terminal from an agent, or has lost its parent.

    Agents can make any number of either, and each would be an agent of its own. `login` is a child of init, too, but it
    belongs to another user.
    """
    is_orphan = bool(above) and above[0].adopts and not oldest.foreign
    return is_orphan or any(seen.descends_from == "agent" for seen in above)


def _control_group(pid: int) -> str:
    """Return the control groups of a process. A process stays in them without its parents. Empty: there are none."""
    try:
        return (Path("/proc") / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
