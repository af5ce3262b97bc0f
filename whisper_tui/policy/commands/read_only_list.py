"""The built-in list of programs that only read, with their harmless options, and the check of one argv (decision 8)."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from whisper_tui.policy.commands.argv import named_words, parse_arguments, reading_form
from whisper_tui.policy.commands.read_only_programs import check_of, git_forms, git_only_reads
from whisper_tui.policy.commands.words_of_input import GivenWords, starter
from whisper_tui.policy.risks.sensitive_paths import names_secret
from whisper_tui.programs.entries import ProgramEntry, entry_of, program_names


def helpers_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the programs that these may start in turn."""
    return tuple(dict.fromkeys(helper for name in sorted(names) for helper in entry_of(name).starts))


_PLAIN_DIRECTORIES = frozenset({"", "/bin", "/usr/bin"})

_MISCHIEF = ("\x01", "-\x01", "--\x01", "@\x01")
"""Ends of file names that no program knows as an option, so that one in the place of an option is refused.

`@file` is replaced by arguments in that file, by some programs also behind `--`.
"""


def fails_in_sandbox(argv: Sequence[str]) -> bool:
    """True if the program needs a socket or a device, so that it would fail in the sandbox."""
    return entry_of(argv[0].rpartition("/")[2]).needs_socket and not lists_of_docker(argv)


def lists_of_docker(argv: Sequence[str | None]) -> bool:
    """True if docker is asked for what the sandbox gets of the daemon of this machine (decision 29)."""
    # podman and nerdctl share its entry, and ask others
    asked = bool(argv) and (argv[0] or "").rpartition("/")[2] == "docker"
    return asked and any(tuple(argv[1 : len(words) + 1]) == words for words in entry_of("docker").lists)


_LOOK_UP = frozenset({"[", "command", "test", "type"})
"""Builtins that look at files or search for programs, and do nothing else with the arguments that the list allows."""


def needs_no_sandbox(argv: Sequence[str]) -> bool:
    """True if the program of an allowed command is harmless with any arguments (decision 7)."""
    directory, _, name = argv[0].rpartition("/")
    # what follows links wherever they lead is held by the sandbox alone
    if name == "grep" and any(re.match(r"-[A-Za-z]*R|--d", word) for word in argv[1:]):
        return False
    return (entry_of(name).needs_no_sandbox and directory in _PLAIN_DIRECTORIES) or argv[0] in _LOOK_UP


def harmless_with_any(argv: Sequence[str], beginnings: Sequence[str | None]) -> bool:
    """True if a command only reads, whatever file names take the places of some of its words (decision 29).

    `beginnings`: for each word None, or the text with which every name in its place begins.
    """
    first = next((at for at, beginning in enumerate(beginnings) if beginning is not None), None)
    if first is None:
        return True
    directory, _, name = argv[0].rpartition("/")
    entry = entry_of(name)
    if first == 0 or directory not in _PLAIN_DIRECTORIES:
        return False
    if entry.needs_no_sandbox or entry.harmless_options:
        return True
    if not entry.takes_files:
        return False
    # the code has to stand before the first name, or a name could be code
    if entry.code_first and not only_reads(argv[:first], git_is_neutral=False):
        return False
    return all(
        only_reads(_with_names(argv, beginnings, mischief, times), git_is_neutral=False)
        for mischief in _MISCHIEF
        for times in (0, 1, 2, 5)
    )


_ONE_OPERAND = frozenset("-z -n -e -f -d -r -w -x -s -L -h".split())
_TWO_OPERANDS = frozenset("= == != -eq -ne -lt -le -gt -ge -nt -ot -ef".split())


def tests_one_thing(words: Sequence[str | None], number: int) -> bool:
    """True for `[ -n "$x" ]` and `[ "$x" = y ]`: whatever the unknown words are, which are None, nothing runs.

    With more words, the value of one could be read as an operator, and bash evaluates the operand of `-v`. `number`: of
    all words; if these are fewer, some stand for any number of words.
    """
    if len(words) != number or words[0] not in {"[", "test"} or (words[0] == "[") != (words[-1] == "]"):
        return False
    inside = list(words[1:-1] if words[0] == "[" else words[1:])
    if inside[:1] == ["!"]:
        del inside[0]
    return (len(inside) == 2 and inside[0] in _ONE_OPERAND) or (len(inside) == 3 and inside[1] in _TWO_OPERANDS)


