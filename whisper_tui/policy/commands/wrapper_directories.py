"""The directory in which a wrapper runs its command: its own, unless its words lead to another one."""

from whisper_tui.policy.commands.argv import Words, parse_options, program_name, short_or_long, valued_letters
from whisper_tui.policy.commands.wrappers import wrapper_of
from whisper_tui.programs.entries import entry_of

_LOGINS = frozenset({"su", "runuser"})


def runs_elsewhere(argv: Words) -> bool:
    """True if a wrapper runs its command in a directory that is not its own, as far as its words are known."""
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    wrapper, entry = wrapper_of(name), entry_of(name)
    if name in _LOGINS:
        return None in argv or "-" in argv or short_or_long(argv, "l", ("login",), valued_letters(entry)) is not None
    if wrapper is None or not entry.elsewhere:
        return False
    parsed = parse_options(argv, 1, wrapper.entry)
    return entry.elsewhere == ("*",) or parsed is None or parsed.has(*entry.elsewhere)
