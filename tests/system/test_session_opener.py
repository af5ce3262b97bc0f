"""The agent that opens a session, by its processes."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.rows import each_row
from whisper_tui.system.ancestry import ProcessSeen, ancestry, read_process
from whisper_tui.system.processes import LINUX
from whisper_tui.system.session_opener import COMMANDS, agent_of

INIT = ProcessSeen(pid=1, parent=0, start="0", foreign=True, adopts=True)
SHELL = ProcessSeen(pid=20, parent=10, start="2", has_terminal=True)
WINDOW = ProcessSeen(pid=10, parent=1, start="1")
AGENT = ProcessSeen(pid=30, parent=20, start="3", has_terminal=True, descends_from="agent")
DETACHED = ProcessSeen(pid=40, parent=30, start="4", descends_from="agent")
OWN_TERMINAL = ProcessSeen(pid=50, parent=40, start="5", has_terminal=True, descends_from="agent")
ORPHAN = ProcessSeen(pid=60, parent=1, start="6", has_terminal=True)
ROOT = Path(__file__).parent.parent.parent
LOGIN = ProcessSeen(pid=70, parent=1, start="7", has_terminal=True, foreign=True)


def test_all_that_an_agent_starts_belongs_to_the_oldest_process_on_its_terminal() -> None:
    above = (AGENT, SHELL, WINDOW, INIT)
    assert agent_of(above) == "process 20 2"
    assert {agent_of((DETACHED, *above)), agent_of((OWN_TERMINAL, DETACHED, *above))} == {"process 20 2"}
    assert agent_of((SHELL, LOGIN, INIT)) == "process 70 7"


@each_row(
    "line",
    [None, (WINDOW, INIT), (ORPHAN, INIT), (OWN_TERMINAL, ORPHAN, INIT), (OWN_TERMINAL, DETACHED, INIT)],
    ids=["gone", "no terminal", "orphan", "child of an orphan", "terminal of an agent"],
)
def test_processes_that_left_their_terminal_or_opened_one_are_no_agents_of_their_own(
    line: tuple[ProcessSeen, ...] | None,
) -> None:
    assert agent_of(line) == ""


def test_supervised_commands_are_one_agent() -> None:
    marked = ProcessSeen(pid=80, parent=20, start="8", descends_from="command")
    assert agent_of((marked, SHELL, WINDOW, INIT)) == COMMANDS


SAYS = """
import os, sys, time
from pathlib import Path
from whisper_tui.system.session_opener import agent_of_process
while Path(f"/proc/{os.getppid()}/comm").read_text() == "setsid\\n":
    time.sleep(0.01)
said = Path(f"{sys.argv[1]}.new")
said.write_text(agent_of_process(os.getpid()))
said.rename(sys.argv[1])
"""
STARTS = """
"$@" plain
setsid "$@" detached
setsid -f "$@" orphan
setsid -f "$@" another
script -qec "$(printf '%q ' "$@")terminal" /dev/null
read -r
"""


_MARKED = any(seen.descends_from for seen in ancestry(os.getpid(), read_process) or ())


@pytest.mark.skipif(not LINUX or not shutil.which("script"), reason="needs setsid and script")
@pytest.mark.skipif(_MARKED, reason="a process above this one is marked as an agent's")
def test_processes_of_a_terminal_are_one_agent_and_those_that_left_it_are_another(tmp_path: Path) -> None:
    said: list[dict[str, str]] = []
    names = {"plain", "detached", "orphan", "another", "terminal"}
    for number in range(2):
        directory = tmp_path / str(number)
        directory.mkdir()
        words = ["bash", "-c", STARTS, "agent", sys.executable, "-c", SAYS]
        # What bash has quoted, `script` gives to the shell that this variable names.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SHELL": shutil.which("bash") or "bash"}
        with Terminal(words, environment, directory):
            deadline = time.monotonic() + 60
            while not names <= {path.name for path in directory.iterdir()}:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        said.append({name: (directory / name).read_text() for name in names})
    for each in said:
        assert each["plain"].startswith("process ")
        assert each["plain"] == each["detached"] == each["terminal"] != each["orphan"] == each["another"]
    assert said[0]["plain"] != said[1]["plain"]
