"""Arguments are checked against the published schema, and errors name what is wrong."""

import math

import pytest

from tests.rows import each_row
from tests.tools.recorded import Recorded, session
from whisper_tui.tools.ai_tool import ArgumentError, check_arguments
from whisper_tui.tools.command_tools import ExecuteCommandTool
from whisper_tui.tools.supervised_tool import ToolContext

SCHEMA = ExecuteCommandTool(ToolContext(Recorded(), session("/ws"))).parameters_schema


@each_row(
    ("timeout", "given"),
    [
        (True, "the boolean true"),
        (1.5, "the number 1.5"),
        (1.0, "the number 1.0"),
        (0, "the integer 0"),
        (121, "the integer 121"),
        (-1, "the integer -1"),
        ("60", 'the string "60"'),
        (None, "null"),
        ([], "an array"),
        ({}, "an object"),
        (math.nan, "the number nan"),
    ],
)
def test_a_timeout_that_is_not_a_whole_number_of_seconds_in_range_is_refused(timeout, given):
    with pytest.raises(ArgumentError) as raised:
        check_arguments("execute_command", SCHEMA, {"command": "ls", "timeout": timeout})
    assert raised.value.message == (f"The argument 'timeout' must be an integer from 1 to 120; {given} was given")


@each_row("timeout", [1, 60, 120])
def test_a_timeout_in_range_is_accepted(timeout):
    assert check_arguments("execute_command", SCHEMA, {"command": "ls", "timeout": timeout})["timeout"] == timeout


def test_an_unknown_key_is_refused_by_its_name_and_the_known_ones_are_listed():
    with pytest.raises(ArgumentError) as raised:
        check_arguments("execute_command", SCHEMA, {"command": "ls", "shell": True})
    assert raised.value.sentence() == "execute_command has no argument 'shell'. It takes command, args, cwd and timeout"


def test_a_missing_argument_is_named_with_what_it_must_be():
    with pytest.raises(ArgumentError, match="The argument 'command' is missing; it must be a string"):
        check_arguments("execute_command", SCHEMA, {"args": []})


def test_a_wrong_part_of_an_array_is_named_by_its_place():
    with pytest.raises(ArgumentError, match=r"The argument 'args\[1\]' must be a string; the integer 2 was given"):
        check_arguments("execute_command", SCHEMA, {"command": "ls", "args": ["a", 2]})


def test_a_whole_command_line_as_args_is_refused():
    with pytest.raises(ArgumentError, match="The argument 'args' must be an array; the string \"-la\" was given"):
        check_arguments("execute_command", SCHEMA, {"command": "ls", "args": "-la"})


@each_row("arguments", [[], "ls", None, 3, True])
def test_arguments_that_are_no_object_are_refused(arguments):
    with pytest.raises(ArgumentError, match="The arguments of execute_command must be an object"):
        check_arguments("execute_command", SCHEMA, arguments)


def test_a_nul_character_is_refused_before_anything_could_start():
    with pytest.raises(ArgumentError, match=r"The argument 'args\[0\]' contains a NUL character"):
        check_arguments("execute_command", SCHEMA, {"command": "ls", "args": ["a\0b"]})


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(ArgumentError, match="The argument 'command' is not valid Unicode"):
        check_arguments("execute_command", SCHEMA, {"command": "l\ud800s"})


def test_a_long_wrong_value_is_not_repeated_in_full():
    with pytest.raises(ArgumentError) as raised:
        check_arguments("execute_command", SCHEMA, {"command": "ls", "timeout": "x" * 10_000})
    assert len(raised.value.message) < 200
