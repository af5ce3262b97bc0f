"""Every Python that the package starts is isolated, so that no workspace and no variable chooses what it imports."""

import re
import sys
from pathlib import Path

import whisper_tui
from whisper_tui.system.own_program import ROOT, installed_program, own_module, own_program, own_script

PACKAGE = Path(whisper_tui.__file__).parent
STARTED = re.compile(r"""[\[(]sys\.executable, (?!\[)(?P<next>[^\s,]+)""")
"""The interpreter as the first word of a command line, and the word behind it."""
ELSEWHERE = {
    "system/own_program.py": "makes these command lines",
    "cli/subcommand.py": "what a client's settings of an earlier version have",
}


def test_no_python_is_started_that_is_not_isolated() -> None:
    loose = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        for found in STARTED.finditer(path.read_text()):
            # A host at a place replaces itself by the words of a newer one, which are isolated as well.
            if found["next"] not in ('"-I"', "*argv") and name not in ELSEWHERE:
                loose.append((name, found[0]))
    assert loose == []


def test_each_command_line_is_isolated_and_absolute() -> None:
    for words in (own_program(), own_module("whisper_tui.cli"), own_script("/x.py"), installed_program()):
        assert words[:2] == [sys.executable, "-I"]
        assert Path(words[2]).is_absolute()
    assert str(PACKAGE.parent) == ROOT
