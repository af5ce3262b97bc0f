"""The layers put together: configuration, executor, supervisor, socket and transports."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from whisper_tui.cli.client_rules import ClientRules
from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.manage_rules import have_it_noted
from whisper_tui.config import load, write_pointer
from whisper_tui.config.configuration import Configuration, ConfigurationFile
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.api import Supervision
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.secrets import masked
from whisper_tui.model.text import visible
from whisper_tui.supervisor.journal.sqlite_file import check_format
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups
from whisper_tui.supervisor.phones.phones import UNDO_S as PHONE_UNDO_S
from whisper_tui.supervisor.places.placed_executors import PlacedExecutors
from whisper_tui.supervisor.runs.executor import Executor
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system import processes, syscalls
from whisper_tui.system.state_directory import Directories, StateDirectoryLock, prepare
from whisper_tui.wire.light_client import check_not_newer
from whisper_tui.wire.peers import descends, starter_words, why_supervised_here
from whisper_tui.wire.rendezvous import release
from whisper_tui.wire.server import Endpoint, Server, keep_listening, serve

if TYPE_CHECKING:
    from whisper_tui.model.phone_facts import PhoneWords
    from whisper_tui.notify.desktop_buttons import DesktopButtons, Objection
    from whisper_tui.notify.notifier import BackgroundNotifier
    from whisper_tui.notify.window_launcher import WindowLauncher
    from whisper_tui.tools import ToolContext, ToolRegistry
    from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint


T = TypeVar("T")

TURN_S = 0.0005
"""Seconds after which the loading thread hands the interpreter lock to another thread."""


async def loaded(load: Callable[[], T]) -> T:
    """Return the result of `load`, which runs in a daemon thread."""
    # asyncio waits for its own executor threads at the end; a stop must not wait until the SDK is imported.
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(load())
        except Exception as error:  # noqa: BLE001  raised again where it is waited for
            future.set_exception(error)

    # The importing thread gives the interpreter lock back only after this interval, which delays every other call.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    try:
        threading.Thread(target=run, daemon=True).start()
        return await asyncio.wrap_future(future)
    finally:
        sys.setswitchinterval(usual)


class MaskedLines(logging.Formatter):
    """The time, the level, the place and the message, with its traceback where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Format one entry, without secrets."""
        # Continuation lines are indented, so that no text of an agent can pass for another entry.
        return visible(masked(super().format(record)), keep_lines=True).replace("\n", "\n  ")


PR_SET_DUMPABLE = 4

REST_S = 10.0
"""Seconds of rest after which the MCP endpoint is loaded, unless an agent connects before.

