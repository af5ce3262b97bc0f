"""smolagents with a scripted model that calls one tool."""

import asyncio
from typing import Any

from smolagents import ActionStep, ChatMessage, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from tests.library import own_tool
from whisper_tui.integrations import smolagents
from whisper_tui.library import Agent


@tool
def send(to: str, copies: int = 1) -> str:
    """Send a letter.

    Args:
        to: Who gets it.
        copies: How many.
    """
    return own_tool.send(to, copies)


class OneCall(Model):
    """A model that calls one tool, and ends when it has the result."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__()
        self._calls = [(name, arguments), ("final_answer", {"answer": "done"})]

    def generate(self, messages: Any, **_more: Any) -> ChatMessage:
        name, arguments = self._calls.pop(0)
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(id="c1", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


async def ask(agent: Agent, name: str, arguments: dict[str, Any]) -> str:
    own = smolagents.approved_tool(agent, send)
    runner = ToolCallingAgent([*smolagents.tools(agent), own], OneCall(name, arguments), verbosity_level=-1)
    await asyncio.to_thread(runner.run, "go")
    steps = [step for step in runner.memory.steps if isinstance(step, ActionStep)]
    return str(steps[0].observations).strip()
