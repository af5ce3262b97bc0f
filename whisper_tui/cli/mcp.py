"""`mcp`: what an agent launches, or comes to over HTTP; it relays MCP between the agent and the supervisor."""

import os
import sys
from functools import partial

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.cli.parsing import Options, Verbs, home_for_agents, home_of
from whisper_tui.wire.rendezvous import connect, reach

PORT = 8718


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "mcp",
        "serve MCP on standard input and output, for an agent that launches it",
        _relay,
        details="It starts a supervisor if none runs; calls wait there until a human decides.",
    )
    parser.add_argument("--root", metavar="DIR", help="the agent's workspace (default: where it was started)")
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        help="answer every call within SECONDS, with a ticket if need be (default: what the agent's program is known "
        "to wait; name more where its own limit was raised)",
    )
    parser.add_argument("--session", metavar="NAME", help="how the agent is called in the queue")
    parser.add_argument(
        "--http", action="store_true", help="serve agents over HTTP on 127.0.0.1, until Ctrl-C, behind a token"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="N", help=f"the port for --http; 0: any (default: {PORT})"
    )
    parser.add_argument("--show-token", action="store_true", help="print the token that --http wants, and end")


def seconds(word: str) -> float:
    """A positive number of seconds. Raises `ValueError`."""
    number = float(word)
    if not 0 < number < float("inf"):
        raise ValueError(word)
    return number


def _relay(options: Options) -> int:
    if options.http or options.show_token:
        return _http(options)
    from whisper_tui.transports.relay import run_relay, workspace

    home = home_for_agents(options)
    root = workspace(options.root, os.environ)
    return run_relay(partial(reach, home), partial(connect, home), root=root, name=options.session, wait_s=options.wait)


def _http(options: Options) -> int:
    from whisper_tui.cli.mcp_http import serve_http, token_of
    from whisper_tui.transports.relay import workspace

    home = home_of(options)
    if options.show_token:
        sys.stdout.write(token_of(home) + "\n")
        return DONE
    root = workspace(options.root, {})
    serve_http(home, port=options.port, root=root, name=options.session, wait_s=options.wait)
    return DONE
