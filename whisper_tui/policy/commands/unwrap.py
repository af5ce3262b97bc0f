"""Unwrapping: every command that a call would run, through wrappers, substitutions and texts for shells."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from whisper_tui.policy.commands.argv import Argv, ParsedOptions, Unwrapped, parse_options, program_name
from whisper_tui.policy.commands.special_wrappers import SPECIAL
from whisper_tui.policy.commands.wrappers import (
    Runner,
    StandardInput,
    Wrapper,
    runner_of,
    shell_text,
    wrapper_of,
)
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.syntax import Redirection, Script, SimpleCommand, input_of_command
from whisper_tui.programs.entries import entry_of

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN_TEXT = re.compile(r"[\w./:=@%+, -]+")
_LOADER = re.compile(r"(?:.*/)?ld-?(?:linux[\w.-]*|musl[\w.-]*|[\d.]+)?\.so(?:\.\d+)?")


# One call has each of its commands unwrapped ten times, for different questions.
@lru_cache(maxsize=256)
def unwrap(argv: Argv, given: StandardInput) -> Unwrapped | None:
    """Remove the outermost wrapper. Returns None if the command runs nothing else."""
    first = argv[0] if argv else None
    if first is None:
        return None
    name = program_name(first)
    if entry_of(name).shell == "posix":
        return _shell(argv, given)
    # `/lib64/ld-linux-x86-64.so.2 PROGRAM` starts any program, also one without the executable bit
    if _LOADER.fullmatch(first):
        return _loader(argv)
    if entry_of(name).shell == "own":
        return _foreign_shell(name, argv)
    special = SPECIAL.get(name)
    if special is not None:
        return special(argv)
    runner = runner_of(name)
    if runner is not None:
        return _run_by(name, argv, runner)
    wrapper = wrapper_of(name)
    return None if wrapper is None else _wrapped(name, argv, wrapper)


def _shell(argv: Argv, given: StandardInput) -> Unwrapped | None:
    if argv[1:] in {("--version",), ("--help",)} and program_name(argv[0] or "") in {"bash", "sh", "dash"}:
        return None
    text, why = shell_text(argv, given)
    return Unwrapped(opaque=why) if text is None else Unwrapped(texts=(text,))


def _foreign_shell(name: str, argv: Argv) -> Unwrapped | None:
    """Unwrap a shell with a syntax of its own: never certain, but searched as if it were bash."""
    for at, word in enumerate(argv[1:], start=1):
        # an unknown word may be the option that takes a script
        if word is None or word.lower() in {"-c", "--command", "-command", "--commands"}:
            text = argv[at + 1] if word is not None and at + 1 < len(argv) else None
            opaque = f"{name} has a syntax of its own"
            return Unwrapped(texts=() if text is None else (text,), opaque=opaque, has_own_effect=True)
    return Unwrapped(opaque=f"{name} runs a script or is interactive") if len(argv) > 1 else None


def _run_by(name: str, argv: Argv, runner: Runner) -> Unwrapped | None:
    """Unwrap a runner with subcommands (decision 9)."""
    verb = _verb(argv, runner)
    if verb is None:
        said = set(argv[1:]) & {each.rpartition(" ")[2] for each in runner.verbs}
        if parse_options(argv, 1, runner.entry) is not None:
            return None
        return (
            Unwrapped(opaque=f"the options of {name} are not known well enough to say what it runs") if said else None
        )
    at, wrapper = verb
    if wrapper.ways.only_dashes:
        behind = argv[argv.index("--", at) + 1 :] if "--" in argv[at:] else ()
        return Unwrapped(commands=(behind,), runner=at, has_own_effect=True) if behind else None
    unwrapped = _wrapped(name, argv[at:], wrapper)
    if (
        unwrapped is not None
        and wrapper.ways.joins
        and len(unwrapped.texts) == 1
        and _PLAIN_TEXT.fullmatch(unwrapped.texts[0])
    ):
        words = unwrapped.texts[0].split()
        unwrapped = Unwrapped(commands=((words[0].rpartition(":")[2], *words[1:]),)) if words else None
    if unwrapped is None or not unwrapped.commands:
        return unwrapped
    (command,) = unwrapped.commands
    # `npx eslint@9` runs eslint, so a rule for eslint has to match; `@scope/name` keeps its first @
    if runner.entry.versions and command[0] is not None and "@" in command[0][1:]:
        command = (command[0][0] + command[0][1:].partition("@")[0], *command[1:])
    return unwrapped._replace(commands=(command,), runner=at)


def _verb(argv: Argv, runner: Runner) -> tuple[int, Wrapper] | None:
    """Return the index of the last word of a runner's subcommand and its wrapper, or None if it runs nothing."""
    # such as uvx and npx: the program itself is the runner
    if (itself := runner.verbs.get("")) is not None:
        return 0, itself
    parsed = parse_options(argv, 1, runner.entry)
    if parsed is None:
        return None
    for length in (2, 1):
        words = argv[parsed.rest : parsed.rest + length]
        found = runner.verbs.get(" ".join(word or "\0" for word in words))
        if found is not None:
            return parsed.rest + length - 1, found
    return None


