"""Files that a wrapper writes itself, beside what the command behind it does: `strace -o FILE`, `flock FILE`."""

from typing import NamedTuple

from whisper_tui.policy.commands.argv import Argv, ParsedOptions, parse_options, program_name
from whisper_tui.policy.commands.wrappers import shell_options, wrapper_of
from whisper_tui.programs.entries import entry_of


class OwnFiles(NamedTuple):
    """The files that the own words of a wrapper name."""

    written: tuple[str | None, ...] = ()
    """None: one that is only known when it runs."""
    is_complete: bool = True
    """False if it may write more files, of which nothing is known."""
    opens: bool = False
    """True if it only makes them if they are missing."""


_START_UP = ("-i", "-l", "--login", "--interactive", "--rcfile", "--init-file")


def own_files(argv: Argv) -> OwnFiles:
    """Return the files that the words of a wrapper make it write itself."""
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    if entry_of(name).shell == "posix":
        parsed = shell_options(argv)
        return OwnFiles(is_complete=parsed is not None and not parsed.has(*_START_UP))
    entry = entry_of(name)
    if entry.own_files is None:
        return OwnFiles(is_complete=False)
    wrapper = wrapper_of(name)
    if wrapper is None:
        return OwnFiles()
    parsed = parse_options(argv, 1, wrapper.entry)
    if parsed is None:
        return OwnFiles(is_complete=False)
    written = [value for option, value in parsed.options if option in entry.own_files]
    complete = not entry.more_files
    if entry.own_operand:
        # options may stand behind the operand as well
        behind = parse_options(argv, parsed.rest + 1, wrapper.entry)
        if name == "script" and behind is not None:
            written += [value for option, value in behind.options if option in entry.own_files]
        operand: tuple[str | None, ...] = argv[parsed.rest : parsed.rest + 1]
        written += operand or (("typescript",) if name == "script" else ())
        complete = complete and (name != "script" or behind is not None)
    # `-o '|PROGRAM'` starts one, `-o '!PROGRAM'` as well
    odd = any((word is not None and word.startswith(("|", "!"))) or "%" in (word or "") for word in written)
    return OwnFiles(tuple(written), complete and not odd and not _is_odd(name, parsed), opens=name == "flock")


def _is_odd(name: str, parsed: ParsedOptions) -> bool:
    """True if options make a wrapper write files with names of their own."""
    match name:
        case "strace":
            return sum(option == "-f" for option, _ in parsed.options) > 1 or parsed.has("--output-separately")
        case "valgrind":
            return parsed.value("--tool") not in {None, "none", "memcheck"}
        case "sudo" | "sshpass":
            return parsed.has("-e", "--edit")
        case _:
            return False
