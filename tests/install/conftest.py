"""A machine of one's own: an empty home, a launcher and clients that are scripts, and what is done with them."""

import json
import shlex
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.agent_process import AgentProcess
from tests.clients.install import versions
from tests.conftest import spread
from tests.install.realistic import REALISTIC
from tests.interpreter import PYTHON
from whisper_tui.agents.client_files import Change, InstallPlan, InstallRequest, Launch, apply_changes, changes
from whisper_tui.agents.doctor import examine
from whisper_tui.agents.findings import DoctorContext, Report
from whisper_tui.agents.known_clients import profile_of

HERE = Path(__file__).parent
PINS = versions()
VERSIONS = {client: PINS[client] for client in ("gemini", "opencode", "copilot", "qwen", "kimi", "kilo")} | {
    "claude": f"{PINS['claude']} (Claude Code)"
}
CLIENTS = ("claude", "codex", "gemini", "opencode", "copilot", "qwen", "kimi", "kilo")


OF_EACH_CLIENT = {"test_doctor.py", "test_install_gateway.py"}
"""Files whose tests install and examine each client, with programs that are started for it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests slow for two clients, which are others for each test, and exhaustive for all but four."""
    cases: dict[str, list[tuple[str, pytest.Item]]] = {}
    for item in items:
        if item.path.parent == HERE and item.path.name in OF_EACH_CLIENT and isinstance(item, pytest.Function):
            callspec = getattr(item, "callspec", None)
            if callspec is not None and "client" in callspec.params:
                cases.setdefault(item.originalname, []).append((callspec.params["client"], item))
    for name, each in cases.items():
        clients = list(dict.fromkeys(client for client, _ in each))
        # By its name and not by its position, so that it is the same whatever else is collected.
        first = zlib.crc32(name.encode()) % len(clients)
        kept, more = spread(len(clients), min(2, len(clients)))
        turned = {client: (number + first) % len(clients) for number, client in enumerate(clients)}
        for client, item in each:
            if turned[client] not in kept:
                item.add_marker(pytest.mark.slow if turned[client] in more else pytest.mark.exhaustive)


class Machine:
    """A home, a project in it, programs on PATH, an agent, and the installer."""

    def __init__(self, root: Path, agent: AgentProcess) -> None:
        self.agent = agent
        self.home = root / "home"
        self.project = self.home / "work" / "project"
        self.bin = root / "bin"
        self.canary_s = 60.0
        self.project.mkdir(parents=True)
        self.bin.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}
        launcher = self.program("whisper-tui", HERE / "fake_launcher.py")
        self.instance = root / "instance"
        """The directory of whisper_tui's own files."""
        self.launch = Launch((PYTHON, "-I", str(launcher)), ("--home", str(self.instance)))
        self.program("codex", HERE / "fake_codex.py")
        for name, version in VERSIONS.items():
            self.client(name, version)

    def program(self, name: str, source: Path, directory: Path | None = None) -> Path:
        """Make a Python script a program."""
        path = (directory or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{PYTHON}\n{source.read_text()}")
        path.chmod(0o755)
        return path

    def client(self, name: str, version: str) -> None:
        """Make a client that does nothing but tell its version."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)

    def mood(self, mood: str) -> None:
        """How the launcher behaves from now on."""
        (self.bin / "mood").write_text(mood)

    def wish(self, *, project: bool = False, **what: Any) -> InstallRequest:
        return InstallRequest(self.launch, self.environ, project=self.project if project else None, **what)

    def plan_install(self, client: str, **what: Any) -> InstallPlan:
        planner = profile_of(client).plan_install
        assert planner is not None
        return planner(self.wish(**what))

    def install(self, client: str, **what: Any) -> list[Change]:
        planned = changes(self.plan_install(client, **what).files)
        apply_changes(planned)
        return planned

    def uninstall(self, client: str, **what: Any) -> list[Change]:
        return self.install(client, hook=False, mcp=False, **what)

    @property
    def start(self) -> str:
        """How a shell starts the launcher."""
        return shlex.join(self.launch.program)

    @property
    def scene(self) -> DoctorContext:
        """Where the doctor looks. It waits long, for machines with much to do."""
        return DoctorContext(self.launch, self.environ, self.project, canary_s=self.canary_s)

    def doctor(self, client: str, *, asked_for: bool = True) -> Report:
        return examine(client, self.scene, asked_for=asked_for)

    def files(self) -> dict[str, bytes]:
        """Every file below the home, by its name there."""
        return {
            path.relative_to(self.home).as_posix(): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file()
        }

    def directories(self) -> set[str]:
        """Every directory below the home."""
        return {path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if path.is_dir()}

    def realistic(self, client: str) -> dict[str, bytes]:
        """Files as a user of the client has them."""
        for name, text in REALISTIC[client].items():
            self.write(name, text)
        return self.files()

    def text(self, name: str) -> str:
        """The text of a file below the home."""
        return (self.home / name).read_bytes().decode()

    def said(self, name: str) -> Any:
        """What a JSON file below the home says."""
        return json.loads(self.text(name))

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def machine(tmp_path: Path, agent_process: AgentProcess) -> Machine:
    return Machine(tmp_path, agent_process)
