"""A call as the policy sees it: what is certain about it, what it would run, and what is dangerous in that."""

import re
import shlex
from dataclasses import dataclass
from functools import cached_property, lru_cache

from whisper_tui.model.command import Argv, Command, Shell
from whisper_tui.policy.dangers.finding import Danger
from whisper_tui.policy.dangers.of_inner import dangers_of, runs_while_expanding
from whisper_tui.policy.inner import MOST, Inner, inner_commands, inner_commands_of_argv
from whisper_tui.policy.reading.plain import NotPlain, PlainCommand, read_plain
from whisper_tui.policy.reading.second import is_available, second_reading
from whisper_tui.policy.reading.syntax import Script
from whisper_tui.policy.reading.wide import read_script

_SEPARATORS = re.compile(r"[\s;&|()<>`'\"\\$={}!,]+")

_MOVERS = frozenset("cd pushd popd . source eval".split())
"""What changes the directory of the shell that carries it out, or can hold what does."""

LONGEST_READ = 10_000
"""Characters beyond which a text is not read at all. It is asked, and searched for what is denied."""


@dataclass(frozen=True)
class View:
    """What the readings of a call found."""

    text: str
    """The shell's text, or the words joined as a shell would quote them."""
    plain: tuple[PlainCommand, ...] | None
    """Every command with certain words, where all readings agree. None: something is not certain."""
    doubt: str
    """Why nothing is certain. Empty where something is."""
    commands: tuple[Inner, ...]
    """Every command that would run, wrappers before what they run."""
    scripts: tuple[Script, ...]
    """The readings of the text, and of each text inside it."""
    expands: bool
    """Whether something runs while words are expanded."""
    problem: str | None
    """Why the text could not be read to its end. None: it could."""
    is_argv: bool
    """Whether no shell is involved."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The programs of all commands, as far as they are known."""
        return frozenset(command.name for command in self.commands if command.name is not None)

    @cached_property
    def scraps(self) -> tuple[str, ...]:
        """What stands between blanks, quotes and operators, for a text that cannot be read; no paths before names."""
        return tuple(part.rsplit("/", 1)[-1] for part in _SEPARATORS.split(self.text) if part)

    @cached_property
    def scrap_words(self) -> frozenset[str]:
        """The same, to look one up."""
        return frozenset(self.scraps)

    @cached_property
    def dangers(self) -> tuple[tuple[Inner, Danger], ...]:
        """All dangers, with the command that each is in."""
        return tuple((command, danger) for command in self.commands for danger in dangers_of(command))


def may_leave(command: Command) -> bool:
    """Whether a command's bash may end in another directory than it began in; no other shell is looked at."""
    if not isinstance(command, Shell) or command.shell.rsplit("/", 1)[-1] != "bash":
        return False
    seen = view(command)
    if seen.plain is None:
        return not _MOVERS.isdisjoint(seen.scraps)
    return any(not _MOVERS.isdisjoint(each.argv[:2]) for each in seen.plain)


def view(command: Command) -> View:
    """Read a command in every way there is."""
    if isinstance(command, Argv):
        return _view_of_argv(command)
    if isinstance(command, Shell):
        return _view_of_text(command)
    doubt = "it is a tool of the agent's own"
    return View(command.text, None, doubt, (), (), False, None, False)


@lru_cache(maxsize=256)
def _view_of_argv(command: Argv) -> View:
    words = command.words()
    commands, scripts = inner_commands_of_argv(words)
    certain = PlainCommand(argv=words, start=0, end=commands[0].span[1])
    return View(
        text=shlex.join(words),
        plain=(certain,),
        doubt="",
        commands=commands,
        scripts=scripts,
        expands=False,
        problem=next((script.problem for script in scripts if script.problem), None),
        is_argv=True,
    )


@lru_cache(maxsize=256)
def _view_of_text(command: Shell) -> View:
    text = command.text
    if len(text) > LONGEST_READ:
        doubt = f"it is longer than {LONGEST_READ:,} characters"
        return View(text, None, doubt, (), (), False, doubt, False)
    script = read_script(text)
    commands, scripts = inner_commands(script)
    plain, doubt = agreed(text, script)
    name = command.shell.rsplit("/", 1)[-1]
    if plain is not None and len(commands) >= MOST:
        plain, doubt = None, _too_many(commands) or ""
    if plain is not None and name not in {"bash", "sh"}:
        plain, doubt = None, f"{name} reads text by rules of its own, which are not known here"
    return View(
        text=text,
        plain=plain,
        doubt=doubt,
        commands=commands,
        scripts=scripts,
        expands=runs_while_expanding(text, scripts, commands),
        problem=next((found.problem for found in scripts if found.problem), None) or _too_many(commands),
        is_argv=False,
    )


def _too_many(commands: tuple[Inner, ...]) -> str | None:
    return f"it holds more than {MOST} commands" if len(commands) >= MOST else None


def agreed(text: str, script: Script) -> tuple[tuple[PlainCommand, ...] | None, str]:
    """The certain commands of a text if every reading says the same about it, and why not otherwise."""
    if script.problem:
        return None, f"it cannot be read to its end ({script.problem})"
    try:
        plain = read_plain(text)
    except NotPlain as reason:
        return None, str(reason)
    words = tuple(command.argv for command in plain)
    if tuple(command.argv for command in script.commands) != words:
        return None, "two readings of it do not agree"
    if not is_available():
        return plain, ""
    timed = tuple(("time", *command.argv) if command.timed else command.argv for command in plain)
    second = second_reading(text)
    if (
        second is None
        or tuple(_untimed(seen, expected) for seen, expected in zip(second, timed, strict=False)) != timed
    ):
        return None, "two readings of it do not agree"
    return (plain, "") if len(second) == len(timed) else (None, "two readings of it do not agree")


def _untimed(seen: tuple[str, ...], expected: tuple[str, ...]) -> tuple[str, ...]:
    """`time -p x` without the option of the shell's own `time`."""
    if expected[:1] == ("time",) and seen[:2] == ("time", "-p") and expected[1:2] != ("-p",):
        return ("time", *seen[2:])
    return seen
