"""Other machines, reached by the user's own OpenSSH: supervisors for one cockpit, and subcommands that run there.

For `--host NAME` and ids like `gpu1:7`, whisper-tui is run there: it reads its own journal and configuration, asks its
own questions, and decides with its own supervisor.
"""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from whisper_tui.cli.subcommand import (
    DONE,
    HERE,
    UNAVAILABLE,
    Options,
    complain,
    home_of,
    home_options,
    launcher,
    without_home,
)
from whisper_tui.model.errors import InvalidRequest, Unavailable, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.supervisor.places.transport import SSH_FAILED, SSH_OPTIONS
from whisper_tui.wire.protocol import DIAL

if TYPE_CHECKING:
    from whisper_tui.config.configuration import Configuration
    from whisper_tui.wire.client import SupervisorClient

ALL = "all"
"""The name that stands for this machine and all that the configuration names."""
MOST_AT_ONCE = 32
"""Machines that are asked at the same time."""
NOT_FOUND = 127
"""The exit code of a shell that does not find the program."""

_FAR_ID = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9._@-]{0,99}):(?P<id>[a-z]?[0-9]{1,18})")


def is_elsewhere(options: Options) -> bool:
    """True if the options name another machine, by `--host` or by the first id."""
    return bool(getattr(options, "at_host", None)) or (
        (ids := _ids(options)) != [] and _FAR_ID.fullmatch(ids[0]) is not None
    )


def _ids(options: Options) -> list[str]:
    found: str | list[str] = next((ids for name in ("ids", "id", "calls") if (ids := getattr(options, name, None))), [])
    return [found] if isinstance(found, str) else [str(id_) for id_ in found]


def run_elsewhere(options: Options, given: Sequence[str]) -> int:
    """Run a command line on the machines that it names. Returns the greatest of their exit codes."""
    from whisper_tui.cli.commands.manage_rules import check_outside
    from whisper_tui.config import load

    # The supervisor there sees ssh, and not who has started it here.
    check_outside(f"{options.verb} on another machine", home_of(options))
    wanted = load(home_of(options))
    words = without_home(given)
    if (named := getattr(options, "at_host", None)) is not None:
        words = _without_host(words)
        if named == ALL:
            return _on_all(options, wanted, words)
        return _on(options, wanted, named, words)
    return max(_on(options, wanted, host, own) for host, own in by_host(options, words).items())


def by_host(options: Options, words: Sequence[str]) -> dict[str, list[str]]:
    """Return the command line for each machine, with its own ids."""
    ids = _ids(options)
    far = {id_: match for id_ in ids if (match := _FAR_ID.fullmatch(id_)) is not None}
    # The reason of `deny` may stand where ids do. A number without a machine must never reach one that it is not of.
    near = [id_ for id_ in ids if id_ not in far]
    if near and (options.verb != "deny" or near != ids[-1:] or near[0].isdecimal()):
        raise InvalidRequest(f"{near[0]!r} names no machine", hint="Write it like the others, for example gpu1:7")
    found: dict[str, list[str]] = {}
    for host in dict.fromkeys(match["host"] for match in far.values()):
        own = [far[word]["id"] if word in far and far[word]["host"] == host else word for word in words]
        found[host] = [word for word in own if word not in far]
    return found


def _command(
    options: Options, wanted: "Configuration", host: str, words: Sequence[str], *, terminal: bool
) -> list[str]:
    if host == HERE:
        return [*launcher(), *words, *home_options(options)]
    return ssh_host(wanted, host).interactive(*words, terminal=terminal)


def _on(options: Options, wanted: "Configuration", host: str, words: Sequence[str]) -> int:
    """Run a command line on one machine, with our own input and output. Raises `Unavailable`."""
    sys.stdout.flush()
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    code = subprocess.run(_command(options, wanted, host, words, terminal=terminal), check=False).returncode
    if code == SSH_FAILED:
        raise Unavailable(
            f"the machine {host} cannot be reached, so nothing is known of it", hint=f"Try: ssh {host} true"
        )
    return code


def _on_all(options: Options, wanted: "Configuration", words: Sequence[str]) -> int:
    """Run a command line on all machines at once, and print what each says below its name, or as one JSON list."""
    hosts = list(dict.fromkeys((HERE, *wanted.hosts)))

    def run(host: str) -> "subprocess.CompletedProcess[str]":
        command = _command(options, wanted, host, words, terminal=False)
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        answers = dict(zip(hosts, pool.map(run, hosts), strict=True))
    if getattr(options, "json", False):
        rows = [row for host, answer in answers.items() for row in _rows(host, answer.stdout)]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    code = DONE
    for host, answer in answers.items():
        if not getattr(options, "json", False) and answer.returncode != SSH_FAILED:
            sys.stdout.write(f"{host}:\n{answer.stdout}")
        for line in answer.stderr.splitlines():
            sys.stderr.write(f"{host}: {visible(line)}\n")
        if answer.returncode == SSH_FAILED:
            # Standard error, and an exit code: an empty list would mean that nothing waits there.
            complain(f"the machine {host} cannot be reached, so nothing is known of it. Try: ssh {host} true")
        code = max(code, UNAVAILABLE if answer.returncode == SSH_FAILED else answer.returncode)
    return code