Loading it takes as much of a processor as starting the supervisor. Most of the short-lived ones, which a subcommand
starts, never need it."""
MOST_AT_REST = 0.05
"""The share of a processor that the supervisor uses at most while it counts as at rest."""

_log = logging.getLogger("whisper_tui")


def supervise(
    home: Directories, ready: Callable[[], None], *, stop_other: Callable[[Directories], object] | None = None
) -> None:
    """Run the supervisor of these directories until it is told to stop. Raises `WhisperError` if it cannot start.

    `stop_other`: stops the supervisor that runs now, which this one replaces.
    """
    log = logging.StreamHandler(sys.stderr)
    log.setFormatter(MaskedLines())
    logging.basicConfig(level=logging.INFO, handlers=[log])
    _check_outside(home)
    _keep_others_out()
    configuration = load(home)
    prepare(home)
    if stop_other is not None:
        # Before the old one stops: what this version cannot read or speak must not leave nobody in charge.
        check_format(Path(home.state) / "journal.sqlite")
        check_not_newer(home)
        stop_other(home)
    launcher = _window_launcher(configuration)
    # Not before: the other supervisor obeys nobody with this mark.
    processes.mark_supervisor()
    gc.freeze()
    gc.enable()
    # A call leaves some ten thousand objects, which would be fifteen collections. None of them is in a cycle.
    gc.set_threshold(20_000, 10, 100)
    with StateDirectoryLock(home.state) as occupation:
        release(home)
        try:
            write_pointer(home, os.environ)
        except OSError as error:
            _log.warning("programs without our environment will not find %s: %s", home.state, error)
        if configuration.rules.broken:
            _log.warning("the rules cannot be read, so everything needs approval: %s", configuration.rules.broken)
        asyncio.run(_supervise(home, configuration, occupation, ready, launcher))


def _window_launcher(configuration: Configuration) -> "WindowLauncher | None":
    """Fork the process that opens the cockpit when a human clicks on a notification. None: there is no such button."""
    settings = configuration.calling
    if settings.when == "never" or not settings.desktop_buttons or not settings.desktop_open:
        return None
    from whisper_tui.notify.window_launcher import WindowLauncher

    return WindowLauncher(settings.desktop_open, os.environ)


def _check_outside(home: Directories) -> None:
    """Raise `NotAllowed` inside a supervised command."""
    # A supervisor below a supervised command would end with it, and the command could control it.
    problem = why_supervised_here()
    if problem is not None:
        have_it_noted(home)
        raise NotAllowed(f"no supervisor was started, because {problem}", hint="Start it outside")


def _keep_others_out() -> None:
    """Keep processes of the same user from attaching a debugger to this one or writing into its memory."""
    # Not done in cockpits and other clients: /proc then belongs to root, and the supervisor could not check them.
    if syscalls.LINUX:
        with suppress(OSError):
            syscalls.prctl(PR_SET_DUMPABLE, 0)


async def _supervise(
    home: Directories,
    configuration: Configuration,
    occupation: StateDirectoryLock,
    ready: Callable[[], None],
    launcher: "WindowLauncher | None",
) -> None:
    rules = RuleFiles(home, configuration.rules)
    supervisor = Supervisor(
        home,
        executor := _executor(Path(home.state) / "runs", configuration),
        clients_rules=ClientRules(Path.home()).of,
        gaps=_gaps,
        rule_book=rules,
        settings=configuration.supervisor,
        limits=configuration.limits,
        retention=configuration.retention,
        undo=configuration.undo,
        places=configuration.places,
    )
    supervisor.settings_file = ConfigurationFile(home)
    cockpit = configuration.cockpit
    undo_s = max(PHONE_UNDO_S, cockpit.undo_s if cockpit.undo == "every" else 0.0)
    supervisor.desk_key = configuration.evidence.sign
    supervisor.take_phones(_phone_words, configuration.phone, undo_s)
    rules.follow(supervisor.rule_trust)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.stopped.set)
    await supervisor.open()
    try:
        agents = _LateMcpEndpoint(supervisor, configuration)
        endpoints: dict[str, Endpoint] = {"mcp": agents, **_shell_endpoints(supervisor, configuration, home)}
        server = await _served(supervisor, executor, home, endpoints)
        ready()
        _log.info("serving %s as pid %d", home.state, os.getpid())
        agents.prepare_at_rest()
        notifications = _Notifications(supervisor, configuration, server.objection_to, launcher)
        staying = asyncio.create_task(keep_listening(server, occupation, supervisor.stopped.set))
        await supervisor.stopped.wait()
        _log.info("stopping")
        staying.cancel()
        await notifications.close()
        await server.close()
    finally:
        await supervisor.close()


def _phone_words() -> "PhoneWords":
    """The words in which phones show calls, loaded when a phone asks first."""
    from whisper_tui.present import phone_text

    return phone_text


def _executor(runs: Path, configuration: Configuration) -> Executor:
    """Return the executor of this machine, or of this machine and the places of the configuration."""
    here = LocalExecutor(runs, Cgroups.find())
    return PlacedExecutors(here, configuration.places, runs) if configuration.places else here


async def _served(
    supervisor: Supervisor, executor: Executor, home: Directories, endpoints: Mapping[str, Endpoint]
) -> Server:
    """Serve clients and agents, those at places as well."""
    server = await serve(supervisor, home, endpoints, refused=supervisor.attempt_refused, phones=supervisor.phones)
    if isinstance(executor, PlacedExecutors):
        executor.serve_agents(server.serve_agent)
    return server


class _Notifications:
    """Notifies through the desktop, the user's program and phones, once any of them is to be used."""

    def __init__(
        self,
        supervisor: Supervisor,
        configuration: Configuration,
        objection: "Objection",
        launcher: "WindowLauncher | None",
    ) -> None:
        self._supervisor = supervisor
        self._configuration = configuration
        self._objection = objection
        self._launcher = launcher
        self._notifier: BackgroundNotifier | None = None
        settings = configuration.calling
        if settings.when == "never":
            return
        if settings.desktop or settings.desktop_buttons or settings.command:
            self._begin()
        if supervisor.phones is not None:
            supervisor.phones.listen_pushed(self._begin)

    async def close(self) -> None:
        """Notify no more."""
        if self._notifier is not None:
            await self._notifier.close()

    def _begin(self) -> None:
        """Begin, unless it has begun already."""
        if self._notifier is not None:
            return
        from whisper_tui.notify.notifier import BackgroundNotifier
        from whisper_tui.notify.phone_push import PhonePush
        from whisper_tui.system.public_address import public_addresses

        supervisor = self._supervisor
        self._notifier = notifier = BackgroundNotifier(
            self._configuration.calling,
            supervisor.board,
            supervisor.presences,
            self._report,
            buttons=self._buttons(),
            push=PhonePush(supervisor.phones, addresses=public_addresses) if supervisor.phones is not None else None,
        )
        supervisor.listen(notifier.on_event)
        supervisor.stall_monitor.listen(notifier.stalled)
        notifier.open()

    def _report(self, problem: str) -> None:
        self._supervisor.notify_problem = problem
        if problem:
            _log.warning("%s", problem)

    def _buttons(self) -> "DesktopButtons | None":
        supervisor, cockpit = self._supervisor, self._configuration.cockpit
        if not self._configuration.calling.desktop_buttons:
            return None
        from whisper_tui.notify.desktop_buttons import DesktopButtons

        by = Decider(surface="notification", who=decider()["who"])
        # No severe risk is approved by a button, so that "grave" leaves nothing to undo.
        undo_s = cockpit.undo_s if cockpit.undo == "every" else 0.0
        return DesktopButtons(
            supervisor, supervisor.board, self._objection, by=by, undo_s=undo_s, launcher=self._launcher
        )


