"""The command line of the user's own OpenSSH, for everything that leads to another machine."""

from collections.abc import Sequence

BATCH = ("-o", "BatchMode=yes")
"""Forbids questions, such as for a passphrase."""
SSH_OPTIONS = (
    *("-o", "ConnectTimeout=10"),
    # A machine that has lost its network sends nothing at all; so ssh gives up after three unanswered questions.
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ForwardX11=no"),
    *("-o", "ForwardAgent=no"),
)
"""Options of every connection. A machine that is silent ends it within half a minute."""
SSH_FAILED = 255
"""The exit code of ssh itself. Any other is that of the program there."""
NOT_FOUND = 127
"""The exit code of a shell for a command that it does not find."""


def ssh_command(
    destination: str, far: str, *, options: Sequence[str] = (), terminal: bool = False, may_ask: bool = False
) -> list[str]:
    """Return the command line that hands a text to the shell of the user there.

    `options` are further words for ssh. `terminal`: the program there gets a terminal. `may_ask`: ssh may ask for a
    passphrase, because somebody sits at the terminal of this program. Otherwise the question would wait in a terminal
    behind the cockpit, or for ever.
    """
    asking = () if may_ask else BATCH
    return ["ssh", *asking, *SSH_OPTIONS, *options, "-t" if terminal else "-T", "--", destination, far]