def _rows(host: str, text: str) -> Iterable[object]:
    """Return the rows that a machine printed as JSON, each with its name."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    rows = found if isinstance(found, list) else [found]
    return [{"host": host, **row} if isinstance(row, dict) else row for row in rows]


def _without_host(words: Sequence[str]) -> list[str]:
    """Return a command line without `--host NAME`."""
    found = list(words)
    for at, word in enumerate(found):
        if word == "--host":
            del found[at : at + 2]
            break
        if word.startswith("--host="):
            del found[at]
            break
    return found


FOUND_THERE = """sh -c 'PATH="$PATH:$HOME/.local/bin"; exec whisper-tui "$@"' whisper-tui"""
"""Starts whisper_tui where `bring` has put it, which many shells do not search when they run a command for ssh."""
_LAST_WORDS = 2000
_ENDS_WITHIN_S = 2.0
_POLL_S = 0.02


class SshHost:
    """One machine and the programs of ssh that lead to it."""

    def __init__(self, name: str, destination: str, command: str) -> None:
        """`command` starts whisper_tui there, and is a text for the shell of the user there. Empty: look for it."""
        self.name = name
        self.command = command or FOUND_THERE
        self._destination = destination
        self._open: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def interactive(self, *words: str, terminal: bool) -> list[str]:
        """Return the command line that runs a subcommand there, with this program's own input and output."""
        far = f"{self.command} {shlex.join(words)}"
        return ["ssh", "-t" if terminal else "-T", "--", self._destination, far]

    def run(self, far: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start a text for the shell there, with pipes to it. What ssh and it complain of goes to `said`."""
        pipe = subprocess.PIPE
        # At a terminal ssh may ask for a passphrase: this is no cockpit, and somebody sits there.
        options = [] if sys.stdin.isatty() else ["-o", "BatchMode=yes"]
        command = ["ssh", *options, *SSH_OPTIONS[2:], "--", self._destination, far]
        try:
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said)
        except OSError as error:
            raise _no_ssh(error) from None

    def client(self) -> "SupervisorClient":
        """Return a client of the supervisor there, which connects with its first request."""
        from whisper_tui.wire.client import SupervisorClient

        return SupervisorClient.over(self.connect)

    def connect(self) -> socket.socket:
        """Start ssh, and return its input and output as a connection to the supervisor there."""
        self._forget_ended()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        said = tempfile.TemporaryFile()  # noqa: SIM115  it is closed with its process
        far = f"{self.command} {DIAL}"
        try:
            process = subprocess.Popen(
                ["ssh", *SSH_OPTIONS, "--", self._destination, far],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=said,
                # Ctrl-C in the terminal is for the cockpit, and a question of ssh must not reach it.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            said.close()
            raise _no_ssh(error) from None
        finally:
            theirs.close()
        self._open.append((process, said))
        return ours

    def explain(self, error: WhisperError) -> WhisperError:
        """Return why ssh has ended in place of an error that only says that the connection was lost."""
        if type(error) is not Unavailable or not self._open:
            return error
        process, said = self._open[-1]
        deadline = time.monotonic() + _ENDS_WITHIN_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if not process.returncode:
            return error
        said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
        lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
        words = lines[-1].strip().rstrip(".") if lines else f"ssh ended with exit code {process.returncode}"
        return Unavailable(words.removeprefix("whisper-tui: "), hint=self.advice(process.returncode))

    def advice(self, code: int) -> str:
        """Return what to do after ssh has ended with an exit code. Empty: nothing is known to help."""
        if code == NOT_FOUND:
            return (
                f"Install whisper_tui there: whisper-tui bring {self.name}; "
                f'or say where it is: command = "PATH" in [hosts.{self.name}]'
            )
        if code == SSH_FAILED:
            return f"Try: ssh {shlex.quote(self._destination)} true"
        return ""

    def close(self) -> None:
        """End every ssh that leads there."""
        for process, said in self._open:
            with suppress(OSError):
                process.terminate()
            process.wait()
            said.close()
        self._open.clear()

    def _forget_ended(self) -> None:
        for each in tuple(self._open):
            if each[0].poll() is not None:
                each[1].close()
                self._open.remove(each)


def _no_ssh(error: OSError) -> Unavailable:
    return Unavailable(f"ssh cannot be started: {error.strerror or error}", hint="Install OpenSSH")


def ssh_host(wanted: "Configuration", name: str) -> "SshHost":
    """Return the way to a machine of the configuration, or to one that ssh alone knows. Raises `InvalidRequest`."""
    from whisper_tui.config.configuration import HostSettings
    from whisper_tui.model.state import HOST_NAME

    if not re.match(HOST_NAME, name):
        raise InvalidRequest(f"{name!r} is no name of a machine", hint="Name it in [hosts], or in ~/.ssh/config")
    settings = wanted.hosts.get(name, HostSettings())
    return SshHost(name, settings.ssh or name, settings.command)
