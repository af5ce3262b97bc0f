"""Programs that the doctor runs: a client's version, its MCP server, and its hook with a canary."""

import json
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.agents.hook_formats import HookFormat

VERSION_S = 20.0
"""Seconds that a program has to print its version."""

_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)")


class ProgramOutput(NamedTuple):
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str


class NotRun(Exception):
    """A program could not be started, or did not end in time. The message has the reason."""


def _start(command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own, with pipes. Raises `NotRun`."""
    try:
        return subprocess.Popen(
            command,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise NotRun(f"{command[0]} cannot be started: {error.strerror}") from error


def run(
    command: Sequence[str], environ: Mapping[str, str], cwd: Path, *, given: str = "", patience_s: float
) -> ProgramOutput:
    """Run a program to its end. Raises `NotRun`."""
    process = _start(command, environ, cwd)
    try:
        out, err = process.communicate(given.encode(), timeout=patience_s)
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"there was no answer within {patience_s:g} s") from error
    finally:
        if process.poll() is None:
            end_group(process)
    return ProgramOutput(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program that was started here, and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def program_of(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a client's program. None: it is not on PATH."""
    return shutil.which(name, path=environ.get("PATH"))


def version_of(program: str, environ: Mapping[str, str]) -> str | None:
    """Return the version that a program prints, as three numbers. None: it prints none."""
    try:
        answer = run([program, "--version"], environ, Path("/"), patience_s=VERSION_S)
    except NotRun:
        return None
    found = _VERSION.search(answer.out) or _VERSION.search(answer.err)
    return ".".join(found.groups()) if found else None


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers that can be compared."""
    return tuple(int(part) for part in version.split("."))


SERVER_S = 30.0
"""Seconds that an MCP server has to answer; it may have to start a supervisor."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "whisper-tui-doctor", "version": "1"},
    },
}


def server_name(command: Sequence[str], environ: Mapping[str, str], cwd: Path, *, patience_s: float) -> str:
    """Return the name of an MCP server. Raises `NotRun`."""
    process = _start(command, environ, cwd)
    try:
        return _initialized(process, patience_s)
    finally:
        end_group(process)


def _initialized(process: "subprocess.Popen[bytes]", patience_s: float) -> str:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: S101  pipes
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
    deadline = time.monotonic() + patience_s
    received = b""
    while b"\n" not in received:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise NotRun(f"it did not answer within {patience_s:g} s")
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            said = process.stderr.read().decode(errors="replace").strip().splitlines()
            raise NotRun(f"it ended: {said[-1] if said else 'it said nothing'}")
        received += piece
    return _name_in(received.partition(b"\n")[0])


def _name_in(line: bytes) -> str:
    try:
        answer: Any = json.loads(line)
        return str(answer["result"]["serverInfo"]["name"])
    except (ValueError, KeyError, TypeError) as error:
        shown = line.decode(errors="replace")
        cut = "…" if len(shown) > 300 else ""
        raise NotRun(f"its answer is not valid MCP: {shown[:300]}{cut}") from error


def answer_by_lines(
    command: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path,
    messages: Sequence[Mapping[str, Any]],
    *,
    patience_s: float,
) -> dict[str, Any]:
    """Send JSON messages, one a line, and return the answer to the last one. Raises `NotRun`."""
    name, number = Path(command[0]).name, messages[-1]["id"]
    process = _start(command, environ, cwd if cwd.is_dir() else Path("/"))
    try:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  both are pipes
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        return _numbered(process.stdout.fileno(), number, time.monotonic() + patience_s, name)
    except BrokenPipeError as error:
        raise NotRun(f"{name} ended before it answered") from error
    finally:
        with suppress(BrokenPipeError):
            end_group(process)


def _numbered(source: int, number: int, deadline: float, name: str) -> dict[str, Any]:
    """The answer with this number."""
    received = b""
    while True:
        while b"\n" in received:
            line, _, received = received.partition(b"\n")
            with suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                    return message
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(source, 65536) if ready else b""
        if not piece:
            raise NotRun(f"{name} ended before it answered" if ready else f"{name} did not answer in time")
        received += piece


LIVE = "the gate is live"
"""This text is in the supervisor's answer to a canary."""

_BLOCKED = 2


class Canary(NamedTuple):
    """One test: a name that the denial must repeat, and a command that creates a file of that name."""

    name: str
    directory: Path

    @property
    def file(self) -> Path:
        """The file that exists if the command ran."""
        return self.directory / self.name

    @property
    def url(self) -> str:
        """An address that does not exist."""
        return f"https://{self.name}.example.invalid/"

    @property
    def command(self) -> str:
        """The command that the hook has to stop."""
        return f"touch {self.file}"


Seen = Callable[[str], bool]
"""True for a tool for which a client calls the hook."""


def prove_hook(
    form: HookFormat, command: str, environ: Mapping[str, str], patience_s: float, seen: Seen = lambda _: False
) -> str | None:
    """Run the hook in a shell, as clients do. Return None if it stopped every canary, otherwise the problem."""
    return prove(lambda canary: ask_hook(form, ["/bin/sh", "-c", command], environ, canary, patience_s, seen=seen))


def canaries_of(form: HookFormat, seen: Seen) -> str:
    """Return the calls with which a hook is tested, in words."""
    more = [f"a test call of {tool}" for tool in form.canary_calls("", "") if seen(tool)]
    *others, last = ("a test command", *more)
    return f"{', '.join(others)} and {last}" if others else last


