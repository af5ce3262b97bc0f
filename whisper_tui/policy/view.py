"""A call as the policy sees it: the question, the literal commands, all commands that would run, and their dangers."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from whisper_tui.model.call import Argv, Command, CommandSpec, Shell, Trust
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.argv import Danger
from whisper_tui.policy.commands.unwrap import MOST, InnerCommand, inner_commands, inner_commands_of_argv
from whisper_tui.policy.risks.command_dangers import dangers_of_command, runs_while_expanding
from whisper_tui.policy.shell.bash_reader import read_script, steps_of
from whisper_tui.policy.shell.passed_text import PassedText, passed_texts, written_out
from whisper_tui.policy.shell.static_expansion import ExpandedWord, FilesOf, expanded_commands, variables_of
from whisper_tui.policy.shell.strict_reader import NotPlain, PlainCommand, read_plain, read_steps
from whisper_tui.policy.shell.substitutions import taken_apart
from whisper_tui.policy.shell.syntax import DECLARING, Script, ShellStep
from whisper_tui.policy.shell.tree_sitter_reader import is_available, second_reading, second_steps, substitutes_just


@dataclass(frozen=True)
class Question:
    """A call to be judged: the command, its session, and the meaning of its words where it would run."""

    session_id: str
    session_root: str
    """The workspace; of a command at a place, the directory there that stands for it."""
    spec: CommandSpec
    description: str
    resolved: Resolved
    tool: str = ""
    own_shell: bool = False
    """True for a shell tool of the agent itself, which is not bound to the contract of our tool of the same name."""
    cwd_here: str = ""
    """The directory on this machine for which the working directory at a place stands. Empty: there is none."""
    place_problem: str = ""
    """Why nobody knows what would run at its place, as a clause. Empty: it is known, or runs on this machine."""
    by_agent: bool = False
    """True if the agent runs the command itself, in its own shell and without a sandbox."""
    trust: Trust = "untrusted_external"
    sandbox_problem: str = ""
    """Why commands cannot be sandboxed here, as a clause; empty if they can."""
    docker_problem: str = ""
    """Why no sandbox answers docker here, as a clause; empty if it does."""
    was_blocked: bool = False
    """True if the sandbox blocked this command before in this session."""
    home: str = ""
    """The user's home directory, for rules about files. Empty: it is not known."""
    in_draft: bool = False
    """True if the session has a draft, in which its commands run."""
    now: float = 0.0
    """Seconds since the epoch, for approvals and rules with an end."""


_SEPARATORS = re.compile(r"[\s;&|()<>`'\"\\$={}!,]+")

_MOVERS = frozenset("cd pushd popd . source eval".split())
"""Commands that change the directory of their shell, or may contain one that does."""


LONGEST_READ = 10_000
"""Characters beyond which a text is not parsed. Such a call is asked, and searched for denied words."""


