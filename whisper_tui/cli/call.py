"""`call`: submit a tool call from a shell, wait for it, and print its result."""

import json
import sys
from functools import partial

from whisper_tui.cli.caller import Caller
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, places_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import visible


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
    caller = Caller(places_of(options), options.session, options.tool, arguments)
    told = caller.answer()
    if told["told"]:
        sys.stderr.write(f"whisper-tui: {visible(told['told'], keep_lines=True)}\n")
    left_out = told.get("left_out", {}).items()
    print_json(told["result"], long={mark: partial(caller.output, stream) for mark, stream in left_out})
    if told["failed"]:
        sys.stderr.write(f"whisper-tui: {visible(told['text'].rstrip(), keep_lines=True)}\n")
    return REFUSED if told["failed"] else DONE
