"""An agent loop over any chat completion API: the model's text streams, its tool calls go through the queue."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whisper_tui.model.errors import Refused, Unavailable, WhisperError
from whisper_tui.tools import ToolRegistry

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SYSTEM = """\
You work on the user's machine through the tools you are given. A human may look at each call before it runs, may \
change it or deny it with a reason: follow the reason, and do not try another way to do what was denied. Say what you \
did when you are done."""


class TooManySteps(Refused):
    """The model still wanted something when its steps were used up."""

    kind = "too_many_steps"


@dataclass
class _Wanted:
    """A tool call of which the pieces are still arriving."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def as_message(self) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass
class _Reply:
    text: str = ""
    wanted: dict[int, _Wanted] = field(default_factory=dict)
    """By the index that the API gives them; pieces of parallel calls may come in turns."""

    def as_message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.wanted:
            message["tool_calls"] = [call.as_message() for call in self.wanted.values()]
        return message


async def _nobody(_text: str) -> None:
    """Is told every answer of the model, and makes nothing of it."""


class Conversation:
    """What was said so far between a user and a model, and the tools that the model may ask for."""

    def __init__(
        self,
        client: "AsyncOpenAI",
        model: str,
        tools: ToolRegistry,
        *,
        steps: int = 50,
        say: Callable[[str], None],
        note: Callable[[str], None] = lambda _sentence: None,
        said: Callable[[str], Awaitable[None]] = _nobody,
    ) -> None:
        """`steps`: the model's answers to one question; `say` gets its text as it streams, `note` what it asks for.

        `said` gets the text of each answer once it is whole.
        """
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self._client = client
        self._model = model
        self._tools = tools
        self._steps = steps
        self._say = say
        self._note = note
        self._said = said

    async def ask(self, text: str) -> str:
        """Put something to the model and work until it wants no more tools. Returns its last words.

        Raises `Unavailable` if the API fails, and `TooManySteps`.
        """
        self.messages.append({"role": "user", "content": text})
        for _ in range(self._steps):
            reply = await self._reply()
            self.messages.append(reply.as_message())
            if reply.text.strip():
                await self._said(reply.text)
            if not reply.wanted:
                return reply.text
            wanted = list(reply.wanted.values())
            answers = await asyncio.gather(*(self._answer(call) for call in wanted))
            for call, answer in zip(wanted, answers, strict=True):
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
        raise TooManySteps(
            f"the model was not done after {self._steps} steps", hint="Allow more steps, or ask for something smaller"
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
                f"the model cannot be asked: {error}", hint="Check the model's name, the base URL and the key"
            ) from error
        return reply

    def _take(self, reply: _Reply, delta: Any) -> None:
        """One piece of an answer: some text, or some of the arguments of some calls."""
        if delta.content:
            reply.text += delta.content
            self._say(delta.content)
        for piece in delta.tool_calls or ():
            wanted = reply.wanted.setdefault(piece.index, _Wanted())
            wanted.id = piece.id or wanted.id
            if piece.function is not None:
                wanted.name += piece.function.name or ""
                wanted.arguments += piece.function.arguments or ""

    async def _answer(self, wanted: _Wanted) -> str:
        """What the model reads about a call that it asked for; a failure is an answer too."""
        self._note(f"{wanted.name} {wanted.arguments}")
        try:
            arguments = json.loads(wanted.arguments or "{}")
        except (ValueError, RecursionError) as error:
            return f"Error: the arguments are not JSON: {error}. Nothing ran."
        try:
            return (await self._tools.answer(wanted.name, arguments)).for_model
        except WhisperError as error:
            return f"Error: {error.sentence()}"
