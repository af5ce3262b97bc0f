"""What a person makes of a command before approving it: fields as text, checked, and back into a specification."""

import json
import math
import shlex
from dataclasses import dataclass

from whisper_tui.model.command import Argv, Command, CommandSpec, Function, Shell
from whisper_tui.model.text import PLAIN_CONTROLS, is_hidden, without_hidden


@dataclass(frozen=True)
class Draft:
    """The fields of the edit screen as they are typed."""

    program: str
    """Empty for anything but an argv."""
    text: str
    """The arguments in the quoting of a shell, one a line, or the shell text, or the arguments of a tool as JSON."""
    cwd: str
    timeout: str
    """Seconds; empty for none."""
    args: tuple[str, ...] | None = None
    """The arguments exactly as they are. None: they stand in `text`."""


@dataclass(frozen=True)
class Checked:
    """What a draft means. `spec` is None as long as there are problems."""

    spec: CommandSpec | None
    problems: tuple[str, ...]


def draft_of(spec: CommandSpec) -> Draft:
    """A specification as fields. Characters that cannot be seen are left out: nobody could edit around them."""
    timeout = f"{spec.timeout_s:g}" if spec.timeout_s is not None else ""
    command = spec.command
    if isinstance(command, Argv):
        text = "\n".join(shlex.quote(seen(word)) for word in command.args)
        return Draft(seen(command.program), text, seen(spec.cwd), timeout)
    if isinstance(command, Function):
        return Draft("", seen(json.dumps(command.arguments, ensure_ascii=False, indent=2)), seen(spec.cwd), timeout)
    return Draft("", seen(command.text), seen(spec.cwd), timeout)


def seen(text: str) -> str:
    """The text without what cannot be seen."""
    return without_hidden(text, keep=PLAIN_CONTROLS)


def hidden_count(spec: CommandSpec) -> int:
    """How many characters of the command and the directory cannot be seen."""
    text = "".join((*spec.command.words(), spec.cwd))
    return len(text) - len(seen(text))


def checked(draft: Draft, asked: CommandSpec) -> Checked:
    """The specification that a draft means, or what is wrong with it, in sentences."""
    problems: list[str] = []
    command = _command(draft, asked.command, problems)
    if not draft.cwd.startswith("/"):
        problems.append("The directory must be an absolute path.")
    timeout = _timeout(draft.timeout, problems)
    texts = [("program", draft.program), ("directory", draft.cwd)]
    texts += [("command", draft.text)] if draft.args is None else [("command", text) for text in draft.args]
    for name, text in texts:
        problems += unseen_problems(name, text)
    if command is None or problems:
        return Checked(None, tuple(problems))
    return Checked(asked.model_copy(update={"command": command, "cwd": draft.cwd, "timeout_s": timeout}), ())


def unseen_problems(name: str, text: str) -> list[str]:
    """Which character of a field cannot be seen, in a sentence."""
    found = next((character for character in text if character not in PLAIN_CONTROLS and is_hidden(character)), None)
    return [f"The {name} holds a character that cannot be seen (U+{ord(found):04X})."] if found else []


def _command(draft: Draft, asked: Command, problems: list[str]) -> Command | None:
    if isinstance(asked, Shell):
        if not draft.text.strip():
            problems.append("There is no command.")
            return None
        return asked.model_copy(update={"text": draft.text})
    if isinstance(asked, Function):
        return _function(draft.text, asked, problems)
    if not draft.program.strip():
        problems.append("There is no program.")
    if draft.args is not None:
        return Argv(program=draft.program, args=draft.args)
    try:
        args = tuple(shlex.split(draft.text))
    except ValueError:
        problems.append("A quote in the arguments is not closed, or a backslash stands at their end.")
        return None
    return Argv(program=draft.program, args=args)


def _function(text: str, asked: Function, problems: list[str]) -> Function | None:
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        problems.append("The arguments must be a JSON object.")
        return None
    return asked.model_copy(update={"arguments": arguments})


def _timeout(text: str, problems: list[str]) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        problems.append("The timeout must be a number of seconds above 0, or empty for none.")
        return None
    return seconds
