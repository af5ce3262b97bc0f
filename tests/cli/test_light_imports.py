"""Commands that are run often start quickly: they import nothing heavy."""

import json
import subprocess
import sys

import pytest

from tests.outside import outside_only

HEAVY = {"asyncio", "mcp", "pydantic", "pydantic_core", "rich", "textual", "jsonschema", "platformdirs", "subprocess"}
COMPRESSION = {"shutil", "bz2", "lzma"}
SLOW = {"pathlib", "socket", "selectors"}
"""What takes as long as all else to load, for those who only connect."""

SHOWS_IMPORTS = """
import contextlib, io, json, sys
from whisper_tui.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        code = main(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code
print(json.dumps([code, sorted(sys.modules)]))
"""


def imported(*words: str) -> tuple[int, set[str]]:
    answer = subprocess.run(
        [sys.executable, "-c", SHOWS_IMPORTS, *words], capture_output=True, check=True, text=True, timeout=90
    )
    code, modules = json.loads(answer.stdout)
    return code, set(modules)


def test_the_version_and_the_help_import_nothing_heavy():
    for words in (["--version"], ["--help"], ["approve", "--help"]):
        code, modules = imported(*words)
        assert code == 0
        assert modules & HEAVY == set()


def test_the_version_alone_imports_not_even_the_parser():
    code, modules = imported("--version")
    assert code == 0
    assert modules & {"argparse", "pathlib", "socket"} == set()


@pytest.mark.slow
@outside_only
def test_commands_that_only_ask_import_nothing_heavy(instance):
    assert instance.run("restart").returncode == 0
    call = instance.call("execute_command", command="true")
    home = ("--home", str(instance.root))
    commands = (
        ["list"],
        ["ps", "--json"],
        ["history"],
        ["show", "1"],
        ["approvals"],
        ["status"],
        ["call", "TaskList", "{}"],
        ["approve", "1", "--session"],
    )
    for words in commands:
        code, modules = imported(*words, *home)
        assert code == 0
        # Whether decisions are signed stands in the configuration, whose directory pathlib finds.
        reads = {"pathlib"} if words[0] == "approve" else set()
        assert modules & (HEAVY | COMPRESSION | SLOW) - reads == set(), words
    call.communicate(timeout=90)
