"""The table of programs: what each of them does, what its options take, and what they make it do.

Every fact about a program stands here once. Policy asks what only reads, runs or writes, effects ask which words are
values, and explanations ask for the words (decision 38). An entry is written as `docs/programs.md` says.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

ValueForm = Literal["none", "needed", "attached", "number", "last", "command", "rest"]
"""`needed`: attached, or the next word. `attached`: optional, in the same word. `number`: optional, the next word if it
is a number. `last`: optional, the next word if there is one. `command`: all words up to `;` or `+`. `rest`: the next
word, and the words behind it belong to that."""


class Option(NamedTuple):
    """The entry of an option."""

    meaning: str
    """Empty: it is not described."""
    value: ValueForm
    names: tuple[str, ...] = ()
    """All names that mean it, where they are described together."""


class Shown(NamedTuple):
    """Subcommands that only show something, with the options that they may have."""

    commands: tuple[tuple[str, ...], ...]
    """The first words of each as patterns; a last `*` stands for more words."""
    options: Mapping[str, Option]


class CallPattern(NamedTuple):
    """A pattern of calls that do something: those that begin with some words, and have one of some options."""

    words: tuple[str, ...]
    """Patterns for its first words."""
    options: tuple[str, ...]
    """Options of which one must be given. Empty: none has to."""
    sentence: str
    """For the human who decides. Empty: that of the program."""


@dataclass(frozen=True)
class Wrapping:
    """How the command behind a program that runs its words is found."""

    operands: int = 0
    """Words of its own between the options and the command."""
    assignments: bool = False
    """True if `NAME=value` may stand before the command."""
    itself: tuple[str, ...] = ()
    """Options with which it runs nothing."""
    text: tuple[str, ...] = ()
    """Options whose value is shell text, which it runs instead of words."""
    joins: bool = False
    """True if a shell reads the rest, joined by blanks."""
    joining: tuple[str, ...] = ()
    """Options that make a shell read the rest."""
    module: tuple[str, ...] = ()
    """Options that make the rest a Python module and its arguments."""
    dashes: bool = False
    """True if `--` may stand between its operands and the command."""
    only_dashes: bool = False
    """True if the command begins after `--`, whatever stands before it."""


@dataclass(frozen=True)
class ProgramEntry:
    """The entry of a program or of a subcommand."""

    about: str
    name: str = ""
    """Its first name, under which checks of its own are found."""
    options: Mapping[str, Option] = field(default_factory=dict)
    """All options of which the table knows what they take."""
    commands: Mapping[str, "ProgramEntry"] = field(default_factory=dict)
    options_first: bool = False
    """Behind the first operand there are no options of this program."""
    single_dash: bool = False
    """Long options have one dash, and short ones cannot be combined."""
    bundle: Literal["", "dashed", "bare"] = ""
    """Letters may stand without a dash in the first word: `dashed` has the meaning of -x, `bare` its own."""
    anywhere: bool = False
    """The options of the program may also stand behind its subcommands."""
    same: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """Groups of subcommands that do the same."""
    same_options: tuple[tuple[str, ...], ...] = ()
    """Groups of options that mean the same."""
    shortest_command: int | None = None
    """From how many letters on the beginning of a subcommand is taken for it. None: it never is."""
    whole_options: bool = False
    """No beginning of a long option is taken for it."""
    targets: bool = False
    """Its operands are targets, and it makes all of them."""
    abbreviates: bool = False
    """Every beginning of a long option counts, however short."""
    reads: frozenset[str] | None = None
    """The options with which the program only reads, or None if it may do more without any."""
    shows: tuple[Shown, ...] = ()
    lists: tuple[tuple[str, ...], ...] = ()
    """First words of those that the sandbox answers although the program needs a socket."""
    most_operands: int | None = None
    """The most operands with which it only reads. None: any number."""
    needs: tuple[str, ...] = ()
    """Short options of which it needs one to only read."""
    runs: tuple[str, ...] = ()
    """Beginnings of options that make it run or load something, or read options from a file."""
    writes: tuple[str, ...] = ()
    """Beginnings of options that make it write a file or change a setting."""
    must_name: tuple[str, ...] = ()
    """Everyday options that also run or write: no finding for a human, but an allow rule must name them."""
    runs_text: re.Pattern[str] | None = None
    """Arguments that make it run a command or open another file."""
    runs_operand: bool = False
    """Its operand is code, a script or a program, which it runs."""
    output_operand: int | None = None
    """It writes to its last operand if it has so many."""
    setting: re.Pattern[str] | None = None
    """Operands that change a setting of the machine."""
    words_are_data: bool = False
    """Its operands are names, texts or subcommands, and never commands that it runs."""
    has_subcommands: bool = False
    """Its first words may be subcommands."""
    starts: tuple[str, ...] = ()
    """Programs that it may start in turn. One from the workspace would be a program of the agent."""
    needs_no_sandbox: bool = False
    """It has no subprocesses, plug-ins, settings of a project or code in its arguments."""
    harmless_options: bool = False
    """None of its options writes or runs anything, so a file name that is taken for one does no harm."""
    needs_socket: bool = False
    """It asks another process, another machine or a device, so in a sandbox it could only fail."""
    tells_version: bool = False
    """It answers `--version` and `--help` before it reads anything of the project."""
    version_options: tuple[str, ...] = ()
    """Arguments with which it only tells about itself."""
    argument_files: bool = False
    """It replaces `@FILE` by the arguments in that file."""
    code_first: bool = False
    """Its first operand is code, and all others are files."""
    takes_files: bool = False
    """But for its options and its code, it only reads the files that are named."""
    deletes: tuple[CallPattern, ...] = ()
    """CallPattern that delete, stop or publish something."""
    interrupts: tuple[CallPattern, ...] = ()
    """CallPattern whose effect passes or can be taken back."""
    loses: str = ""
    """The effect of calls that delete, in words for the human who decides."""
    harm: str = ""
    """The loss that every call causes, in words for the human who decides."""
    prints_secrets: tuple[CallPattern, ...] = ()
    """CallPattern that print keys, passwords or tokens."""
    connects: tuple[CallPattern, ...] = ()
    """CallPattern that reach other machines."""
    network: bool = False
    """Every call may reach other machines."""
    opens: bool = False
    """It opens a file or an address in another program."""
    content: Literal["", "shown", "copied"] = ""
    """It shows the content of the files in its arguments, or copies it."""
    reads_paths: bool = False
    """It only reads the paths in its arguments."""
    shows_names: bool = False
    """It shows names, sizes and times, but no content of files."""
    opens_nothing: bool = False
    """To it, a path is only a word."""
    names_files: bool = False
    """It changes no files but those that its words name."""
    goes_on: Literal["", "always", "sometimes"] = ""
    """It goes on until somebody ends it: always, or if one of its words says so."""
    acts_outside: str = ""
    """Why no pre-images undo its effects, or why it would not work in a view of the files, as the end of a sentence."""
    wraps: Wrapping | None = None
    """It runs the rest of its words. All its options are known then: any other hides what it runs."""
    versions: bool = False
    """The command that it or a subcommand of it runs may carry a version: `ruff@latest`."""
    transparent: bool = False
    """An allow rule for the command that it runs holds through it."""
    own_files: frozenset[str] | None = None
    """The options of a wrapper that name files which it writes itself. None: it may write others."""
    own_operand: bool = False
    """A wrapper opens its first operand for writing."""
    more_files: bool = False
    """A wrapper writes more files than these options name."""
    elsewhere: tuple[str, ...] = ()
    """Options with which the command runs in another directory; `*`: it always does."""
    says_little: bool = False
    """Its name alone says nothing about what it does."""
    everyday: bool = False
    """An everyday program, which does what the settings of a project say, so that a rule may name it alone."""
    plain_words: bool = False
    """Its first words are names, texts or files, and never subcommands."""
    installs: bool = False
    """True if what its subcommands remove can be installed again."""
    downloads: bool = False
    """It shows or saves what another machine sends."""
    decodes: bool = False
    """It makes text readable that was not, or the other way round."""
    code_options: tuple[str, ...] | None = None
    """The options of an interpreter that take code. None: it is none."""
    shell: Literal["", "posix", "own"] = ""
    """It is a shell, whose text is read as that of bash, or has a syntax of its own."""
    changes_nothing: bool = False
    """It changes no file, whatever its words are."""
    writes_by_words: bool = False
    """It only reads, but a word that is not known may be an option or an operand with which it writes."""
    feeds: bool = False
    """It adds words to the command that it runs."""
    signals: bool = False
    """It sends signals to processes."""
    database: bool = False
    """Its words may hold statements for a database."""
    runs_scripts: bool = False
    """It runs a script of the project by its name alone: `yarn deploy` is a `yarn run deploy`."""
    executes_files: bool = False
    """It executes a file in a language of its own."""
    grouped: bool = False
    """Its first words are groups of subcommands."""
    user_first: bool = False
    """Its first operand is a user."""
    host_first: bool = False
    """Its first operand is a machine."""
    makes_files: bool = False
    """It makes files with a content that comes from elsewhere."""
    copies: bool = False
    """It copies files, and its last operand is the target."""
    writes_trees: bool = False
    """An operand may be a directory, below which it writes or takes away files."""
    searches_trees: bool = False
    """It searches everything below its directories."""
    repeats: bool = False
    """It runs its command many times."""
    run_words: frozenset[str] = frozenset()
    """First words behind which others may make it run anything."""
    brings_code: Literal["", "packages", "project", "image"] = ""
    """It runs code of packages, of the project or of an image, which is in no file that it names."""
    brings_code_when: tuple[str, ...] = ()
    """The subcommands with which it does, two words joined by a dash. Empty: it always does."""
    unstated: frozenset[str] = frozenset()
    """Options of which the effects do not state what they change."""
    by_default: tuple[str, ...] = ()
    """Its meaning without any subcommand."""
    place: str = ""
    """Where it runs a command: in a container or on another machine."""
    privilege: bool = False
    """It runs a command as another user."""
    text: frozenset[str] = frozenset()
    """Options whose value is text, such as a delimiter or a pattern, and no file."""
    text_operands: int = 0
    """How many of its first operands are text."""
    text_instead: frozenset[str] = frozenset()
    """Options that take the place of these operands."""


_OPTION = re.compile(r"(?P<names>[^ ,]+(?:, [^ ,]+)*)(?P<value> \S+(?: ;| \.\.\.)?)?  (?P<meaning>\S.*)")
_NAME = re.compile(r"(?P<name>-{0,2}[A-Za-z0-9@+][\w.-]*)(?P<own>\[=?\w+\]|=[\w:]+)?")
_ENDINGS: Mapping[str, ValueForm] = {"=": "needed", "?": "attached"}
_GROUP = "@"
"""The first letter of lists of options that several entries have."""


def read_options(text: str) -> dict[str, Option]:
    """Parse the lines of described options. Raises `ValueError` if one is malformed or occurs twice."""
    found: dict[str, Option] = {}
    for line in filter(None, text.split("\n")):
        entry = _OPTION.fullmatch(line)
        names = [_NAME.fullmatch(name) for name in entry["names"].split(", ")] if entry else []
        if entry is None or None in names:
            raise ValueError(f"malformed line: {line!r}")
        for name in filter(None, names):
            if name["name"] in found:
                raise ValueError(f"{name['name']} is described twice")
            form = _value_form(entry["value"] or "", name["own"] or "")
            found[name["name"]] = Option(entry["meaning"], form, tuple(each["name"] for each in names if each))
    return found


def _value_form(shared: str, own: str) -> ValueForm:
    if own:
        return "attached" if own.startswith("[") else "needed"
    if not shared:
        return "none"
    if shared.startswith(" ["):
        return "number" if shared == " [N]" else "last"
    return "command" if shared.endswith(" ;") else "rest" if shared.endswith(" ...") else "needed"


_Rows = Mapping[str, Mapping[str, Any]]


class _Table:
    """Entries as they are written, and what they mean together."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._below: dict[str, list[str]] = {}
        for name in rows:
            self._below.setdefault(name.rpartition(" ")[0], []).append(name)

    def options(self, words: str, described: Mapping[str, Option]) -> dict[str, Option]:
        """Parse a list of names. `-n=` takes a value, `-n?` an attached one or none; a described one is only named."""
        found: dict[str, Option] = {}
        for word in words.split():
            if word.startswith(_GROUP):
                found |= self.options(self._rows[word]["options_of_many"], described)
                continue
            name, form = (word[:-1], _ENDINGS[word[-1]]) if word[-1] in _ENDINGS else (word, None)
            known = described.get(name)
            if known is not None and form is not None and not _agree(known.value, form):
                raise ValueError(f"{name} takes a value as {form}, and as {known.value}")
            found[name] = known or Option("", form or "none")
        return found

    def entry(self, name: str) -> ProgramEntry:
        """Build an entry. Raises `ValueError` for what cannot be understood."""
        own = self._rows[name]
        row = {**self._rows[own["like"]], **own} if "like" in own else own
        if unknown := row.keys() - _FIELDS:
            raise ValueError(f"{name} has unknown fields: {', '.join(sorted(unknown))}")
        described = read_options(row.get("options", ""))
        reads = self.options(row["reads"], described) if "reads" in row else None
        others = {each: Option("", "none") for each in row.get("flags", "").split()} | {
            each.removesuffix("?"): Option("", "attached" if each[-1] == "?" else "needed")
            for each in row.get("takes", "").split()
        }
        if twice := others.keys() & (described.keys() | (reads or {}).keys()):
            raise ValueError(f"{', '.join(sorted(twice))} of {name} stands in another list as well")
        tags = row.get("is", "").split()
        if unknown := set(tags) - _TAGS:
            raise ValueError(f"{name} has unknown tags: {', '.join(sorted(unknown))}")
        values: dict[str, Any] = {each: _READ_AS.get(each, _as_it_is)(row[each]) for each in row.keys() - _MADE}
        values |= dict.fromkeys(tags, True) | {
            "name": name,
            "options": {**others, **(reads or {}), **described},
            "commands": self._commands(name, row.get("commands", "")),
            "reads": None if reads is None else frozenset(reads),
            "shows": tuple(self._shown(row.get("shows", ""))),
        }
        return ProgramEntry(**values)

    def _commands(self, name: str, lines: str) -> dict[str, ProgramEntry]:
        found = {}
        for line in filter(None, lines.split("\n")):
            word, _, about = line.partition("  ")
            if not about or word in found:
                raise ValueError(f"malformed or repeated line: {line!r}")
            found[word] = ProgramEntry(about)
        below = self._below.get(name, ())
        if twice := found.keys() & {each.rpartition(" ")[2] for each in below}:
            raise ValueError(f"{', '.join(sorted(twice))} of {name} is described twice")
        return found | {each.rpartition(" ")[2]: self.entry(each) for each in below}

    def _shown(self, text: str) -> Iterator[Shown]:
        for line in filter(None, re.sub(r"\n +", " ", text).split("\n")):
            commands, colon, options = line.partition(" :")
            if not colon:
                raise ValueError(f"malformed line: {line!r}")
            yield Shown(_word_lists(commands), self.options(options, {}))


