"""The layers put together: configuration, executor, supervisor, socket and doors."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.loading import loaded
from whisper_tui.cli.log_lines import MaskedLines
from whisper_tui.config import leave_pointer, load
from whisper_tui.config.client_rules import ClientRules
from whisper_tui.config.file import Configuration
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.home import Home
from whisper_tui.model.port import Supervision
from whisper_tui.supervisor.control_groups import ControlGroups
from whisper_tui.supervisor.core import Supervisor
from whisper_tui.supervisor.journal_file import check_format
from whisper_tui.supervisor.keeper import syscalls
from whisper_tui.supervisor.local import LocalExecutor
from whisper_tui.supervisor.state_directory import Occupation, prepare
from whisper_tui.wire.peers import descends, why_supervised_here
from whisper_tui.wire.rendezvous import release
from whisper_tui.wire.server import Door, serve
from whisper_tui.wire.staying_found import stay_found
from whisper_tui.wire.stepping_down import step_down

if TYPE_CHECKING:
    from whisper_tui.tools import ToolContext, ToolRegistry
    from whisper_tui.transports.mcp import McpDoor

PR_SET_DUMPABLE = 4

AGENTS_AFTER_S = 2.0
"""Seconds until what agents need is loaded, unless one comes: whoever started the supervisor has its answer first."""

_log = logging.getLogger("whisper_tui")


def supervise(home: Home, ready: Callable[[], None], *, take_over: bool = False) -> None:
    """Be the supervisor of these directories until told to stop. Raises `WhisperError` if it cannot be.

    `take_over`: whoever is it now steps down, once it is clear that this program can go on in its place.
    """
    log = logging.StreamHandler(sys.stderr)
    log.setFormatter(MaskedLines())
    logging.basicConfig(level=logging.INFO, handlers=[log])
    _check_outside()
    _keep_others_out()
    configuration = load(home)
    prepare(home)
    if take_over:
        check_format(Path(home.state) / "journal.sqlite")
        step_down(home)
    with Occupation(home.state) as occupation:
        release(home)
        try:
            leave_pointer(home, os.environ)
        except OSError as error:
            _log.warning("programs without our environment will not find %s: %s", home.state, error)
        if configuration.rules.broken:
            _log.warning("the rules cannot be read, so everything is asked: %s", configuration.rules.broken)
        asyncio.run(_supervise(home, configuration, occupation, ready))


def _check_outside() -> None:
    """A supervisor below a supervised command would end with it, and could be led by it."""
    problem = why_supervised_here()
    if problem is not None:
        raise NotAllowed(f"no supervisor was started, because {problem}", hint="Start it outside")


def _keep_others_out() -> None:
    """Let no process of the same user attach a debugger to this one, or write into its memory.

    Not for cockpits and other clients: the system then shows them as root's, and the supervisor would not know them.
    """
    if syscalls.LINUX:
        with suppress(OSError):
            syscalls.prctl(PR_SET_DUMPABLE, 0)


async def _supervise(
    home: Home, configuration: Configuration, occupation: Occupation, ready: Callable[[], None]
) -> None:
    rules = RuleFiles(home, configuration.rules)
    supervisor = Supervisor(
        home,
        LocalExecutor(Path(home.state) / "runs", ControlGroups.found()),
        rules=rules.current,
        clients_rules=ClientRules(Path.home()).of,
        gaps=_gaps,
        keep_rule=rules.keep,
        settings=configuration.supervisor,
        limits=configuration.limits,
        retention=configuration.retention,
    )
    rules.follow(supervisor.rule_trust)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.stopped.set)
    await supervisor.open()
    try:
        agents = _LateMcpDoor(supervisor, configuration)
        doors: dict[str, Door] = {"mcp": agents, **_shell_doors(supervisor, configuration, home)}
        server = await serve(supervisor, home, doors, refused=supervisor.attempt_refused)
        ready()
        _log.info("serving %s as pid %d", home.state, os.getpid())
        loop.call_later(AGENTS_AFTER_S, agents.prepare)
        staying = asyncio.create_task(stay_found(server, occupation, supervisor.stopped.set))
        await supervisor.stopped.wait()
        _log.info("stopping")
        staying.cancel()
        await server.close()
    finally:
        await supervisor.close()


def _gaps(client: str, root: str, environ: Mapping[str, str]) -> list[str]:
    """What the hooks of a client let pass in a workspace, as the doctor sees it."""
    from whisper_tui.install.doctor.gaps import gaps

    return gaps(client, Path(root), environ)


def _shell_doors(supervisor: Supervisor, configuration: Configuration, home: Home) -> dict[str, Door]:
    """The doors of agents' own shells, and of anybody's."""
    from whisper_tui.policy.view import may_leave
    from whisper_tui.transports.call_door import CallDoor
    from whisper_tui.transports.hooks.door import HookDoor
    from whisper_tui.transports.hooks.following import Following
    from whisper_tui.transports.hooks.run_door import RunDoor

    following = Following(Path(home.runtime) / "directories", supervisor.last_directory, may_leave)
    return {
        "hook": HookDoor(supervisor, following),
        "exec": RunDoor(supervisor, descends, supervisor.input_file, following),
        "call": CallDoor(supervisor, partial(_registry, configuration)),
    }


class _LateMcpDoor:
    """The door for agents, which is loaded beside the first work because its SDK takes long to import."""

    def __init__(self, supervision: Supervision, configuration: Configuration) -> None:
        self._supervision = supervision
        self._configuration = configuration
        self._door: asyncio.Task[Door] | None = None

    def prepare(self) -> asyncio.Task[Door]:
        """Begin to load it."""
        if self._door is None:
            self._door = asyncio.create_task(self._load())
        return self._door

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection."""
        door = await asyncio.shield(self.prepare())
        await door(reader, writer, hello)

    async def _load(self) -> Door:
        door_class = await loaded(_mcp_door_class)
        registry = partial(_registry, self._configuration)
        door = door_class(self._supervision, registry=registry, wait_s=self._configuration.mcp.wait_s)
        await door.prepare()
        gc.freeze()  # What is loaded now lives for ever: a collection need not walk through it while calls wait.
        return door


def _registry(configuration: Configuration, context: "ToolContext") -> "ToolRegistry":
    """The tools of a session."""
    from whisper_tui.config.offered import offered

    return offered(configuration.tools, context)


def _mcp_door_class() -> "type[McpDoor]":
    import whisper_tui.transports.mcp_session  # noqa: F401  brings the SDK, without which the door serves nobody
    from whisper_tui.transports.mcp import McpDoor

    return McpDoor
