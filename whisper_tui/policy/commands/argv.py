"""The words of a command: its program, its options (and git's own), what a wrapper leaves, and its harmless forms."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from whisper_tui.programs.entries import ProgramEntry, entry_of
from whisper_tui.programs.parsing import ParsedWord, parse


class Danger(NamedTuple):
    """A dangerous word of a command. A rule covers it only if it names it (decision 9)."""

    id: str
    sentence: str
    """For the human who decides. Empty: a rule must name the word, but it is no risk to show."""
    word: int
    """Index of the word that makes it dangerous."""


Argv = tuple[str | None, ...]
"""The words of a command; None stands for one that is not known before it runs."""

Words = Sequence[str | None]
"""The words of a command, or of a part of it."""

_EXTENSION = re.compile(r"\.(?:exe|cmd|bat|com)\Z", re.IGNORECASE)


class Unwrapped(NamedTuple):
    """The commands that a wrapper runs."""

    commands: tuple[Argv, ...] = ()
    """Commands that it runs."""
    texts: tuple[str, ...] = ()
    """Texts that it gives to a shell."""
    opaque: str | None = None
    """Why it is not known what it runs, or None if it is."""
    has_own_effect: bool = False
    """True if the wrapper also does something of its own."""
    assignments: tuple[str, ...] = ()
    """Variables that it sets for the command."""
    runner: int | None = None
    """Index of the word that makes it run what follows, if a rule may name both (decision 9)."""


@lru_cache(maxsize=4096)
def program_name(word: str) -> str:
    """Return a program without its directory and without the extensions of Windows."""
    return _EXTENSION.sub("", word.rsplit("/", 1)[-1])


class ParsedOptions(NamedTuple):
    """The options before the first operand."""

    options: tuple[tuple[str, str | None], ...]
    """Each option with its dashes, and its value."""
    rest: int
    """Index of the first operand."""

    def has(self, *names: str) -> bool:
        """True if any of these options is given."""
        return any(name in names for name, _ in self.options)

    def value(self, *names: str) -> str | None:
        """Return the last value of an option."""
        return next((value for name, value in reversed(self.options) if name in names), None)


def valued_letters(entry: ProgramEntry) -> str:
    """Return the letters of the short options that take a value, attached or in the next word."""
    return "".join(name[1] for name, each in entry.options.items() if len(name) == 2 and each.value == "needed")


def parse_options(words: Words, start: int, entry: ProgramEntry) -> ParsedOptions | None:
    """Parse options from `start` to the first operand or past `--`. Returns None if one is unknown or not literal.

    `--name=value` is accepted for options without a value as well: some take an optional one.
    """
    found: list[tuple[str, str | None]] = []
    rest = start
    for each in parse(words, entry, start):
        if each.given is None:
            return None
        if each.kind == "operand":
            break
        rest = each.end
        if each.kind == "dashes":
            break
        form = each.option.value if each.option else ""
        if (
            not form
            or (form == "needed" and not each.values)
            or (form == "rest" and (not each.takes_next or (each.value or "").startswith("-")))
        ):
            return None
        found.append((each.name, each.value))
        if form == "rest":
            # its value is the first of the words that belong together
            rest = each.at + 1
            break
    return ParsedOptions(tuple(found), rest)


def before_end_of_options(argv: Words, start: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the known words up to `--`, with their index."""
    for index in range(start, len(argv)):
        word = argv[index]
        if word == "--":
            return
        if word is not None:
            yield index, word


def operands(argv: Words, start: int = 1) -> list[tuple[int, str]]:
    """Return the words that are not options, with their index."""
    found: list[tuple[int, str]] = []
    ended = False
    for index in range(start, len(argv)):
        word = argv[index]
        if word == "--" and not ended:
            ended = True
        elif word is not None and (ended or not word.startswith("-") or word == "-"):
            found.append((index, word))
    return found


def long_option(word: str, *names: str) -> bool:
    """True if a word is one of these long options or an abbreviation of one."""
    if not word.startswith("--") or len(word) < 3:
        return False
    given = word[2:].partition("=")[0]
    # getopt_long accepts every unambiguous beginning; an ambiguous one fails, so a false match costs nothing
    return any(name.startswith(given) for name in names)


def letters(word: str, valued: str = "") -> str:
    """Return the letters of bundled short options, up to the first that takes the rest as its value."""
    if not word.startswith("-") or word.startswith("--"):
        return ""
    for position, letter in enumerate(word[1:], start=1):
        if letter in valued:
            return word[1 : position + 1]
    return word[1:]


def short_or_long(argv: Words, short: str, long: tuple[str, ...], valued: str = "", start: int = 1) -> int | None:
    """Return the index of the first word that contains one of these options."""
    for index, word in before_end_of_options(argv, start):
        if long_option(word, *long) or any(letter in short for letter in letters(word, valued)):
            return index
    return None


class GitCommand(NamedTuple):
    """The parts of a git command line."""

    options: tuple[tuple[str, str | None, int], ...]
    """Options before the subcommand, with value and index."""
    at: int
    """Index of the subcommand, or the length of the argv without one."""


def parse_git(argv: Sequence[str | None]) -> GitCommand | None:
    """Parse the options before the subcommand. Returns None if one is unknown or not literal."""
    found: list[tuple[str, str | None, int]] = []
    options = entry_of("git").options
    at = 1
    while at < len(argv):
        word = argv[at]
        if word is None:
            return None
        if word == "--":
            return GitCommand(tuple(found), len(argv))
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        form = options[name].value if name in options else ""
        if not form or (equals and form not in {"needed", "attached"}):
            return None
        takes_next = form == "needed" and not equals
        following = argv[at + 1] if takes_next and at + 1 < len(argv) else None
        found.append((name, value if equals else following, at))
        at += 2 if takes_next else 1
    return GitCommand(tuple(found), min(at, len(argv)))


