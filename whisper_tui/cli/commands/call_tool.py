"""`call`, `tools` and `agent`: a tool call from a shell, the list of tools, and a model that calls them for a task."""

import json
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from whisper_tui.cli.output_format import print_json, print_table
from whisper_tui.cli.subcommand import DONE, REFUSED, Options, Subcommands, home_at, home_of, home_options, reach
from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import sendable, visible
from whisper_tui.wire.light_client import JsonLines, LightClient, SupervisorLost
from whisper_tui.wire.protocol import HAND_OVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from whisper_tui.tools import AITool

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whisper_tui.transports.agent_loop import Conversation, SessionConversation


AGAIN_S = 0.3
"""Seconds before a lost connection is made again."""

PIECE = 1024 * 1024
"""Bytes of output that are read at once."""

GIVES_UP_S = 60.0
"""Seconds without a supervisor that lives for `LIVES_S`, after which the program gives up."""

LIVES_S = 2.0
"""Seconds after which a connection that is lost then was one to a supervisor that worked."""

FAREWELL_S = 10.0
"""Seconds in which the supervisor withdraws the call after Ctrl-C."""


class ShellCall:
    """One call, over any number of connections. The same nonce makes it the same call."""

    def __init__(self, places: "Sequence[str]", name: str, tool: str, arguments: "Any", place: str = "") -> None:
        self._places = places
        self._hello = {
            "door": "call",
            "version": HELLO_VERSIONS["call"],
            "name": name,
            "root": os.path.realpath(os.curdir),
            "pid": os.getpid(),
            "environment": sendable(os.environ),
            "nonce": os.urandom(16).hex(),
            "tool": tool,
            "arguments": arguments,
            # Not said without need: the supervisor of the version before knows no places.
            **({"place": place} if place else {}),
        }
        self._call_id: str | None = None

    def answer(self) -> "dict[str, Any]":
        """Return the answer of the tool. Raises `WhisperError`."""
        worked_at = time.monotonic()
        while True:
            talk = JsonLines(reach(self._places))
            begun = time.monotonic()
            try:
                return self._ask(talk)
            except SupervisorLost:
                if time.monotonic() - begun >= LIVES_S:
                    worked_at = time.monotonic()
                self._check_that_it_comes_back(worked_at)
            except KeyboardInterrupt:
                talk.give_up(FAREWELL_S)
                raise
            finally:
                talk.close()
            time.sleep(AGAIN_S)

    def output(self, stream: str) -> "Iterator[str]":
        """Yield a stream of the ended call as text."""
        # Piece by piece: gigabytes of output fit in no answer and in no memory.
        from codecs import getincrementaldecoder

        decoder = getincrementaldecoder("utf-8")(errors="replace")
        with LightClient(reach(self._places)) as supervisor:
            end = supervisor.ask("record", call_id=self._call_id)["state"]["output"][stream]
            offset = 0
            while offset < end:
                asked = {"call_id": self._call_id, "stream": stream, "offset": offset}
                chunk = supervisor.ask("read_output", **asked, limit=min(PIECE, end - offset))
                start, data = chunk["start"], _bytes_of(chunk["data"])[: max(end - chunk["start"], 0)]
                reached = start if data else end
                if reached > offset:
                    dropped = f"{reached - offset:,} bytes were dropped here when the output was captured"
                    yield f"\n[whisper_tui: {dropped}]\n"
                    decoder.reset()
                yield decoder.decode(data)
                offset = reached + len(data)
        yield decoder.decode(b"", final=True)

    def _ask(self, talk: JsonLines) -> "dict[str, Any]":
        try:
            talk.send(self._hello)
            told = talk.receive(None)
        except InvalidRequest as error:
            # Supervisors that know no such interface say it in these words, and have no other way to say it.
            if error.message.startswith(("there is no door", "there is no interface")):
                raise OtherVersion("the running supervisor is older than this program", hint=HAND_OVER) from error
            raise
        if "call" in told:
            self._submitted(told)
            told = talk.receive(None)
        return told

    def _submitted(self, told: "dict[str, Any]") -> None:
        if self._call_id is None and told["waits"] and sys.stderr.isatty():
            call_id = told["call"]
            sys.stderr.write(f"whisper-tui: call {call_id} waits for a human: whisper-tui approve {call_id}\n")
        self._call_id = told["call"]

    def _check_that_it_comes_back(self, worked_at: float) -> None:
        """Raise `Unavailable` if the supervisor was stopped on purpose, or has not worked since that time for long."""
        from whisper_tui.wire.rendezvous import stopped_on_purpose

        call = "the call" if self._call_id is None else f"call {self._call_id}"
        hint = f"Nothing is lost: whisper-tui show {self._call_id or 'ID'} shows its state"
        if stopped_on_purpose(home_at(self._places)):
            raise Unavailable(f"the supervisor was stopped before {call} ended", hint=hint)
        if time.monotonic() - worked_at >= GIVES_UP_S:
            raise Unavailable(f"the supervisor has stopped again and again for {GIVES_UP_S:g} s", hint=hint)


