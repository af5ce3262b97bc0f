"""Where one conversation with a client takes place: an empty home, a workspace and an instance of whisper_tui."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.clients.install import directories
from tests.clients.programs.program import Program

LAUNCHER = Path(sys.executable).parent / "whisper-tui"
NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there, so that whatever a client wants from other hosts is refused at once."""

SETTING_UP_S = 60
SETTINGS_SIZE = 1 << 20
"""Bytes; whatever is longer holds no settings."""


class Stage:
    """Directories that nothing else uses."""

    def __init__(self, directory: Path, program: Program, model_url: str) -> None:
        assert LAUNCHER.exists(), f"{LAUNCHER} is not there: install whisper_tui into the environment of the tests"
        self.program = program
        self.user_home = directory / "user"
        self.workspace = directory / "workspace"
        self.home = directory / "whisper"
        self.user_home.mkdir(mode=0o700, parents=True)
        self.workspace.mkdir()
        (self.home / "config").mkdir(parents=True, mode=0o700)
        (self.home / "config" / "rules.toml").write_text('read_only = false\nedits = "allow"\n')
        self.options: tuple[str, ...] = ()
        """More options for the client."""
        self.variables: dict[str, str] = {}
        """More variables for the client."""
        self._directory = directory
        self._model_url = model_url
        program.configure(self.user_home, model_url)

    def environment(self) -> dict[str, str]:
        """All that the client inherits: nothing of the machine's own settings, and nothing beyond the loopback."""
        path = os.pathsep.join((*map(str, directories()), os.environ["PATH"]))
        plain = {"HOME": str(self.user_home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/bash"}
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxies = {name: NOWHERE for given in names for name in (given, given.lower())}
        near = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return plain | proxies | near | self.program.environment(self._model_url) | self.variables

    def start_client(self, prompt: str) -> "subprocess.Popen[bytes]":
        """The client at its work, in a process group of its own; what it writes goes to files."""
        arguments = [*self.program.arguments(prompt), *self.options]
        with (self._directory / "out").open("wb") as out, (self._directory / "err").open("wb") as err:
            return subprocess.Popen(
                arguments,
                executable=self._find(arguments[0]),
                cwd=self.workspace,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def written(self) -> str:
        """The end of what the client wrote, for people who look into a failure."""
        texts = {name: (self._directory / name).read_text(errors="replace")[-2000:] for name in ("out", "err")}
        return "\n".join(f"--- standard {name} of {self.program.name}\n{text}" for name, text in texts.items())

    def whisper_tui(self, verb: str, *arguments: str) -> str:
        """Run a subcommand for this instance, as the user would in the workspace. Returns what it printed."""
        done = self._run(verb, *arguments)
        assert done.returncode == 0, f"whisper-tui {verb}: {done.stderr}{done.stdout}"
        return done.stdout

    def stop(self) -> None:
        """End everything that whisper_tui still runs here, if it runs at all."""
        self._run("stop", "--end-runs")

    def _run(self, verb: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [LAUNCHER, verb, *arguments, "--home", self.home],
            cwd=self.workspace,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SETTING_UP_S,
            check=False,
        )

    def change_settings(self, old: str, new: str) -> None:
        """Put another text into the client's settings wherever the pattern `old` matches. It has to match somewhere."""
        changed = 0
        for path in self.user_home.rglob("*"):
            if path.is_file() and path.stat().st_size < SETTINGS_SIZE:
                text, count = re.subn(old, new, path.read_text(errors="replace"))
                if count:
                    path.write_text(text)
                changed += count
        assert changed, f"{old} is nowhere in the settings of {self.program.name}"

    def _find(self, name: str) -> str:
        found = next((place / name for place in directories() if (place / name).exists()), None)
        assert found is not None, f"{name} is not installed: run make test-clients, or python tests/clients/install.py"
        return str(found)
