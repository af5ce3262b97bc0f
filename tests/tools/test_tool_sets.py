"""Named selections of tools, and tools that packages offer."""

from importlib.metadata import EntryPoint

import pytest

from tests.tools.recorded import Recorded, session
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.tools import AITool, SupervisedTool, ToolContext, ToolRegistry, ToolSet, UnknownTool, standard_registry
from whisper_tui.tools.registry import discover_tools

CONTEXT = ToolContext(Recorded(), session("/ws"))
HERE = "tests.tools.test_tool_sets"


def tool(tool_name: str, *its_tags: str) -> AITool:
    class Named(AITool):
        name = tool_name
        description = "Does something."
        tags = its_tags
        parameters_schema = {"type": "object", "properties": {}, "additionalProperties": False}  # noqa: RUF012

        def get_ai_prompt_instructions(self):
            return "no words"

        async def execute(self):
            return "done"

    return Named()


@pytest.fixture
def registry():
    made = ToolRegistry((tool("a", "read"), tool("b", "read", "net"), tool("c", "write"), tool("d")))
    made.define_tool_set(ToolSet("reading", tags=("read",)))
    made.define_tool_set(ToolSet("offline", inherits=("reading",), tools=("d",), without=("b",)))
    made.define_tool_set(ToolSet("all", inherits=("offline",), tools=("b", "c")))
    return made


@pytest.mark.parametrize(
    ("name", "tools"), [("reading", ["a", "b"]), ("offline", ["a", "d"]), ("all", ["a", "b", "c", "d"])]
)
def test_a_set_holds_what_it_inherits_names_and_tags_without_what_it_leaves_out(registry, name, tools):
    assert [tool.name for tool in registry.get_tool_set(name)] == tools


def test_sets_are_known_by_name(registry):
    assert registry.get_tool_set_names() == ["reading", "offline", "all"]
    with pytest.raises(InvalidRequest, match="there is no tool set 'none'"):
        registry.get_tool_set("none")


def test_a_second_set_of_a_name_and_an_unknown_parent_are_errors(registry):
    with pytest.raises(InvalidRequest, match="is already defined"):
        registry.define_tool_set(ToolSet("all"))
    with pytest.raises(InvalidRequest, match="there is no tool set 'later'"):
        registry.define_tool_set(ToolSet("new", inherits=("later",)))


def test_a_set_that_names_no_tool_is_an_error_when_it_is_used(registry):
    registry.define_tool_set(ToolSet("broken", tools=("e",)))
    with pytest.raises(UnknownTool, match="'e'"):
        registry.get_tool_set("broken")


def test_a_tool_of_a_set_that_is_unregistered_is_no_longer_in_it(registry):
    registry.unregister_tool("a")
    assert [tool.name for tool in registry.get_tool_set("reading")] == ["b"]


def test_the_standard_sets_hold_the_standard_tools():
    standard = standard_registry(CONTEXT)
    assert [tool.name for tool in standard.get_tool_set("commands")][:3] == [
        "execute_command",
        "run_shell_command",
        "ExecCommand",
    ]


def test_the_name_execute_command_can_belong_to_the_whole_line():
    standard = standard_registry(CONTEXT, whole_line=True)
    properties = standard.get_tool_by_name("execute_command").parameters_schema["properties"]
    assert set(properties) == {"command", "cwd"}
    assert "execute_command_line" not in [tool.name for tool in standard.get_all_tools()]


class Offered(AITool):
    name = "offered"
    description = "Is offered by a package."
    parameters_schema = {"type": "object", "properties": {}}  # noqa: RUF012

    def get_ai_prompt_instructions(self):
        return "no words"

    async def execute(self):
        return "done"


an_instance = tool("instance")
no_tool = 7


def by_context(context: ToolContext) -> AITool:
    return tool(f"for-{context.session.name}")


def broken(context: ToolContext) -> AITool:
    raise RuntimeError("no key")


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{HERE}:{value}", group="whisper_tui.tools")


def test_a_package_may_offer_a_class_an_instance_or_a_function_of_the_session():
    offered = [entry("a", "Offered"), entry("b", "an_instance"), entry("c", "by_context")]
    found = discover_tools(CONTEXT, offered)
    assert [tool.name for tool in found.tools] == ["offered", "instance", "for-agent"]
    assert found.problems == ()


def test_a_broken_package_takes_nothing_from_the_others():
    offered = [entry("a", "no_tool"), entry("b", "missing"), entry("c", "broken"), entry("d", "Offered")]
    found = discover_tools(CONTEXT, offered)
    assert [tool.name for tool in found.tools] == ["offered"]
    first, second, third = found.problems
    assert "is not a tool but a int" in first
    assert "'b'" in second and "AttributeError" in second
    assert "no key" in third


def test_installed_packages_are_asked_by_the_entry_point_group(monkeypatch):
    def installed(*, group: str):
        return [entry("a", "Offered"), entry("b", "missing")] if group == "whisper_tui.tools" else []

    monkeypatch.setattr("whisper_tui.tools.registry.entry_points", installed)
    offered = standard_registry(CONTEXT).get_tool_by_name("offered")
    assert isinstance(offered, SupervisedTool)


def test_a_package_cannot_take_the_name_of_a_standard_tool(monkeypatch):
    monkeypatch.setattr(Offered, "name", "execute_command")
    monkeypatch.setattr("whisper_tui.tools.registry.entry_points", lambda *, group: [entry("a", "Offered")])
    kept = standard_registry(CONTEXT).get_tool_by_name("execute_command")
    assert kept.description.startswith("Executes a system command")
