"""`call`: submit a tool call from a shell, wait for it, and print its result."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import InvalidRequest

if TYPE_CHECKING:
    from whisper_tui.model.home import Home


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "call",
        "submit a tool call as an agent would, wait for it, and print its result as JSON",
        _call,
        details="What a human changed is said on standard error. Ctrl-C withdraws a call that still waits.",
    )
    parser.add_argument("tool", metavar="TOOL", help="a tool that `whisper-tui tools` lists")
    parser.add_argument("arguments", metavar="JSON", help="the tool's arguments, as one JSON object")
    parser.add_argument("--session", default="command line", metavar="NAME", help="how it is called in the queue")


def _call(options: Options) -> int:
    try:
        arguments = json.loads(options.arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"the arguments are not JSON: {error}", hint="""For example '{"command": "ls", "args": ["-l"]}'"""
        ) from error
    home = home_of(options)
    import asyncio

    result, told = asyncio.run(_result(home, options, arguments))
    if told:
        sys.stderr.write(f"whisper-tui: {told}\n")
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    return 0


async def _result(home: "Home", options: Options, arguments: Any) -> tuple[Any, str | None]:
    from whisper_tui.cli.caller import Caller

    async with Caller(home, options.session, os.environ) as caller:
        return await caller.call(options.tool, arguments)
