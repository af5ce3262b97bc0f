"""A tool of the user's own goes through the approval queue without a word of its author."""

import asyncio

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import Function
from whisper_tui.model.ending import Exited, Withdrawn
from whisper_tui.tools import AITool, ArgumentError, ToolContext, ToolFailure, ToolRegistry


class Post(AITool):
    name = "post"
    description = "Posts a text for all to see."
    category = "Web"
    tags = ("net",)
    parameters_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }

    def __init__(self):
        self.posted = []

    def get_ai_prompt_instructions(self):
        return "Use post to post."

    def execute(self, text):
        if text == "too much":
            raise ValueError("the server said no")
        self.posted.append(text)
        return {"posted": text}


@pytest.fixture
async def place(tmp_path):
    bench = Bench(tmp_path)
    await bench.open()
    session_id = await bench.session()
    context = ToolContext(bench.supervisor, bench.supervisor._store.board.sessions[session_id])
    tool = Post()
    yield bench, tool, ToolRegistry((tool,), context=context)
    await bench.supervisor.close()


async def waiting(bench: Bench, call_id: str = "1"):
    async with asyncio.timeout(60):
        while call_id not in bench.supervisor._store.board.waiting:
            await asyncio.sleep(0.005)
    return await bench.record(call_id)


async def test_the_human_sees_the_tool_its_description_and_the_arguments(place):
    bench, tool, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "hello"}))
    record = await waiting(bench)
    assert (record.call.tool, record.call.description) == ("post", "Posts a text for all to see.")
    assert record.spec.command == Function(tool="post", arguments={"text": "hello"})
    assert tool.posted == []
    await bench.approve("1")
    assert await answer == {"posted": "hello"}
    assert tool.posted == ["hello"]
    assert bench.executor.orders == {}


async def test_a_denied_tool_is_not_called_and_the_agent_gets_the_words(place):
    bench, tool, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "hello"}))
    await waiting(bench)
    await bench.deny("1", "not in my name")
    with pytest.raises(ToolFailure, match="not in my name"):
        await answer
    assert tool.posted == []


async def test_edited_arguments_are_the_ones_that_count(place):
    bench, _tool, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "hello"}))
    record = await waiting(bench)
    softer = Function(tool="post", arguments={"text": "dear all"})
    await bench.approve("1", edited=record.spec.model_copy(update={"command": softer}))
    assert await answer == {"posted": "dear all"}


async def test_arguments_edited_into_nonsense_are_refused_by_the_schema(place):
    bench, _tool, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "hello"}))
    record = await waiting(bench)
    broken = Function(tool="post", arguments={"text": 1})
    await bench.approve("1", edited=record.spec.model_copy(update={"command": broken}))
    with pytest.raises(ArgumentError) as refusal:
        await answer
    problem = refusal.value.sentence()
    assert (await bench.record("1")).state.ending == Exited(code=1, problem=problem)


async def test_a_tool_that_raises_has_failed_and_the_error_is_the_callers(place):
    bench, _tool, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "too much"}))
    await waiting(bench)
    await bench.approve("1")
    with pytest.raises(ValueError, match="the server said no"):
        await answer
    assert (await bench.record("1")).state.ending == Exited(code=1, problem="it raised ValueError")


async def test_wrong_arguments_are_refused_before_anybody_is_asked(place):
    bench, _, tools = place
    with pytest.raises(ArgumentError, match="'text'"):
        await tools.call("post", {"text": 1})
    assert bench.supervisor._store.board.calls == {}


async def test_a_wrapped_tool_looks_like_itself(place):
    _, tool, tools = place
    asked = tools.get_tool_by_name("post")
    assert (asked.name, asked.description, asked.category, asked.tags) == (
        "post",
        "Posts a text for all to see.",
        "Web",
        ("net",),
    )
    assert asked.get_openrouter_tool_definition() == tool.get_openrouter_tool_definition()
    assert asked.get_ai_prompt_instructions() == "Use post to post."
    assert not asked.read_only


async def test_a_tool_can_say_that_a_call_needs_no_approval(place, monkeypatch):
    bench, _, tools = place

    async def never(_self, arguments):
        return arguments["text"] != "ping"

    monkeypatch.setattr(Post, "needs_approval", never)
    assert await tools.call("post", {"text": "ping"}) == {"posted": "ping"}
    assert bench.supervisor._store.board.calls == {}


async def test_a_registry_without_a_session_asks_nobody():
    assert await ToolRegistry((Post(),)).call("post", {"text": "x"}) == {"posted": "x"}


async def test_a_withdrawn_call_is_a_failure(place):
    bench, _, tools = place
    answer = asyncio.create_task(tools.call("post", {"text": "hello"}))
    await waiting(bench)
    await bench.supervisor.withdraw("1", "changed my mind")
    with pytest.raises(ToolFailure, match="Changed my mind"):
        await answer
    assert isinstance((await bench.record("1")).state.ending, Withdrawn)
