"""A process that plays an agent, and starts what the process of the tests must not start itself.

The supervisor marks an agent's process, and nothing takes that mark off again. If the process of the tests were the
agent, all that it starts afterwards would count as started by an agent, in every later test, and might decide nothing.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("agent_program.py")))


class AgentProcess:
    """The agent as a test sees it. It starts when it is first needed."""

    def __init__(self) -> None:
        self._place: Path | None = None
        self._process: subprocess.Popen[str] | None = None

    def starts(self, *words: str) -> list[str]:
        """The command line with which a test has the agent start a program."""
        if self._place is None:
            self._place = self._start()
        return [*PROGRAM, str(self._place), *words]

    def _start(self) -> Path:
        # Not in the directory of the test: the path of a socket is short.
        place = Path(tempfile.mkdtemp(prefix="agent-")) / "s"
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*PROGRAM, str(place)], stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n"
        return place

    def close(self) -> None:
        """End it. What it has started goes on without it, as with every agent."""
        if self._process is not None and self._place is not None:
            self._process.communicate()
            shutil.rmtree(self._place.parent)