def _loader(argv: Argv) -> Unwrapped | None:
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("--"):
        word = argv[at] or ""
        at += 2 if word in {"--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath"} else 1
    return Unwrapped(commands=(argv[at:],)) if at < len(argv) else None


def _wrapped(name: str, argv: Argv, wrapper: Wrapper) -> Unwrapped | None:
    if wrapper.ways.only_dashes:
        behind = argv[argv.index("--") + 1 :] if "--" in argv else ()
        return Unwrapped(commands=(behind,), has_own_effect=True) if behind else None
    argv = _old_style(name, argv)
    parsed = parse_options(argv, 1, wrapper.entry)
    if parsed is None:
        return Unwrapped(opaque=f"the options of {name} are not known well enough to say what it runs")
    if parsed.has(*wrapper.ways.itself):
        return None
    if wrapper.ways.text and (text := _text_option(argv, parsed, wrapper)) is not None:
        return text
    if name == "env" and (split := parsed.value("-S", "--split-string")) is not None:
        return _split_string(split, argv[parsed.rest :])
    return _rest(name, argv, wrapper, parsed)


def _rest(name: str, argv: Argv, wrapper: Wrapper, parsed: ParsedOptions) -> Unwrapped | None:
    at = parsed.rest
    assignments: list[str] = []
    while wrapper.ways.assignments and at < len(argv) and _ASSIGNMENT.match(argv[at] or ""):
        assignments.append(argv[at] or "")
        at += 1
    at += wrapper.ways.operands
    # with -c the list of CPUs is the first operand, just as the mask is without it
    if name in {"taskset"} and parsed.has("-c", "--cpu-list"):
        at = parsed.rest + 1
    if wrapper.ways.dashes and argv[at : at + 1] == ("--",):
        at += 1
    if name == "script" and at > parsed.rest and at <= len(argv) - 1 and argv[at] == "--":
        at += 1
    rest = argv[at:]
    if not rest:
        return None
    if wrapper.ways.joins or parsed.has(*wrapper.ways.joining):
        return _joined(name, rest, parsed)
    if parsed.has(*wrapper.ways.module):
        # `uv run -m pytest` runs python with the module
        return Unwrapped(commands=(("python", "-m", *rest),))
    if None in rest[:1]:
        return Unwrapped(opaque=f"what {name} runs is only known when it runs")
    return Unwrapped(commands=(rest,), assignments=tuple(assignments))


def _joined(name: str, rest: Argv, parsed: ParsedOptions) -> Unwrapped:
    if name == "watch" and parsed.has("-x", "--exec"):
        return Unwrapped(commands=(rest,))
    # hyperfine takes each argument as a command line of its own
    if name == "hyperfine":
        return _texts(rest)
    if None in rest:
        return Unwrapped(opaque=f"what {name} runs is only known when it runs")
    return Unwrapped(texts=(" ".join(word or "" for word in rest),))


