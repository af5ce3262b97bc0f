"""The words of a command: its program, its options (and git's own), what a wrapper leaves, and its harmless forms."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from whisper_tui.programs.entries import Option, ProgramEntry, ValueForm, entry_of


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


class KnownOptions(NamedTuple):
    """The known options of a program."""

    flags: str = ""
    """Letters of short options without a value."""
    valued: str = ""
    """Letters of short options with a value, attached or in the next word."""
    long: frozenset[str] = frozenset()
    """Long options without a value, or with one that must be attached by `=`."""
    long_valued: frozenset[str] = frozenset()
    """Long options with a value, attached by `=` or in the next word."""


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


def known_options(flags: str = "", valued: str = "", long: str = "", long_valued: str = "") -> KnownOptions:
    """Build the table of a program's options from letters and from names separated by blanks."""
    return KnownOptions(flags, valued, frozenset(long.split()), frozenset(long_valued.split()))


@cache
def options_of(name: str, *subcommands: str) -> KnownOptions:
    """Return all options of a program or of a subcommand of it that the table knows."""
    known = entry_of(name, *subcommands).options
    takes = {option for option, each in known.items() if each.value == "needed"}
    flags = known.keys() - takes
    return KnownOptions(
        "".join(option[1] for option in flags if len(option) == 2),
        "".join(option[1] for option in takes if len(option) == 2),
        frozenset(option[2:] for option in flags if option.startswith("--")),
        frozenset(option[2:] for option in takes if option.startswith("--")),
    )


def parse_options(words: Words, start: int, options: KnownOptions) -> ParsedOptions | None:
    """Parse options from `start` to the first operand or past `--`. Returns None if one is unknown or not literal."""
    found: list[tuple[str, str | None]] = []
    at = start
    while at < len(words):
        word = words[at]
        if word is None:
            return None
        if word == "--":
            return ParsedOptions(tuple(found), at + 1)
        if not word.startswith("-") or word == "-":
            break
        taken = _long(words, at, options, found) if word.startswith("--") else _short(words, at, options, found)
        if taken == 0:
            return None
        at += taken
    return ParsedOptions(tuple(found), at)


def _long(words: Words, at: int, options: KnownOptions, found: list[tuple[str, str | None]]) -> int:
    name, equals, value = (words[at] or "")[2:].partition("=")
    full = _full_name(name, options)
    if full is None:
        return 0
    # `--name=value` is accepted for options without a value as well: some take an optional one
    if equals or full in options.long:
        found.append(("--" + full, value if equals else None))
        return 1
    if at + 1 >= len(words):
        return 0
    found.append(("--" + full, words[at + 1]))
    return 2


def _full_name(name: str, options: KnownOptions) -> str | None:
    """Return the option that a name, or an unambiguous beginning of one, means to GNU getopt."""
    names = options.long | options.long_valued
    if name in names:
        return name
    meant = [candidate for candidate in names if name and candidate.startswith(name)]
    return meant[0] if len(meant) == 1 else None


def _short(words: Words, at: int, options: KnownOptions, found: list[tuple[str, str | None]]) -> int:
    word = words[at] or ""
    for position, letter in enumerate(word[1:], start=1):
        if letter in options.flags:
            found.append(("-" + letter, None))
        elif letter in options.valued:
            if position + 1 < len(word):
                found.append(("-" + letter, word[position + 1 :]))
                return 1
            if at + 1 >= len(words):
                return 0
            found.append(("-" + letter, words[at + 1]))
            return 2
        else:
            return 0
    return 1


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


class AllowedOptions(NamedTuple):
    """One harmless way to call a program. Options that are not listed here are not harmless."""

    flags: str = ""
    """Letters of short options without a value."""
    valued: str = ""
    """Letters of short options with a value, attached or in the next word."""
    optional: str = ""
    """Letters of short options whose value is attached or missing."""
    long: frozenset[str] = frozenset()
    """Long options without a value."""
    attached: frozenset[str] = frozenset()
    """Long options whose value is attached by `=` or missing."""
    long_valued: frozenset[str] = frozenset()
    """Long options with a value, attached by `=` or in the next word."""
    most: int | None = None
    """How many operands it may have. None: any number."""
    numbers: bool = False
    """True if `-20` is a number of lines."""
    needs: str = ""
    """Letters of short options of which one must be given. Empty: none."""
    first: bool = False
    """True if options end at the first operand."""


