"""The program `gate`, a client's shell: it runs approved commands, and asks about everything else (decision 35).

Hooks of others can replace the command that `hook` has answered with. The client then gives its shell another text
than `whisper-tui exec TICKET`, and this program stands in the place of that shell.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.agents.shell_lines import ShellLine, asks_version, is_own, shell_line
from whisper_tui.model.protocol_version import HELLO_VERSIONS, LONGEST_REQUEST
from whisper_tui.model.text import sendable
from whisper_tui.transports.hook.hook_program import MARGIN_S, agent_pid, ask

if TYPE_CHECKING:
    from whisper_tui.transports.hook.hook_program import Connect

CANNOT = 126
"""The exit code if nothing ran."""

INTERRUPTED = 130

FORBIDDEN = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4"})
"""Variables with which a shell runs other text before, or beside, the text that it is given."""

_FUNCTION, _FUNCTION_END = "BASH_FUNC_", "%%"
_WORDS_OF_CLIENTS = frozenset(
    {"source", ".", "eval", "builtin", "shopt", "unalias", "unset", "pwd", "cd", "true", "exec"}
)
"""Words that clients put around a command. A function of that name would run in their place."""


class Gate(NamedTuple):
    """The shell that the gate stands for, and the supervisor behind it."""

    client: str
    shell: str
    """The path of the shell."""
    launcher: Sequence[str]
    """The words that start whisper-tui, with which every approved command begins."""
    places: Sequence[str]
    """The options that name its directories."""
    usual: bool
    """True if these directories are found without the options, so that approved commands leave them out."""
    directories: str
    """The directory with the links that an approved `cd` leads through."""
    deadline_s: float


def run_gate(gate: Gate, arguments: Sequence[str], connect: "Connect") -> int:
    """Become the shell with an approved command. Return an exit code if nothing may run."""
    environ = environment_of(gate.shell, os.environ)
    line = shell_line(gate.client, arguments)
    if line is None:
        return _without_text(gate, arguments, environ)
    if is_own(gate.client, line) or is_approved_line(gate, line.command):
        _become(gate.shell, arguments, environ)
    try:
        code, said, note = ask(connect, _hello(gate, line, environ), time.monotonic() + gate.deadline_s + MARGIN_S)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  whatever has failed, nothing may run
        hint = getattr(error, "hint", "")
        _tell(f"the command was not run: {error or type(error).__name__}{f'. {hint}' if hint else ''}")
        return CANNOT
    if note:
        _tell(note.decode("utf-8", "replace").strip())
    approved = said.decode("utf-8", "replace").strip()
    if code != 0 or not is_approved_line(gate, approved):
        return CANNOT
    _become(gate.shell, line.with_command(approved), environ)


def is_approved_line(gate: Gate, command: str) -> bool:
    """True for exactly the line that the hook answers with: the launcher, a ticket, its label and the way of a `cd`."""
    # Whether the ticket is good, and for what, the supervisor says when it is shown.
    import shlex

    head = f"{shlex.join((*gate.launcher, 'exec'))} "
    if not command.startswith(head):
        return False
    ticket, _, rest = command[len(head) :].partition(" ")
    if not _is_ticket(ticket):
        return False
    places = shlex.join(gate.places)
    if places and (rest == places or rest.startswith(f"{places} ")):
        rest = rest[len(places) + 1 :]
    elif not gate.usual:
        return False
    if rest.startswith("'"):
        # The label: one quoted word for people, which `exec` ignores.
        label, quote, rest = rest[1:].partition("'")
        if not quote or "\0" in label or rest[:1] not in {"", " "}:
            return False
        rest = rest[1:]
    return not rest or rest == f"&& cd -P {shlex.quote(f'{gate.directories}/{ticket}')}"


def _is_ticket(word: str) -> bool:
    call, dash, secret = word.partition("-")
    return bool(dash) and call.isascii() and call.isdigit() and bool(secret) and not secret.strip("0123456789abcdef")


def environment_of(shell: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the shell: it is the user's own again, and nothing of a project runs before the text."""
    kept = {name: value for name, value in environ.items() if name not in FORBIDDEN and not _shadows(name)}
    return {**kept, "SHELL": shell}


def _shadows(name: str) -> bool:
    inside = name.removeprefix(_FUNCTION).removesuffix(_FUNCTION_END)
    return name.startswith(_FUNCTION) and inside in _WORDS_OF_CLIENTS


def _without_text(gate: Gate, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Become a shell for a person at a terminal, or one that says its version. Nothing else has an approval."""
    options = all(word.startswith("-") for word in arguments)
    if asks_version(arguments) or (options and os.isatty(0) and os.isatty(1)):
        _become(gate.shell, arguments, environ)
    _tell("nothing ran: this shell of an agent runs no scripts and reads no commands. Give it one command with -c")
    return CANNOT


def _become(shell: str, arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    try:
        os.execve(shell, [shell, *arguments], environ)
    except OSError as error:
        _tell(f"the command was not run: {shell} cannot be started: {error.strerror}. Run whisper-tui doctor")
        sys.exit(CANNOT)


def _hello(gate: Gate, line: ShellLine, environ: Mapping[str, str]) -> bytes:
    """Return the hello line."""
    session = KNOWN[gate.client].session_variable
    hello = {
        "door": "gate",
        "version": HELLO_VERSIONS["gate"],
        "client": gate.client,
        "command": line.command,
        "cwd": _directory(environ),
        "session": environ.get(session, "") if session else "",
        "nonce": os.urandom(12).hex(),
        "pid": agent_pid(gate.client, environ),
        "environment": sendable(environ),
        "launcher": list(gate.launcher),
        "places": [] if gate.usual else list(gate.places),
        "deadline_s": gate.deadline_s,
    }
    text = json.dumps(hello).encode() + b"\n"
    if len(text) > LONGEST_REQUEST:
        raise ValueError(f"the command is {len(text):,} bytes long, and {LONGEST_REQUEST:,} can be sent at once")
    return text


def _directory(environ: Mapping[str, str]) -> str:
    """Return the directory as the client names it, if it does, so that the same call is known again."""
    here, named = os.getcwd(), environ.get("PWD", "")  # noqa: PTH109  importing pathlib takes long
    return named if named.startswith("/") and os.path.realpath(named) == here else here


def _tell(sentence: str) -> None:
    text = sentence if sentence.startswith("whisper_tui:") else f"whisper_tui: {sentence}"
    os.write(2, f"{text}\n".encode("utf-8", "replace"))
