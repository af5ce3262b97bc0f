"""Subcommands that reach other machines, of programs that mostly work on this one."""

from whisper_tui.policy.commands.argv import Words
from whisper_tui.policy.risks.call_patterns import find_calls
from whisper_tui.policy.risks.host_access import uses_network


def reaches_network(argv: Words, name: str) -> bool:
    """True if a command may connect to other machines."""
    if len(argv) == 2 and argv[1] in {"--version", "--help", "-h", "version", "help"}:
        return False
    return uses_network(argv, name) or any(find_calls("connects", argv, name))
