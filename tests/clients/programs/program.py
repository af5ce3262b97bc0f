"""What a test needs to know about one client."""

from pathlib import Path
from typing import Any, Protocol

from tests.clients.model.dialect import Dialect
from tests.clients.model.script import Call


class Program(Protocol):
    """One agent client, as it is used in tests."""

    name: str
    """How `whisper-tui install` and `whisper-tui hook` call it."""
    client_name: str
    """How its name begins in the cockpit's data when it comes through MCP."""
    dialect: Dialect
    untrusted_too: tuple[str, ...]
    """Options with which it runs hooks that were changed since the user trusted them."""
    prefers_structured: bool
    """Whether its model is shown the structured form of an MCP result that has one, and not the text."""

    def configure(self, home: Path, url: str) -> None:
        """Write the client's own settings into an empty home: where its model is, and nothing about whisper_tui."""
        ...

    def environment(self, url: str) -> dict[str, str]:
        """Variables beyond the few that every client gets."""
        ...

    def arguments(self, prompt: str) -> list[str]:
        """The command line of a run without a terminal, the program's name first."""
        ...

    def shell(self, command: str) -> Call:
        """A call of the client's own shell tool."""
        ...

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Call:
        """A call of a tool of the MCP server named `whisper`."""
        ...

    def shell_shows(self, output: str, exit_code: int) -> str:
        """How the shell tool shows its model a command that wrote this and ended with this exit code."""
        ...

    def shell_said(self, result: str) -> str:
        """What the shell tool has to tell, without what the client wraps every result in."""
        ...

    def mcp_said(self, result: str) -> str:
        """What the MCP server said, without what the client wraps every result in."""
        ...