@dataclass(frozen=True)
class CommandView:
    """The result of reading a call."""

    text: str
    """The shell text, or the argv joined by `shlex.join`."""
    plain: tuple[PlainCommand, ...] | None
    """All commands, if every word is literal and all readers agree, or None."""
    doubt: str
    """Why `plain` is None, as a clause; empty if it is not."""
    commands: tuple[InnerCommand, ...]
    """Every command that would run, wrappers before the commands that they run."""
    scripts: tuple[Script, ...]
    """The script of the text, and of each shell text inside it."""
    expands: bool
    """True if something runs while words are expanded."""
    problem: str | None
    """Why the text could not be parsed to its end, or None."""
    is_argv: bool
    """True if no shell is involved."""
    passes_text: bool = False
    """True if its substitutions do nothing but pass the text of a here-document, and `plain` has that text."""
    steps: tuple[ShellStep, ...] = ()
    """Its commands, assignments and loops, if all readers agree on them, and `plain` is None or files are read."""
    inside: tuple[tuple[ShellStep, ...], ...] = ()
    """The steps of each of its substitutions. Empty: it has none, or they are not certain."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The known programs of all commands."""
        return frozenset(command.name for command in self.commands if command.name is not None)

    @cached_property
    def sets(self) -> tuple[str, ...]:
        """The variables that the text sets for its later commands, by `NAME=value` or `export`, certainly or not."""
        own = (each for command in self.commands if not command.argv for each in command.assignments)
        declared = (word for command in self.commands if command.name in DECLARING for word in command.argv[1:])
        return (*own, *(word for word in declared if word and "=" in word))

    @cached_property
    def returns(self) -> frozenset[int]:
        """The numbers of the `cd ..` that go back to a directory in which the text has been, if it comes to them.

        The shell remembers the path, links included, and one `&&` after the other leaves nothing else that could be.
        """
        if self.plain is None or len(self.plain) != len(self.commands):
            return frozenset()
        found, depth, end = set(), 0, 0
        for at, command in enumerate(self.plain):
            between = self.text[end : command.start].strip(" \t\n")
            depth, end = depth if between == "&&" else 0, command.end
            names = command.argv[1].split("/") if len(command.argv) == 2 and command.argv[0] == "cd" else []
            if names and set(names) == {".."} and len(names) <= depth:
                found.add(at)
                depth -= len(names)
            elif names and {"", ".", "..", "-"}.isdisjoint(names) and not names[0].startswith("~"):
                # behind `!`, `|` or `||`, what follows may run though it has not moved
                depth = depth + len(names) if between in {"", ";", "&&"} else 0
            elif names or not _MOVERS.isdisjoint(command.argv):
                depth = 0
        return frozenset(found)

    @cached_property
    def fragments(self) -> tuple[str, ...]:
        """The parts between blanks, quotes and operators, without directories: for texts that cannot be parsed."""
        return tuple(part.rsplit("/", 1)[-1] for part in _SEPARATORS.split(self.text) if part)

    @cached_property
    def fragment_words(self) -> frozenset[str]:
        """The fragments as a set."""
        return frozenset(self.fragments)

    @cached_property
    def dangers(self) -> tuple[tuple[InnerCommand, Danger], ...]:
        """All dangers, each with its command."""
        return tuple((command, danger) for command in self.commands for danger in dangers_of_command(command))


def may_change_directory(command: Command) -> bool:
    """True if a bash command may end in another directory than it began in."""
    if not isinstance(command, Shell) or command.shell.rsplit("/", 1)[-1] != "bash":
        return False
    seen = view(command)
    if seen.plain is None:
        # not parsed, so a `cd` anywhere in it counts
        return not _MOVERS.isdisjoint(seen.fragments)
    return any(not _MOVERS.isdisjoint(each.argv[:2]) for each in seen.plain)


def view(command: Command) -> CommandView:
    """Read a command with all readers."""
    if isinstance(command, Argv):
        return _view_of_argv(command)
    if isinstance(command, Shell):
        return _view_of_text(command)
    doubt = "it is one of the agent's own tools"
    return CommandView(command.text, None, doubt, (), (), False, None, False)


