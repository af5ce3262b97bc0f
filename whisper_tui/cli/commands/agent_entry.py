"""`mcp`, `acp`, `hook`, `exec`, `gate` and `executor`: the subcommands that agents and editors start."""

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from whisper_tui.agents.known_clients import KNOWN
from whisper_tui.cli import subcommand
from whisper_tui.cli.subcommand import (
    DONE,
    Options,
    Subcommands,
    home_for_agents,
    home_of,
    home_options,
    launcher,
    of_agents,
)
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.transports.hook.hook_program import run_hook
from whisper_tui.wire.light_client import quick_runtime, usual_directories

if TYPE_CHECKING:
    from _socket import socket as Connection

    from whisper_tui.system.state_directory import Directories
    from whisper_tui.wire.client import SupervisorClient

MCP_PORT = 8718
UNSEEN_OPTION = "--allow-unseen-shell"
LONGEST_SERVER = 100
"""Characters of the name of a server behind the gateway."""


def add_mcp(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "mcp",
        "serve MCP over standard input and output, or over HTTP",
        _relay,
        details="It starts a supervisor if none runs; calls wait there until a human decides.",
    )
    parser.add_argument("--root", metavar="DIR", help="the agent's workspace (default: where it was started)")
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        help="answer every call within SECONDS, with a ticket if necessary (default: the known timeout of the client; "
        "name more if you have raised it)",
    )
    parser.add_argument("--session", metavar="NAME", help="the agent's name in the queue")
    parser.add_argument(
        "--own-shell",
        action="store_true",
        help="offer none of its own tools, because a hook supervises the agent's own shell",
    )
    parser.add_argument(
        "--http", action="store_true", help="serve agents over HTTP on 127.0.0.1, until Ctrl-C, behind a token"
    )
    parser.add_argument(
        "--port", type=int, default=MCP_PORT, metavar="N", help=f"the port for --http; 0: any (default: {MCP_PORT})"
    )
    parser.add_argument("--show-token", action="store_true", help="print the token for --http, and exit")
    parser.add_argument(
        "--through",
        metavar="NAME",
        help="start another MCP server behind the queue; without COMMAND its command line is in the "
        "configuration file, under [mcp.servers.NAME]",
    )
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="with --through: the command line of the other server, after --"
    )


def seconds(word: str) -> float:
    """A positive number of seconds. Raises `ValueError`."""
    number = float(word)
    if not 0 < number < float("inf"):
        raise ValueError(word)
    return number


def _relay(options: Options) -> int:
    if options.through is not None:
        return _through(options)
    if options.command:
        raise InvalidRequest("a command line needs the name of its server", hint="Add --through NAME before --")
    if options.http or options.show_token:
        return _http(options)
    from whisper_tui.transports.mcp.relay import run_relay, workspace
    from whisper_tui.wire.rendezvous import connect, reach

    home = home_for_agents(options)
    root = workspace(options.root, os.environ)
    connecting = partial(reach, home, for_agent=True)
    return run_relay(
        connecting,
        partial(connect, home),
        root=root,
        name=options.session,
        wait_s=options.wait,
        own_shell=options.own_shell,
    )


def _through(options: Options) -> int:
    """Stand before another MCP server."""
    import asyncio

    from whisper_tui.transports.mcp.gateway import run_gateway
    from whisper_tui.transports.mcp.relay import workspace

    if options.http or options.show_token or options.wait is not None:
        raise InvalidRequest("--through works over standard input and output alone", hint="Leave the other options out")
    server: str = options.through
    if not server.isprintable() or not 0 < len(server) <= LONGEST_SERVER:
        raise InvalidRequest(f"{server!r} cannot be the name of a server", hint="Choose a shorter, printable one")
    home = home_for_agents(options)
    words, environment = (options.command, {}) if options.command else _configured(server, home)
    root = workspace(options.root, os.environ)

    async def connect() -> "SupervisorClient":
        return await (await asyncio.to_thread(_client_class)).connect(home, for_agent=True)

    return run_gateway(server, words, connect, root=root, name=options.session, environment=environment)


