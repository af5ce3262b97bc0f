"""Transports to places: command lines that run a program there, with its standard input and output here.

The interface, and the transports to machines: ssh, a container of docker or podman, the user's systemd. Those to
clusters are in `cluster_transports`. An engine keeps the host process of a place: ssh keeps none, a container has its
owner, who starts, stops and removes it, and the user's systemd lasts longer than the user's logins.
"""

import asyncio
import hashlib
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import visible
from whisper_tui.supervisor.places.far_host import LOCKED, HostMode
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.system.ssh_command import NOT_FOUND, SSH_FAILED, ssh_command


class PlaceTransport(Protocol):
    """A way to run programs at one place. It keeps no state: a connection that breaks is made anew."""

    name: str
    """The name of the place, as the user knows it."""
    holds: HostMode | None
    """The mode of the host process that the engine keeps. None: the first connection starts one, which survives."""

    def summary(self) -> str:
        """Return the way in a few words, such as `ssh me@gpu1`."""
        ...

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line here that runs `argv` there, its standard input and output connected, no terminal."""
        ...

    async def hold(self, argv: Sequence[str]) -> None:
        """Have the engine start `argv` there and keep it, at most once at a time. Raises `Unavailable`.

        Called if `holds`, before a connection that cannot be made otherwise: what runs already must not start twice.
        """
        ...

    async def withdraw(self) -> None:
        """Have the engine forget what it has not started yet. Raises `Unavailable`.

        What it has started ends with the host process.
        """
        ...

    def advice(self, code: int) -> str:
        """Return what to do after `command` has ended with this exit code. Empty: nothing is known to help."""
        ...


class SshTransport:
    """A host that the user's own OpenSSH reaches: with its configuration, its agent, and the known host keys."""

    holds: HostMode | None = None

    def __init__(self, name: str, destination: str, options: Sequence[str] = ()) -> None:
        """`destination`: as for ssh, `me@gpu1` or a host of its configuration. `options`: further words before it."""
        self.name = name
        self._destination = destination
        self._options = tuple(options)

    def summary(self) -> str:
        """Return the command that a user would type."""
        return f"ssh {self._destination}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line of ssh. The shell of the user there reads the words, quoted."""
        return ssh_command(self._destination, shlex.join(argv), options=self._options)

    async def hold(self, argv: Sequence[str]) -> None:
        """Do nothing: the first connection starts the host process."""

    async def withdraw(self) -> None:
        """Do nothing: nothing waits there for room."""

    def advice(self, code: int) -> str:
        """Return how to find out why ssh fails."""
        return f"Try: ssh {shlex.quote(self._destination)} true" if code == SSH_FAILED else ""


ANSWER_S = 30.0
"""Seconds that an engine has to answer."""
LONGEST_ANSWER = 1 << 20
MOST_FAILURES = 30
"""Failures in a row, a second apart, after which the host process is not started again."""

# A host process that is killed starts again here: if the engine's process ended with it, the engine would end the
# keepers of all runs as well.
_KEEP = """
failures=0
while [ "$failures" -lt "$limit" ]; do
  began=$(date +%s)
  "$@" </dev/null >/dev/null 2>&1
  code=$?
  case "$code" in 0|"$locked") exit ;; esac
  failures=$((failures + 1))
  [ $(($(date +%s) - began)) -le 5 ] || failures=0
  sleep 1
done
exit 1
"""

_CONTAINER_FAILED = (1, 125)
"""Exit codes of docker and podman themselves, such as for a container that is stopped."""
_NO_SYSTEMD = 'Use by = "ssh" for a machine without systemd-run'
_UNIT = (
    # A host process that ends or is killed leaves the keepers of its runs alone, and so must the unit.
    "--property=KillMode=process",
    # A command that runs out of memory is the end of this command, and of nothing else in the unit.
    "--property=OOMPolicy=continue",
    # Keepers make a control group for each run below it.
    *("--property=Delegate=yes", "--property=TasksMax=infinity"),
)
# A unit stays loaded while a keeper lives in it, so its name cannot be used again: each one gets a new name.
_START_UNIT = r"""
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
unit=$1; shift
# The unit and the bridges must look for their files in the same directories.
for name in XDG_CACHE_HOME XDG_STATE_HOME; do
  eval "value=\${$name:-}"
  [ -z "$value" ] || set -- --setenv="$name=$value" "$@"
done
systemctl --user --quiet is-active "$unit-*" && exit
exec systemd-run --user --quiet --collect --unit="$unit-$$-$(date +%s)" \
  --setenv=HOME="$HOME" --setenv=PATH="$PATH" "$@"
"""


class EngineAnswer(NamedTuple):
    """The result of a command of an engine."""

    code: int
    out: str
    err: str

    def reason(self) -> str:
        """Return the last line that it has printed about a failure."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return visible(lines[-1][:300]) if lines else f"it ended with exit code {self.code}"


def kept(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs the host process again whenever it fails."""
    return ["sh", "-c", f"limit={MOST_FAILURES} locked={LOCKED}{_KEEP}", "whisper-tui-place", *argv]


