"""Expansions whose result is certain before a text runs, and the literal commands that they lead to (decision 29).

Known are braces without nesting, the user's own `~` and `$HOME`, variables that were set once to a literal value, loops
over words, and file name patterns, whose files somebody else looks up. The values of a few variables that hold no
secret, of those that `read` sets and of substitutions are not known, and stand for any words. Everything else is asked.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from whisper_tui.model.secrets import is_secret_name
from whisper_tui.policy.commands.wrappers import changes_what_runs, is_withheld
from whisper_tui.policy.shell.strict_reader import MOST_COMMANDS, MOST_WORDS, NotPlain
from whisper_tui.policy.shell.syntax import ONLY_MARKS, Part, ShellStep, ShellWord, declared, literal_value

Pattern = tuple[tuple[str, bool], ...]
"""A file name pattern: literal text, and the signs `*`, `?` and `[…]`, which are marked True."""

FilesOf = Callable[[Pattern], Iterable[str]]
"""Returns every file name that a pattern may stand for. Raises `NotPlain` if there are too many."""


class ExpandedWord(NamedTuple):
    """A word as a program receives it."""

    text: str
    beginning: str | None = None
    """None: the text is certain. Otherwise, files may appear or go, and the word may be any that begins so."""
    is_one: bool = True
    """False if any number of words may stand in its place."""


UNKNOWN = ExpandedWord("…", "")
"""Any words, or none: the value of a variable that is only known when the text runs."""

SUBSTITUTED = "WHISPER_TUI_SUBSTITUTED_"
"""The beginning of the variables that stand for what substitutions print."""

PIPED = "WHISPER_TUI_PIPED_"
"""The beginning of the variables that stand for the pipes of `<(…)`."""

SHOWN = frozenset(
    "PATH SHELL VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV GOPATH JAVA_HOME NODE_ENV NVM_DIR CARGO_HOME CI".split()
)
"""Variables of a session that hold no secret. A command that names one gets it, so that what it prints is true."""

_TELLS_NO_SECRET = SHOWN | frozenset(
    "? PWD USER LOGNAME LANG LANGUAGE LC_ALL TERM HOSTNAME HOSTTYPE OSTYPE MACHTYPE UID EUID PPID RANDOM SECONDS "
    "LINENO BASH_VERSION COLUMNS LINES TZ".split()
)
"""These, and variables that every command gets, or that its shell sets."""

_SIGN = re.compile(r"[*?]|\[[^]]*\]")
_SEQUENCE = re.compile(r"(0|[1-9][0-9]{0,3})\.\.(0|[1-9][0-9]{0,3})")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")
_UNSPLIT = re.compile(r"[A-Za-z0-9_./:@%+,=^-]+")
"""Values that bash neither splits nor expands where they are not quoted."""

_OF_BASH = re.compile(
    # bash gives these a meaning of their own
    r"(?:BASH|COMP|HIST|LC_|OPT|PS\d|READLINE_|WHISPER_TUI|MAIL|POSIX|PROMPT|TEXTDOMAIN|SHELL|XDG_).*|_.*|COPROC|DIRSTACK"
    r"|EMACS|ENV|EPOCH.*|EXECIGNORE|E?UID|FCEDIT|FIGNORE|FUNC.*|GLOB.*|GROUPS|HOME|HOST.*|IFS|INPUTRC|INSIDE_EMACS|LINENO"
    r"|MACHTYPE|MAPFILE|(?:OLD)?PWD|OSTYPE|PATH|PIPESTATUS|PPID|S?RANDOM|REPLY|SECONDS|SHLVL|TIMEFORMAT|TMOUT|TMPDIR"
    r"|CHILD_MAX|CDPATH|auto_resume|histchars"
    # and these may be in the environment of an unasked command, where other programs would see the change
    r"|BAT_.*|LANG(?:UAGE)?|TERM|COLORTERM|NO_COLOR|CLICOLOR|FORCE_COLOR|COLUMNS|LINES|TZ|USER|LOGNAME|LESS|EDITOR|VISUAL"
)


def expanded_commands(
    steps: Sequence[ShellStep], home: str, files: FilesOf, *, unknown: Iterable[str] = ()
) -> tuple[tuple[ExpandedWord, ...], ...]:
    """Return all commands of a text in literal words, each loop unrolled. Raises `NotPlain`.

    `home` is the directory that `~` means where the text runs; `unknown` are variables that a text around it sets.
    """
    expansion = _Expansion(steps, home, files)
    expansion.run(0, len(steps), dict.fromkeys(unknown, UNKNOWN))
    if not expansion.commands:
        raise NotPlain("it only sets variables")
    return tuple(expansion.commands)


class _Expansion:
    """Walks through the steps of a text with the variables that they set."""

    def __init__(self, steps: Sequence[ShellStep], home: str, files: FilesOf) -> None:
        self.commands: list[tuple[ExpandedWord, ...]] = []
        self._steps = steps
        self._home = home
        self._files = files
        self._words = 0
        self._moves = any(_is_move(step) for step in steps)

    def run(self, at: int, end: int, scope: Mapping[str, ExpandedWord]) -> None:
        """Walk through the steps from `at` to `end`; `scope` holds the variables of the loops around them."""
        known = dict(scope)
        while at < end:
            step = self._steps[at]
            if step.kind == "set":
                for word in step.words:
                    name, value = _assignment(word)
                    _check_name(name, self._steps)
                    known[name] = self._assigned(value, known)
            elif step.kind == "with":
                self._check_settings(step, self._steps[at + 1])
            elif step.kind == "input":
                # what reads its input from a file shows no more of it than this would
                self.commands.append((ExpandedWord("cat"), *self._all(step.words, known)))
            elif step.kind == "run" and literal_value(step.words[0]) == "read":
                known |= dict.fromkeys(self._read_names(step), UNKNOWN)
            elif assigned := declared(step):
                self._command(step, known)
                options = [word for word in map(literal_value, step.words[1:]) if word and word.startswith("-")]
                if not all(map(ONLY_MARKS.fullmatch, options)):
                    raise NotPlain("it declares a variable with an option that changes its value")
                # bash expands all words before it sets the first variable
                known |= {name: self._assigned(value, known) for name, value in map(_assignment, assigned)}
                for name in _names_of(step):
                    _check_name(name, self._steps)
            elif step.kind == "loop":
                done = self._end_of_loop(at)
                self._unroll(at, done, known)
                at = done
            else:
                self._command(step, known)
            at += 1

    def _assigned(self, value: ShellWord, known: Mapping[str, ExpandedWord]) -> ExpandedWord:
        """Return the value that an assignment sets."""
        parts = [
            self._value(text, known, quoted=True) if kind in {"name", "quoted name"} else ExpandedWord(text)
            for kind, text in value
        ]
        if any(part.beginning is not None for part in parts):
            return UNKNOWN
        return ExpandedWord("".join(part.text for part in parts))

    @staticmethod
    def _check_settings(step: ShellStep, command: ShellStep) -> None:
        """Raise `NotPlain` unless variables for one command change nothing but what that prints."""
        words = [literal_value(word) for word in step.words]
        if words == ["IFS="] and literal_value(command.words[0]) == "read":
            return
        if not all(word is not None and is_harmless_setting(word) for word in words):
            raise NotPlain("it sets a variable for a command")

    def _read_names(self, step: ShellStep) -> list[str]:
        """Return the variables that a `read` sets. They have no other value anywhere in the text."""
        names = [literal_value(word) or "" for word in step.words[1:]]
        while names[:1] == ["-r"]:
            del names[0]
        for name in names:
            if not name.isidentifier():
                raise NotPlain("it contains a `read` with options")
            _check_name(name, self._steps, loop=True)
        if not names:
            raise NotPlain("it contains a `read` without a name")
        return names

    def _end_of_loop(self, at: int) -> int:
        depth = 0
        for place in range(at, len(self._steps)):
            kind = self._steps[place].kind
            depth += (kind == "loop") - (kind == "done")
            if depth == 0:
                return place
        raise NotPlain("a loop is not closed")

    def _unroll(self, at: int, done: int, known: Mapping[str, ExpandedWord]) -> None:
        name = literal_value(self._steps[at].words[0]) or ""
        _check_name(name, self._steps, loop=True)
        if name in known:
            raise NotPlain(f"it sets {name} more than once")
        for value in self._all(self._steps[at].words[1:], known):
            self.run(at + 1, done, {**known, name: value})

    def _command(self, step: ShellStep, known: Mapping[str, ExpandedWord]) -> None:
        words = tuple(self._all(step.words, known))
        # a program by another name than the text shows is not what a human would expect to be judged
        if not words or literal_value(step.words[0]) != words[0].text or words[0].beginning is not None:
            raise NotPlain("the program is not known before it runs")
        self.commands.append(words)
        if len(self.commands) > MOST_COMMANDS:
            raise NotPlain(f"it runs more than {MOST_COMMANDS} commands")

    def _all(self, words: Iterable[ShellWord], known: Mapping[str, ExpandedWord]) -> Iterator[ExpandedWord]:
        for word in words:
            # of `{a,}` bash drops the empty word, which has no quotes
            for alternative in filter(None, without_braces(word)):
                for expanded in self._word(alternative, known):
                    self._words += 1
                    if self._words > MOST_WORDS:
                        raise NotPlain(f"it contains more than {MOST_WORDS:,} words")
                    yield expanded

    def _word(self, word: ShellWord, known: Mapping[str, ExpandedWord]) -> Iterable[ExpandedWord]:
        """Expand a word without braces: `~`, then variables, then file names, as bash does."""
        word = _with_home(word, self._home)
        signs: list[tuple[str, bool]] = []
        beginning: str | None = None
        is_one = True
        for kind, text in word:
            if kind in {"name", "quoted name"}:
                quoted = kind == "quoted name"
                value = self._value(text, known, quoted=quoted)
                if value.beginning is not None and not quoted:
                    # a file may appear whose name holds blanks, at which bash splits it into any words
                    beginning, is_one = "", False
                elif value.beginning is not None and beginning is None:
                    beginning = "".join(part for part, _ in signs) + value.beginning
                signs.append((value.text, False))
            elif kind == "bare":
                for part, is_sign in _signs(text):
                    if is_sign and beginning is None:
                        beginning = "".join(before for before, _ in signs)
                    signs.append((part, is_sign))
            else:
                signs.append((text, False))
        found = ExpandedWord("".join(part for part, _ in signs), beginning, is_one)
        if not any(is_sign for _, is_sign in signs):
            return (found,)
        if self._moves:
            raise NotPlain("it changes the directory in which its file name patterns match")
        found = found._replace(is_one=False)
        names = [ExpandedWord(name, beginning, is_one=False) for name in self._files(tuple(signs))]
        # without a match bash hands the pattern itself on; its locale decides about all signs but `*`, and its version
        # about `..`
        certain = any(".." not in word.text and not word.text.endswith(".") for word in names)
        return names if certain and all(part == "*" for part, is_sign in signs if is_sign) else (*names, found)

    def _value(self, name: str, known: Mapping[str, ExpandedWord], *, quoted: bool) -> ExpandedWord:
        value = known.get(name)
        if value is UNKNOWN or name.startswith(SUBSTITUTED):
            return UNKNOWN
        if name.startswith(PIPED):
            return ExpandedWord(UNKNOWN.text, "/dev/fd/")
        if value is None and name in _TELLS_NO_SECRET and not any(_sets(step, name) for step in self._steps):
            return UNKNOWN
        if value is None and name == "HOME" and not any(_sets(step, "HOME") for step in self._steps):
            value = ExpandedWord(self._home)
        if value is None:
            raise NotPlain(f"it contains a variable whose value is not certain: {name}")
        if not quoted and not _UNSPLIT.fullmatch(value.text):
            raise NotPlain(f"it contains a variable without quotes that bash may split: {name}")
        return value


def _is_move(step: ShellStep) -> bool:
    return step.kind == "run" and literal_value(step.words[0]) in {"cd", "pushd", "popd"}


def _names_of(step: ShellStep) -> list[str]:
    """Return the variables that a step sets."""
    if step.kind == "set" or declared(step):
        return [word[0][1].partition("=")[0] for word in declared(step) or step.words]
    if step.kind == "run" and literal_value(step.words[0]) == "read":
        return [literal_value(word) or "" for word in step.words[1:]]
    return [literal_value(step.words[0]) or ""] if step.kind == "loop" else []


def variables_of(steps: Sequence[ShellStep]) -> frozenset[str]:
    """Return the variables that a text sets, and that may be unset before. Raises `NotPlain` for one with a meaning."""
    names = frozenset(name for step in steps for name in _names_of(step) if name not in {"-r", ""})
    for name in names:
        _check_name(name, ())
        if is_secret_name(name):
            raise NotPlain(f"it sets {name}, which may hold a secret before")
    return names


def _sets(step: ShellStep, name: str) -> bool:
    return name in _names_of(step)


def _assignment(word: ShellWord) -> tuple[str, ShellWord]:
    """Return the name and the value of `NAME=value`."""
    name, sign, first = word[0][1].partition("=")
    value: ShellWord = (("bare", first), *word[1:])
    bare = first + "".join(text for kind, text in word[1:] if kind == "bare")
    # bash expands a `~` behind `=` and `:`, and appends with `+=`
    if word[0][0] != "bare" or not sign or name.endswith("+") or re.search(r"[~*?\[\]{}]", bare):
        raise NotPlain("it sets a variable to a value that is not literal")
    return name, value


def _check_name(name: str, steps: Sequence[ShellStep], *, loop: bool = False) -> None:
    """Raise `NotPlain` if a variable means something to bash or to other programs, or is set twice."""
    if not is_only_a_name(name):
        raise NotPlain(f"it sets {name}, which changes how commands run")
    kinds = ["set" if declared(step) else step.kind for step in steps for each in _names_of(step) if each == name]
    if "set" in kinds and (loop or len(kinds) > 1):
        raise NotPlain(f"it sets {name} more than once")


def is_only_a_name(name: str) -> bool:
    """True if a variable means nothing to bash, as far as is known, and nothing to the programs of readers."""
    return not (_OF_BASH.fullmatch(name) or is_withheld(name))


def is_harmless_setting(assignment: str) -> bool:
    """True if a variable before a command that only reads changes nothing but what that prints."""
    name, _, value = assignment.partition("=")
    known = _harmless_values(name)
    if known is not None:
        return re.fullmatch(known, value) is not None
    return is_only_a_name(name) and not changes_what_runs(name)


def only_changes_looks(assignment: str) -> bool:
    """True if a variable changes for any command nothing but how, or how soon, that prints something."""
    name, _, value = assignment.partition("=")
    known = _harmless_values(name)
    return known is not None and re.fullmatch(known, value) is not None


def _harmless_values(name: str) -> str | None:
    return next((values for names, values in _HARMLESS_VALUES.items() if re.fullmatch(names, name)), None)


_HARMLESS_VALUES = {
    # in Big5 and its like a backslash may be half a letter, so that bash, awk and sed would read another text
    r"LC_[A-Z]+|LANG": r"(?:C|POSIX|(?:C|[a-z]{2,3}_[A-Z]{2})\.(?i:utf-?8))?",
    r"LANGUAGE": r"[A-Za-z0-9_.@:-]*",
    r"TZ": r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*",
    r"NO_COLOR|CLICOLOR|CLICOLOR_FORCE|FORCE_COLOR|COLUMNS|LINES": r"\w*",
    r"TERM": r"[a-z0-9-]+",
    r"PAGER|GIT_PAGER|MANPAGER": r"cat",
    r"GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT": r"0",
    r"PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE": r"1?",
    r"RUST_BACKTRACE": r"[01]|full",
    r"PY_COLORS|CARGO_TERM_COLOR": r"\w*",
}
"""Variables that mean something to programs, with the values that do no harm."""


def _with_home(word: ShellWord, home: str) -> ShellWord:
    """Replace `~` at the beginning of a word. Raises `NotPlain` for the home of somebody else."""
    if not word or word[0][0] != "bare" or not word[0][1].startswith("~"):
        return word
    name, slash, rest = word[0][1].partition("/")
    # a quote before the first slash makes bash leave the `~` alone
    if name != "~" or (not slash and len(word) > 1):
        raise NotPlain("it contains ~ in a form that may stand for another directory")
    return (("quoted", home), ("bare", slash + rest), *word[1:])


def _signs(text: str) -> Iterator[tuple[str, bool]]:
    """Split unquoted text into the signs of a pattern and what stands between them."""
    at = 0
    for match in _SIGN.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], False
        yield match[0], True
        at = match.end()
    if at < len(text):
        yield text[at:], False


def without_braces(word: ShellWord) -> Iterator[ShellWord]:
    """Yield the words that a word with braces stands for. Raises `NotPlain` unless all of its braces are simple."""
    characters: list[Part] = []
    for kind, text in word:
        characters += [(kind, character) for character in text] if kind == "bare" else [(kind, text)]
    if ("bare", "{") not in characters and ("bare", "}") not in characters:
        yield word
        return
    pieces = list(_alternatives(characters))
    number = 1
    for piece in pieces:
        number *= len(piece)
    # bash joins `$a{b,c}` to `$ab` and `$ac` before it looks at the variables
    if number > MOST_WORDS or any(kind in {"name", "quoted name"} for kind, _ in word):
        raise NotPlain("it contains a brace expansion that is not simple")
    # `~/{a,b}` is expanded after its braces, and so would `{~,a}` be
    if any(kind == "bare" and "~" in text[at == 0 and text.startswith("~/") :] for at, (kind, text) in enumerate(word)):
        raise NotPlain("it contains a brace expansion beside ~")
    for chosen in product(*pieces):
        yield _joined(part for piece in chosen for part in piece)


def _alternatives(characters: Sequence[Part]) -> Iterator[list[list[Part]]]:
    """Yield, one after the other, what may stand at each place: one text between braces, all choices within them."""
    at, outside = 0, list[Part]()
    while at < len(characters):
        if characters[at] == ("bare", "}"):
            raise NotPlain("it contains a brace expansion that is not simple")
        if characters[at] != ("bare", "{"):
            outside.append(characters[at])
            at += 1
            continue
        end = next((place for place in range(at, len(characters)) if characters[place] == ("bare", "}")), None)
        if end is None or ("bare", "{") in characters[at + 1 : end]:
            raise NotPlain("it contains a brace expansion that is not simple")
        inside = characters[at + 1 : end]
        if not inside or (("bare", ",") not in inside and _is_number(inside)):
            # bash leaves `{}` and `{0}` alone
            outside += characters[at : end + 1]
        else:
            yield [outside]
            outside = []
            yield _choices(inside)
        at = end + 1
    yield [outside]


def _is_number(inside: Sequence[Part]) -> bool:
    return all(kind == "bare" and text in "0123456789" for kind, text in inside)


def _choices(inside: Sequence[Part]) -> list[list[Part]]:
    """Return what stands between the commas of a brace expansion, or the members of a sequence."""
    if ("bare", ",") in inside:
        found: list[list[Part]] = [[]]
        for part in inside:
            if part == ("bare", ","):
                found.append([])
            else:
                found[-1].append(part)
        return found
    text = "".join(each for _, each in inside) if all(kind == "bare" for kind, _ in inside) else ""
    if match := _SEQUENCE.fullmatch(text):
        first, last = int(match[1]), int(match[2])
        if abs(first - last) < MOST_WORDS:
            step = 1 if first <= last else -1
            return [[("bare", str(number))] for number in range(first, last + step, step)]
    elif match := _LETTERS.fullmatch(text):
        first, last = (ord(letter) for letter in match.groups() if letter)
        step = 1 if first <= last else -1
        return [[("bare", chr(code))] for code in range(first, last + step, step)]
    raise NotPlain("it contains a brace expansion that is not simple")


def _joined(parts: Iterable[Part]) -> ShellWord:
    found: list[Part] = []
    for kind, text in parts:
        if found and found[-1][0] == kind == "bare":
            found[-1] = (kind, found[-1][1] + text)
        elif text or kind != "bare":
            found.append((kind, text))
    return tuple(found)