def _agree(known: ValueForm, said: ValueForm) -> bool:
    """True if a list says of a described option what its description says: a list knows two forms only."""
    return known == said or (said == "attached" and known in {"number", "last"})


def _as_it_is(value: Any) -> Any:
    return value


def _words(value: str) -> tuple[str, ...]:
    return tuple(value.split())


def _word_lists(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(words.split()) for words in text.split(","))


def _word_set(value: str) -> frozenset[str]:
    return frozenset(value.split())


def _same(lines: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    groups = (line.split(" = ") for line in lines.split("\n") if line)
    return tuple(tuple(tuple(words.split()) for words in group) for group in groups)


def _same_options(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.split()) for group in text.split(" | "))


def _calls(lines: str) -> tuple[CallPattern, ...]:
    found = []
    for line in filter(None, lines.split("\n")):
        called, _, sentence = line.partition("  ")
        given = [] if called == "*" else called.split()
        options = tuple(word for word in given if word.startswith("-"))
        found.append(CallPattern(tuple(word for word in given if not word.startswith("-")), options, sentence))
    return tuple(found)


def _wrapping(row: Mapping[str, Any]) -> Wrapping:
    values: dict[str, Any] = {name: _words(each) if isinstance(each, str) else each for name, each in row.items()}
    return Wrapping(**values)


