"""Transports: the command lines of an engine that run a program at a place, with its standard input and output here."""

import shlex
from collections.abc import Sequence
from typing import Protocol

SSH_OPTIONS = (
    # Nobody can answer a question of ssh here: it would wait in a terminal behind the cockpit, or for ever.
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    # A machine that has lost its network sends nothing at all; so ssh gives up after three unanswered questions.
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ForwardX11=no"),
    *("-o", "ForwardAgent=no"),
    "-T",
)
SSH_FAILED = 255
"""The exit code of ssh itself. Any other is that of the program there."""


class PlaceTransport(Protocol):
    """A way to run programs at one place. It keeps no state: a connection that breaks is made anew."""

    name: str
    """The name of the place, as the user knows it."""
    holds: bool
    """True if the engine keeps the host process. False: the first connection starts it, and it survives by itself."""

    def summary(self) -> str:
        """Return the way in a few words, such as `ssh me@gpu1`."""
        ...

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line here that runs `argv` there, its standard input and output connected, no terminal."""
        ...

    async def hold(self, argv: Sequence[str]) -> None:
        """Have the engine start `argv` there and keep it, at most once at a time. Raises `Unavailable`.

        Called if `holds`, before a connection that cannot be made otherwise: what runs already must not start twice.
        """
        ...

    def advice(self, code: int) -> str:
        """Return what to do after `command` has ended with this exit code. Empty: nothing is known to help."""
        ...


class SshTransport:
    """A host that the user's own OpenSSH reaches: with its configuration, its agent, and the known host keys."""

    holds = False

    def __init__(self, name: str, destination: str, options: Sequence[str] = ()) -> None:
        """`destination`: as for ssh, `me@gpu1` or a host of its configuration. `options`: further words before it."""
        self.name = name
        self._destination = destination
        self._options = tuple(options)

    def summary(self) -> str:
        """Return the command that a user would type."""
        return f"ssh {self._destination}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line of ssh. The shell of the user there reads the words, quoted."""
        return ["ssh", *SSH_OPTIONS, *self._options, "--", self._destination, shlex.join(argv)]

    async def hold(self, argv: Sequence[str]) -> None:
        """Do nothing: the first connection starts the host process."""

    def advice(self, code: int) -> str:
        """Return how to find out why ssh fails."""
        return f"Try: ssh {shlex.quote(self._destination)} true" if code == SSH_FAILED else ""
