"""The agent frameworks themselves, each with a scripted model: their calls are approved, changed and denied."""

import json
from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool as langchain_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from whisper_tui import Approve, CallRecord, Deny, Function, in_process
from whisper_tui.integrations import langchain, openai_agents, pydantic_ai
from whisper_tui.library import Agent
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended

Ask = Callable[[Agent, str, dict[str, Any]], Any]
"""Has a framework's agent call one tool with arguments, and returns the text that its model is given as the result."""

SENT: list[tuple[str, int]] = []
"""The calls that reached the framework's own tool."""


def send(to: str, copies: int = 1) -> str:
    """Send a letter."""
    SENT.append((to, copies))
    return f"sent to {to}"


class OneCall(Model):
    """A model of the OpenAI Agents SDK that calls one tool, and ends with the result."""

    def __init__(self, name: str, arguments: str) -> None:
        self._call = ResponseFunctionToolCall(name=name, arguments=arguments, call_id="c1", type="function_call")

    async def get_response(self, system_instructions: Any, input: Any, *_rest: Any, **_more: Any) -> ModelResponse:
        results = [] if isinstance(input, str) else [i for i in input if i.get("type") == "function_call_output"]
        if not results:
            return ModelResponse(output=[self._call], usage=Usage(), response_id=None)
        text = ResponseOutputText(text=results[-1]["output"], type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_arguments: Any, **_more: Any) -> Any:
        raise NotImplementedError


async def by_openai_agents(agent: Agent, name: str, arguments: dict[str, Any]) -> str:
    own = openai_agents.approved_tool(agent, agents.function_tool(send))
    runner = agents.Agent(
        name="a", tools=[*openai_agents.tools(agent), own], model=OneCall(name, json.dumps(arguments))
    )
    config = agents.RunConfig(tracing_disabled=True)
    return str((await agents.Runner.run(runner, "go", run_config=config)).final_output)


async def by_pydantic_ai(agent: Agent, name: str, arguments: dict[str, Any]) -> str:
    def model(messages: list[ModelMessage], _info: AgentInfo) -> PydanticResponse:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
        if not results:
            return PydanticResponse(parts=[ToolCallPart(name, arguments)])
        return PydanticResponse(parts=[TextPart(results[-1].model_response_str())])

    own = pydantic_ai.ApprovedToolset(FunctionToolset([send]), agent)
    runner = PydanticAgent(FunctionModel(model), tools=pydantic_ai.tools(agent), toolsets=[own])
    return (await runner.run("go")).output


async def by_langchain(agent: Agent, name: str, arguments: dict[str, Any]) -> str:
    own = langchain.approved_tool(agent, langchain_tool(send))
    known = {tool.name: tool for tool in [*langchain.tools(agent), own]}
    call = {"name": name, "args": arguments, "id": "c1", "type": "tool_call"}
    message = await known[name].ainvoke(call)
    assert isinstance(message, ToolMessage)
    return str(message.content)


FRAMEWORKS = pytest.mark.parametrize("ask", [by_openai_agents, by_pydantic_ai, by_langchain])


def everything(_record: CallRecord) -> Approve:
    return Approve()


@pytest.fixture(autouse=True)
def no_letters() -> None:
    SENT.clear()


@FRAMEWORKS
async def test_an_approved_command_runs_and_the_model_gets_its_output(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        told = await ask(agent, "execute_command", {"command": "echo", "args": ["hello"]})
    assert "hello" in told


@FRAMEWORKS
async def test_the_model_is_told_why_a_command_was_denied(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _record: Deny(reason="not today")) as agent:
        told = await ask(agent, "execute_command", {"command": "touch", "args": ["made"]})
    assert told == "Denied by the human. Nothing ran. Reason: not today"
    assert not (tmp_path / "made").exists()


@FRAMEWORKS
async def test_an_approved_call_of_an_own_tool_is_carried_out_and_recorded(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        assert await ask(agent, "send", {"to": "a@b.org"}) == "sent to a@b.org"
        record = await agent.supervision.record("1")
    assert SENT == [("a@b.org", 1)]
    assert (record.call.tool, record.call.description) == ("send", "Send a letter.")
    assert isinstance(record.state, Ended)
    assert isinstance(record.state.ending, Exited)


@FRAMEWORKS
async def test_a_denied_call_of_an_own_tool_does_not_reach_it(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _record: Deny(reason="no letters")) as agent:
        told = await ask(agent, "send", {"to": "a@b.org"})
    assert told == "Denied by the human. Nothing ran. Reason: no letters"
    assert SENT == []


@FRAMEWORKS
async def test_changed_arguments_reach_the_own_tool_and_the_model_is_told(ask: Ask, tmp_path):
    def change(record: CallRecord) -> Approve:
        command = record.spec.command
        assert isinstance(command, Function)
        changed = command.model_copy(update={"arguments": {"to": "c@d.org", "copies": 2}})
        return Approve(edited=record.spec.model_copy(update={"command": changed}))

    async with in_process("my agent", root=tmp_path, decide=change) as agent:
        told = await ask(agent, "send", {"to": "a@b.org"})
    assert SENT == [("c@d.org", 2)]
    assert "The human changed the arguments" in told
    assert "sent to c@d.org" in told
