"""What a sandboxed command may do, and what it tried to do beyond that."""

from typing import Literal

from whisper_tui.model.value import Value

SandboxKind = Literal["read-only", "workspace"]


class Sandbox(Value):
    """How a command is confined by the kernel. `docs/sandbox.md` says what each kind holds, and what it does not."""

    kind: SandboxKind = "read-only"
    """`read-only`: it writes nothing but its own temporary directory. `workspace`: it may also write the workspace."""
    network: bool = False
    """Whether it may reach other machines. Local sockets stay closed."""
    execute: tuple[str, ...] = ()
    """Directories whose programs it may run, beside those of the system. Absolute."""

    def words(self) -> str:
        """The sandbox in a few words, for people."""
        written = "writes only in the workspace" if self.kind == "workspace" else "read-only"
        return f"{written}, {'with network' if self.network else 'no network'}"


class BlockedAttempt(Value):
    """One thing that the sandbox refused."""

    what: Literal["write", "change", "network", "execute"]
    """`write`: creating, writing, renaming or removing a file. `change`: its mode, owner, times or attributes.

    `execute`: its own program is in none of the directories from which it may be run.
    """
    subject: str = ""
    """The path, links resolved. Empty: it is about no file."""

    def words(self) -> str:
        """What was tried, as a clause without a subject."""
        match self.what:
            case "write":
                return f"tried to write {self.subject}"
            case "change":
                return f"tried to change the attributes of {self.subject}"
            case "network":
                return "tried to use the network"
            case "execute":
                return f"could not execute {self.subject}"


class Blocked(Value):
    """What the sandbox kept a command from."""

    attempts: tuple[BlockedAttempt, ...] = ()
    """Different ones, in the order in which they were tried."""
    more: int = 0
    """Further attempts that are not listed."""
    messages: tuple[str, ...] = ()
    """Lines of the failed command's error output that speak of a refusal."""

    def words(self) -> str:
        """All of it in one sentence without its end, for people."""
        tried = [attempt.words() for attempt in self.attempts] or [f"said: {line}" for line in self.messages[-1:]]
        rest = f" and {self.more} more" if self.more else ""
        return "; ".join(tried) + rest
