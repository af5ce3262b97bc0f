"""`whisper-tui tools`: what agents are offered, in each form; and calls of any of them from a shell."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.cli.conftest import Instance

NAMES = [
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

FUNCTION_CALLING = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": {"const": "function"},
            "function": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                    "description": {"type": "string", "maxLength": 1024, "minLength": 1},
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "type": {"const": "object"},
                            "properties": {"type": "object"},
                            "required": {"type": "array", "items": {"type": "string"}},
                            "additionalProperties": {"const": False},
                        },
                        "required": ["type", "properties", "required", "additionalProperties"],
                        "additionalProperties": False,
                    },
                },
                "required": ["name", "description", "parameters"],
                "additionalProperties": False,
            },
        },
        "required": ["type", "function"],
        "additionalProperties": False,
    },
}
"""The shape of the array that chat completion APIs take as `tools`."""


def test_the_definitions_have_the_shape_of_function_calling_and_hold_valid_schemas(instance: Instance):
    definitions = json.loads(instance.run("tools", "--format", "openrouter").stdout)
    Draft202012Validator(FUNCTION_CALLING).validate(definitions)
    assert [definition["function"]["name"] for definition in definitions] == NAMES
    for definition in definitions:
        Draft202012Validator.check_schema(definition["function"]["parameters"])


def test_the_prompt_is_one_block_a_tool(instance: Instance):
    text = instance.run("tools", "--format", "prompt").stdout
    assert [block.split("`")[1] for block in text.split("**Tool: ")[1:]] == NAMES


def test_all_that_is_known_is_there_as_json(instance: Instance):
    rows = json.loads(instance.run("tools", "--format", "json").stdout)
    assert [row["name"] for row in rows] == NAMES
    assert set(rows[0]) == {"name", "description", "category", "tags", "read_only", "parameters", "prompt"}


def test_people_get_a_table_and_can_choose_a_set(instance: Instance):
    table = instance.run("tools", "--set", "tasks").stdout
    assert table.startswith("TOOL") and "TaskStop" in table and "read_file" not in table
    unknown = instance.run("tools", "--set", "nothing")
    assert unknown.returncode != 0 and "no tool set 'nothing'" in unknown.stderr


def test_no_supervisor_is_started_to_show_tools(instance: Instance):
    instance.run("tools")
    assert not (instance.root / "state").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("ExecCommand", {"cmd": "echo hello", "login": False}, '"stdout_preview": "hello\\n"'),
        ("execute_command_line", {"command": "echo hello | cat"}, '"stdout": "hello\\n"'),
        ("read_file", {"path": "../outside.txt"}, '"the plan"'),
    ],
)
@pytest.mark.few(1)
def test_any_tool_can_be_called_from_a_shell_and_waits_for_a_human(instance: Instance, tool, arguments, shown):
    (instance.workspace.parent / "outside.txt").write_text("the plan")
    process = instance.call(tool, **arguments)
    assert instance.run("approve", "1").returncode == 0
    out, err = process.communicate(timeout=90)
    assert shown in out, err


@pytest.mark.slow
def test_the_settings_of_the_user_shape_the_tools(instance: Instance):
    settings = "[tools]\nwhole_line = true\n"
    (instance.root / "config" / "config.toml").write_text(settings)
    rows = json.loads(instance.run("tools", "--format", "json").stdout)
    (tool,) = [row for row in rows if row["name"] == "execute_command"]
    assert set(tool["parameters"]["properties"]) == {"command", "cwd"}
    process = instance.call("execute_command", command="echo hello | cat")
    assert instance.run("approve", "1").returncode == 0
    out, err = process.communicate(timeout=90)
    assert '"returncode": 0' in out, err
