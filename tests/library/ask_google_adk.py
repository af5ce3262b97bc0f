"""Google's ADK with a scripted model that calls one tool."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from tests.library.own_tool import send
from whisper_tui.integrations import google_adk
from whisper_tui.library import Agent


class OneCall(BaseLlm):
    """A model that calls one tool, and ends when it has the result."""

    call: types.FunctionCall

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        results = [part.function_response for each in llm_request.contents for part in each.parts or ()]
        part = types.Part(text="done") if any(results) else types.Part(function_call=self.call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def ask(agent: Agent, name: str, arguments: dict[str, Any]) -> str:
    own = google_adk.approved_tool(agent, FunctionTool(send))
    model = OneCall(model="scripted", call=types.FunctionCall(name=name, args=arguments))
    runner = InMemoryRunner(LlmAgent(name="a", model=model, tools=[*google_adk.tools(agent), own]), app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text="go")])
    told = ""
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=said):
        for response in event.get_function_responses():
            told = str((response.response or {})["result"])
    return told
