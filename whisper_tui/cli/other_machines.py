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
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from typing import TYPE_CHECKING, Any, NamedTuple

from whisper_tui.cli.far_output import (
    Allowance,
    FarJsonLines,
    LastWords,
    NoJson,
    Shows,
    Take,
    TooMuch,
    answer_of,
    carry,
    end,
    json_text,
    no_ssh,
    read_json,
    shown_here,
)
from whisper_tui.cli.standard_streams import STDERR, STDOUT
from whisper_tui.cli.subcommand import (
    DONE,
    HERE,
    UNAVAILABLE,
    Options,
    complain,
    home_of,
    home_options,
    without_home,
)
from whisper_tui.model.errors import InvalidRequest, Unavailable, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.system.own_program import own_program
from whisper_tui.system.ssh_command import NOT_FOUND, SSH_FAILED, ssh_command
from whisper_tui.wire.protocol import DIAL

if TYPE_CHECKING:
    from whisper_tui.config.configuration import Configuration
    from whisper_tui.wire.client import SupervisorClient

ALL = "all"
"""The name that stands for this machine and all that the configuration names."""
MOST_AT_ONCE = 32
"""Machines that are asked at the same time."""

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
    named = getattr(options, "at_host", None)
    if named == ALL:
        words = without_host(words)
        return _on_several(options, wanted, dict.fromkeys(dict.fromkeys((HERE, *wanted.hosts)), words))
    if named is not None:
        return _on(options, wanted, named, without_host(words))
    commands = by_host(options, words)
    if options.verb == "export" and len(commands) > 1:
        return _on_several(options, wanted, commands)
    return max(_on(options, wanted, host, own) for host, own in commands.items())


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
    options: Options, wanted: "Configuration", host: str, words: Sequence[str], *, terminal: bool, may_ask: bool
) -> list[str]:
    if host == HERE:
        return [*own_program(), *words, *home_options(options)]
    return ssh_host(wanted, host).command_line(*words, terminal=terminal, may_ask=may_ask)


def _on(options: Options, wanted: "Configuration", host: str, words: Sequence[str]) -> int:
    """Run a command line on one machine, with our own input, and show its output while it comes."""
    sys.stdout.flush()
    if getattr(options, "json", False) and options.verb not in _LINES_OF_JSON:
        answer = _answered(options, wanted, host, words, Allowance())
        text = _json_of(host, answer)
        sys.stdout.write(json_text(text or ""))
        _complain_of(host, answer.said)
        return max(_code(wanted, host, answer.code), DONE if text is not None else UNAVAILABLE)
    here = sys.stdin.isatty()
    is_terminal = here and sys.stdout.isatty() and options.verb not in _DATA
    command = _command(options, wanted, host, words, terminal=is_terminal, may_ask=here)
    # A terminal of this kind gets no colours, which are escape sequences that nobody here could check.
    environment = {**os.environ, "TERM": "dumb"} if is_terminal else None
    try:
        return _code(wanted, host, carry(command, *_takers(options, echoes=is_terminal), environment=environment))
    except NoJson:
        raise Unavailable(_no_json(host), hint=_LOOK_THERE.format(host=host)) from None
    except TooMuch as error:
        raise Unavailable(f"the machine {host} {error}") from None


_DATA = frozenset(["logs", "export", "story"])
"""Subcommands whose output is data, which needs no terminal there."""
_LINES_OF_JSON = frozenset(["story"])
"""Those of `--json` that print a line for each object, and not one document."""
_LOOK_THERE = "Try: ssh -t {host} whisper-tui status"


def _takers(options: Options, *, echoes: bool) -> tuple[Take, Take]:
    """Return what takes the output and the messages of a subcommand that runs there."""
    out, said = shown_here(echoes=echoes)
    if options.verb == "logs":
        from whisper_tui.cli.recorded_output import stream_writer

        # Byte by byte, or without what controls a terminal, as the output of a command here.
        return stream_writer(STDOUT), stream_writer(STDERR)
    is_json = getattr(options, "json", False) or (options.verb == "export" and options.format != "markdown")
    return Shows(sys.stdout, FarJsonLines()) if is_json and options.verb in _DATA else out, said


