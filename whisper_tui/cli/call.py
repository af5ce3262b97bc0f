"""`call`: submit a tool call from a shell, wait for it, and print its result."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.model.home import Home
    from whisper_tui.tools import Answer


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

    answer = asyncio.run(_answer(home, options, arguments))
    if answer.told:
        sys.stderr.write(f"whisper-tui: {visible(answer.told, keep_lines=True)}\n")
    print_json(answer.result)
    if answer.failed:
        sys.stderr.write(f"whisper-tui: {visible(answer.text.rstrip(), keep_lines=True)}\n")
    return REFUSED if answer.failed else DONE


async def _answer(home: "Home", options: Options, arguments: Any) -> "Answer":
    from whisper_tui.cli.caller import Caller

    async with Caller(home, options.session, os.environ) as caller:
        return await caller.call(options.tool, arguments)