def prove(attempt: Callable[[Canary], str | None]) -> str | None:
    """Send a canary. Return None if it was stopped, otherwise the problem. `attempt` may raise `NotRun`."""
    with tempfile.TemporaryDirectory(prefix="whisper-tui-") as directory:
        canary = Canary(f"whisper-tui-canary-{secrets.token_hex(8)}", Path(directory))
        try:
            problem = attempt(canary)
        except NotRun as error:
            problem = str(error)
        # If the file exists, the canary ran, whatever the hook has answered.
        return "the canary ran" if canary.file.exists() else problem


def ask_hook(
    form: HookFormat,
    words: Sequence[str],
    environ: Mapping[str, str],
    canary: Canary,
    patience_s: float,
    *,
    seen: Seen = lambda _: False,
) -> str | None:
    """Run a hook's program with a canary for each tool. None: its answers deny them, in the client's own format."""
    cwd = str(canary.directory)
    questions = {"": form.question(canary.command, cwd, canary.name)}
    for tool, arguments in form.canary_calls(str(canary.file), canary.url).items():
        if seen(tool):
            questions[tool] = form.call(tool, arguments, cwd, f"{canary.name}-{tool}")
    for tool, question in questions.items():
        answer = run(words, environ, canary.directory, given=json.dumps(question), patience_s=patience_s)
        problem = _judged(form, answer, canary)
        if problem is not None:
            return f"in {tool}: {problem}" if tool else problem
    return None


def prove_gate(gate: str, environ: Mapping[str, str], patience_s: float) -> str | None:
    """Start the shell of a client with a canary that was not approved. None: it was stopped."""

    def attempt(canary: Canary) -> str | None:
        answer = run([gate, "-c", canary.command], environ, canary.directory, patience_s=patience_s)
        return denied_by_supervisor(answer.err, canary)

    return prove(attempt)


def _judged(form: HookFormat, answer: ProgramOutput, canary: Canary) -> str | None:
    """The problem with a hook's answer to the canary. None: it denies the canary."""
    if answer.code == _BLOCKED and form.blocks_by_code:
        return denied_by_supervisor(answer.err, canary)
    if answer.code != 0:
        return f"it ended with exit code {answer.code}: {last_line(answer.err) or 'it said nothing'}"
    try:
        said = json.loads(answer.out)
    except ValueError:
        return f"its answer is not JSON: {answer.out.strip()[:200]!r}"
    reason = form.denial_in(said) if isinstance(said, dict) else None
    if reason is None:
        return f"it did not deny the test call: {answer.out.strip()[:200]}"
    return denied_by_supervisor(reason, canary)


def denied_by_supervisor(text: str, canary: Canary) -> str | None:
    """Check the text of a denial. None: a supervisor denied this canary."""
    if LIVE in text and canary.name in text:
        return None
    return f"the test call was denied, but not by a supervisor: {' '.join(text.split())[:300] or 'it said nothing'}"


def last_line(text: str) -> str:
    """Return the last line of an output, shortened."""
    lines = text.strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""


_RUN_PLUGIN = """
import { readFileSync } from "node:fs"
const said = JSON.parse(readFileSync(0, "utf8"))
const made = await import(said.plugin)
const answers = []
for (const plugin of new Set(Object.values(made))) {
  const hooks = await plugin({ directory: said.cwd })
  for (const [tool, args] of Object.entries(said.calls)) {
    try {
      await hooks["tool.execute.before"]({ tool, sessionID: said.session, callID: `${said.call}-${tool}` }, { args })
      answers.push({ passed: tool })
    } catch (error) {
      answers.push({ thrown: error.message })
    }
  }
}
process.stdout.write(JSON.stringify(answers))
process.exit(0)
"""


def prove_plugin(
    hook: HookFormat, plugin: Path, words: list[str], environ: Mapping[str, str], patience_s: float, *, seen: Seen
) -> str | None:
    """Run the plugin with node, or only its hook if node is missing. None: it stopped the canary."""
    node = shutil.which("node", path=environ.get("PATH"))
    if node is not None:
        return prove(lambda canary: _by_node(node, plugin, environ, canary, patience_s, hook=hook, seen=seen))
    if not words:
        return "the plugin has no command line of a hook"
    return prove(lambda canary: ask_hook(hook, words, environ, canary, patience_s, seen=seen))


def _by_node(
    node: str,
    plugin: Path,
    environ: Mapping[str, str],
    canary: Canary,
    patience_s: float,
    *,
    hook: HookFormat,
    seen: Seen,
) -> str | None:
    copy = canary.directory / "plugin.mjs"
    shutil.copyfile(plugin, copy)
    others = hook.canary_calls(str(canary.file), canary.url)
    said = {
        "plugin": copy.as_uri(),
        "cwd": str(canary.directory),
        "calls": {
            hook.shell_tool: {"command": canary.command},
            **{tool: others[tool] for tool in others if seen(tool)},
        },
        "session": "whisper-tui-doctor",
        "call": canary.name,
    }
    words = [node, "--input-type=module", "--eval", _RUN_PLUGIN]
    answer = run(words, environ, canary.directory, given=json.dumps(said), patience_s=patience_s)
    try:
        outcomes = json.loads(answer.out)
        thrown = [outcome.get("thrown") for outcome in outcomes]
    except (ValueError, AttributeError, TypeError):
        return f"the plugin cannot be run: {last_line(answer.err) or 'it said nothing'}"
    if thrown and all(isinstance(text, str) for text in thrown):
        return next((why for text in thrown if (why := denied_by_supervisor(text, canary)) is not None), None)
    return "the plugin let the canary pass"