def _code(wanted: "Configuration", host: str, code: int) -> int:
    """Return the exit code of a program there. Raises `Unavailable` if it was not reached, or is missing."""
    if host == HERE or code not in {SSH_FAILED, NOT_FOUND}:
        return code
    raise _missed(wanted, host, code)


def _missed(wanted: "Configuration", host: str, code: int) -> Unavailable:
    advice = ssh_host(wanted, host).advice(code)
    if code == NOT_FOUND:
        return Unavailable(f"the machine {host} has no whisper-tui that its shell finds", hint=advice)
    return Unavailable(f"the machine {host} cannot be reached, so nothing is known of it", hint=advice)


def _no_json(host: str) -> str:
    return f"the machine {host} has sent text that is no JSON"


def _complain_of(host: str, said: str) -> None:
    for line in said.splitlines():
        sys.stderr.write(f"{host}: {visible(line)}\n")


class _Answer(NamedTuple):
    """The output and the exit code of a command line on a machine."""

    code: int
    text: str
    said: str
    """Its standard error."""
    ahead_s: float = 0.0
    """Seconds that its clock is ahead of ours."""
    problem: str = ""
    """Why there is no such answer."""


SAME_CLOCK_S = 5.0
"""Difference of two clocks that is not corrected: it may be the way of the answer."""
_TIMES = ("since", "submitted_at", "decided_at", "started_at", "needs_input_since", "granted_at", "denied_at")
"""The fields of rows that are times of the machine's clock."""
_LATEST = 1e11
"""Seconds: a greater number is no time."""


def _on_several(options: Options, wanted: "Configuration", commands: Mapping[str, list[str]]) -> int:
    """Run a command line on each machine, and print what all say: by the name of each, as one list, or in one file."""
    whole = options.verb == "history" and options.action is None
    if whole:
        commands = {host: [*words, *([] if options.json else ["--json"])] for host, words in commands.items()}
    if options.verb == "export":
        if options.format not in {"jsonl", "markdown"}:
            raise InvalidRequest(
                f"an export as {options.format} is of one call", hint="whisper-tui export gpu1:7 --format asciicast"
            )
        commands = {host: _without_file(words) for host, words in commands.items()}
    allowance = Allowance()
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        asked = pool.map(
            lambda each: _answered(options, wanted, each[0], each[1], allowance, timed=True), commands.items()
        )
        answers = dict(zip(commands, asked, strict=True))
    unread: list[str] = []
    if whole:
        _print_history(options, answers, unread)
    elif options.verb == "export":
        _export(options, answers, unread)
    elif getattr(options, "json", False):
        rows = [row for host, answer in answers.items() for row in _rows(host, answer, unread)]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        for host, answer in answers.items():
            if not answer.problem and answer.code not in {SSH_FAILED, NOT_FOUND}:
                sys.stdout.write(f"{host}:\n{visible(answer.text, keep_lines=True, printed=True)}")
    code = DONE
    for host, answer in answers.items():
        _complain_of(host, answer.said)
        problem = answer.problem or (_no_json(host) if host in unread else "")
        if not problem and host != HERE and answer.code in {SSH_FAILED, NOT_FOUND}:
            problem = _missed(wanted, host, answer.code).sentence()
        if problem:
            # Standard error, and an exit code: an empty list would mean that nothing waits there.
            complain(problem)
        code = max(code, UNAVAILABLE if problem else answer.code)
    return code


def _answered(
    options: Options,
    wanted: "Configuration",
    host: str,
    words: Sequence[str],
    allowance: Allowance,
    *,
    timed: bool = False,
) -> _Answer:
    """Run a command line on one machine, and return its answer whole. `timed`: compare its clock with ours."""
    command = _command(options, wanted, host, words, terminal=False, may_ask=not timed and sys.stdin.isatty())
    timed = timed and host != HERE
    if timed:
        # Last, so that the answer is on its way no longer than ssh takes.
        command[-1] += " && date +%s"
    try:
        done = answer_of(command, allowance)
    except TooMuch as error:
        return _Answer(UNAVAILABLE, "", "", problem=f"the machine {host} {error}")
    except Unavailable as error:
        return _Answer(UNAVAILABLE, "", "", problem=error.sentence())
    text, ahead_s = done.out.decode(errors="replace"), 0.0
    if timed and not done.code:
        text, _, now = text.rstrip("\n").rpartition("\n")
        text += "\n" if text else ""
        ahead_s = int(now) - time.time() if re.fullmatch(r"[0-9]{1,11}", now) else 0.0
    return _Answer(done.code, text, done.said, ahead_s if abs(ahead_s) > SAME_CLOCK_S else 0.0)