def engine_name(place: str, near: str) -> str:
    """Return the name of what keeps a place's host process: always the same, and another one for each near end.

    Two users of a cluster may have places of the same name, but never one job, Pod or actor.
    """
    word = re.sub("[^a-z0-9]+", "-", place.lower()).strip("-")[:32].strip("-")
    return f"whisper-tui-{word}-{hashlib.sha256(f'{near}/{place}'.encode()).hexdigest()[:10]}"


async def ask_engine(argv: Sequence[str], data: bytes = b"", *, missing: str) -> EngineAnswer:
    """Run a command of an engine to its end. Raises `Unavailable` with the advice `missing` if it is not installed."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise Unavailable(f"{argv[0]} cannot be started: {error.strerror}", hint=missing) from None
    try:
        out, err = await asyncio.wait_for(process.communicate(data), ANSWER_S)
    except TimeoutError:
        raise Unavailable(f"{argv[0]} has not answered for {ANSWER_S:.0f} seconds", hint="It is tried again") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    texts = (part[:LONGEST_ANSWER].decode(errors="replace") for part in (out, err))
    answer = EngineAnswer(process.returncode or 0, *texts)
    if answer.code == NOT_FOUND:
        raise Unavailable(answer.reason(), hint=missing)
    return answer


class EngineHost:
    """The machine on which the commands of an engine run: this one, or one that ssh reaches."""

    def __init__(self, name: str, destination: str) -> None:
        """`destination`: as for ssh. Empty: this machine."""
        self._ssh = SshTransport(name, destination) if destination else None
        self.where = self._ssh.summary() if self._ssh else "this machine"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line here that runs `argv` on that machine."""
        return self._ssh.command(argv) if self._ssh else list(argv)

    def script(self, text: str, *words: str) -> list[str]:
        """Return the command line here that runs a script of sh on that machine, with `words` as "$@"."""
        return self.command(["sh", "-c", text, "whisper-tui-place", *words])

    def advice(self, code: int) -> str:
        """Return how to find out why that machine is not reached. Empty: it was reached."""
        return self._ssh.advice(code) if self._ssh else ""


class ContainerTransport:
    """A container, by its name or id. Nobody but its owner starts, stops or removes it."""

    # What `exec -i` starts ends with its connection in some engines, what `exec -d` starts in none.
    holds: HostMode | None = "serve"

    def __init__(self, settings: PlaceSettings) -> None:
        self.name = settings.name
        self._engine = settings.by
        self._container = settings.option("container")
        which = "context" if settings.by == "docker" else "connection"
        chosen = settings.option(which)
        self._program = [settings.by, *([f"--{which}", chosen] if chosen else [])]
        user = settings.option("user")
        self._as = ["--user", user] if user else []

    def summary(self) -> str:
        """Return the engine and the container."""
        return f"{self._engine} container {self._container}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in the container, without a terminal."""
        return [*self._program, "exec", "-i", *self._as, self._container, *argv]

    async def hold(self, argv: Sequence[str]) -> None:
        """Start the host process in the container, detached. A second one finds the lock of the first, and ends."""
        detached = [*self._program, "exec", "-d", *self._as, self._container, *kept(argv)]
        answer = await ask_engine(detached, missing=f"Install {self._engine}")
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint=self.advice(answer.code))

    async def withdraw(self) -> None:
        """Do nothing: nothing waits there for room."""

    def advice(self, code: int) -> str:
        """Return how to see the container."""
        return f"Try: {shlex.join([*self._program, 'inspect', self._container])}" if code in _CONTAINER_FAILED else ""


class SystemdTransport:
    """A machine whose systemd keeps the host process for the user."""

    holds: HostMode | None = "serve"

    def __init__(self, settings: PlaceSettings, near: str) -> None:
        self.name = settings.name
        self._host = EngineHost(settings.name, settings.option("host"))
        self._unit = engine_name(settings.name, near)

    def summary(self) -> str:
        """Return the manager and its machine."""
        return f"systemd user unit on {self._host.where}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` on the machine. Only the host process is in the unit."""
        return self._host.command(argv)

    async def hold(self, argv: Sequence[str]) -> None:
        """Start a unit, unless one is active. Of two that start at once, one finds the lock of the other, and ends."""
        # systemd replaces variables in the words of a command; $$ is a dollar for it.
        words = [word.replace("$", "$$") for word in kept(argv)]
        start = self._host.script(_START_UNIT, self._unit, *_UNIT, "--", *words)
        answer = await ask_engine(start, missing=_NO_SYSTEMD)
        if answer.code != 0:
            advice = self.advice(answer.code) or "Try there: systemctl --user status"
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint=advice)

    async def withdraw(self) -> None:
        """Do nothing: nothing waits there for room."""

    def advice(self, code: int) -> str:
        """Return how to find out why ssh fails."""
        return self._host.advice(code)
