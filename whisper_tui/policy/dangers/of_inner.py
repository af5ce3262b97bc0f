"""The dangers of a whole call: of every command in it, and of how they are put together."""

import re
from collections.abc import Iterable

from whisper_tui.policy.dangers.acting_options import acting_for_rules
from whisper_tui.policy.dangers.command import dangers
from whisper_tui.policy.dangers.finding import Danger
from whisper_tui.policy.dangers.network import talks
from whisper_tui.policy.dangers.reaching import reaching
from whisper_tui.policy.dangers.unknown import may_run
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.reading.syntax import Script
from whisper_tui.policy.wrappers.peel import peel
from whisper_tui.policy.wrappers.peeled import program_name
from whisper_tui.policy.wrappers.shells import RUNS_FILE, Input

EVALUATING = frozenset(
    "test [ printf read let declare typeset local readonly unset mapfile readarray getopts wait".split()
)
"""Builtins that read a part of their arguments as code."""

ELSEWHERE = frozenset("docker podman nerdctl kubectl oc lxc ssh mosh".split())
"""Wrappers that run their command in a container or on another machine."""

_CODE = re.compile(r"\$\(|`")


def runs_while_expanding(text: str, scripts: Iterable[Script], commands: Iterable[Inner]) -> bool:
    """Whether something runs, or is opened, before the commands themselves: in a substitution or in a value."""
    scripts, commands = tuple(scripts), tuple(commands)
    if any(script.substitutions for script in scripts):
        return True
    if "@P}" in text and any(script.evaluations for script in scripts):
        return True
    values = (word for command in commands for word in command.argv if word is not None)
    if not _CODE.search(text) and not any(_CODE.search(word) for word in values):
        return False  # quotes can break up in the text what is one word to the builtin
    return any(script.evaluations for script in scripts) or any(evaluates(command) for command in commands)


def evaluates(command: Inner) -> bool:
    """Whether a builtin would read one of its arguments as code."""
    if command.name not in EVALUATING:
        return False
    return any(word is not None and "[" in word[1:] for word in command.argv[1:])


def dangers_of(command: Inner) -> list[Danger]:
    """Dangers of one command among others."""
    if not command.argv:
        return []
    name = command.name
    if name is None:
        return [Danger("runs-other-code", "Which program it starts is only known when it runs", 0)]
    found = [] if command.runs_others and name != "xargs" else dangers(command.argv, name)
    if name in {"sudo", "doas", "pkexec", "su", "runuser", "gosu", "su-exec"}:
        found.append(Danger("privilege", f"{name} gives it the rights of another user", 0))
    found += reaching(command.argv, name)
    if command.runner is not None:
        sentence = f"{name} runs a program that the project, a package or its settings bring along"
        found.append(Danger("runs-other-code", sentence, command.runner))
    if name == "xargs" and command.runs_others:
        found.append(Danger("runs-other-code", "Words from its input become arguments and options", 0))
    if name in {"parallel", "entr", "watch"}:
        found.append(Danger("runs-other-code", f"{name} runs commands again and again", 0))
    if command.opaque is not None:
        found.append(Danger("opaque", command.opaque[:1].upper() + command.opaque[1:], _script(command)))
    if command.runs_others and name in ELSEWHERE:
        found.append(Danger("runs-other-code", f"{name} runs a command somewhere else", len(command.argv) - 1))
    if evaluates(command):
        found.append(Danger("runs-other-code", "An argument of it is read as code", len(command.argv) - 1))
    if not found and command.starts and not command.runs_others:
        found.append(Danger("runs-other-code", f"{name} runs a command that stands among its words", 0))
    if not found and not command.runs_others:
        found += may_run(command.argv, name)
    if talks(command.argv, name) and None in command.argv:
        found.append(Danger("network", "What it sends to another machine is only known when it runs", 0))
    return found


def dangers_of_certain(argv: tuple[str, ...], *, comes: bool) -> list[Danger]:
    """The dangers of one certain command; `comes`: whether anything comes from its input.

    What a runner runs is judged at its place among the words, so that a rule can name it: `uv run pytest`. Behind any
    other wrapper nothing can be named.
    """
    peeled = peel(argv, Input(comes=comes))
    if peeled is None:
        return dangers_of(Inner(argv=argv, span=(0, 0))) + acting_for_rules(argv, program_name(argv[0]))
    runs = bool(peeled.commands or peeled.texts)
    stays = not runs or peeled.stays
    found = dangers_of(
        Inner(argv=argv, span=(0, 0), opaque=peeled.opaque, runs_others=not stays, starts=runs, runner=peeled.runner)
    )
    if not runs:
        return found + acting_for_rules(argv, program_name(argv[0]))
    inner = peeled.commands[0] if peeled.commands else ()
    offset = len(argv) - len(inner)
    words = tuple(word for word in inner if word is not None)
    if peeled.runner is None or peeled.texts or not 0 < offset < len(argv) or words[1:] != argv[offset + 1 :]:
        return [*found, Danger("runs-other-code", "It runs another command", len(argv))]
    behind = dangers_of_certain(words, comes=comes)
    return found + [danger._replace(word=danger.word + offset) for danger in behind]


def _script(command: Inner) -> int:
    """Index of the script that a shell reads; one behind the last word where a rule cannot name what it runs."""
    if command.opaque != RUNS_FILE:
        return len(command.argv)
    return next((at for at, word in enumerate(command.argv) if at and word and word[0] not in "-+"), len(command.argv))


def forks_without_end(script: Script, commands: Iterable[Inner]) -> bool:
    """Whether a function starts itself in the background: a fork bomb."""
    return any(command.background and command.argv[:1] and command.argv[0] in script.functions for command in commands)