_READ_AS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("needs", "runs", "writes", "must_name", "starts"), _words),
    **dict.fromkeys(("elsewhere", "code_options", "by_default", "brings_code_when"), _words),
    **dict.fromkeys(("text", "text_instead", "own_files", "run_words", "unstated"), _word_set),
    **dict.fromkeys(("deletes", "interrupts", "prints_secrets", "connects"), _calls),
    "lists": _word_lists,
    "same": _same,
    "same_options": _same_options,
    "wraps": _wrapping,
    **dict.fromkeys(("runs_text", "setting"), re.compile),
    "version_options": tuple,
}
_EXAMPLES = frozenset({"only_reads", "asks"})
"""Calls that tests judge."""
_MADE = frozenset({"name", "options", "flags", "takes", "commands", "reads", "shows", "also", "like", "is"}) | _EXAMPLES
"""Fields of a row that need more than themselves to be read."""
_TAGS = {each.name for each in fields(ProgramEntry) if each.type is bool}
"""Fields that are only true or not: a row names those that hold."""
_FIELDS = _MADE | {each.name for each in fields(ProgramEntry)} - _TAGS


def read_programs(rows: _Rows) -> dict[str, ProgramEntry]:
    """Build the programs from the rows of a table, by each of their names. Raises `ValueError` for a malformed one."""
    table = _Table(rows)
    found: dict[str, ProgramEntry] = {}
    for name in _programs_of(rows):
        entry = table.entry(name)
        for each in (name, *rows[name].get("also", ())):
            if each in found:
                raise ValueError(f"{each} is described twice")
            found[each] = entry
    known = {" ".join(path) for name in found for path in _paths(found[name], (name,))}
    if missed := {name for name in rows if not name.startswith(_GROUP)} - known:
        raise ValueError(f"no entry for the program of {', '.join(sorted(missed))}")
    return found