def _gaps(client: str, root: str, environ: Mapping[str, str], *, by_hook: bool) -> list[str]:
    """Return the commands of a client that its hooks do not hold in a workspace, and the hooks that may overrule them.

    `by_hook`: a hook of ours was called there, so it is not switched off.
    """
    from whisper_tui.agents.doctor import gaps, rivals, running_without_hook

    passed = [] if by_hook else gaps(client, Path(root), environ)
    return [*passed, *rivals(client, Path(root), environ), *running_without_hook(client, Path(root), environ)]


def _shell_endpoints(supervisor: Supervisor, configuration: Configuration, home: Directories) -> dict[str, Endpoint]:
    """The endpoints for agents' own shells and for `whisper-tui call`."""
    from whisper_tui.policy.view import may_change_directory
    from whisper_tui.transports.codex_environment.environment_endpoint import ExecutorEndpoint
    from whisper_tui.transports.hook.exec_endpoint import ExecEndpoint, ShellDirectory
    from whisper_tui.transports.hook.gate_endpoint import GateEndpoint
    from whisper_tui.transports.hook.hook_endpoint import HookEndpoint
    from whisper_tui.transports.hook.what_ran import WhatRan
    from whisper_tui.transports.shell_call import ShellCallEndpoint

    shell_directory = ShellDirectory(
        Path(home.runtime) / "directories", supervisor.queries.last_directory, may_change_directory
    )
    what_ran = WhatRan(supervisor, supervisor.raise_alarm)
    inputs = supervisor.queries.input_file
    return {
        "hook": HookEndpoint(supervisor, shell_directory, what_ran),
        "gate": GateEndpoint(supervisor, shell_directory, what_ran),
        "exec": ExecEndpoint(supervisor, descends, starter_words, inputs, shell_directory, what_ran=what_ran),
        "call": ShellCallEndpoint(supervisor, partial(_registry, configuration)),
        "executor": ExecutorEndpoint(supervisor),
    }


class _LateMcpEndpoint:
    """The MCP endpoint, loaded after the supervisor is ready because its SDK takes half a second to import."""

    def __init__(self, supervision: Supervision, configuration: Configuration) -> None:
        self._supervision = supervision
        self._configuration = configuration
        self._endpoint: asyncio.Task[Endpoint] | None = None

    def prepare(self) -> asyncio.Task[Endpoint]:
        """Begin to load it."""
        if self._endpoint is None:
            self._endpoint = asyncio.create_task(self._load())
        return self._endpoint

    def prepare_at_rest(self) -> None:
        """Begin to load it as soon as the supervisor has hardly anything else to do for a while."""
        # Whoever has started the supervisor waits for its first answer, and loading makes each call four times as slow.
        asyncio.get_running_loop().call_later(REST_S, self._prepare_unless_busy, time.process_time())

    def _prepare_unless_busy(self, before: float) -> None:
        if time.process_time() - before > MOST_AT_REST * REST_S:
            self.prepare_at_rest()
        else:
            self.prepare()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection."""
        endpoint = await asyncio.shield(self.prepare())
        await endpoint(reader, writer, hello)

    async def _load(self) -> Endpoint:
        endpoint_class = await loaded(_mcp_endpoint_class)
        registry = partial(_registry, self._configuration)
        endpoint = endpoint_class(self._supervision, registry=registry, wait_s=self._configuration.mcp.wait_s)
        await endpoint.prepare()
        gc.freeze()  # What is loaded now lives for ever: a collection need not walk through it while calls wait.
        return endpoint


def _registry(configuration: Configuration, context: "ToolContext") -> "ToolRegistry":
    """The tools of a session."""
    from whisper_tui.tools import standard_registry

    return standard_registry(context, **configuration.tools.offered, places=configuration.place_names)


def _mcp_endpoint_class() -> "type[McpEndpoint]":
    import whisper_tui.transports.mcp.mcp_session  # noqa: F401  brings the SDK, without which the endpoint serves nobody
    from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint

    return McpEndpoint
