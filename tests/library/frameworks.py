"""The agent frameworks, each with a scripted model that calls one tool. To import them takes seconds."""

import json
from typing import Any

import agents
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

from tests.library.own_tool import send
from whisper_tui.integrations import langchain, openai_agents, pydantic_ai
from whisper_tui.library import Agent


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


ASKING = {"openai_agents": by_openai_agents, "pydantic_ai": by_pydantic_ai, "langchain": by_langchain}
"""Each has a framework's agent call one tool with arguments, and returns the text that its model gets as the result."""