HARMLESS_SETTING = re.compile(
    r"(?:color|advice|column|versionsort|i18n)\.[A-Za-z.-]+=[\w:/%., -]*"
    r"|(?:log\.(?:date|decorate|abbrevcommit|follow|graphcolors|mailmap|showroot)"
    r"|blame\.(?:date|coloring|showroot|showemail|blankboundary|markunblamablelines|markignoredlines)"
    r"|status\.(?:short|branch|relativepaths|showuntrackedfiles|renames|renamelimit|showstash|aheadbehind)"
    r"|grep\.(?:linenumber|column|patterntype|extendedregexp|fullname|threads)|(?:tag|branch)\.sort)=[\w:/%., -]*"
    r"|diff\.(?:renames|context|algorithm|noprefix|mnemonicprefix|interhunkcontext|colormoved|renamelimit)=[\w-]*"
    r"|core\.(?:quotepath|abbrev|preloadindex|ignorecase|precomposeunicode|autocrlf|eol)=\w*"
    r"|core\.pager=(?:cat)?|user\.(?:name|email)=[^\n]*",
    re.IGNORECASE,
)
"""Settings, as `git -c` takes them, that only change what git prints or records."""


def without_directory(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a git command line without the options `-C DIR` at its beginning, and any other as it is."""
    while argv[:2] == ("git", "-C") and len(argv) > 3:
        argv = (argv[0], *argv[3:])
    return argv


def unwrap_git(argv: tuple[str | None, ...]) -> Unwrapped | None:
    """Return the commands that git runs through an alias in its options, `bisect run` or `submodule foreach`."""
    apart = parse_git(argv)
    if apart is None or apart.at >= len(argv):
        return None
    aliases = {
        value.partition("=")[0].lower(): value.partition("=")[2]
        for name, value, _ in apart.options
        if name == "-c" and value is not None
    }
    subcommand = argv[apart.at] or ""
    # names of settings, and so of aliases, ignore case
    alias = aliases.get(f"alias.{subcommand.lower()}")
    if alias is not None:
        # git gives an alias that begins with `!` to sh
        if alias.startswith("!"):
            return Unwrapped(texts=(alias[1:],))
        return Unwrapped(commands=((argv[0], *alias.split(), *argv[apart.at + 1 :]),))
    rest = argv[apart.at + 1 :]
    if subcommand == "bisect" and rest[:1] == ("run",) and len(rest) > 1:
        return Unwrapped(commands=(rest[1:],), has_own_effect=True)
    if subcommand == "submodule" and "foreach" in rest:
        words = tuple(word for word in rest[rest.index("foreach") + 1 :] if word not in {"--recursive", "--quiet"})
        if words and None not in words:
            return Unwrapped(texts=(" ".join(word or "" for word in words),), has_own_effect=True)
    return None


class GivenArguments(NamedTuple):
    """The parsed arguments of a program."""

    operands: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...]


@cache
def reading_form(name: str, *subcommands: str) -> ProgramEntry | None:
    """Return a program or a subcommand with the options with which it only reads. None: the table does not say so."""
    entry = entry_of(name, *subcommands)
    if entry.reads is None:
        return None
    return replace(entry, options={option: entry.options[option] for option in sorted(entry.reads)}, bundle="")


def parse_arguments(words: Sequence[str], form: ProgramEntry) -> GivenArguments | None:
    """Parse arguments. Returns None for an option that the form does not have, or for too many operands."""
    operands: list[str] = []
    options: list[tuple[str, str | None]] = []
    for each in parse(words, form, 0):
        if each.kind == "operand":
            operands.append(each.given or "")
        elif each.kind != "dashes":
            if not is_certain(each):
                return None
            options.append((each.name, each.value))
            # to another version, what need not be there may be no value
            if each.takes_next and each.option and each.option.value != "needed":
                operands += filter(None, each.values)
    if form.most_operands is not None and len(operands) > form.most_operands:
        return None
    if form.needs and not any(name in form.needs for name, _ in options):
        return None
    return GivenArguments(tuple(operands), tuple(options))


_LIKE_OPTION = re.compile(r"--?[A-Za-z]")


def is_certain(given: ParsedWord) -> bool:
    """True for an option as the table writes it.

    A value in a word of its own must not look like an option: if the table were wrong about it, it would be one.
    """
    return given.is_exact and not (given.takes_next and like_option(given.value))


def like_option(value: str | None) -> bool:
    """True unless a word is a value of an option for certain."""
    return value is None or _LIKE_OPTION.match(value) is not None


def named_words(argv: Argv) -> Argv:
    """Return the arguments that may name files, the values of options among them: all that are not certainly text.

    Without this, `/` as a delimiter and a pattern that begins with a slash would be taken for directories.
    """
    words = argv[1:]
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    about, form = entry_of(name), reading_form(name)
    if form is None or not (about.text or about.text_operands) or None in words:
        return words
    found: list[str] = []
    operands: list[str] = []
    given: set[str] = set()
    for each in parse(words, form, 0):
        if each.kind == "operand":
            operands.append(each.given or "")
        elif each.kind != "dashes":
            if not is_certain(each):
                return words
            given.add(each.name)
            # with POSIXLY_CORRECT, an option behind an operand is a file, and so is the word behind it
            if not (each.name in about.text and (not each.takes_next or not operands)):
                found += filter(None, each.values)
    leading = 0 if about.text_instead & given else about.text_operands
    return (*found, *operands[leading:])