def _with_names(argv: Sequence[str], beginnings: Sequence[str | None], end: str, times: int) -> list[str]:
    """Return the words with some file names in the place of each pattern."""
    pairs = zip(argv, beginnings, strict=True)
    return [each for word, start in pairs for each in ([word] if start is None else [start + end] * times)]


SYSTEM_DIRECTORIES = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/")
"""Directories in which a program given by its path counts as the program of that name."""

_SECRET_WORD = re.compile(r"(?i)\bsecrets?\b|keyvault|password")


def listed_forms() -> Iterator[tuple[tuple[str, ...], ProgramEntry]]:
    """Yield each program or subcommand that only reads with its options; a last `*` stands for more words."""
    for name in program_names():
        if (form := reading_form(name)) is not None:
            yield (name,), form
        yield from (((name, *words), form) for words, form in _shown(name))
    yield from ((("git", *words), form) for words, form in git_forms().items())


@cache
def _shown(name: str) -> tuple[tuple[tuple[str, ...], ProgramEntry], ...]:
    """The subcommands of a program that only show something, as patterns, with their options."""
    return tuple(
        (words, ProgramEntry("", options=row.options)) for row in entry_of(name).shows for words in row.commands
    )


def listed_commands() -> tuple[str, ...]:
    """Return the programs on the list, and the subcommands of others: `ls`, `pip list`; `*` stands for more words."""
    checked = (name for name in program_names() if check_of(name))
    found = {*checked, *(" ".join(words) for words, _ in listed_forms())}
    return tuple(sorted(each for each in found if not fails_in_sandbox(each.split())))


def only_reads(argv: Sequence[str], *, git_is_neutral: bool, shows_names: bool = False) -> bool:
    """True if a literal command is known to only read and show.

    `shows_names`: nothing in its whole text shows more of a file than its name, so that secret ones may be named.
    """
    name = _program(argv[0])
    if name is None or (not shows_names and any(names_secret(word) for word in named_words(tuple(argv)))):
        return False
    words = argv[1:]
    if name == "lsof" and any("@" in word for word in words):
        return False  # the name of a machine, which another one is asked for
    if name == "git":
        return git_is_neutral and git_only_reads(words)
    entry = entry_of(name)
    if _tells_about_itself(name, entry, words):
        return True
    if name in _GREPS:
        # to grep, such a pattern is an option that it does not know, so it only fails
        words = [word for word in words if not re.fullmatch(r"-{2,}[^A-Za-z-].*|-{3,}", word, re.DOTALL)]
    if entry.argument_files and any(word.startswith("@") for word in words):
        return False
    if (started := starter(argv)) is not None:
        return _starts_only_readers(name, started.own, started.commands)
    if (check := check_of(name)) is not None:
        return check(list(words))
    allowed = reading_form(name)
    if allowed is not None and parse_arguments(words, allowed) is not None:
        return True
    return any(_matches(words, *shown) for shown in _shown(name))


def _starts_only_readers(name: str, own: Sequence[str], commands: Iterable[GivenWords]) -> bool:
    """True if a program only reads, and so does all that it runs, with whatever words it gives to that."""
    # `find . -name '*.pem' -exec cat {} +` names what it reads by patterns
    if any(names_secret(re.sub(r"[*?]", "x", word)) for word in own):
        return False
    return (name == "xargs" or only_reads(own, git_is_neutral=False)) and all(
        only_reads(given.argv, git_is_neutral=False) and harmless_with_any(given.argv, given.beginnings)
        for given in commands
    )


def _program(word: str) -> str | None:
    if "/" not in word:
        return word
    directory, _, name = word.rpartition("/")
    return name if directory + "/" in SYSTEM_DIRECTORIES else None


_GREPS = frozenset({"grep", "egrep", "fgrep"})


def _tells_about_itself(name: str, entry: ProgramEntry, words: Sequence[str]) -> bool:
    if " ".join(words) in entry.version_options:
        return True
    told = entry.tells_version or entry.reads is not None or check_of(name) is not None
    return told and len(words) == 1 and words[0] in {"--version", "--help"}


def _matches(words: Sequence[str], wanted: tuple[str, ...], form: ProgramEntry) -> bool:
    given = parse_arguments(words, form)
    if given is None:
        return False
    more = wanted[-1:] == ("*",)
    if len(given.operands) < len(wanted) or (len(given.operands) > len(wanted) and not more):
        return False
    # `kubectl get secret` and the like show secrets through a harmless subcommand
    if any(_SECRET_WORD.search(operand) for operand in given.operands[1:]):
        return False
    return all(fnmatch.fnmatchcase(operand, pattern) for operand, pattern in zip(given.operands, wanted, strict=False))
