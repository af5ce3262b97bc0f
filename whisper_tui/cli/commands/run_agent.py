"""`agent`: a model of any compatible service works on a task, and every tool call of it goes through the queue."""

import os
import sys
from typing import TYPE_CHECKING

from whisper_tui.cli.subcommand import Options, Subcommands
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.transports.agent_loop import Conversation, SessionConversation

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

    from whisper_tui.cli.termination import while_somebody_reads

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