def _bytes_of(told: str) -> bytes:
    """Bytes as the model writes them in JSON."""
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(told)


def add_call(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "call",
        "submit a tool call as an agent would, wait for it, and print its result as JSON",
        _call,
        details="Changes by a human are reported on standard error. Ctrl-C withdraws a call that has not started.",
        examples=(
            'call run_shell_command \'{"command": "make test"}\'',
            'call execute_command \'{"command": "git", "args": ["push"]}\'',
        ),
    )
    parser.add_argument("tool", metavar="TOOL", help="a tool that `whisper-tui tools` lists")
    parser.add_argument("arguments", metavar="JSON", help="the tool's arguments, as one JSON object")
    parser.add_argument(
        "--session", default="command line", metavar="NAME", help="the name of the session in the queue"
    )
    parser.add_argument(
        "--place", default="", metavar="NAME", help="run the command at this place of the configuration, or `here`"
    )


def _call(options: Options) -> int:
    try:
        arguments = json.loads(options.arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"the arguments are not JSON: {error}", hint="""For example '{"command": "ls", "args": ["-l"]}'"""
        ) from error
    caller = ShellCall(home_options(options), options.session, options.tool, arguments, options.place)
    told = caller.answer()
    if told["told"]:
        sys.stderr.write(f"whisper-tui: {visible(told['told'], keep_lines=True)}\n")
    left_out = told.get("left_out", {}).items()
    print_json(told["result"], long={mark: partial(caller.output, stream) for mark, stream in left_out})
    if told["failed"]:
        sys.stderr.write(f"whisper-tui: {visible(told['text'].rstrip(), keep_lines=True)}\n")
    return REFUSED if told["failed"] else DONE


FORMATS = ("table", "openrouter", "prompt", "json")


def add_tools(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "tools",
        "show the tools that agents are offered",
        _tools,
        details="`openrouter` is the array of definitions that chat completion APIs take, `prompt` the text for a "
        "model's prompt, `json` all that is known about each tool.",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print them (default: table)")
    parser.add_argument("--set", metavar="NAME", help="only the tools of this set")


def _tools(options: Options) -> int:
    tools = _offered(options)
    match options.format:
        case "openrouter":
            print_json([tool.get_openrouter_tool_definition() for tool in tools])
        case "prompt":
            sys.stdout.write("\n\n".join(tool.get_ai_prompt_instructions() for tool in tools) + "\n")
        case "json":
            print_json([_row(tool) for tool in tools])
        case _:
            print_table(("TOOL", "CATEGORY", "DESCRIPTION"), (_words(tool) for tool in tools))
    return 0


def _words(tool: "AITool") -> tuple[str, ...]:
    return visible(tool.name), visible(tool.category or ""), visible(tool.description)


def _offered(options: Options) -> "list[AITool]":
    """Return the tools of a session in this directory."""
    from whisper_tui.config import load
    from whisper_tui.model.call import Session
    from whisper_tui.tools import ToolContext, standard_registry

    # No tool is called, so the context needs no supervisor.
    session = Session(id="s0", name="command line", root=os.path.realpath(os.curdir), opened_at=0.0)
    settings, context = load(home_of(options)), ToolContext(cast("Any", None), session)
    registry = standard_registry(context, **settings.tools.offered, places=settings.place_names)
    return registry.get_all_tools() if options.set is None else registry.get_tool_set(options.set)


def _row(tool: "AITool") -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "tags": list(tool.tags),
        "read_only": tool.read_only,
        "parameters": tool.parameters_schema,
        "prompt": tool.get_ai_prompt_instructions(),
    }