def _configured(server: str, home: "Directories") -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command line and the variables of a server in the configuration file. Raises `WhisperError`."""
    from whisper_tui.config import load

    known = load(home).mcp.servers
    if server not in known:
        there = f"The file has {', '.join(known)}" if known else "Name a command after --"
        raise InvalidRequest(f"the configuration file has no [mcp.servers.{server}]", hint=there)
    return known[server].command, known[server].env


def _client_class() -> "type[SupervisorClient]":
    from whisper_tui.wire.client import SupervisorClient

    return SupervisorClient


def _http(options: Options) -> int:
    from whisper_tui.cli.mcp_http import serve_http, token_of
    from whisper_tui.transports.mcp.relay import workspace

    home = home_of(options)
    if options.show_token:
        sys.stdout.write(token_of(home) + "\n")
        return DONE
    root = workspace(options.root, {})
    serve_http(home, port=options.port, root=root, name=options.session, wait_s=options.wait)
    return DONE


def add_acp(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "acp",
        "supervise an agent that an editor starts by the Agent Client Protocol",
        _acp,
        details="The editor starts it in place of the agent, and it starts the agent. The agent's terminals, its "
        "writes of files and its questions wait until a human decides; everything else passes.",
    )
    parser.add_argument(
        "--root", metavar="DIR", help="the workspace of sessions without a directory (default: where it was started)"
    )
    parser.add_argument("--session", metavar="NAME", help="the agent's name in the queue")
    parser.add_argument(
        UNSEEN_OPTION,
        action="store_true",
        help="start an agent all the same that runs its commands itself, where whisper_tui does not see them",
    )
    parser.add_argument("command", nargs="+", metavar="AGENT", help="the command line of the agent, after --")


def _acp(options: Options) -> int:
    import asyncio

    from whisper_tui.transports.acp.acp_proxy import run_proxy
    from whisper_tui.transports.mcp.relay import workspace

    home = home_for_agents(options)

    async def connect() -> "SupervisorClient":
        return await (await asyncio.to_thread(_client_class)).connect(home, for_agent=True)

    root = workspace(options.root, {})
    return run_proxy(options.command, connect, root=root, name=options.session, allow_unseen=options.allow_unseen_shell)


def add_hook(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    asking = verbs.add(
        "hook",
        "answer an agent's hook, called before each command of the agent's own shell",
        _hook,
        details="It reads the hook's input and prints the answer in the agent's format. See whisper-tui install.",
    )
    asking.add_argument("client", choices=tuple(KNOWN), metavar="CLIENT", help=", ".join(KNOWN))
    asking.add_argument(
        "--deadline", type=seconds, metavar="SECONDS", help="deny after SECONDS, before the agent stops waiting"
    )
    asking.add_argument(
        "--agent-runs",
        action="store_true",
        help="let the agent run approved commands itself; the cockpit does not see them run",
    )
    asking.add_argument(
        "--after",
        action="store_true",
        help="compare what ran with what was approved, after a tool of the agent; a failure is silent",
    )
    running = verbs.add(
        "exec",
        "run an approved command for an agent's shell (internal: hooks write this)",
        _exec,
        details="Standard input, output, signals and the exit code pass through. A ticket runs once.",
    )
    running.add_argument("ticket", metavar="TICKET", help="the ticket that the hook printed")
    running.add_argument("label", nargs="?", metavar="TEXT", help="ignored; shows the command on the agent's screen")


def add_executor(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "executor",
        "serve Codex as its environment: run its commands and write its files, once you approve",
        _executor,
        details="It speaks the protocol of codex exec-server at standard input and output. "
        "whisper-tui install codex --executor makes Codex start it.",
    )
    parser.add_argument(
        "--input",
        choices=("ask", "covered"),
        default="ask",
        help="ask about each text that Codex types into a command, or let the approval of the command cover it "
        "(default: ask)",
    )


def add_gate(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "gate",
        "be the shell of an agent client (internal: install writes this)",
        _gate,
        details="It runs approved commands in the shell, and asks about every other one.",
    )
    parser.add_argument("client", choices=tuple(KNOWN), metavar="CLIENT", help=", ".join(KNOWN))
    parser.add_argument("--shell", required=True, metavar="PATH", help="the shell")
    parser.add_argument(
        "--deadline", type=seconds, required=True, metavar="SECONDS", help="deny after SECONDS, before the client does"
    )
    parser.add_argument("words", nargs="*", metavar="ARGUMENT", help="the arguments of the shell, after --")


def _gate(options: Options) -> int:
    from whisper_tui.transports.hook.gate_program import Gate, run_gate

    environ, places = of_agents(os.environ), home_options(options)
    usual = usual_directories(environ)
    runtime = quick_runtime(places, environ)
    gate = Gate(
        client=options.client,
        shell=options.shell,
        launcher=launcher(),
        places=places,
        usual=not places or (usual is not None and places == ["--directories", *usual]),
        directories=f"{runtime or subcommand.home_at(places, environ).runtime}/directories",
        deadline_s=options.deadline,
    )
    return run_gate(gate, options.words, lambda: subcommand.reach(places, environ))


def _executor(options: Options) -> int:
    from whisper_tui.transports.codex_environment.environment_program import run_executor

    environ, places = of_agents(os.environ), home_options(options)
    return run_executor(
        lambda: subcommand.reach(places, environ),
        partial(subcommand.reach_again, places, environ),
        asks_input=options.input == "ask",
    )


def _hook(options: Options) -> int:
    environ = of_agents(os.environ)
    places = home_options(options)
    usual = usual_directories(environ)
    # After a tool nothing can be held any more, so no supervisor is started for it.
    find = subcommand.connect_running if options.after else subcommand.reach
    return run_hook(
        options.client,
        lambda: find(places, environ),
        deadline_s=KNOWN[options.client].deadline_s if options.deadline is None else options.deadline,
        agent_runs=options.agent_runs,
        launcher=launcher(),
        places=() if usual is not None and places == ["--directories", *usual] else places,
        after=options.after,
    )


def _exec(options: Options) -> int:
    from whisper_tui.transports.hook.exec_program import run_ticket

    environ = of_agents(os.environ)
    places = home_options(options)
    tried = False

    def connection() -> "Connection | None":
        nonlocal tried
        again, tried = tried, True
        find = subcommand.reach_again if again else subcommand.reach
        return find(places, environ)

    return run_ticket(options.ticket, connection)