def _json_of(host: str, answer: _Answer) -> str | None:
    """Return the document that a machine has sent, or what there is if the subcommand failed. None: it is no JSON."""
    if answer.problem:
        complain(answer.problem)
        return None
    try:
        if answer.text.strip():
            read_json(answer.text)
    except NoJson:
        if not answer.code:
            complain(_no_json(host))
            return None
        return ""
    return answer.text


def _rows(host: str, answer: _Answer, unread: list[str]) -> list[Any]:
    """Return the rows that a machine printed as JSON, each with its name and in our time.

    A machine that printed something else joins `unread`.
    """
    try:
        try:
            found = read_json(answer.text or "[]")
        except NoJson:
            # A subcommand with rows that are large prints each on its own line.
            found = [read_json(line) for line in answer.text.split("\n") if line.strip()]
    except NoJson:
        if not answer.code:
            unread.append(host)
        return []
    rows = found if isinstance(found, list) else [found]
    return [_row(host, row, answer.ahead_s) if isinstance(row, dict) else row for row in rows]


def _row(host: str, row: dict[str, Any], ahead_s: float) -> dict[str, Any]:
    times = {name: row[name] - ahead_s for name in _TIMES if ahead_s and _is_time(row.get(name))}
    # A rule has a host of its own: where from a fetch may be.
    return {"machine" if "host" in row else "host": host, **row, **times}


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < _LATEST


def _calls(host: str, rows: list[Any], unread: list[str]) -> list[dict[str, Any]]:
    """Return the rows that are of calls, as far as their order needs. A machine with others joins `unread`."""
    found = [row for row in rows if isinstance(row, dict) and _is_time(row.get("submitted_at"))]
    if len(found) < len(rows):
        unread.append(host)
    return found


def _print_history(options: Options, answers: Mapping[str, _Answer], unread: list[str]) -> None:
    """Print the calls of all machines as one list, newest first."""
    from whisper_tui.cli.commands.list_calls import is_past, print_history

    rows = []
    for host, answer in answers.items():
        calls = _calls(host, _rows(host, answer, unread), unread)
        rows += [row for row in calls if is_past(row)]
        if not all(map(is_past, calls)):
            unread.append(host)
    rows.sort(key=lambda row: float(row["submitted_at"]), reverse=True)
    print_history(options, rows[: options.limit])


def _export(options: Options, answers: Mapping[str, _Answer], unread: list[str]) -> None:
    """Write one document about the calls of all machines, here."""
    import asyncio
    from pathlib import Path

    from whisper_tui.export.document import save

    texts = _lines(answers, unread) if options.format == "jsonl" else _reports(answers)

    async def pieces() -> AsyncIterator[str]:
        for text in texts:
            yield text

    if options.output is None:
        sys.stdout.writelines(texts)
        return
    size = asyncio.run(save(pieces(), Path(options.output)))
    sys.stderr.write(f"whisper-tui: {size:,} bytes were written to {options.output}\n")


def _lines(answers: Mapping[str, _Answer], unread: list[str]) -> Iterator[str]:
    """Yield the calls of all machines as JSON lines, oldest first."""
    each = []
    for host, answer in answers.items():
        if not answer.code:
            rows = _calls(host, _rows(host, answer, unread), unread)
            each.append(sorted(rows, key=lambda row: float(row["submitted_at"])))
    for row in merge(*each, key=lambda row: float(row["submitted_at"])):
        yield json_text(json.dumps(row, ensure_ascii=False)) + "\n"