@lru_cache(maxsize=256)
def _view_of_argv(command: Argv) -> CommandView:
    words = command.words()
    commands, scripts = inner_commands_of_argv(words)
    certain = PlainCommand(argv=words, start=0, end=commands[0].span[1])
    return CommandView(
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
def _view_of_text(command: Shell) -> CommandView:
    text = command.text
    if len(text) > LONGEST_READ:
        doubt = f"it is longer than {LONGEST_READ:,} characters"
        return CommandView(text, None, doubt, (), (), False, doubt, False)
    script = read_script(text)
    commands, scripts = inner_commands(script)
    plain, doubt = agreed(text, script)
    passed = passed_texts(text, script)
    if passed and (not is_available() or substitutes_just(text, [(each.start, each.end) for each in passed])):
        written = written_out(text, passed)
        plain, doubt = agreed(written, read_script(written))
        commands = tuple(_with_text(command, passed) for command in commands)
    name = command.shell.rsplit("/", 1)[-1]
    if plain is not None and len(commands) >= MOST:
        plain, doubt = None, _too_many(commands) or ""
    # zsh, fish and others split and expand words differently, and nobody has compared our readers with them
    if plain is not None and name not in {"bash", "sh"}:
        plain, doubt = None, f"{name} has a syntax of its own, which is not supported"
    reads = any(redirection.operator == "<" for command in plain or () for redirection in command.redirections)
    steps, inside = _steps_of(text, script) if name == "bash" and (plain is None or reads) else ((), ())
    if name == "bash" and plain is not None and (given := _given_to_bash(plain)):
        steps, inside = _steps_of(given, read_script(given))
    return CommandView(
        text=text,
        plain=plain,
        doubt=doubt,
        commands=commands,
        scripts=scripts,
        steps=steps,
        inside=inside,
        passes_text=bool(passed) and plain is not None,
        expands=runs_while_expanding(text, scripts, commands),
        problem=next((found.problem for found in scripts if found.problem), None) or _too_many(commands),
        is_argv=False,
    )


def _with_text(command: InnerCommand, passed: Sequence[PassedText]) -> InnerCommand:
    """Return a command with the texts that are passed to it."""
    values = {(each.start, each.end): each.value for each in passed}
    argv = tuple(values.get(command.place_of(at), word) for at, word in enumerate(command.argv))
    return replace(command, argv=argv) if command.places else command


def _too_many(commands: tuple[InnerCommand, ...]) -> str | None:
    return f"it contains more than {MOST} commands" if len(commands) >= MOST else None


def agreed(text: str, script: Script) -> tuple[tuple[PlainCommand, ...] | None, str]:
    """Return the literal commands of a text if all readers agree, or None and the reason."""
    if script.problem:
        return None, f"it cannot be parsed ({script.problem})"
    try:
        plain = read_plain(text)
    except NotPlain as reason:
        return None, str(reason)
    # an allow rule needs certainty: one parser can be wrong, three written independently hardly alike
    words = tuple(() if command.sets else command.argv for command in plain)
    if tuple(command.argv for command in script.commands) != words:
        return None, _doubt(script)
    if any(command.sets for command in plain):
        return (plain, "") if agreed_steps(text, script) else (None, "it only sets variables")
    # without the extra package, two of our own readers still have to agree
    if not is_available():
        return plain, ""
    # tree-sitter takes `time` for the program of the command
    timed = tuple(("time", *command.argv) if command.timed else command.argv for command in plain)
    second = second_reading(text)
    if (
        second is None
        or tuple(_untimed(seen, expected) for seen, expected in zip(second, timed, strict=False)) != timed
    ):
        return None, _doubt(script)
    return (plain, "") if len(second) == len(timed) else (None, _doubt(script))


_DECLARES = frozenset({"declare", "typeset", "local", "readonly"})


def _doubt(script: Script) -> str:
    """Why no rule can match a text that the readers do not read alike."""
    named = next(
        (each.words[0].value for each in script.commands if each.words and each.words[0].value in _DECLARES), None
    )
    return f"it sets variables with `{named}`" if named else "a shell may read it in more than one way"


def agreed_steps(text: str, script: Script) -> tuple[ShellStep, ...]:
    """Return the steps of a text with expansions if all readers agree, and none otherwise (decision 29)."""
    try:
        steps = read_steps(text)
    except NotPlain:
        return ()
    if script.problem or steps_of(script) != steps or (is_available() and second_steps(text) != steps):
        return ()
    return steps


def _given_to_bash(plain: tuple[PlainCommand, ...]) -> str:
    """Return the text of a call that is nothing but `bash -c TEXT`. Empty: it is another one."""
    (command, *more) = plain
    alone = not (more or command.assignments or command.redirections or command.background or command.timed)
    return command.argv[2] if alone and command.argv[:2] == ("bash", "-c") and len(command.argv) == 3 else ""


def _steps_of(text: str, script: Script) -> tuple[tuple[ShellStep, ...], tuple[tuple[ShellStep, ...], ...]]:
    """Return the steps of a text with expansions, and those of each of its substitutions; none without certainty."""
    if not script.substitutions:
        return agreed_steps(text, script), ()
    apart = taken_apart(text, script)
    if apart is None:
        return (), ()
    steps = agreed_steps(apart.text, read_script(apart.text))
    inside = tuple(agreed_steps(each, read_script(each)) for each in apart.inside)
    return (steps, inside) if steps and all(inside) else ((), ())


def all_commands(seen: CommandView, home: str, files: FilesOf) -> tuple[tuple[ExpandedWord, ...], ...]:
    """Return all commands of a text in literal words, those of its substitutions behind the others.

    There, every directory in which a substitution may run is known. Raises `NotPlain`.
    """
    set_outside = variables_of(seen.steps) if seen.inside else frozenset()
    inside = (expanded_commands(steps, home, files, unknown=set_outside) for steps in seen.inside)
    return (*expanded_commands(seen.steps, home, files), *(command for commands in inside for command in commands))


def _untimed(seen: tuple[str, ...], expected: tuple[str, ...]) -> tuple[str, ...]:
    """Return `time -p x` without the option of the shell keyword `time`."""
    if expected[:1] == ("time",) and seen[:2] == ("time", "-p") and expected[1:2] != ("-p",):
        return ("time", *seen[2:])
    return seen