def _texts(words: Sequence[str | None]) -> Unwrapped:
    known = tuple(word for word in words if word is not None)
    return Unwrapped(
        texts=known, opaque=None if len(known) == len(words) else "a text for a shell is not known before it runs"
    )


def _text_option(argv: Argv, parsed: ParsedOptions, wrapper: Wrapper) -> Unwrapped | None:
    """Return the text of `-c TEXT`, before or after the operands."""
    found = parsed
    at = parsed.rest
    while not found.has(*wrapper.ways.text) and at < len(argv):
        behind = parse_options(argv, at, wrapper.entry)
        if behind is None:
            # they are probably those of the command that it runs
            rest = argv[parsed.rest + wrapper.ways.operands :]
            hidden = "unknown options hide what it runs"
            return Unwrapped(commands=(rest,) if rest else (), opaque=hidden, has_own_effect=True)
        if behind.has(*wrapper.ways.text):
            found = behind
        at = behind.rest + 1
    if not found.has(*wrapper.ways.text):
        return None
    text = found.value(*wrapper.ways.text)
    return (
        Unwrapped(opaque="the text for its shell is not known before it runs")
        if text is None
        else Unwrapped(texts=(text,))
    )


def _old_style(name: str, argv: Argv) -> Argv:
    """Rewrite options of an old or foreign style to the usual one."""
    # its parser is that of Go, which takes long options with one dash
    if name == "envconsul":
        return tuple("-" + word if word and re.match(r"-[a-z][\w-]", word) else word for word in argv)
    if name == "nice" and len(argv) > 1 and re.fullmatch(r"--?\d+", argv[1] or ""):
        # `nice -5` means `nice -n 5`
        return (argv[0], *argv[2:])
    return argv


def _split_string(text: str, behind: Argv) -> Unwrapped:
    # `env -S` expands escapes, quotes and ${VARIABLES} by rules of its own
    if re.search(r"[\\$'\"]", text):
        return Unwrapped(opaque="the words that env splits its text into are not certain")
    words: Argv = (*text.split(), *behind)
    assigned = 0
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned] or ""):
        assigned += 1
    return Unwrapped(commands=(words[assigned:],), assignments=tuple(word or "" for word in words[:assigned]))


DEEPEST = 12
"""Nested wrappers that are unwrapped; beyond them, the command counts as unknown."""

MOST = 200
"""Commands of one call that are examined. A call with more is asked anyway."""


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """A command of a call, and how it is run."""

    argv: Argv
    """Its words; None stands for one that is not known before it runs."""
    span: tuple[int, int]
    """Its span in the text of the call; behind a wrapper, that of the outermost command."""
    places: tuple[tuple[int, int], ...] = ()
    """The spans of its words in the text of the call. Empty behind a wrapper."""
    via: tuple[str, ...] = ()
    """Names of the wrappers around it, outermost first."""
    assignments: tuple[str, ...] = ()
    """Variables set for it: `NAME=value`, or `NAME=` if the value is not known."""
    patterns: tuple[tuple[int, str], ...] = ()
    """The indices and texts of words with a file name pattern."""
    redirections: tuple[Redirection, ...] = ()
    background: bool = False
    nested: bool = False
    """True if a substitution runs it."""
    runs_others: bool = False
    """True if it does nothing but run the commands after it in the list."""
    starts: bool = False
    """True if it runs the commands after it in the list."""
    runner: int | None = None
    """Index of the word that makes it run a program of the project or of a package, if it does."""
    opaque: str | None = None
    """Why it is not known what it runs, or None if it runs nothing else or that is known."""

    @property
    def name(self) -> str | None:
        """Its program without the directory, or None if that is not known before it runs."""
        return program_name(self.argv[0]) if self.argv and self.argv[0] is not None else None

    def place_of(self, index: int) -> tuple[int, int]:
        """Return the span of a word in the text of the call, or that of the whole command behind a wrapper."""
        return self.places[index] if index < len(self.places) else self.span