def _reports(answers: Mapping[str, _Answer]) -> Iterator[str]:
    """Yield the reports of all machines below their names."""
    for host, answer in answers.items():
        if not answer.code and answer.text:
            yield f"# Machine {host}\n\n{visible(answer.text, keep_lines=True, printed=True)}\n"


def without_host(words: Sequence[str]) -> list[str]:
    """Return a command line without `--host NAME`."""
    found = list(words)
    for at, word in enumerate(found):
        if word == "--":
            break
        if word in _HOST_OPTIONS:
            del found[at : at + 2]
            break
        if word.partition("=")[0] in _HOST_OPTIONS:
            del found[at]
            break
    return found


_HOST_OPTIONS = ("--host", "--hos")
"""The option as it may be written: a shorter beginning could be another one."""


_FILE_OPTION = re.compile(r"(-o|--o[a-z]*)(?P<value>.+)?", re.DOTALL)


def _without_file(words: Sequence[str]) -> list[str]:
    """Return a command line of `export` without its file, which is written here."""
    found = list(words)
    for at, word in enumerate(found):
        if (option := _FILE_OPTION.fullmatch(word)) is not None:
            del found[at : at + (1 if option["value"] else 2)]
            break
    return found


FOUND_THERE = """sh -c 'PATH="$PATH:$HOME/.local/bin"; exec whisper-tui "$@"' whisper-tui"""
"""Starts whisper_tui where `bring` has put it, which many shells do not search when they run a command for ssh."""
_ENDS_WITHIN_S = 2.0
_POLL_S = 0.02


class SshHost:
    """One machine and the programs of ssh that lead to it."""

    def __init__(self, name: str, destination: str, command: str) -> None:
        """`command` starts whisper_tui there, and is a text for the shell of the user there. Empty: look for it."""
        self.name = name
        self.command = command or FOUND_THERE
        self._destination = destination
        self._open: list[tuple[subprocess.Popen[bytes], LastWords]] = []

    def command_line(self, *words: str, terminal: bool = False, may_ask: bool = False) -> list[str]:
        """Return the command line that runs a subcommand there. `terminal` and `may_ask`: see `ssh_command`."""
        far = f"{self.command} {shlex.join(words)}"
        return ssh_command(self._destination, far, terminal=terminal, may_ask=may_ask)

    def run(self, far: str) -> "subprocess.Popen[bytes]":
        """Start a text for the shell there, with pipes to it."""
        pipe = subprocess.PIPE
        # At a terminal ssh may ask for a passphrase: this is no cockpit, and somebody sits there.
        command = ssh_command(self._destination, far, may_ask=sys.stdin.isatty())
        try:
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise no_ssh(error) from None

    def client(self) -> "SupervisorClient":
        """Return a client of the supervisor there, which connects with its first request."""
        from whisper_tui.wire.client import SupervisorClient

        return SupervisorClient.over(self.connect)

    def connect(self) -> socket.socket:
        """Start ssh, and return its input and output as a connection to the supervisor there."""
        self._forget_ended()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            process = subprocess.Popen(
                ssh_command(self._destination, f"{self.command} {DIAL}"),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                # Ctrl-C in the terminal is for the cockpit, and a question of ssh must not reach it.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise no_ssh(error) from None
        finally:
            theirs.close()
        assert process.stderr is not None  # noqa: S101  it is a pipe
        self._open.append((process, LastWords(process.stderr)))
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
        words = said.line() or f"ssh ended with exit code {process.returncode}"
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
        for process, _ in self._open:
            end(process)
        self._open.clear()

    def _forget_ended(self) -> None:
        for each in tuple(self._open):
            if each[0].poll() is not None:
                end(each[0])
                self._open.remove(each)


def ssh_host(wanted: "Configuration", name: str) -> "SshHost":
    """Return the way to a machine of the configuration, or to one that ssh alone knows. Raises `InvalidRequest`."""
    from whisper_tui.config.configuration import HostSettings
    from whisper_tui.model.state import HOST_NAME

    if not re.match(HOST_NAME, name):
        raise InvalidRequest(f"{name!r} is no name of a machine", hint="Name it in [hosts], or in ~/.ssh/config")
    settings = wanted.hosts.get(name, HostSettings())
    return SshHost(name, settings.ssh or name, settings.command)
