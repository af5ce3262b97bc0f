"""Every command that a call would run, seen through wrappers, substitutions and texts for shells."""

import shlex
from dataclasses import dataclass, replace

from whisper_tui.policy.reading.syntax import Redirection, Script, Simple
from whisper_tui.policy.reading.wide import read_script
from whisper_tui.policy.wrappers.peel import peel
from whisper_tui.policy.wrappers.peeled import Argv, program_name
from whisper_tui.policy.wrappers.shells import Input

DEEPEST = 12
"""How many wrappers may stand around each other before it counts as unknown what runs."""

MOST = 200
"""Commands that are looked at in one call. A text that holds more is not judged any better by looking on."""


@dataclass(frozen=True, slots=True)
class Inner:
    """One command, and how it comes to run."""

    argv: Argv
    """Its words. None: known only when it runs."""
    span: tuple[int, int]
    """Characters of the call's text that it is about; those of the outermost command for one behind a wrapper."""
    places: tuple[tuple[int, int], ...] = ()
    """Where each word stands in the call's text. Empty: behind a wrapper."""
    via: tuple[str, ...] = ()
    """Names of the wrappers around it, outermost first."""
    assignments: tuple[str, ...] = ()
    """Variables set for it, `NAME=value`, or `NAME=` where the value is not known."""
    redirections: tuple[Redirection, ...] = ()
    background: bool = False
    nested: bool = False
    """Whether a substitution runs it."""
    runs_others: bool = False
    """Whether it is only there to run what comes after it in the list."""
    starts: bool = False
    """Whether it runs what comes after it beside doing something of its own."""
    runner: int | None = None
    """Index of the word that makes it run what a project or a package brings along. None: it does not."""
    opaque: str | None = None
    """Why it cannot be said what it runs. None: it runs nothing else, or that is known."""

    @property
    def name(self) -> str | None:
        """Its program, without directory. None: that is known only when it runs."""
        return program_name(self.argv[0]) if self.argv and self.argv[0] is not None else None


class _Finder:
    def __init__(self) -> None:
        self.found: list[Inner] = []
        self.scripts: list[Script] = []

    def script(self, script: Script, outer: Inner | None = None) -> None:
        self.scripts.append(script)
        for simple in script.commands:
            if len(self.found) >= MOST:
                return
            self._simple(simple, outer)

    def _simple(self, simple: Simple, outer: Inner | None) -> None:
        assignments = tuple(_assignment(word.value, word.pieces[0].text) for word in simple.assignments)
        made = Inner(
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

    def command(self, inner: Inner, given: Input) -> None:
        """Keep a command, and what it runs behind it."""
        if len(self.found) >= MOST:
            return
        peeled = peel(inner.argv, given) if len(inner.via) < DEEPEST else None
        if peeled is None:
            deep = "wrappers stand around wrappers too often" if len(inner.via) >= DEEPEST else None
            self.found.append(_changed(inner, opaque=deep))
            return
        runs = bool(peeled.commands or peeled.texts)
        stays = not runs or peeled.stays
        self.found.append(
            _changed(inner, opaque=peeled.opaque, runs_others=not stays, starts=runs, runner=peeled.runner)
        )
        behind = _changed(
            inner,
            via=(*inner.via, inner.name or ""),
            assignments=(*inner.assignments, *peeled.assignments),
            redirections=(),
            places=(),
            starts=False,
            runner=None,
        )
        for argv in peeled.commands:
            self.command(_changed(behind, argv=argv), given)
        for text in peeled.texts:
            self.script(read_script(text), behind)


def inner_commands(script: Script) -> tuple[tuple[Inner, ...], tuple[Script, ...]]:
    """All commands of a reading, each wrapper before what it runs, and every reading that they were found in."""
    finder = _Finder()
    finder.script(script)
    return tuple(finder.found), tuple(finder.scripts)


def inner_commands_of_argv(argv: tuple[str, ...]) -> tuple[tuple[Inner, ...], tuple[Script, ...]]:
    """The same for words that no shell reads; places count in the words joined as a shell would quote them."""
    places: list[tuple[int, int]] = []
    for word in argv:
        start = places[-1][1] + 1 if places else 0
        places.append((start, start + len(shlex.quote(word))))
    finder = _Finder()
    finder.command(Inner(argv=argv, span=(0, places[-1][1]), places=tuple(places)), Input())
    return tuple(finder.found), tuple(finder.scripts)


def _input(simple: Simple) -> Input:
    """What the command gets to read, as far as the text says."""
    for redirection in reversed(simple.redirections):
        if redirection.operator in {"<<", "<<-", "<<<"}:
            return Input(text=redirection.body, comes=True)
        if redirection.operator in {"<", "<>", "<&"}:
            return Input(comes=True)
    return Input(comes=simple.piped)


def _assignment(value: str | None, first: str) -> str:
    return value if value is not None else first.partition("=")[0] + "="


def _changed(inner: Inner, **change: object) -> Inner:
    return replace(inner, **change)  # type: ignore[arg-type]
