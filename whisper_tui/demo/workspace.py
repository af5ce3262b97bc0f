"""The demo's place: a small project in a temporary directory, with a home of its own, gone afterwards."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).with_name("project")
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Workspace:
    """Where the demo's agents work."""

    place: Path
    """The temporary directory that holds everything, as resolved."""
    step_s: float
    """Seconds that the project's scripts pause between two lines."""

    @property
    def root(self) -> Path:
        """The project."""
        return self.place / "garden"

    @property
    def instance(self) -> Path:
        """Where the demo's own supervisor keeps its files."""
        return self.place / "whisper"

    @property
    def environment(self) -> dict[str, str]:
        """What the demo's commands inherit: nothing of the user's but the search path."""
        return {
            "PATH": os.environ.get("PATH", USUAL_PATH),
            "HOME": str(self.place / "home"),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "DEMO_PAUSE": f"{self.step_s:g}",
        }


@contextmanager
def temporary_workspace(*, step_s: float) -> Iterator[Workspace]:
    """A fresh copy of the demo's project. Everything is removed at the end, whatever happened."""
    place = Path(tempfile.mkdtemp(prefix="whisper-")).resolve()
    try:
        workspace = Workspace(place=place, step_s=step_s)
        (place / "home").mkdir(mode=0o700)
        shutil.copytree(PROJECT, workspace.root, ignore=shutil.ignore_patterns("__pycache__"))
        for script in workspace.root.glob("*.sh"):
            script.chmod(stat.S_IRWXU)
        yield workspace
    finally:
        shutil.rmtree(place, ignore_errors=True)
