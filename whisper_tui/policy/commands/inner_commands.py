"""Every command that a call would run, seen through wrappers, substitutions and texts for shells."""

import shlex
from dataclasses import dataclass, replace

from whisper_tui.policy.commands.argv import Argv, program_name
from whisper_tui.policy.commands.shells import StandardInput
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.syntax import Redirection, Script, SimpleCommand

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
        assignments = tuple(_assignment(word.value, word.pieces[0].text) for word in simple.assignments)
        made = InnerCommand(
            argv=simple.argv,
            span=outer.span if outer else simple.span,
            places=() if outer else tuple((word.start, word.end) for word in simple.words),
            via=outer.via if outer else (),
            assignments=(*(outer.assignments if outer else ()), *assignments),
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
            self.found.append(_changed(inner, opaque=deep))
            return
        runs = bool(unwrapped.commands or unwrapped.texts)
        has_own_effect = not runs or unwrapped.has_own_effect
        self.found.append(
            _changed(
                inner, opaque=unwrapped.opaque, runs_others=not has_own_effect, starts=runs, runner=unwrapped.runner
            )
        )
        behind = _changed(
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
            self.command(_changed(behind, argv=argv), given)
        for text in unwrapped.texts:
            self.script(read_script(text), behind)


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
    # the last redirection of standard input wins
    for redirection in reversed(simple.redirections):
        if redirection.operator in {"<<", "<<-", "<<<"}:
            return StandardInput(text=redirection.body, has_input=True)
        if redirection.operator in {"<", "<>", "<&"}:
            return StandardInput(has_input=True)
    return StandardInput(has_input=simple.piped)


def _assignment(value: str | None, first: str) -> str:
    return value if value is not None else first.partition("=")[0] + "="


def _changed(inner: InnerCommand, **change: object) -> InnerCommand:
    return replace(inner, **change)  # type: ignore[arg-type]