BASE_URL = "https://openrouter.ai/api/v1"
KEYS = ("OPENROUTER_API_KEY", "OPENAI_API_KEY")
"""Variables in which the key is looked for. Commands of the agent do not inherit them."""


def add_agent(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "agent",
        "let a model work on a task; its tool calls go through the queue",
        _agent,
        details=f"The key is read from {' or '.join(KEYS)}. It needs the extra `agent` of the package.",
        examples=("agent 'what is in here?' --model NAME",),
    )
    parser.add_argument("task", metavar="TASK", help="the task for the model")
    parser.add_argument("--model", required=True, metavar="NAME", help="the model, as the service calls it")
    parser.add_argument("--base-url", default=BASE_URL, metavar="URL", help=f"the service (default: {BASE_URL})")
    parser.add_argument(
        "--steps", type=int, default=50, metavar="N", help="at most N answers of the model (default: 50)"
    )
    parser.add_argument(
        "--stay", action="store_true", help="wait for what you say next in the cockpit (P), until Ctrl+C"
    )
    parser.add_argument("--set", metavar="NAME", help="offer the model only the tools of this set")


def _agent(options: Options) -> int:
    if options.steps < 1:
        raise InvalidRequest(f"--steps must be at least 1, not {options.steps}")
    import asyncio

    from whisper_tui.cli.standard_streams import while_somebody_reads

    asyncio.run(while_somebody_reads(_work(options)))
    return 0


async def _work(options: Options) -> None:
    try:
        from openai import AsyncOpenAI
    except ImportError as error:
        from whisper_tui.cli.subcommand import how_to_install

        raise Unavailable("the official client for models is not installed", hint=how_to_install("agent")) from error
    from whisper_tui.library import connect
    from whisper_tui.tools import ToolRegistry
    from whisper_tui.transports.agent_loop import Conversation, SessionConversation, bounded

    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    if key is None:
        raise InvalidRequest("there is no key for the model's service", hint=f"Set {' or '.join(KEYS)}")
    inherited = {name: value for name, value in os.environ.items() if name not in KEYS}
    name = f"agent ({options.model})"
    async with connect(name, home=options.home, environment=inherited, hears=options.stay) as agent:
        talk = SessionConversation(agent.supervision, agent.session.id, options.model)
        tools = agent.tools if options.set is None else ToolRegistry(agent.tools.get_tool_set(options.set))
        async with AsyncOpenAI(api_key=key, base_url=options.base_url) as client:
            conversation = Conversation(
                client, options.model, tools, steps=options.steps, say=_say, note=_note, on_answer=talk.show_answer
            )
            await talk.show_task(bounded(options.task))
            if options.stay:
                async with talk.receiving():
                    await _stay(conversation, talk, options.task)
            else:
                await conversation.ask(options.task)
    sys.stdout.write("\n")


async def _stay(conversation: "Conversation", talk: "SessionConversation", task: str) -> None:
    """Work on the task, and then on whatever a human says, without an end."""
    from whisper_tui.transports.agent_loop import TooManySteps

    while True:
        try:
            await conversation.ask(task)
        except TooManySteps as error:
            _tell(error.sentence())
        _tell("waiting for your next message in the cockpit; Ctrl+C ends the agent")
        task = await talk.next_message()
        _tell(f"you say {task}")


def _say(text: str) -> None:
    sys.stdout.write(visible(text, keep_lines=True))
    sys.stdout.flush()


def _note(sentence: str) -> None:
    _tell(f"the model asks for {sentence}")


def _tell(sentence: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"\nwhisper-tui: {visible(sentence)}\n")
    sys.stderr.flush()
