"""An agent loop over any chat completion API. Its tool calls go through the queue."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whisper_tui.model.api import Supervision
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused, Unavailable, WhisperError
from whisper_tui.model.event import LONGEST_SAID, SessionSaid
from whisper_tui.tools import ToolRegistry

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class SessionConversation:
    """One agent's end of a conversation."""

    def __init__(self, supervision: Supervision, session_id: str, model: str) -> None:
        self._supervision = supervision
        self._session_id = session_id
        self._model = Decider(surface="agent", who=model)
        self._received: asyncio.Queue[str] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None

    async def show_task(self, text: str) -> None:
        """Show the agent's task."""
        await self._send(text, Decider(surface="command line"))

    async def show_answer(self, text: str) -> None:
        """Show an answer of the model."""
        await self._send(text, self._model)

    async def _send(self, text: str, by: Decider) -> None:
        # The conversation is only a view, so the work continues if it cannot be shown.
        with suppress(WhisperError):
            await self._supervision.say(self._session_id, bounded(text), by)

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Receive messages of humans, even while the model works."""
        self._listening = asyncio.create_task(self._listen(), name="listening")
        try:
            yield
        finally:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def next_message(self) -> str:
        """Wait for the next message of a human. Raises `WhisperError` if the supervisor has stopped."""
        if self._listening is None:
            raise RuntimeError("receiving() was not entered")
        hearing = asyncio.create_task(self._received.get())
        await asyncio.wait([hearing, self._listening], return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():
            hearing.cancel()
            self._listening.result()
            raise Unavailable("the supervisor has stopped, so no more messages arrive", hint="Restart the agent")
        return hearing.result()

    async def _listen(self) -> None:
        async for events in self._supervision.watch():
            for event in events:
                if isinstance(event, SessionSaid) and event.session_id == self._session_id and event.is_to_agent:
                    self._received.put_nowait(event.text)


def bounded(text: str) -> str:
    """Return the text, or its beginning and the number of omitted characters."""
    if len(text) <= LONGEST_SAID:
        return text
    kept = LONGEST_SAID - 64
    return f"{text[:kept]}\n… {len(text) - kept:,} more characters are in the agent's terminal"


SYSTEM = """\
You work on the user's machine through the tools you are given. A human may look at each call before it runs, may \
change it or deny it with a reason: follow the reason, and do not try another way to do what was denied. Say what you \
did when you are done."""


class TooManySteps(Refused):
    """The model has used up its steps and asks for more tools."""

    kind = "too_many_steps"


@dataclass
class _Wanted:
    """A tool call that is still being streamed."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def as_message(self) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass
class _Reply:
    text: str = ""
    wanted: dict[int, _Wanted] = field(default_factory=dict)
    """By the index of the API, because the pieces of parallel calls may be interleaved."""

    def as_message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.wanted:
            message["tool_calls"] = [call.as_message() for call in self.wanted.values()]
        return message


async def _ignore(_text: str) -> None:
    """Ignore an answer of the model."""


class Conversation:
    """The messages between a user and a model, and the tools that the model may use."""

    def __init__(
        self,
        client: "AsyncOpenAI",
        model: str,
        tools: ToolRegistry,
        *,
        steps: int = 50,
        say: Callable[[str], None],
        note: Callable[[str], None] = lambda _sentence: None,
        on_answer: Callable[[str], Awaitable[None]] = _ignore,
    ) -> None:
        """`steps`: the limit of answers to one question. `say` gets streamed text, `note` each tool call.

        `on_answer` gets the text of each complete answer.
        """
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self._client = client
        self._model = model
        self._tools = tools
        self._steps = steps
        self._say = say
        self._note = note
        self._on_answer = on_answer

    async def ask(self, text: str) -> str:
        """Send a message to the model and execute its tool calls until there are none. Return its last answer.

        Raises `Unavailable` if the API fails, and `TooManySteps`.
        """
        self.messages.append({"role": "user", "content": text})
        for _ in range(self._steps):
            reply = await self._reply()
            self.messages.append(reply.as_message())
            if reply.text.strip():
                await self._on_answer(reply.text)
            if not reply.wanted:
                return reply.text
            # Concurrently: they wait in the queue together, and a human may decide them in any order.
            wanted = list(reply.wanted.values())
            answers = await asyncio.gather(*(self._answer(call) for call in wanted))
            for call, answer in zip(wanted, answers, strict=True):
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
        raise TooManySteps(
            f"the model was not done after {self._steps} steps", hint="Allow more steps, or give it a smaller task"
        )

    async def _reply(self) -> _Reply:
        from openai import OpenAIError

        reply = _Reply()
        messages: Any = self.messages
        tools: Any = self._tools.get_all_tool_definitions()
        try:
            stream = await self._client.chat.completions.create(
                model=self._model, messages=messages, tools=tools, stream=True
            )
            async for chunk in stream:
                for choice in chunk.choices[:1]:
                    self._take(reply, choice.delta)
        except OpenAIError as error:
            raise Unavailable(
                f"the request to the model failed: {error}", hint="Check the model's name, the base URL and the key"
            ) from error
        return reply

    def _take(self, reply: _Reply, delta: Any) -> None:
        """Add one piece of an answer: text, or parts of the arguments of calls."""
        if delta.content:
            reply.text += delta.content
            self._say(delta.content)
        for piece in delta.tool_calls or ():
            wanted = reply.wanted.setdefault(piece.index, _Wanted())
            # Only the first piece of a call has its id. Later ones have null.
            wanted.id = piece.id or wanted.id
            if piece.function is not None:
                wanted.name += piece.function.name or ""
                wanted.arguments += piece.function.arguments or ""

    async def _answer(self, wanted: _Wanted) -> str:
        """Return the result of a call for the model. A failure is a result too."""
        self._note(f"{wanted.name} {wanted.arguments}")
        try:
            arguments = json.loads(wanted.arguments or "{}")
        except (ValueError, RecursionError) as error:
            return f"Error: the arguments are not JSON: {error}. Nothing ran."
        try:
            return (await self._tools.answer(wanted.name, arguments)).for_model
        except WhisperError as error:
            return f"Error: {error.sentence()}"
