"""`mcp`: what an agent launches; it relays MCP between the agent and the supervisor."""

import os
from functools import partial

from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.wire.rendezvous import connect, reach


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


def seconds(word: str) -> float:
    """A positive number of seconds. Raises `ValueError`."""
    number = float(word)
    if not 0 < number < float("inf"):
        raise ValueError(word)
    return number


def _relay(options: Options) -> int:
    from whisper_tui.transports.relay import run_relay, workspace

    home = home_of(options)
    root = workspace(options.root, os.environ)
    return run_relay(partial(reach, home), partial(connect, home), root=root, name=options.session, wait_s=options.wait)