class GivenArguments(NamedTuple):
    """The parsed arguments of a program."""

    operands: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...]


def allowed_by(options: Mapping[str, Option], entry: ProgramEntry | None = None) -> AllowedOptions:
    """Return the options of a table as a form; `entry` says what else it asks of the arguments."""
    short = {name[1:]: option.value for name, option in options.items() if len(name) == 2}
    long = {name: option.value for name, option in options.items() if len(name) > 2 and name != "-NUMBER"}

    def taking(forms: Mapping[str, ValueForm], *wanted: ValueForm) -> list[str]:
        return [name for name, form in forms.items() if form in wanted]

    may_take: tuple[ValueForm, ...] = ("attached", "number", "last")
    return AllowedOptions(
        flags="".join(taking(short, "none")),
        valued="".join(taking(short, "needed")),
        optional="".join(taking(short, *may_take)),
        long=frozenset(taking(long, "none")),
        attached=frozenset(taking(long, *may_take)),
        long_valued=frozenset(taking(long, "needed")),
        most=entry.most_operands if entry else None,
        numbers="-NUMBER" in options,
        needs="".join(name[1:] for name in entry.needs) if entry else "",
        first=entry.options_first if entry else False,
    )


@cache
def reading_form(name: str, *subcommands: str) -> AllowedOptions | None:
    """Return the options with which a program or a subcommand of it only reads. None: the table does not say so."""
    entry = entry_of(name, *subcommands)
    if entry.reads is None:
        return None
    return allowed_by({option: entry.options[option] for option in entry.reads}, entry)


def parse_arguments(words: Sequence[str], allowed: AllowedOptions) -> GivenArguments | None:
    """Parse arguments. Returns None for an option that is not allowed, or for too many operands.

    A value in a word of its own must not look like an option: if the table were wrong about it, it would be one.
    """
    operands: list[str] = []
    options: list[tuple[str, str | None]] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            operands += words[at + 1 :]
            break
        if not word.startswith("-") or word == "-":
            if allowed.first:
                operands += words[at:]
                break
            operands.append(word)
            at += 1
            continue
        taken = take_option(words, at, allowed, options)
        if taken == 0:
            return None
        at += taken
    if allowed.most is not None and len(operands) > allowed.most:
        return None
    if allowed.needs and not any(name[1:] in allowed.needs for name, _ in options if not name.startswith("--")):
        return None
    return GivenArguments(tuple(operands), tuple(options))


_LIKE_OPTION = re.compile(r"--?[A-Za-z]")


def following_value(words: Sequence[str], at: int) -> str | None:
    """Return the word behind an option as its value. None: there is none, or it looks like an option itself."""
    value = words[at + 1] if at + 1 < len(words) else None
    return None if value is None or _LIKE_OPTION.match(value) else value


def take_option(words: Sequence[str], at: int, allowed: AllowedOptions, options: list[tuple[str, str | None]]) -> int:
    """Add the options in a word to `options`, and return how many words they take. 0: one of them is not allowed."""
    word = words[at]
    following = following_value(words, at)
    name, equals, value = word.partition("=")
    if equals and (name in allowed.attached or name in allowed.long_valued):
        options.append((name, value))
        return 1
    if word in allowed.long or word in allowed.attached:
        options.append((word, None))
        return 1
    if word in allowed.long_valued:
        options.append((word, following))
        return 2 if following is not None else 0
    if word.startswith("--"):
        return 0
    # `head -20`, `git log -5`
    if allowed.numbers and word[1:].isdecimal():
        return 1
    return _letters(word, following, allowed, options)


def _letters(word: str, following: str | None, allowed: AllowedOptions, options: list[tuple[str, str | None]]) -> int:
    for position, letter in enumerate(word[1:], start=1):
        if letter in allowed.valued:
            attached = word[position + 1 :]
            options.append(("-" + letter, attached or following))
            return 1 if attached else 2 if following is not None else 0
        if letter in allowed.optional:
            options.append(("-" + letter, word[position + 1 :] or None))
            return 1
        # an option that is not listed, or a bundle with one: asked
        if letter not in allowed.flags:
            return 0
        options.append(("-" + letter, None))
    return 1
