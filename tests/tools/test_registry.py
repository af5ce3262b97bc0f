"""The registry holds tools by name, filters them and calls them."""

import threading

import pytest

from tests.tools.recorded import Recorded, session
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.tools import (
    AITool,
    ArgumentError,
    DuplicateTool,
    ToolContext,
    ToolRegistry,
    UnknownTool,
    standard_registry,
)


class Shout(AITool):
    name = "shout"
    description = "Says it loudly."
    category = "Speech"
    tags = ("voice", "loud")
    parameters_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self):
        return "**Tool: `shout`**"

    async def execute(self, text):
        return text.upper()


class Whisper(Shout):
    name = "whisper"
    tags = ("voice",)

    def execute(self, text):
        return {"said": text.lower(), "thread": threading.get_ident()}


@pytest.fixture
def registry():
    return ToolRegistry((Shout(), Whisper()))


def test_a_second_tool_of_the_same_name_is_an_error_and_the_first_stays(registry):
    first = registry.get_tool_by_name("shout")
    with pytest.raises(DuplicateTool, match="'shout' is already registered"):
        registry.register_tool(Shout())
    assert registry.get_tool_by_name("shout") is first


def test_an_unregistered_tool_is_gone_and_its_name_is_free(registry):
    registry.unregister_tool("shout")
    with pytest.raises(UnknownTool, match="there is no tool 'shout'"):
        registry.get_tool_by_name("shout")
    registry.register_tool(Shout())
    assert [tool.name for tool in registry.get_all_tools()] == ["whisper", "shout"]


def test_unregistering_an_unknown_tool_is_an_error(registry):
    with pytest.raises(UnknownTool):
        registry.unregister_tool("sing")


def test_definitions_follow_the_function_calling_format(registry):
    assert registry.get_all_tool_definitions()[0] == {
        "type": "function",
        "function": {"name": "shout", "description": "Says it loudly.", "parameters": Shout.parameters_schema},
    }


def test_prompt_texts_are_joined_by_a_blank_line(registry):
    assert registry.get_all_ai_prompt_instructions() == "**Tool: `shout`**\n\n**Tool: `shout`**"


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["shout", "whisper"]),
        ({"tags": ["voice", "loud"]}, ["shout"]),
        ({"tags": ["voice", "loud"], "match": "any"}, ["shout", "whisper"]),
        ({"tags": ["quiet"], "match": "any"}, []),
        ({"category": "Speech"}, ["shout", "whisper"]),
        ({"category": "Music"}, []),
        ({"name_pattern": "^whis"}, ["whisper"]),
        ({"name_pattern": "out$", "tags": ["voice"]}, ["shout"]),
    ],
)
def test_tools_are_found_by_tags_category_and_name(registry, filters, names):
    assert [tool.name for tool in registry.get_filtered_tools(**filters)] == names


def test_a_broken_name_pattern_is_a_clear_error(registry):
    with pytest.raises(InvalidRequest, match="is not a regular expression"):
        registry.get_filtered_tools(name_pattern="(")


async def test_a_call_runs_the_tool(registry):
    assert await registry.call("shout", {"text": "hey"}) == "HEY"


async def test_a_synchronous_tool_runs_in_a_thread_of_its_own(registry):
    answer = await registry.call("whisper", {"text": "HEY"})
    assert answer["said"] == "hey"
    assert answer["thread"] != threading.get_ident()


async def test_wrong_arguments_never_reach_the_tool(registry):
    with pytest.raises(ArgumentError, match="shout has no argument 'volume'"):
        await registry.call("shout", {"text": "hey", "volume": 11})


async def test_calling_an_unknown_tool_is_an_error_that_lists_the_tools(registry):
    with pytest.raises(UnknownTool) as raised:
        await registry.call("sing", {})
    assert "shout, whisper" in raised.value.sentence()


def test_the_standard_tools_publish_closed_schemas_and_complete_prompt_texts():
    registry = standard_registry(ToolContext(Recorded(), session("/ws")))
    assert [tool.name for tool in registry.get_all_tools()] == [
        "execute_command",
        "execute_command_line",
        "run_shell_command",
        "ExecCommand",
        "TaskList",
        "TaskStatus",
        "TaskOutput",
        "TaskInput",
        "TaskStop",
        "read_file",
        "wait",
    ]
    for tool in registry.get_all_tools():
        assert tool.parameters_schema["additionalProperties"] is False
        text = tool.get_ai_prompt_instructions()
        for part in ("Tool:", "Description:", "Purpose:", "Parameters:", "Expected Output:", "Example"):
            assert part in text
        for name in tool.parameters_schema["properties"]:
            assert f"`{name}` (" in text