class _Finder:
    def __init__(self) -> None:
        self.found: list[InnerCommand] = []
        self.scripts: list[Script] = []

    def script(self, script: Script, outer: InnerCommand | None = None) -> None:
        self.scripts.append(script)
        for simple in script.commands:
            if len(self.found) >= MOST:
                return
            self._simple(simple, outer)

    def _simple(self, simple: SimpleCommand, outer: InnerCommand | None) -> None:
        assignments = tuple(word.value or word.pieces[0].text.partition("=")[0] + "=" for word in simple.assignments)
        made = InnerCommand(
            argv=simple.argv,
            span=outer.span if outer else simple.span,
            places=() if outer else tuple((word.start, word.end) for word in simple.words),
            via=outer.via if outer else (),
            assignments=(*(outer.assignments if outer else ()), *assignments),
            patterns=tuple(
                (at, "".join(piece.text for piece in word.pieces))
                for at, word in enumerate(simple.words)
                if any(piece.kind == "glob" for piece in word.pieces)
            ),
            redirections=simple.redirections,
            background=simple.background or (outer is not None and outer.background),
            nested=simple.nested or (outer is not None and outer.nested),
        )
        self.command(made, _input(simple))

    def command(self, inner: InnerCommand, given: StandardInput) -> None:
        """Keep a command and the commands that it runs."""
        if len(self.found) >= MOST:
            return
        unwrapped = unwrap(inner.argv, given) if len(inner.via) < DEEPEST else None
        if unwrapped is None:
            # each wrapper recurses once, so the depth has to be bounded
            deep = "it wraps commands in commands too deeply" if len(inner.via) >= DEEPEST else None
            self.found.append(replace(inner, opaque=deep))
            return
        runs = bool(unwrapped.commands or unwrapped.texts)
        has_own_effect = not runs or unwrapped.has_own_effect
        self.found.append(
            replace(
                inner, opaque=unwrapped.opaque, runs_others=not has_own_effect, starts=runs, runner=unwrapped.runner
            )
        )
        behind = replace(
            inner,
            via=(*inner.via, inner.name or ""),
            assignments=(*inner.assignments, *unwrapped.assignments),
            # they belong to the wrapper: listing them twice would report the same file twice
            redirections=(),
            places=(),
            starts=False,
            runner=None,
        )
        for argv in unwrapped.commands:
            self.command(replace(behind, argv=argv, patterns=_patterns(inner, argv)), given)
        for text in unwrapped.texts:
            self.script(read_script(text), behind)


def _patterns(outer: InnerCommand, argv: Argv) -> tuple[tuple[int, str], ...]:
    """Return the patterns among the last words of a wrapper, by their indices in the command that it runs."""
    offset = len(outer.argv) - len(argv)
    if offset < 0 or outer.argv[offset:] != argv:
        return ()
    return tuple((at - offset, pattern) for at, pattern in outer.patterns if at > offset)


def inner_commands(script: Script) -> tuple[tuple[InnerCommand, ...], tuple[Script, ...]]:
    """Return all commands of a script, each wrapper before the commands that it runs, and all scripts among them."""
    finder = _Finder()
    finder.script(script)
    return tuple(finder.found), tuple(finder.scripts)


def inner_commands_of_argv(argv: tuple[str, ...]) -> tuple[tuple[InnerCommand, ...], tuple[Script, ...]]:
    """Return the same for an argv; spans count in the words joined by `shlex.join`."""
    places: list[tuple[int, int]] = []
    for word in argv:
        start = places[-1][1] + 1 if places else 0
        places.append((start, start + len(shlex.quote(word))))
    finder = _Finder()
    finder.command(InnerCommand(argv=argv, span=(0, places[-1][1]), places=tuple(places)), StandardInput())
    return tuple(finder.found), tuple(finder.scripts)


def _input(simple: SimpleCommand) -> StandardInput:
    """Return the standard input of a command, as far as the text tells."""
    found = input_of_command(simple.redirections)
    return StandardInput(has_input=simple.piped) if found is None else StandardInput(text=found.body, has_input=True)
