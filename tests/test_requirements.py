"""The table of requirements is true, both ways: every demand has tests, and everything published has its demand."""

import ast
from functools import cache
from pathlib import Path
from typing import get_args

from tests.requirements import REQUIREMENTS, Requirement
from tests.rows import each_row
from tests.syntax import syntax_tree
from tests.tools.recorded import Recorded, session
from whisper_tui.tools import ToolContext, standard_registry
from whisper_tui.tools.exec_envelope import Kind
from whisper_tui.tools.task import TaskState

TESTS = Path(__file__).parent
IDS = {requirement.id for requirement in REQUIREMENTS}
TOOLS = standard_registry(ToolContext(Recorded(), session("/ws"))).get_all_tools()


@cache
def functions_of(file: str) -> set[str]:
    tree = syntax_tree((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_id_is_there_once() -> None:
    assert len(IDS) == len(REQUIREMENTS)


@each_row("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_every_demand_is_shown_by_tests_that_exist(requirement: Requirement) -> None:
    assert requirement.demand and requirement.tests
    for test in requirement.tests:
        file, _, name = test.partition("::")
        assert name in functions_of(file), test


def test_every_argument_of_every_tool_has_its_demand_and_no_other() -> None:
    published = {f"{tool.name}.{argument}" for tool in TOOLS for argument in tool.parameters_schema["properties"]}
    assert published <= IDS
    names = {tool.name for tool in TOOLS} | {"aitool", "registry", "task", "session", "all"}
    assert {identity.partition(".")[0] for identity in IDS} <= names


def test_every_kind_of_error_and_every_state_has_its_demand_and_no_other() -> None:
    assert {f"ExecCommand.error.{kind}" for kind in get_args(Kind)} == {i for i in IDS if ".error." in i}
    assert {f"task.{state}" for state in get_args(TaskState)} == {i for i in IDS if i.startswith("task.")}


def test_every_test_of_a_tool_that_is_named_after_a_promise_counts_for_one() -> None:
    """The files about ExecCommand hold nothing but promises, so each of them is reached from the table."""
    reached = {test.partition("::")[0] for requirement in REQUIREMENTS for test in requirement.tests}
    files = {str(file.relative_to(TESTS)) for file in (TESTS / "tools").rglob("test_*.py")}
    assert files - reached <= {"tools/test_output_text.py"}