def _programs_of(rows: _Rows) -> list[str]:
    return [name for name in rows if " " not in name and not name.startswith(_GROUP)]


def _paths(program: ProgramEntry, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for word, command in program.commands.items():
        yield from _paths(command, (*path, word))


_FILES = Path(__file__).with_name("table")
_HEADING = re.compile(r'^\[(?:"(?P<quoted>[^"]+)"|(?P<bare>[\w-]+))\]\n', re.MULTILINE)
_ALSO = re.compile(r"^also = .*$", re.MULTILINE)


class _WrittenRows(Mapping[str, Mapping[str, Any]]):
    """The rows of the files. A command needs few of them, so each is read when it is asked for."""

    def __init__(self) -> None:
        text = "".join(each.read_text(encoding="utf-8") for each in sorted(_FILES.glob("*.toml")))
        headings = list(_HEADING.finditer(text))
        ends = [each.start() for each in headings[1:]] + [len(text)]
        self._texts = {
            each["quoted"] or each["bare"]: text[each.end() : end] for each, end in zip(headings, ends, strict=True)
        }
        if len(self._texts) < len(headings):
            raise ValueError("two entries of the table of programs have the same name")

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return tomllib.loads(self._texts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def also(self, name: str) -> Sequence[str]:
        """Return the other names of a program, without reading the rest of its row."""
        line = _ALSO.search(self._texts[name])
        return tomllib.loads(line[0])["also"] if line else ()


@cache
def _rows() -> _WrittenRows:
    return _WrittenRows()


@cache
def _table() -> _Table:
    return _Table(_rows())


@cache
def _names() -> dict[str, str]:
    """The name of the entry of each program."""
    rows = _rows()
    return {each: name for name in _programs_of(rows) for each in (name, *rows.also(name))}


def program_names() -> tuple[str, ...]:
    """Return the names of all programs in the table."""
    return tuple(_names())


UNKNOWN = ProgramEntry("")
"""The entry of all programs and subcommands that are not in the table: nothing is known of them."""


def entry_of(name: str | None, *subcommands: str) -> ProgramEntry:
    """Return the entry of a program, by one of its names without a directory, or that of a subcommand."""
    known = _names().get(name or "")
    entry = UNKNOWN if known is None else _entry(known)
    for each in subcommands:
        entry = entry.commands.get(each, UNKNOWN)
    return entry


@cache
def _entry(name: str) -> ProgramEntry:
    return _table().entry(name)
